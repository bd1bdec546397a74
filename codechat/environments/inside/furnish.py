"""Furnishes a box: a writable view of the commit, private temporary folders, and nothing else that can be written.

All that a room writes lies in memory, in one file system of bounded size: that is its limit of disk space.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH101, PTH102, PTH116

import os
from typing import Any

from codechat.sandbox.inside import isolate

ROOM, LOWER, PARENT, HOME = "/room", "/lower", "/workspace", "/home"
REPOSITORY, OWN_HOME = f"{PARENT}/repository", f"{HOME}/maintainer"
SHOWN = 1000
"""The number of the user that commands are."""
SMALL = "mode=755,size=64k"
FLAGS = isolate.MS_NOSUID | isolate.MS_NODEV
EPOCH = 946684800


def box(config: dict[str, Any]) -> int:
    """Enter namespaces and furnish them; the handle of the PID namespace. Raises `OSError`."""
    if config["uid"] is not None:
        isolate.drop_user(config["uid"])
    handle = isolate.enter_namespaces([], SHOWN)
    isolate.own_proc()
    isolate.loopback_up()
    isolate.mount("tmpfs", ROOM, "tmpfs", FLAGS, f"mode=755,size={config['disk']},nr_inodes={config['disk'] >> 12}")
    for parent, place in ((PARENT, REPOSITORY), (HOME, OWN_HOME)):
        isolate.mount("tmpfs", parent, "tmpfs", FLAGS, SMALL)
        os.mkdir(place)
    _repository(config["overlay"])
    for name, place, mode in (("tmp", "/tmp", 0o1777), ("var", "/var/tmp", 0o1777), ("shm", "/dev/shm", 0o1777),
                              ("home", OWN_HOME, 0o755)):  # fmt: skip
        os.mkdir(f"{ROOM}/{name}")
        os.chmod(f"{ROOM}/{name}", mode)
        isolate.mount(f"{ROOM}/{name}", place, "", isolate.MS_BIND)
    for parent in (PARENT, HOME):
        os.utime(parent, (EPOCH, EPOCH))
        isolate.mount("none", parent, "", FLAGS | isolate.MS_BIND | REMOUNT | isolate.MS_RDONLY)
    for covered in (ROOM, LOWER, *config["cover"]):
        isolate.mount("tmpfs", covered, "tmpfs", FLAGS | isolate.MS_RDONLY, "mode=755,size=4k")
    isolate.lock_down()
    return handle


REMOUNT = 32


def _repository(overlay: bool) -> None:
    """The commit, writable: laid under an empty layer, or copied if the system's layers cannot do what files can."""
    upper, work = f"{ROOM}/upper", f"{ROOM}/work"
    os.mkdir(upper)
    if overlay and _keeps_attributes(upper):
        os.mkdir(work)
        when = os.stat(LOWER).st_mtime_ns
        os.utime(upper, ns=(when, when))
        try:
            isolate.mount(
                "overlay", REPOSITORY, "overlay", FLAGS, f"lowerdir={LOWER},upperdir={upper},workdir={work},userxattr"
            )
            return
        except isolate.NotGranted:
            pass
    import shutil  # seldom needed

    shutil.copytree(LOWER, upper, symlinks=True, dirs_exist_ok=True)
    isolate.mount(upper, REPOSITORY, "", isolate.MS_BIND)


def _keeps_attributes(folder: str) -> bool:
    """Whether layers can be put on a file system in memory: since Linux 6.6."""
    try:
        os.setxattr(folder, "user.codechat", b"1")
        os.removexattr(folder, "user.codechat")
    except OSError:
        return False
    return True
