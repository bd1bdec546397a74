"""The files of a room as a tar archive, written and read in a process without rights."""

# No pathlib: every module loaded here is memory that each command's process copies.
# ruff: noqa: PTH101

import os
import stat
from collections.abc import Mapping
from typing import Any

from codechat.sandbox.inside import isolate
from codechat.sandbox.rooms.inside import furnish

FOLDERS = {"workspace": furnish.REPOSITORY, "home": furnish.HOME, "tmp": "/tmp"}
"""The folders by their names in the archive."""


def transfer(handle: int, order: Mapping[str, Any], limits: Mapping[int, int]) -> str:
    """Write the archive to a descriptor, or unpack it from there; the problem, empty if there is none."""
    try:
        isolate.renounce(limits)
        if "load" in order:
            _unpack(handle)
            return ""
        return _pack(handle, order["save"])
    except Exception as error:  # noqa: BLE001  the parent reports every problem
        return f"{type(error).__name__}: {error}"


def _pack(handle: int, most: int) -> str:
    import tarfile  # only here: every command's process would copy it

    left = most

    def counted(entry: "tarfile.TarInfo") -> "tarfile.TarInfo | None":
        nonlocal left
        left -= entry.size
        if left < 0:  # by their lengths: a file with holes takes no room, and its archive would
            raise OverflowError
        needed = stat.S_IRWXU if entry.isdir() else stat.S_IRUSR
        if needed & ~entry.mode and (entry.isdir() or entry.isreg()):  # its owner may have hidden it from itself
            os.chmod(_place_of(entry.name), entry.mode | needed)
        return entry if entry.isreg() or entry.isdir() or entry.issym() or entry.islnk() else None

    with open(handle, "wb") as stream, tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        try:
            for name, folder in FOLDERS.items():
                archive.add(folder, name, filter=counted)
        except OverflowError:
            return "disk"
    return ""


def _unpack(handle: int) -> None:
    import tarfile

    with open(handle, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            is_own, entry.name = entry.name in FOLDERS, _place_of(entry.name)
            if entry.islnk():
                entry.linkname = _place_of(entry.linkname)
            if entry.isdir():
                entry.mode |= stat.S_IRWXU  # else it could not be filled
            if not is_own:
                archive.extract(entry, "/", filter="fully_trusted")


def _place_of(name: str) -> str:
    """The path of a name in the archive."""
    folder, _, rest = name.partition("/")
    return f"{FOLDERS[folder]}/{rest}"
