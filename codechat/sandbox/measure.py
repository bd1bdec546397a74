"""What a run has used, read from /proc: the CPU time of all its processes, and for how long any of them worked."""

import os
import resource
import time
from collections.abc import Sequence
from contextlib import suppress

TICKS = os.sysconf("SC_CLK_TCK")  # the unit of CPU time in /proc, per second
MOST = 1000  # processes that one look reads: a chain of forks cannot keep it busy
SWITCH_S = 0.005  # seconds after which a thread that waits for the interpreter wakes, to ask for it again
WORKING = 0.9  # the part of the time that counts as work if the kernel reports nothing


class Usage:
    """The use of a run's processes and of all that they started, living or ended.

    A child's time moves to its parent when it is waited for, so the sum over the living ones holds everything. The
    children of the process that forked the run belong to it too: orphans end up there if there is no PID namespace.
    """

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._parent: int | None = None
        self._tasks: dict[int, int] = {}  # nanoseconds that a thread computed or queued for a processor
        self._spare = 0.0

    def look(self, pids: Sequence[int], waited: float) -> float:
        """Seconds that all of the run's threads slept, of the `waited` ones since the last look."""
        if pids and self._parent is None:
            self._parent = _parent(pids[0])
        cpu_s, tasks = _read_tree([*pids, *(_children(self._parent, self._parent) if self._parent else ())])
        queued = sum(max(0, spent - self._tasks.get(task, 0)) for task, spent in tasks.items()) / 1e9
        worked = max(queued, cpu_s - self.cpu_s) + self._spare
        self.cpu_s, self._tasks = max(self.cpu_s, cpu_s), tasks
        if not tasks:
            return waited * (1 - WORKING)
        # Work that the kernel reports late counts in the next look; more than that cannot be saved up for sleeping.
        self._spare = min(max(0.0, worked - waited), waited)
        return max(0.0, waited - worked)


class Clock:
    """Seconds by the clock, without the delays of this side: a program is not charged for them.

    What counts is waiting for the run, and the CPU time that its bytes took here.
    """

    def __init__(self) -> None:
        self.s = 0.0
        self._began = self._cpu = 0.0
        self._switches = 0

    def begin(self) -> None:
        """To be called just before waiting."""
        self._switches = _switches()
        self._began = time.monotonic()

    def waited(self, most: float, whole: bool) -> float:
        """The seconds of the wait that ends now, at most `most`; `whole`: it is known to have taken all of them.

        A thread that waits for the interpreter wakes every few milliseconds, one that waits for a run only once: the
        number of its switches tells how long it waited for the interpreter.
        """
        took = time.monotonic() - self._began
        late = (_switches() - self._switches - 1) * SWITCH_S
        waited = most if whole else min(max(0.0, took - max(0.0, late)), most)
        self.s += waited
        self._cpu = time.thread_time()
        return waited

    def handled(self) -> None:
        """To be called when what the wait brought is done with."""
        self.s += time.thread_time() - self._cpu


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def _read_tree(roots: list[int]) -> tuple[float, dict[int, int]]:
    """The CPU seconds of processes and their descendants, and the nanoseconds of each of their threads.

    Parents are read before their children: a child that ends meanwhile is missed until the next look, none counts
    twice.
    """
    cpu_s, tasks, seen, waiting = 0.0, dict[int, int](), set[int](), roots
    while waiting and len(seen) < MOST:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        with suppress(OSError):  # it has ended
            cpu_s += sum(map(int, _stat(pid)[11:15])) / TICKS
            for task in map(int, os.listdir(f"/proc/{pid}/task")):  # noqa: PTH208  called ten times a second
                waiting += _children(pid, task)
                with suppress(OSError, ValueError):
                    computing, queueing, _ = _read(f"/proc/{pid}/task/{task}/schedstat").split()
                    tasks[task] = int(computing) + int(queueing)
    return cpu_s, tasks


def _parent(pid: int) -> int | None:
    try:
        return int(_stat(pid)[1])
    except (OSError, IndexError):
        return None


def _children(pid: int, task: int) -> list[int]:
    """The processes that a thread of a process started."""
    try:
        return [int(word) for word in _read(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        return []


def _stat(pid: int) -> list[bytes]:
    """The fields after the process's name, which may be any bytes."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, 1 << 16)
    finally:
        os.close(handle)
