"""The time, and the memory of a room's processes."""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH123, PTH208

import contextlib
import os
from time import monotonic as now

PAGE = os.sysconf("SC_PAGE_SIZE")
LITTLE = 1 << 26  # bytes that need no closer look


def memory_used() -> int:
    """The bytes that the other processes of this one's namespace use, pages of files apart.

    Memory that several processes share, as forks do, counts for each of them.
    """
    found = {name: _resident(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"}
    rough = sum(found.values())
    return rough if rough < LITTLE else sum(map(_own, found))


def _resident(name: str) -> int:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/statm", "rb") as stream:
        return int(stream.read().split()[1]) * PAGE
    return 0


def _own(name: str) -> int:
    total = 0
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/status", "rb") as stream:
        for line in stream:
            if line.startswith((b"RssAnon:", b"RssShmem:")):
                total += int(line.split()[1]) << 10
    return total


__all__ = ["memory_used", "now"]
