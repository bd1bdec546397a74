"""What this process holds open."""

from pathlib import Path


def open_files(folder: Path) -> set[str]:
    """The names of the open files in a folder."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = link.readlink()
        except FileNotFoundError:  # the listing itself is one of them
            continue
        if target.parent == folder:
            found.add(target.name)
    return found


def open_handles() -> list[str]:
    """The numbers of all open files, that of the listing itself included."""
    return sorted(link.name for link in Path("/proc/self/fd").iterdir())
