"""Furnishes a worktree: a writable view of the commit, private temporary folders, and nothing else that can be written.

All that a worktree writes lies in memory, in one file system of bounded size: that is its limit of disk space.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH101, PTH102, PTH112, PTH116

import os
from typing import Any

from codechat.sandbox.inside import isolate

WRITABLE, LOWER, PARENT = "/room", "/lower", "/workspace"
REPOSITORY, HOME = f"{PARENT}/repository", "/home/maintainer"
SHOWN = 1000
"""The number of the user that commands are."""
FLAGS = isolate.MS_NOSUID | isolate.MS_NODEV
MS_REMOUNT = 32
SMALL_QUEUES = "4096 65536 212992"
"""The least, the first and the most bytes of a queue of a connection: memory that is no process's."""
MILLENNIUM = 946684800
PRIVATE = (("tmp", "/tmp", 0o1777), ("var", "/var/tmp", 0o1777), ("shm", "/dev/shm", 0o1777), ("home", HOME, 0o755))


def box(config: dict[str, Any]) -> int:
    """Enter namespaces and furnish them; the handle of the PID namespace. Raises `OSError`.

    The folder `lower` becomes writable as `root`; the folders `cover` are empty from then on. `shares_devices`: other
    worktrees have the same /dev, so that this one needs pseudoterminals of its own. `networked`: it keeps the network.
    """
    if config["uid"] is not None:
        isolate.drop_user(config["uid"])
    networked = config.get("networked", False)
    handle = isolate.enter_namespaces([], SHOWN, networked=networked)
    isolate.own_proc({} if networked else dict.fromkeys(("ipv4/tcp_rmem", "ipv4/tcp_wmem"), SMALL_QUEUES))
    if not networked:
        isolate.loopback_up()
    isolate.mount("tmpfs", WRITABLE, "tmpfs", FLAGS, f"mode=755,size={config['disk']},nr_inodes={config['disk'] >> 12}")
    if not os.path.isdir(config["root"]):
        _make_within(PARENT, config["root"])
    _lay(config["lower"], config["root"], config["overlay"])
    for name, place, mode in PRIVATE:
        os.mkdir(f"{WRITABLE}/{name}")
        os.chmod(f"{WRITABLE}/{name}", mode)
        os.utime(f"{WRITABLE}/{name}", (MILLENNIUM, MILLENNIUM))
        if os.path.isdir(place):
            isolate.mount(f"{WRITABLE}/{name}", place, "", isolate.MS_BIND)
    if config["shares_devices"]:
        isolate.mount("devpts", "/dev/pts", "devpts", isolate.MS_NOSUID | isolate.MS_NOEXEC, "ptmxmode=0666,mode=620")
    for covered in (WRITABLE, *filter(os.path.isdir, config["cover"])):  # a temporary folder covers what is below it
        isolate.mount("tmpfs", covered, "tmpfs", FLAGS | isolate.MS_RDONLY, "mode=755,size=4k")
    isolate.lock_down()
    return handle


def _make_within(parent: str, place: str) -> None:
    """Make a folder in one that looks the same in every worktree, and can't be written afterwards."""
    isolate.mount("tmpfs", parent, "tmpfs", FLAGS, "mode=755,size=16k")
    os.mkdir(place)
    os.utime(parent, (MILLENNIUM, MILLENNIUM))
    isolate.mount("none", parent, "", FLAGS | isolate.MS_BIND | MS_REMOUNT | isolate.MS_RDONLY)


def _lay(lower: str, root: str, overlay: bool) -> None:
    """The files, writable: laid under an empty layer, or copied if the system's layers cannot do what files can."""
    upper, work = f"{WRITABLE}/upper", f"{WRITABLE}/work"
    os.mkdir(upper)
    if overlay and _keeps_attributes(upper):
        os.mkdir(work)
        when = os.stat(lower).st_mtime_ns
        os.utime(upper, ns=(when, when))
        os.chdir(lower)  # its name could hold what separates options
        try:
            isolate.mount("overlay", root, "overlay", FLAGS, f"lowerdir=.,upperdir={upper},workdir={work},userxattr")
            return
        except isolate.NotGranted:
            pass
        finally:
            os.chdir("/")
    import shutil  # seldom needed

    shutil.copytree(lower, upper, symlinks=True, dirs_exist_ok=True)
    isolate.mount(upper, root, "", isolate.MS_BIND)


def _keeps_attributes(folder: str) -> bool:
    """Whether layers can be put on a file system in memory: since Linux 6.6."""
    try:
        os.setxattr(folder, "user.codechat", b"1")
        os.removexattr(folder, "user.codechat")
    except OSError:
        return False
    return True
