"""A private copy of the repository in a box without network, made by bubblewrap."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from codechat.config import result_option
from codechat.domain import Build, Output
from codechat.environments import ENVIRONMENTS, Environment, EnvironmentConfig, Room
from codechat.environments.commits import unpacked
from codechat.errors import UserError
from codechat.tasks import Workspace
from codechat.texts import visible

NO_BUILD = "(environment=checkout builds nothing; environment=docker does)"


class CheckoutConfig(EnvironmentConfig):
    """Options of `checkout`."""

    kind: Literal["checkout"] = result_option("checkout", "a private copy of the repository, without an engine")
    command_s: float = result_option(60.0, "seconds by the clock that a command may take", gt=0)
    output_kb: int = result_option(16, "KiB of a command's output that are kept, of its head and its tail", ge=1)


class Copy:
    """A room over a private copy."""

    def __init__(self, config: CheckoutConfig, environment: "Checkout", folder: Path) -> None:
        self._config, self._environment, self._folder = config, environment, folder

    async def run(self, command: str) -> Output:
        began = time.monotonic()
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH"]
        words += ["/usr/bin:/bin", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"]
        words += ["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--tmpfs", "/tmp"]
        words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(self._folder), "/repository"]
        words += ["--chdir", "/repository", "/bin/sh", "-c", command]
        pipe = asyncio.subprocess.PIPE
        running = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=asyncio.subprocess.STDOUT, env={}
        )
        try:
            data, _ = await asyncio.wait_for(running.communicate(), self._config.command_s)
        except TimeoutError:
            running.kill()
            await running.wait()
            return Output("", None, "timeout", seconds=time.monotonic() - began)
        room = self._config.output_kb << 9
        cut = len(data) > 2 * room
        kept = data[:room] + b"\n[...]\n" + data[-room:] if cut else data
        return Output(visible(kept.decode(errors="replace")), running.returncode, "exit", cut, time.monotonic() - began)

    async def build(self, files: Mapping[str, str], dockerfile: str | None) -> Build:
        return Build(False, NO_BUILD)

    async def aclose(self) -> None:
        shutil.rmtree(self._folder.parent, ignore_errors=True)
        self._environment.slots.release()


class Checkout:
    """Opens rooms over copies of unpacked commits."""

    commands, builds = True, False

    def __init__(self, config: CheckoutConfig) -> None:
        self._config, self.slots = config, asyncio.Semaphore(config.max_rooms)

    async def open(self, workspace: Workspace) -> Room:
        if shutil.which("bwrap") is None:
            raise UserError("environment=checkout needs the program bwrap", "install the package 'bubblewrap'")
        await self.slots.acquire()
        source = await asyncio.to_thread(unpacked, workspace, None)
        folder = Path(tempfile.mkdtemp(prefix="codechat-room-")) / "repository"
        copy = await asyncio.create_subprocess_exec("cp", "-a", "--reflink=auto", str(source), str(folder))
        await copy.wait()
        return Copy(self._config, self, folder)

    async def aclose(self) -> None:
        """Rooms are closed by their sessions."""


@ENVIRONMENTS.register("checkout", CheckoutConfig)
def checkout(config: CheckoutConfig) -> Environment:
    """Bubblewrap over a private copy of the repository at its commit: no engine, no network, no build."""
    return Checkout(config)
