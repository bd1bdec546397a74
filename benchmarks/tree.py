"""Memory of a process and all below it, sampled: proportional (shared pages divided among those who share them)."""

import threading
from pathlib import Path


def tree(root: int) -> set[int]:
    """`root` and every process that it started, at any depth, in any namespace."""
    found, waiting = {root}, [root]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            try:
                new = {int(word) for word in task.read_text().split()} - found
            except OSError:
                continue
            found |= new
            waiting += new
    return found


def proportional_mb(pids: set[int]) -> float:
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


class Peak:
    """The peak of a tree's memory while the block runs, looked at every `every` seconds."""

    def __init__(self, root: int, every: float = 0.3) -> None:
        self._root, self._every, self.mb = root, every, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._stop.wait(self._every):
            self.mb = max(self.mb, proportional_mb(tree(self._root)))

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
