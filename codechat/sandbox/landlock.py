"""Isolation by Landlock and filters of system calls: it needs neither namespaces nor any right."""

import functools
import tempfile
from pathlib import Path
from typing import Literal

from codechat.base.config import run_option
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox, SandboxConfig
from codechat.sandbox.bubblewrap import LIBRARIES, LOADER
from codechat.sandbox.command import PROC
from codechat.sandbox.inside.isolate import barrier
from codechat.sandbox.process import another_user, limits_of, secrets
from codechat.sandbox.watch import WorkerDied
from codechat.sandbox.workers import Inside, Launch, ZygoteSandbox, variables_of

REMEDY = "use Linux 5.13 or later with Landlock enabled (lsm=landlock), or sandbox=docker or sandbox=process"


class LandlockConfig(SandboxConfig):
    """Options of `landlock`."""

    kind: Literal["landlock"] = run_option("landlock", "own folders and processes alone, where namespaces are refused")


@SANDBOXES.register("landlock", LandlockConfig)
def landlock(config: SandboxConfig, workers: int = 1) -> Sandbox:
    """Files by Landlock, processes by a supervisor, no network: strong where namespaces are refused. Its first worker
    has started. Raises `UserError` if the kernel has no Landlock."""
    launch = functools.cache(functools.partial(_launch, config))

    def launches(tools: tuple[str, ...]) -> Launch:
        return launch(tuple(tool for tool in tools if tool != PROC))

    sandbox = ZygoteSandbox(config, launches, workers, weak=False, notice=None, own_folders=False)
    try:
        sandbox.start()
    except WorkerDied as error:
        raise UserError(f"Landlock does not work here: {str(error).splitlines()[-1]}", REMEDY) from error
    return sandbox


def _launch(config: SandboxConfig, tools: tuple[str, ...]) -> Launch:
    libraries = config.libraries()
    here = Path(__file__).parent
    system = libraries.base == Path("/usr")
    interpreter = [libraries.program] if system else [str(libraries.base), *libraries.linked]
    needed = [*interpreter, *libraries.path, *tools, tempfile.gettempdir()]
    visible = [*LIBRARIES, *LOADER, *interpreter, *libraries.path, *tools]
    inside = Inside(
        paths=list(libraries.path),
        limits=limits_of(config),
        scratch=[],
        # Root becomes another user if that one can reach what programs need. Landlock holds for root, too.
        uid=None if any(map(barrier, needed)) else another_user(),
        hide=list(dict.fromkeys([*secrets(), *libraries.hidden()])),
        landlock=visible,
    )
    environment = {"LD_LIBRARY_PATH": str(Path(libraries.program).parent.parent / "lib"), **variables_of(config)}
    return Launch(
        lambda rest, _: [libraries.program, *rest], str(here), inside, place="landlock", environment=environment
    )
