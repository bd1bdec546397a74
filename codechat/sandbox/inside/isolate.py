"""Takes rights away from this process: user, namespaces, capabilities, limits.

The zygote enters namespaces once: it stays the init process of a PID namespace and keeps the capabilities of a user
namespace. Every child gets further PID and mount namespaces and loses all capabilities.
"""

# No pathlib: every module loaded here is memory that each fork copies.
# ruff: noqa: PTH103, PTH110, PTH112, PTH116, PTH123

import contextlib
import ctypes
import fcntl
import functools
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable, Collection, Mapping

from codechat.sandbox.inside import seccomp
from codechat.sandbox.inside.wire import TIMED_OUT

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
NO_USER = 65534
CAPABILITY_VERSION = 0x20080522
STACK = 64 << 20
ENDING = (signal.SIGPROF, signal.SIGALRM, signal.SIGVTALRM)  # of timers, whose default action is the end
WARM_FILES = 64 << 20  # bytes of temporary files that libraries may write when they are loaded
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
ETC = "/etc/network"  # where bubblewrap shows the files by which the loopback interface has a name
NAMES = ("hosts", "nsswitch.conf")

libc = ctypes.CDLL(None, use_errno=True)
for _function in ("capset", "mount", "prctl", "sem_init", "signal", "syscall", "unshare"):
    getattr(libc, _function)  # looked up here once, else in each child anew
_lonely = seccomp.lonely()
_folder: list[str] = []  # of a program that shares /tmp


def name_folder(folder: str) -> None:
    """Set the folder that stands for /tmp."""
    _folder[:] = [folder]


def as_everywhere(text: str) -> str:
    """A text with /tmp for the program's folder, as in all kinds of isolation: runs must not differ by it."""
    return text.replace(_folder[0], "/tmp") if _folder else text


class NotGranted(OSError):
    """The system does not grant a requested isolation."""


def checked(result: int, what: str) -> int:
    """The result of a call of the C library. Raises `NotGranted` if it is negative, which means failure."""
    if result < 0:
        code = ctypes.get_errno()
        raise NotGranted(code, f"{what}: {os.strerror(code)}")
    return int(result)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2); raises `NotGranted`."""
    checked(
        libc.mount(source.encode(), target.encode(), kind.encode() or None, flags, options.encode() or None),
        f"mount {target}",
    )


def reach(paths: list[str], uid: int) -> None:
    """As root, before the user is dropped: keep the interpreter's folders readable for `uid`. A parent folder that
    others may not enter is covered, for this process, by a folder with only these folders."""
    barred: dict[str, list[str]] = {}
    for path in paths:
        if (closed := barrier(path)) is not None:
            barred.setdefault(closed, []).append(path)
    if not barred:
        return
    checked(libc.unshare(NEWNS), "unshare mounts")
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    for closed, below in barred.items():
        handles = [(path, os.open(path, os.O_PATH)) for path in below]
        mount("tmpfs", closed, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64k")
        for path, handle in handles:
            os.makedirs(path, 0o755, exist_ok=True)
            mount(f"/proc/self/fd/{handle}", path, "", MS_BIND | MS_REC)
            os.close(handle)


def barrier(path: str) -> str | None:
    """The topmost folder on the way to `path` that others may not enter."""
    place = ""
    for part in os.path.realpath(path).strip("/").split("/"):
        place = f"{place}/{part}"
        if not os.stat(place).st_mode & 0o001:
            return place
    return None


def drop_user(uid: int) -> None:
    """Become an unprivileged user for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def enter_namespaces(hide: list[str], shown: int | None = None, *, networked: bool = False) -> int:
    """Move into namespaces of our own and return a handle on the PID namespace; raises `NotGranted` if denied. Returns
    in a child that is the init process there. The tree becomes read-only, and /proc and `hide` empty. The user number
    there is `shown`, by default the same as here; root becomes `NO_USER`. `networked`: keep the network."""
    uid, gid = os.getuid(), os.getgid()
    kinds = NEWUSER | NEWNS | NEWUTS | NEWIPC | NEWPID | (0 if networked else NEWNET)
    checked(libc.unshare(kinds), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{shown or uid or NO_USER} {uid} 1")
    _write("/proc/self/gid_map", f"{shown or gid or NO_USER} {gid} 1")
    child = os.fork()
    if child:  # outside the namespaces: close everything, wait, and end as the inner process does
        os.closerange(0, 256)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    handle = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    die_first()
    libc.sethostname(b"sandbox", 7)
    mount("none", "/", "", MS_REC | MS_PRIVATE)
    attributes = struct.pack("<QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
    checked(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, len(attributes)), "read-only /")
    for folder in ("/proc", *hide):
        if os.path.isdir(folder):
            mount("tmpfs", folder, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "mode=755,size=4k")
    return handle


def die_first() -> None:
    """If memory runs out, the system ends this process and its children before others."""
    _write("/proc/self/oom_score_adj", "1000")


def _write(path: str, text: str) -> None:
    with open(path, "w") as stream:
        stream.write(text)


def lock_down() -> None:
    """For the zygote: children gain no rights, other processes cannot read its memory, orphans return to it."""
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def new_pid_namespace() -> None:
    """Make the next child the init of a PID namespace: all its processes die with it."""
    checked(libc.unshare(NEWPID), "unshare pid")


def back_to(handle: int) -> None:
    """Enter the PID namespace of a handle: the next child is in it."""
    checked(libc.setns(handle, NEWPID), "setns pid")


def proc_works(handle: int) -> bool:
    """Whether a child can mount its own /proc: not if the present one is covered in part. Tried in a child."""

    def show() -> None:
        own_mounts()
        own_proc()

    new_pid_namespace()
    try:
        return works(show)
    finally:
        back_to(handle)


def works(attempt: Callable[[], object]) -> bool:
    """Whether an attempt raises no `OSError`, in a child."""
    child = os.fork()
    if child == 0:
        try:
            attempt()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def own_mounts() -> None:
    """Make later mounts visible to this process and its children alone."""
    checked(libc.unshare(NEWNS), "unshare mounts")


def own_proc(settings: Mapping[str, str] | None = None) -> None:
    """A /proc that shows this PID namespace alone. `settings` of this network, by names in /proc/sys/net, are applied
    if the system grants that."""
    if settings:
        with contextlib.suppress(OSError):
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
            for name, value in settings.items():
                _write(f"/proc/sys/net/{name}", value)
    mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)


def empty_folders(folders: list[str], size: int = WARM_FILES, flags: int = 0) -> None:
    """Cover folders by empty ones of up to `size` bytes, for this process."""
    for folder in folders:
        options = f"mode=1777,size={size},nr_inodes={size >> 13}"
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV | flags, options)


def _own_network() -> None:
    """A new network for this process with the loopback interface alone, named localhost."""
    checked(libc.unshare(NEWNET), "unshare network")
    if os.path.exists(ETC):
        for name in NAMES:
            mount(f"{ETC}/{name}", f"/etc/{name}", "", MS_BIND)
    loopback_up()


def loopback_up() -> None:
    """Start the loopback interface of this process's network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def confine(
    limits: dict[str, int],
    place: seccomp.Place,
    scratch: list[str],
    needs: Collection[str] = (),
    *,
    alone: bool = False,
    reaps: bool = False,
) -> None:
    """For the child, before the candidate's first line: own temporary folders, limits, no capability, the filter.

    `needs`: "network" adds a loopback interface, "processes" a /proc; both need namespaces. A program that is `alone`
    can start no other process, and execute nothing from its folders. A CPU timer ends the process with status
    `TIMED_OUT`, as other timers of a program do with theirs: the handler is the C library's `_exit`, because default
    actions of signals do not kill an init process.
    """
    if place == "namespaces":
        own_mounts()
        if "processes" in needs:
            own_proc()
        if "network" in needs:
            _own_network()
            place = "network"
        empty_folders(scratch, limits["file"], MS_NOEXEC if alone else 0)
        for folder in scratch:
            os.chdir(folder)
    _limit(resource.RLIMIT_AS, limits["memory"])
    # The sandbox ends a program that used up its time, with that reason. The kernel's limit, which counts whole ticks
    # and may be early, is for programs that escape this.
    _limit(resource.RLIMIT_CPU, 2 * limits["cpu"])
    _limit(resource.RLIMIT_FSIZE, limits["file"])
    if place not in ("landlock", "supervised"):
        _limit(resource.RLIMIT_NOFILE, limits["open_files"])  # else in `be_supervised`
        _limit(resource.RLIMIT_NPROC, limits["processes"])  # else the supervisor counts: the kernel counts by user
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_STACK, STACK)
    _drop_capabilities()
    if place not in ("landlock", "supervised"):  # those are bound already
        filter_of(place, reaps).install(libc)
    if alone:
        _lonely.install(libc)
    assert signal.SIGPROF == TIMED_OUT
    for number in ENDING:
        libc.signal(int(number), ctypes.cast(libc._exit, ctypes.c_void_p))


def _drop_capabilities() -> None:
    header = struct.pack("<Ii", CAPABILITY_VERSION, 0)
    checked(libc.capset(header, bytes(24)), "capset")


def renounce(limits: Mapping[int, int], place: seccomp.Place = "network") -> None:
    """For a command in an environment: the limits (by their numbers in `resource`), no capability, the filter. Under
    Landlock the filter follows by `be_supervised`."""
    for which, value in limits.items():
        _limit(which, value)
    _drop_capabilities()
    if place == "network":
        filter_of(place).install(libc)


def be_supervised(place: seccomp.Place, asker: socket.socket, message: bytes, open_files: int, *, reaps: bool) -> None:
    """Bind this process to the filter of a supervised place, and hand the listener to the supervisor. Raises `OSError`.
    Open files are limited afterwards: the kernel sends no descriptor if this user's processes have more in transit than
    the sender may open, and a hostile program may keep that many in transit."""
    listener = filter_of(place, reaps).listen(libc)
    socket.send_fds(asker, [message], [listener])
    os.close(listener)
    asker.close()
    _limit(resource.RLIMIT_NOFILE, open_files)


def open_more_files() -> None:
    """Raise the limit of open files to the most that this process may have."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@functools.cache
def filter_of(place: seccomp.Place, reaps: bool = False) -> seccomp.Filter:
    """The filter of a place. Call it before forking, so that no child has to make it. A program that `reaps` keeps
    ended children until it waits for them, so their use is known."""
    return seccomp.general(place, reaps=reaps)


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (wanted, wanted))


def filter_works() -> bool:
    """Whether the system call filter can be installed, tried in a child."""
    return works(lambda: checked(0 if filter_of("namespaces").install(libc) else -1, "seccomp"))


def sweep() -> None:
    """Without a PID namespace: kill and reap the orphans of a child, which this process inherits (subreaper)."""
    with contextlib.suppress(ChildProcessError):  # there are no more
        while True:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                for child in _children():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                os.waitpid(-1, 0)


def _children() -> list[int]:
    try:
        with open("/proc/thread-self/children") as stream:
            return [int(word) for word in stream.read().split()]
    except OSError:
        return []
