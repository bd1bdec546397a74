"""Makes a built image fit for worktrees, as root in a container without network that runs nothing of the image.

Every `.git` in it is removed, because a clone holds what came later; the repository's root gets ours, and belongs to
the user that commands are.
"""

# No pathlib, as in the rest of this folder.
# ruff: noqa: PTH103, PTH108, PTH118

import os
import shutil
import stat
from collections.abc import Iterator

from codechat.studies.cab.environments.inside.furnish import HOME, WRITABLE

NOT_SEARCHED = ("/proc", "/sys", "/dev", "/codechat")


def prepare(start: str, lower: str, owner: int) -> str:
    """The repository's root: the image's folder `start`, or the clone nearest below it. `lower` has the commit."""
    start = os.path.normpath(start)
    found = sorted(_repositories(), key=lambda place: (place.count("/"), place))
    below = [place for place in found if place == start or place.startswith(start.rstrip("/") + "/")]
    root = below[0] if below and start not in below else start
    for place in found:
        _remove(os.path.join(place, ".git"))
    for folder in (WRITABLE, HOME, "/tmp", "/var/tmp", root):
        os.makedirs(folder, 0o755, exist_ok=True)
    shutil.copytree(f"{lower}/.git", f"{root}/.git", symlinks=True, copy_function=shutil.copyfile)
    for folder, _, files in os.walk(root):
        with os.scandir(folder) as entries:
            links = [entry.name for entry in entries if entry.is_symlink()]
        os.chown(folder, owner, owner, follow_symlinks=False)
        for name in (*files, *links):
            os.chown(os.path.join(folder, name), owner, owner, follow_symlinks=False)
    return root


def _repositories() -> Iterator[str]:
    """The folders that have a `.git` of any sort."""
    for folder, folders, files in os.walk("/"):
        if ".git" in folders or ".git" in files:
            yield folder
        folders[:] = [name for name in folders if name != ".git" and os.path.join(folder, name) not in NOT_SEARCHED]


def _remove(path: str) -> None:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)
