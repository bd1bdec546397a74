"""The processes of this machine, as the tests look for what is left of a program."""

import os
from pathlib import Path


def below(root: int) -> set[int]:
    """The processes that `root` started, at any depth and whatever namespace they are in."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                stat = (entry / "stat").read_bytes()  # a program may call itself what it likes, in any bytes
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(b")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def descendants() -> set[int]:
    """The processes that the tests' own one started."""
    return below(os.getpid())
