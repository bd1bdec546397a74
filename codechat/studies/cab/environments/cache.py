"""Environments' part of codechat's cache: unpacked commits, notes of built images, interpreters of containers."""

import fcntl
import json
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from codechat.base.environment import cache_root
from codechat.run.extensions import CacheContents

REMOVE_S = 120.0


def folder_of(part: str) -> Path:
    """The folder of a part: `commits`, `images` (notes of them) or `interpreters`."""
    return cache_root() / "rooms" / part


class HeldFolder:
    """A folder that is not cleared while a process holds it."""

    def __init__(self, folder: Path) -> None:
        """Hold a folder, which need not exist yet. Raises `OSError`."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._handle = os.open(f"{folder}.used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Whether no other process holds it; from then on no other can."""
        with suppress(BlockingIOError):
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def release(self) -> None:
        """Release it, once or more often."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def contents() -> CacheContents:
    """The present contents: commits with the bytes of their files, and images."""
    folders = [place for place in _listed("commits") if place.is_dir()]
    images = [place for place in _listed("images") if place.suffix == ".json"]
    return _counted(len(folders), sum(map(_size, folders)), len(images))


def clear() -> CacheContents:
    """Remove all that no worktree uses, and return it. An image that its engine does not remove stays noted."""
    commits = size = images = 0
    for folder in _listed("commits"):
        if folder.is_dir():
            held = HeldFolder(folder)
            if held.alone():
                commits, size = commits + 1, size + _size(folder)
                shutil.rmtree(folder)
            held.release()
    for note in _listed("images"):
        if note.suffix == ".json" and _remove_image(note):
            note.unlink()
            images += 1
    return _counted(commits, size, images)


def _counted(commits: int, size: int, images: int) -> CacheContents:
    return CacheContents(cache_root() / "rooms", size, {"commit": commits, "image": images})


def _remove_image(note: Path) -> bool:
    image = json.loads(note.read_text(encoding="utf-8"))
    words = [image["program"], "image", "rm", "--force", image["name"], image["built"]]
    try:
        return subprocess.run(words, capture_output=True, timeout=REMOVE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _listed(part: str) -> list[Path]:
    folder = folder_of(part)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(folder: Path) -> int:
    """The bytes of a folder's files."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total
