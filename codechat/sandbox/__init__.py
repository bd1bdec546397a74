"""The sandbox: the only place where candidate code runs. One file per kind of isolation. It runs programs in boxes and
knows neither tasks nor tests: `codechat.sandbox.suites` makes verdicts of the runs.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from pydantic import create_model

from codechat.base.config import Config, original_option, place_option, run_option
from codechat.base.errors import UserError
from codechat.base.plugins import import_all
from codechat.base.registry import NoTraits, Registry
from codechat.sandbox.command import PYTHON, Command, Ran, Why
from codechat.sandbox.interpreters import Libraries, libraries_at
from codechat.sandbox.watch import CPU_LEFT_S, Ended, Job, Pace, Reader, WorkerDied

T = TypeVar("T")
K = TypeVar("K", bound="Helper")


class SandboxConfig(Config):
    """The limits that can change a verdict, the same for every kind of isolation.

    The configs in `SANDBOXES` also have the options that kinds of tests add (`AddedOptions`). An input may take
    max(`min_cpu_s`, `cpu_factor` × the reference's CPU time on this machine); a whole program the sum of these, at most
    max(`total_cpu_s`, `cpu_factor` × the reference's total). Limits are in CPU time: a busy machine changes no verdict.
    """

    kind: str = run_option(..., "how candidate code is isolated")
    min_cpu_s: float = original_option(1.0, "CPU seconds that every input may take at least", gt=0)
    cpu_factor: float = original_option(4.0, "CPU time that an input may take, in units of the reference's", ge=1)
    load_cpu_s: float = original_option(10.0, "CPU seconds that loading the program may take", gt=0)
    total_cpu_s: float = original_option(60.0, "CPU seconds that a program may take over all inputs", gt=0)
    idle_s: float = original_option(5.0, "seconds that an input may sleep or wait; a whole program total_cpu_s", gt=0)
    memory_mb: int = original_option(4096, "address space of a process in MiB", ge=64)
    processes: int = original_option(32, "processes and threads that a program may have at once", ge=1)
    file_mb: int = original_option(32, "MiB that a program may write into its temporary folder", ge=1)
    open_files: int = original_option(64, "files that a program may hold open", ge=16)
    output_mb: int = original_option(256, "MiB of results that are read from one program", ge=1)
    allow_weak: bool = run_option(False, "let models other than the built-in baselines run in a weak sandbox")
    python: str | None = place_option(
        None, "the interpreter whose packages programs import; null: codechat's own", min_length=1
    )

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options, and the versions of the libraries if they are not codechat's own. Raises `UserError`."""
        versions = self.versions_of_libraries()
        return {**super().identity(older), **({"libraries": versions} if versions else {})}

    def libraries(self) -> Libraries:
        """The interpreter and the packages of programs. Raises `UserError` if `python` names none."""
        return libraries_at(self.python)

    def versions_of_libraries(self) -> str:
        """A hash of the versions that can decide a verdict; empty if the libraries are codechat's own."""
        return "" if self.python is None else self.libraries().digest


class AddedOptions(Config):
    """Options that one kind of tests adds to every sandbox, such as where its compiler is. A module that registers
    kinds of tests subclasses it: the field `x` is then the option `sandbox.x`."""

    @classmethod
    def of(cls, config: SandboxConfig) -> Self:
        """These options in a sandbox's config; their defaults if it was made without them."""
        return config if isinstance(config, cls) else cls()


class Helper(Protocol):
    """A trusted process that works for one box, such as a compiler."""

    def stop(self) -> None:
        """End it, from any thread."""


class Box(Protocol):
    """A place for one run at a time. Its methods block: call them in the thread that `Sandbox.lend` gives."""

    def parts_processes(self, needs: Collection[str] = ()) -> bool:
        """Whether two processes of one run can't reach each other's files and processes, and tests have what they need.
        It starts the box if need be. Raises `WorkerDied`."""

    def python(self, job: Job, reader: Reader) -> Ended:
        """Run a job of `inside` in a fork of the warm interpreter, its stream fed to `reader`. Raises `WorkerDied` if
        the box broke; `Sandbox.lend` handles that."""

    def keep(self, key: str, start: Callable[[], K]) -> K:
        """The helper that `start` returned when it was first called for `key` in this box; it ends with the box."""

    def stream(self, command: Command, reader: Reader, pace: Pace, idle_s: float) -> Ended:
        """Run a program that writes results to its standard output, fed to `reader`; `Ended.stdout` is its other one.
        It may wait `idle_s` seconds between two results, and `command.idle_s` in all. Raises as `run`, and `UserError`
        if the box does not see it."""

    def run(self, command: Command) -> Ran:
        """Run a program. Raises `InfrastructureError` if the files cannot be written, `WorkerDied` as above."""


class TakenDown(Exception):
    """A program broke its box twice, though a trivial program runs there: the program is at fault."""


class Sandbox(Protocol):
    """Runs hostile code. `weak`: such code could read the user's files; `notice`: a warning to show at the start. Every
    program has no network, no rights, its own empty folder, and the limits of `config`."""

    weak: bool
    notice: str | None
    config: SandboxConfig

    async def lend(self, work: Callable[[Box], T], tools: Sequence[str] = ()) -> T:
        """The result of `work`, which gets a warm box to itself, in a thread.

        If the box broke, `work` is called once more with a fresh box. `tools` are files or folders of the host that are
        visible in the box, read-only. Raises what `work` raises; `TakenDown` if the program broke two boxes;
        `InfrastructureError` if no box can be had; `UserError` if a tool is missing.
        """

    async def run(self, command: Command) -> Ran:
        """Run a program in a box that has its tools. Raises `InfrastructureError` and `UserError` as above."""

    async def aclose(self) -> None:
        """End every started process."""


@runtime_checkable
class Preloading(Protocol):
    """A sandbox that can load modules beforehand, once for many programs."""

    def preload(self, modules: Sequence[str]) -> None:
        """From now on load modules in every place of assertion tests, except modules that cannot be loaded."""


NAMESPACES = (
    "allow user namespaces (Ubuntu: an AppArmor profile for bwrap, or "
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0; Docker: --security-opt seccomp=unconfined)"
)
"""What lets an installed bubblewrap work where the system refuses it."""


def admit(sandbox: Sandbox, config: SandboxConfig) -> None:
    """Refuse to run a model's code in a weak sandbox unless allowed. Raises `UserError`."""
    if sandbox.weak and not config.allow_weak:
        raise UserError(
            sandbox.notice or f"sandbox={config.kind} is weak: programs can read this user's files",
            f"{NAMESPACES} for bubblewrap, or use a kernel with Landlock, or accept it with sandbox.allow_weak=true",
        )


class Sandboxes(Registry[Sandbox, NoTraits]):
    """The kinds of isolation, each with the options that kinds of tests add."""

    def discover(self) -> None:
        if self._discovered:
            return
        super().discover()
        import_all("codechat.sandbox.suites", "suite")
        import_all("codechat.sandbox.suites.calls.drivers", "driver")
        for name, component in self._components.items():
            self._components[name] = replace(component, config=_with_options_of_tests(component.config))


def _with_options_of_tests(config: type[Config]) -> type[Config]:
    """A config's subclass with the options of all kinds of tests. Raises `TypeError` if two have one name."""
    taken = set(config.model_fields)
    for options in AddedOptions.__subclasses__():
        if twice := taken & set(options.model_fields):
            raise TypeError(f"{options.__module__}.{options.__name__}: sandbox.{min(twice)} is an option already")
        taken |= set(options.model_fields)
    bases = (*AddedOptions.__subclasses__(), config)
    return create_model(config.__name__, __base__=bases, __module__=config.__module__, __doc__=config.__doc__)


SANDBOXES = Sandboxes("sandbox", "codechat.sandbox", NoTraits, Sandbox, SandboxConfig)

__all__ = [
    "CPU_LEFT_S", "PYTHON", "SANDBOXES", "AddedOptions", "Box", "Command", "Ended", "Helper", "Job", "Libraries",
    "Pace", "Preloading", "Ran", "Reader", "Sandbox", "SandboxConfig", "TakenDown", "Why", "WorkerDied", "admit",
]  # fmt: skip
