"""Any program as a job of the sandbox: its input, its result and its bounded output."""

import marshal
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from codechat.base.environment import cache_root, home
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import content_hash
from codechat.sandbox.inside import wire
from codechat.sandbox.watch import CPU_LEFT_S, Ended, Job

PYTHON = wire.PYTHON
TAIL = 2000
Why = Literal["wall", "cpu", "idle", "input", "output", "down", "missing"]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program with its arguments and the only files in the working folder.

    `argv[0]` is a path or a name to be found in the box; `PYTHON` stands for the box's interpreter, for which a
    PYTHONPATH in `environment` comes before the installed packages. `files` are relative paths and their content; the
    tar file `archive` is unpacked in the same folder. The program runs in `folder`, relative to it, and may take
    `wall_s` seconds by the clock, `cpu_s` of CPU time (None: `wall_s`) and `idle_s` without working (None: no limit).
    `file_mb` bounds all files, and `processes` the processes and threads at once (None: the sandbox's limits). The last
    `tail` bytes of either output are kept. `tools` are paths of the host that are visible in the box, read-only. A
    program that is `alone` can start no other process, threads apart, and can execute nothing that it writes.
    """

    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    archive: bytes = b""
    folder: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)
    wall_s: float = 60.0
    cpu_s: float | None = None
    idle_s: float | None = None
    processes: int | None = None
    file_mb: int | None = None
    tail: int = TAIL
    tools: tuple[str, ...] = ()
    alone: bool = False

    @property
    def key(self) -> str:
        """A hash, equal only for equal commands; the paths of its tools are not part of it."""
        files = {name: content_hash(data) for name, data in self.files.items()}
        limits: list[object] = [self.wall_s, self.cpu_s, self.file_mb, self.tail]
        if (later := (self.idle_s, self.processes, self.alone)) != (None, None, False):
            limits += later
        return content_hash([self.argv, files, content_hash(self.archive), self.folder, self.environment, limits])

    @property
    def cpu_limit(self) -> int:
        """Whole CPU seconds, the system's unit."""
        return math.ceil(self.wall_s if self.cpu_s is None else self.cpu_s) + 1

    def job(self) -> Job:
        """The job for a worker."""
        job: dict[str, object] = {"argv": list(self.argv), "files": dict(self.files), "archive": self.archive}
        job |= {
            "folder": self.folder,
            "environment": dict(self.environment),
            "cpu": self.cpu_limit,
            "alone": self.alone,
        }
        if self.file_mb is not None:
            job["file"] = self.file_mb << 20
        if self.processes is not None:
            job["processes"] = self.processes
        idle_s = math.inf if self.idle_s is None else self.idle_s
        return Job(marshal.dumps(job, 2), math.inf, idle_s, self.cpu_limit, wall_s=self.wall_s)


@dataclass(frozen=True)
class Ran:
    """A program's exit status, negative for the signal that killed it, and the ends of its outputs.

    `why` is the sandbox's reason if it killed the program: the time by the clock (`wall`), of the CPU, or without
    working (`idle`), too much `output`, or that it took the box `down` twice. `missing`: the program cannot be run in
    the box, and `stderr` says why.
    """

    status: int
    stdout: str = ""
    stderr: str = ""
    cpu_s: float = 0.0
    why: Why | None = None


class Outputs:
    """Reads a command's streams: its first frame, and the ends of its two outputs."""

    def __init__(self, tail: int, limit: int) -> None:
        self._start = b""
        self._tail, self._bytes_left = tail, limit
        self._tails = [b"", b""]

    def start(self, data: bytes) -> tuple[bytes, bool]:
        """Read the frames before the command's own output."""
        self._start += data
        return b"", False

    def stdout(self, data: bytes) -> tuple[bytes, bool]:
        """Read standard output."""
        return self._add(0, data)

    def stderr(self, data: bytes) -> tuple[bytes, bool]:
        """Read standard error."""
        return self._add(1, data)

    def _add(self, which: int, data: bytes) -> tuple[bytes, bool]:
        self._bytes_left -= len(data)
        self._tails[which] = (self._tails[which] + data)[-self._tail :]
        return b"", self._bytes_left < 0

    def conclude(self, ended: Ended, cpu_limit: int, folder: str = "") -> Ran:
        """The command's result, in which its own `folder` is /tmp, as in most kinds of isolation. Raises
        `InfrastructureError` if it could not be started."""
        stdout, stderr = (data.decode(errors="replace") for data in self._tails)
        if folder:
            stdout, stderr = stdout.replace(folder, "/tmp"), stderr.replace(folder, "/tmp")
        if self._start[:1] != wire.STARTED:
            raise InfrastructureError(f"the sandbox could not make a command's files ready: {stderr.strip()}")
        status = os.waitstatus_to_exitcode(ended.status)
        return Ran(status, stdout, stderr, round(ended.cpu_s, 4), self._why(ended, status, cpu_limit))

    def _why(self, ended: Ended, status: int, cpu_limit: int) -> Why | None:
        if self._bytes_left < 0:
            return "output"
        if self._start[wire.HEADER.size :][:1] == wire.MISSING:
            return "missing"
        if ended.why is not None:
            return ended.why
        return "cpu" if status != 0 and ended.cpu_s >= cpu_limit - CPU_LEFT_S else None


COMMANDS = ("/usr/bin", "/bin")  # the tools of tests that start the system's commands
PROC = "/proc"  # stands for a /proc that shows a program its own processes, and no others
EMPTY = ("/tmp", "/var/tmp", "/dev", "/proc")  # a box has its own
MOVED = ("/tmp", "/var/tmp")
ELSEWHERE = "/shown"


def check_tools(tools: Iterable[str], *, own_folders: bool = True, movable: bool = True) -> tuple[str, ...]:
    """The tools, each once and in order; raises `UserError` for one that is missing, or that a box cannot see. If
    programs have `own_folders`, they see no tool in /tmp and the like. If tools are `movable` then, the box shows those
    at another place, `place_of`."""
    covered = EMPTY if own_folders else ()
    return tuple(dict.fromkeys(_check_tool(tool, covered, MOVED if movable else ()) for tool in sorted(tools)))


def place_of(path: str) -> str:
    """Where a box shows a path of the host: at its own place, or `ELSEWHERE` if a program has that for itself."""
    return ELSEWHERE + path if any(path.startswith(f"{folder}/") for folder in MOVED) else path


def moved(command: Command) -> Command:
    """The command with its tools' paths as the box shows them, in its arguments and its environment."""
    paths = {path for tool in command.tools for path in (tool, os.path.realpath(tool)) if path != place_of(path)}
    if not paths:
        return command
    named = re.compile(rf"(?<![^:=,;\s])(?:{'|'.join(map(re.escape, sorted(paths, reverse=True)))})(?![^/:,;\s])")

    def shown(text: str) -> str:
        return named.sub(lambda found: place_of(found[0]), text)

    environment = {name: shown(value) for name, value in command.environment.items()}
    return replace(command, argv=tuple(map(shown, command.argv)), environment=environment)


def _check_tool(tool: str, covered: tuple[str, ...], moves: tuple[str, ...]) -> str:
    path = Path(tool)
    if tool == PROC:
        return tool
    if not path.is_absolute() or not os.access(path, os.F_OK):
        raise UserError(f"the sandbox cannot show the tool {tool}: there is none", "install it, or give its whole path")
    real = path.resolve()
    for folder in (path, real):
        inside = any(folder != Path(place) and folder.is_relative_to(place) for place in moves)
        remedy = "install it elsewhere, such as in /usr/local or /opt"
        remedy += "" if moves else ", or use sandbox=bubblewrap"
        if not inside and any(folder.is_relative_to(empty) or Path(empty).is_relative_to(folder) for empty in covered):
            raise UserError(f"the sandbox cannot show the tool {tool}: a program has {folder} for itself", remedy)
    for secret in (cache_root().absolute().resolve(), Path(__file__).resolve().parent.parent, home().resolve()):
        if secret.is_relative_to(real):
            raise UserError(
                f"the sandbox cannot show the tool {tool}: {secret} lies in it, which programs must not see",
                "name the program itself, or a folder that holds nothing else",
            )
    return str(path)


def places(tools: Iterable[str], seen: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(real path, place in the box) of every tool but `PROC`, and of link targets, except in the folders `seen`. A
    place that is not the real path must be a link to it: many programs look for files next to their own."""
    shown = [Path(folder) for folder in seen]
    pairs: list[tuple[str, str]] = []
    for tool in (tool for tool in tools if tool != PROC):
        path, real = Path(tool), Path(tool).resolve()
        for place in dict.fromkeys((real, path)):
            if not any(place.is_relative_to(folder) for folder in shown):
                shown.append(place)
                pairs.append((str(real), str(place)))
    return tuple(pairs)
