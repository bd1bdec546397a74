"""Environments' part of codechat's cache: unpacked commits, notes of built images, interpreters of containers."""

import fcntl
import json
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from codechat.base.environment import cache_root

USED = ".used"
REMOVE_S = 120.0


def _root() -> Path:
    return cache_root() / "rooms"


def commits_folder() -> Path:
    """The folder of unpacked commits."""
    return _root() / "commits"


def images_folder() -> Path:
    """The folder of notes of the images that were made."""
    return _root() / "images"


def interpreters_folder() -> Path:
    """The folder of the interpreters of containers."""
    return _root() / "interpreters"


class HeldFolder:
    """A folder that is not cleared while somebody holds it."""

    def __init__(self, folder: Path, handle: int) -> None:
        self.folder, self._handle = folder, handle

    def alone(self) -> bool:
        """Whether nobody else holds it; from then on nobody else can."""
        with suppress(BlockingIOError):
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def release(self) -> None:
        """Let it go, once or more often."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def hold(folder: Path) -> HeldFolder:
    """Keep others from clearing a folder, which need not be there yet. Raises `OSError`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(f"{folder}{USED}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_SH)
    return HeldFolder(folder, handle)


@dataclass(frozen=True)
class Contents:
    """Cached or removed contents: commits with the bytes of their files, and images."""

    path: Path
    commits: int = 0
    size: int = 0
    images: int = 0


def contents() -> Contents:
    """The present contents."""
    folders = [place for place in _listed(commits_folder()) if place.is_dir()]
    images = [place for place in _listed(images_folder()) if place.suffix == ".json"]
    return Contents(_root(), len(folders), sum(map(_size, folders)), len(images))


def clear() -> Contents:
    """Remove all that no worktree uses. An image that its engine does not remove stays noted."""
    commits = size = images = 0
    for folder in _listed(commits_folder()):
        if folder.is_dir():
            held_folder = hold(folder)
            if held_folder.alone():
                commits, size = commits + 1, size + _size(folder)
                shutil.rmtree(folder)
            held_folder.release()
    for note in _listed(images_folder()):
        if note.suffix == ".json" and _remove_image(note):
            note.unlink()
            images += 1
    return Contents(_root(), commits, size, images)


def _remove_image(note: Path) -> bool:
    image = json.loads(note.read_text(encoding="utf-8"))
    words = [image["program"], "image", "rm", "--force", image["name"], image["built"]]
    try:
        return subprocess.run(words, capture_output=True, timeout=REMOVE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(folder: Path) -> int:
    """The bytes of a folder's files."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total
