"""Bubblewrap over a private copy of the repository: no engine, no network, no build."""

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import result_option
from codechat.base.domain import Build
from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.datasets.tasks import Workspace
from codechat.sandbox import NAMESPACES
from codechat.sandbox.inside.beside import clear, landlock_version
from codechat.sandbox.process import another_user
from codechat.sandbox.rooms import HIDDEN, VARIABLES, Resident, boot
from codechat.sandbox.rooms.box import ETC, LINKED, SHOWN, Box
from codechat.studies.cab.environments import ENVIRONMENTS, Environment, Worktree
from codechat.studies.cab.environments.commits import hold_commit
from codechat.studies.cab.environments.resident import Limits, ResidentWorktree

NO_BUILD = Build(False, "environment=checkout builds nothing; environment=docker does")


class CheckoutConfig(Limits):
    kind: Literal["checkout"] = result_option("checkout", "a private copy of the repository, without an engine")


class Checkout:
    """Opens worktrees over unpacked commits. `overlay=False` copies a commit even if layers are available.

    `free` counts the worktrees that may still be opened, if they are counted together with another environment's.
    """

    commands, builds = True, False

    def __init__(self, limits: Limits, *, overlay: bool = True, free: asyncio.Semaphore | None = None) -> None:
        self._limits, self._overlay = limits, overlay
        self._free = free or asyncio.Semaphore(limits.max_rooms)
        self._owner = another_user()
        self._box = Box.here()
        if self._box is None and landlock_version() < 1:
            raise UserError(
                "environment=checkout needs bubblewrap with user namespaces, or Landlock, and neither works here",
                f"{NAMESPACES} for bubblewrap, which has to be installed, or choose environment=none or docker",
            )

    async def check(self) -> None:
        """The constructor has checked the program."""

    async def open(self, workspace: Workspace) -> Worktree:
        await self._free.acquire()
        with ExitStack() as held:
            held.callback(self._free.release)
            if self._box is None:
                lower = await hold_commit(held, workspace, None)
                command, config = [sys.executable, *boot("")], self._beside(lower, _own_folder(held))
            else:
                lower = await hold_commit(held, workspace, self._owner)
                command, config = self._box.command(lower), self._box.options(overlay=self._overlay)
            resident = await Resident.start(command, {**self._limits.inside(), **config, "environment": VARIABLES})
            return ResidentWorktree(self._limits, resident, held.pop_all(), lambda *_: NO_BUILD)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _beside(self, lower: Path, own: Path) -> dict[str, Any]:
        """The options of a worktree in the folder `own`, confined by Landlock."""
        visible, cover = [*SHOWN, *LINKED, *ETC], [*HIDDEN, str(cache_root())]
        return {"lower": str(lower), "own": str(own), "uid": self._owner, "visible": visible, "cover": cover}


def _own_folder(held: ExitStack) -> Path:
    """An empty folder that ends with the worktree."""
    folder = Path(tempfile.mkdtemp(prefix="codechat-room-")).resolve()

    def remove() -> None:
        if folder.exists():
            clear(str(folder))
            folder.rmdir()

    held.callback(remove)
    return folder


@ENVIRONMENTS.register("checkout", CheckoutConfig)
def checkout(config: CheckoutConfig) -> Environment:
    """Bubblewrap over a private copy of the repository at its commit: no engine, no network, no build."""
    return Checkout(config)
