"""The time, and the memory of a room's processes."""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH123, PTH208

import contextlib
import os
import signal
from time import monotonic as now

PAGE = os.sysconf("SC_PAGE_SIZE")
OWN = ("1", "self", "thread-self")
V1, V2 = "/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"


class Processes:
    """The memory of the processes that this one sees beside itself; the first process is itself."""

    def begin(self) -> None:
        """Nothing is kept from one command to the next."""

    def total(self) -> int:
        """The bytes that they use, each for itself and shared memory; what forks still share counts for each."""
        found = {name: self._resident(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"}
        rough = sum(found.values())
        return rough if rough < 1 << 26 else sum(map(self._own, found))

    def exceeded(self) -> bool:
        """Whether the system ended one for its memory: not known."""
        return False

    def _resident(self, name: str) -> int:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/statm", "rb") as stream:
            return int(stream.read().split()[1]) * PAGE
        return 0

    def _own(self, name: str) -> int:
        """Without the pages of files."""
        total = 0
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/status", "rb") as stream:
            for line in stream:
                if line.startswith((b"RssAnon:", b"RssShmem:")):
                    total += int(line.split()[1]) << 10
        return total


class Container:
    """The memory of a container, which the engine limits: only whether it was exceeded can be seen from within."""

    def __init__(self) -> None:
        self._before = 0

    def begin(self) -> None:
        """Remember how often the limit has ended a process."""
        self._before = self._killed()

    def total(self) -> int:
        """Nothing: the engine watches."""
        return 0

    def exceeded(self) -> bool:
        """Whether the limit ended a process since `begin`."""
        return self._killed() > self._before

    def _killed(self) -> int:
        for path in (V1, V2):
            with contextlib.suppress(OSError, ValueError), open(path) as stream:
                for line in stream:
                    if line.startswith("oom_kill "):
                        return int(line.split()[1])
        return 0


def kill_all() -> None:
    """As the first process of a container: kill every other one."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


def reap_all() -> None:
    """Wait until no other process is left."""
    while True:
        kill_all()
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


__all__ = ["Container", "Processes", "kill_all", "now", "reap_all"]
