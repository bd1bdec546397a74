"""The room where candidate code runs, and the only one. One file per kind of isolation."""

from collections.abc import Callable
from typing import Protocol

from codechat.config import Config, original_option, run_option
from codechat.domain import ProgramTests, Task, Verdict
from codechat.errors import UserError
from codechat.registry import Registry


class SandboxConfig(Config):
    """The limits that can change a verdict, the same for every kind of isolation.

    An input may take max(`min_cpu_s`, `cpu_factor` × the reference's CPU time on this machine), a whole program the
    sum of that, at most max(`total_cpu_s`, `cpu_factor` × the reference's total). CPU time, so that a busy machine
    changes no verdict.
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


class Sandbox(Protocol):
    """Runs programs against tests; knows nothing of models or turns.

    `weak` tells that hostile code could read the user's files; `notice` is what to say at the start, or None.
    """

    weak: bool
    notice: str | None

    async def verify(self, program: str, task: Task) -> Verdict:
        """Run the task's base and plus tests, and its assertions, on a whole program.

        Never raises for anything the program does; raises `InfrastructureError` where the sandbox itself fails
        and `UserError` where the task's own reference does.
        """

    async def assess(self, program: str, tests: ProgramTests, entry_point: str = "") -> Verdict:
        """Run assertions after a program, or a repository's tests with the program in its place: passed if all are.

        `entry_point`, where it is known, must be defined, and is the one name of a builtin that the program may give
        another meaning for the assertions. Candidate and assertions share an interpreter: docs/sandbox.md says what is
        guarded. Leaving early never passes. `load_cpu_s` holds for the program's own code and for every snippet.
        """

    async def run_script(self, source: str, wall_s: float) -> Verdict:
        """Run a script in a file and an interpreter of its own: it passes if that ends with status 0 within `wall_s`
        seconds by the clock. The script decides that itself: this is for what others measured so."""

    async def reference_cpu_s(self, task: Task) -> float:
        """CPU seconds of the task's reference over all inputs, here: what the longest tasks are told by."""

    async def aclose(self) -> None:
        """End every process that was started."""


def admit(sandbox: Sandbox, config: SandboxConfig) -> None:
    """Refuse to run a model's code in a weak sandbox unless told to; raises `UserError` with the package to install."""
    if sandbox.weak and not config.allow_weak:
        raise UserError(
            f"sandbox={config.kind} is weak: a model's code could read this user's files",
            "install the package 'bubblewrap' and use sandbox=bubblewrap, or accept it with sandbox.allow_weak=true",
        )


SandboxFactory = Callable[..., Sandbox]
SANDBOXES: Registry[Sandbox, NoTraits] = Registry("sandbox", "codechat.sandbox", NoTraits)

__all__ = ["SANDBOXES", "Sandbox", "SandboxConfig", "SandboxFactory", "admit"]
