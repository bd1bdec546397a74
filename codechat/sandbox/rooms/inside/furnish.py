"""Furnishes a worktree: a writable view of the commit, private temporary folders, and nothing else that can be written.

All that a worktree writes lies in memory, in one file system of bounded size: that is its limit of disk space.
`prepare` makes a built image fit for worktrees.
"""

# No pathlib: every module loaded here is memory that each command's process copies.
# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH112, PTH114, PTH116, PTH118

import os
from collections.abc import Iterator
from typing import Any

from codechat.sandbox.inside import isolate

WRITABLE, LOWER, PARENT = "/room", "/lower", "/workspace"
REPOSITORY, HOME = f"{PARENT}/repository", "/home/maintainer"
SHOWN = 1000  # the user id of commands
FLAGS = isolate.MS_NOSUID | isolate.MS_NODEV
MS_REMOUNT = 32
SMALL_QUEUES = "4096 65536 212992"
"""The minimum, initial and maximum bytes of a connection's queue, which is memory of no process."""
MILLENNIUM = 946684800
NOT_SEARCHED = ("/proc", "/sys", "/dev", "/codechat")
PRIVATE = (("tmp", "/tmp", 0o1777), ("var", "/var/tmp", 0o1777), ("shm", "/dev/shm", 0o1777), ("home", HOME, 0o755))


def box(config: dict[str, Any]) -> int:
    """Enter namespaces and furnish them; the handle of the PID namespace. Raises `OSError`.

    The folder `lower` becomes writable as `root`; the folders `cover` are empty from then on. `networked`: the worktree
    keeps the network.
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
    for covered in (WRITABLE, *filter(os.path.isdir, config["cover"])):  # a temporary folder covers what is below it
        isolate.mount("tmpfs", covered, "tmpfs", FLAGS | isolate.MS_RDONLY, "mode=755,size=4k")
    isolate.lock_down()
    return handle


def _make_within(parent: str, place: str) -> None:
    """Make a folder in a parent that looks the same in every worktree and is read-only afterwards."""
    isolate.mount("tmpfs", parent, "tmpfs", FLAGS, "mode=755,size=16k")
    os.mkdir(place)
    os.utime(parent, (MILLENNIUM, MILLENNIUM))
    isolate.mount("none", parent, "", FLAGS | isolate.MS_BIND | MS_REMOUNT | isolate.MS_RDONLY)


def _lay(lower: str, root: str, overlay: bool) -> None:
    """Make the files writable: under an empty layer, or copied if the system's layers lack features of files."""
    upper, work = f"{WRITABLE}/upper", f"{WRITABLE}/work"
    os.mkdir(upper)
    if overlay and _keeps_attributes(upper):
        os.mkdir(work)
        when = os.stat(lower).st_mtime_ns
        os.utime(upper, ns=(when, when))
        os.chdir(lower)  # its name could contain a separator of options
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
    """Whether a file system in memory can have layers: since Linux 6.6."""
    try:
        os.setxattr(folder, "user.codechat", b"1")
        os.removexattr(folder, "user.codechat")
    except OSError:
        return False
    return True


def prepare(start: str, lower: str, owner: int) -> str:
    """Make a built image fit for worktrees, as root in a container without network that runs nothing of the image.

    Every `.git` in it is removed, because a clone has later commits. The repository's root gets the `.git` of the
    commit `lower`, and belongs to the user of commands. Returns the root: the image's folder `start`, or the clone
    nearest below it.
    """
    import shutil

    start = os.path.normpath(start)
    clones = sorted(_repositories(), key=lambda place: (place.count("/"), place))
    below = [place for place in clones if place == start or place.startswith(start.rstrip("/") + "/")]
    root = below[0] if below and start not in below else start
    for path in (os.path.join(place, ".git") for place in clones):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
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
    for folder, folders, files in os.walk("/"):
        if ".git" in folders or ".git" in files:
            yield folder
        folders[:] = [name for name in folders if name != ".git" and os.path.join(folder, name) not in NOT_SEARCHED]
