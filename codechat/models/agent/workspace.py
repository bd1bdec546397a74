"""The workspace of a session: a room that only the agent's own files, the system's and one address are in.

After each request the room's files are kept as an archive in the cell's folder, from which an interrupted session goes
on. An archive is read, never unpacked, outside of a room.
"""

import asyncio
import contextlib
import io
import re
import shlex
import shutil
import socket
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import write_atomically
from codechat.models import Desk, Request
from codechat.models.agent.config import CONTINUED, AgentConfig
from codechat.models.agent.turn import LONGEST_NOTE, WORKSPACE, Files
from codechat.sandbox import NAMESPACES
from codechat.sandbox.command import check_tools
from codechat.sandbox.rooms import LONGEST, VARIABLES, Ended, Resident
from codechat.sandbox.rooms.box import Box
from codechat.sandbox.rooms.inside import furnish

PORT = 8080
"""Of the endpoint, on the room's own loopback interface."""
ERRORS = "/tmp/.errors"
OPEN_FILES, SHORT_S, DAY_S = 4096, 20.0, 86_400.0
WORD = re.compile(r"\{(prompt|session|model|endpoint|home)\}")
NODE_MODULES = "node_modules"


@dataclass(frozen=True)
class Installation:
    """The agent on this machine: its program, the paths that it needs, and the box for its rooms."""

    program: str
    shown: tuple[str, ...]
    path: str
    box: Box

    @classmethod
    def of(cls, config: AgentConfig) -> "Installation":
        """Find the agent. Raises `UserError` if it cannot be started here."""
        box = Box.here()
        if box is None:
            raise UserError("a coding agent needs bubblewrap with user namespaces, which do not work here", NAMESPACES)
        program = shutil.which(config.command[0])
        if program is None:
            raise UserError(f"there is no program '{config.command[0]}'", "install the agent: docs/agents.md says how")
        parts = dict.fromkeys((*_parts_of(Path(program).resolve()), *map(Path, config.shown)))
        try:
            shown = check_tools(map(str, parts), movable=False)
        except UserError as error:  # its remedy is about tools of candidate programs
            remedy = "install the agent outside of /tmp, in an environment apart from codechat's (docs/agents.md)"
            raise UserError(error.message, remedy) from None
        folders = [str(Path(each).parent) for each in shown if Path(each).is_file()]
        folders += [str(Path(each) / "bin") for each in (*shown, box.python.base)]
        return cls(str(Path(program).resolve()), shown, ":".join([*folders, VARIABLES["PATH"]]), box)


def _parts_of(program: Path) -> Iterator[Path]:
    """The paths that a program needs: its npm packages with Node, its virtual environment with Python, or itself."""
    if NODE_MODULES in program.parts:
        yield Path(*program.parts[: program.parts.index(NODE_MODULES) + 1])
        if node := shutil.which("node"):
            yield Path(node).resolve()
    elif (program.parent.parent / "pyvenv.cfg").is_file():
        yield program.parent.parent
        python = (program.parent / "python").resolve()
        yield python if python.is_relative_to("/usr/bin") else python.parent.parent
    else:
        yield program


class Workspace:
    """A session's room, opened at its first request in a process."""

    def __init__(self, config: AgentConfig, installation: Installation, desk: Desk) -> None:
        self._config, self._installation, self._desk = config, installation, desk
        self._resident: Resident | None = None
        self._state: Path | None = None  # the archive of the room's files
        self.files: Files | None = None  # in that archive, once they have been read
        self.listener: socket.socket | None = None
        self.conversation = ""

    def path(self, request: Request, suffix: str) -> Path:
        """A file about a request; names sort as the requests follow each other."""
        return self._desk.folder / f"{request.turn + 1:04}-{request.number:04}{suffix}"

    async def open(self, request: Request) -> Path:
        """Make the room as it was before a request; returns the archive of that state. Raises `InfrastructureError`."""
        own = self.path(request, ".tar")
        before = max((each for each in self._desk.folder.glob("*.tar") if each.name < own.name), default=None)
        if before is None:
            if request.turn or request.number:
                raise InfrastructureError(f"the workspace before turn {request.turn} is gone: {self._desk.folder}")
            before = self._desk.folder / "0000.tar"
            pack = self._desk.start().pack or bytes
            write_atomically(before, await asyncio.to_thread(lambda: _archive_of(pack())))
        if self._resident is not None and before == self._state:
            return before
        await self.aclose()
        lower = self._desk.folder.absolute() / "empty"  # bubblewrap has another working folder
        lower.mkdir(mode=0o755, exist_ok=True)
        box, limits = self._installation.box, self._config.limits_of_turn
        options = box.options(overlay=False, hides_python=False) | {
            "memory": limits.memory_mb << 20,
            "processes": limits.processes,
            "disk": limits.disk_mb << 20,
            "open_files": OPEN_FILES,
            "output": LONGEST_NOTE,
            "environment": self._environment(),
        }
        self._resident = await Resident.start(box.command(lower.resolve(), self._installation.shown), options)
        self.listener = await self._resident.listen(PORT)
        with before.open("rb") as archive:
            await self._resident.load(archive)
        self._state, self.files, note = before, None, before.with_suffix(".conversation")
        self.conversation = note.read_text(encoding="utf-8") if note.exists() else ""
        return before

    async def run(self, prompt: str) -> Ended:
        """Start the agent with a prompt, which `end` ends. Raises `InfrastructureError` if the room is gone."""
        further = self._config.continued if self.conversation else ()
        words = [part for word in self._config.command[1:] for part in (further if word == CONTINUED else (word,))]
        command = shlex.join([self._installation.program, *(self._filled(each, prompt) for each in words)])
        data = f"{command} </dev/null 2>{ERRORS}".encode()
        if len(data) >= LONGEST:
            raise InfrastructureError("the request is longer than a program's argument may be")
        assert self._resident is not None
        return await self._resident.run(data, DAY_S)

    async def end(self) -> None:
        """End the agent."""
        assert self._resident is not None
        await self._resident.end_command()

    async def errors(self) -> str:
        """The end of the agent's error output."""
        return await self.said(("tail", "-c", "1500", ERRORS))

    async def said(self, words: Iterable[str]) -> str:
        """The output of a short command; empty if it ends with an error."""
        assert self._resident is not None
        done = await self._resident.run(shlex.join(words).encode(), SHORT_S)
        return done.head.decode("utf-8", "replace").strip() if done.status == 0 else ""

    def count_attempt(self, request: Request) -> int:
        """The number of attempts at a request, this one included."""
        note = self.path(request, ".attempts")
        attempts = 1 + (int(note.read_text(encoding="utf-8")) if note.exists() else 0)
        write_atomically(note, str(attempts))
        return attempts

    async def keep(self, request: Request) -> tuple[Path, bool]:
        """Keep the files as the state after a request; returns the archive, and whether it has all files.

        Files that are longer than the disk, such as ones with holes, are given up: the state is then the one before.
        """
        assert self._resident is not None and self._state is not None
        archive, before = self.path(request, ".tar"), self._state
        whole = await self._resident.save(archive, self._config.limits_of_turn.disk_mb << 20)
        if not whole:
            write_atomically(archive, before.read_bytes())
            await self.aclose()
        for each in self._desk.folder.iterdir():
            if each.is_file() and each.stem not in (archive.stem, before.stem):
                each.unlink()
        self._state = archive
        return archive, whole

    def name_conversation(self, name: str) -> None:
        """Go on with a conversation from the state that was kept last; without a name, as before."""
        assert self._state is not None
        self.conversation = name or self.conversation
        write_atomically(self._state.with_suffix(".conversation"), self.conversation)

    async def aclose(self) -> None:
        """End the room and all that runs in it."""
        resident, self._resident, listener, self.listener = self._resident, None, self.listener, None
        if listener is not None:
            listener.close()
        if resident is not None:
            await resident.aclose()

    def _environment(self) -> dict[str, str]:
        own = {name: self._filled(value, "") for name, value in self._config.environment.items()}
        return {**VARIABLES, "PATH": self._installation.path, **own}

    def _filled(self, word: str, prompt: str) -> str:
        address = f"http://127.0.0.1:{PORT}{urlsplit(self._config.address).path}"
        values = {"prompt": prompt, "session": self.conversation, "model": self._config.name}
        values |= {"endpoint": address, "home": furnish.HOME}
        return WORD.sub(lambda found: values[found[1]], word)


def _archive_of(start: bytes) -> bytes:
    """The first state of a room, with the files of an archive in its workspace."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive, contextlib.ExitStack() as held:
        given = held.enter_context(tarfile.open(fileobj=io.BytesIO(start))) if start else None
        for entry in given or ():
            data = given.extractfile(entry) if given is not None and entry.isreg() else None
            entry.name = f"{WORKSPACE}{entry.name}"
            archive.addfile(entry, data)
    return target.getvalue()
