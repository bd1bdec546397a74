"""System call filters: no namespaces, mounts, tracing, keys, kernel interfaces, shared memory or network, and nothing
by which a program could slow itself down or hide its use. Without namespaces the filters also close other processes,
memory and queues shared by all processes, and the attributes of files, which Landlock leaves open. Denied calls return
an error instead of killing, so that libraries that merely probe keep working.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from typing import Literal


def _table(text: str) -> dict[str, tuple[int, int]]:
    """System calls by name, with the number on x86_64 and on aarch64; -1: this machine has no such call."""
    return {name: (int(x86), int(arm)) for name, x86, arm in map(str.split, text.split(","))}


DENIED = _table("""
    unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, ptrace 101 117,
    process_vm_readv 310 270, process_vm_writev 311 271, kcmp 312 272, bpf 321 280, perf_event_open 298 241,
    add_key 248 217, request_key 249 218, keyctl 250 219, userfaultfd 323 282, io_uring_setup 425 425,
    io_uring_enter 426 426, io_uring_register 427 427, name_to_handle_at 303 264, open_by_handle_at 304 265,
    init_module 175 105, finit_module 313 273, delete_module 176 106, kexec_load 246 104, kexec_file_load 320 294,
    reboot 169 142, swapon 167 224, swapoff 168 225, syslog 103 116, shmget 29 194, semget 64 190, msgget 68 186,
    mq_open 240 180, memfd_create 319 279, memfd_secret 447 447, open_tree 428 428, move_mount 429 429,
    fsopen 430 430, fsconfig 431 431, fsmount 432 432, mount_setattr 442 442, pidfd_getfd 438 438
""")
# A program of low priority, or on a processor that it keeps busy itself, would run without end.
DENIED |= _table("""
    setpriority 141 140, sched_setparam 142 118, sched_setscheduler 144 119, sched_setattr 314 274,
    sched_setaffinity 203 122, ioprio_set 251 30, set_mempolicy 238 237, mbind 237 235, migrate_pages 256 238,
    move_pages 279 239
""")
# Without namespaces: signals, memory and queues of any process of this user.
UNPARTED = _table("""
    tkill 200 130, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240, pidfd_send_signal 424 424,
    process_madvise 440 440, process_mrelease 448 448, shmat 30 196, shmctl 31 195, semop 65 193, semtimedop 220 192,
    semctl 66 191, msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_unlink 241 181
""")
# Landlock does not know these; the files that a program sees may be this user's.
OF_FILES = _table("""
    truncate 76 45, chown 92 -1, fchown 93 55, lchown 94 -1, fchownat 260 54, setxattr 188 5, lsetxattr 189 6,
    fsetxattr 190 7, removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16, setxattrat 463 463,
    removexattrat 466 466, file_setattr 469 469, inotify_init 253 -1, inotify_init1 294 26, fanotify_init 300 262
""")
# Without effect: programs that copy files with their modes go on.
IGNORED = _table("""
    chmod 90 -1, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, utime 132 -1, utimes 235 -1, futimesat 261 -1,
    utimensat 280 88
""")
# Answered by `supervise`; denied without a supervisor.
SIGNALS = {"kill": (62, 129), "tgkill": (234, 131)}
# name: numbers, which argument, its denied values
DENIED_ARGUMENTS = {"prctl": ((157, 167), 0, (62,))}  # PR_SCHED_CORE keeps others off a processor
UNPARTED_ARGUMENTS = {
    # F_SETOWN, F_SETSIG, F_SETOWN_EX: a file's events become signals; F_SETLEASE, F_NOTIFY hold up who opens a file
    "fcntl": ((72, 25), 1, (8, 10, 15, 1024, 1026)),
    # FIOSETOWN, SIOCSPGRP; FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR, FS_IOC_SETVERSION
    "ioctl": ((16, 29), 1, (0x8901, 0x8902, 0x40086602, 0x401C5820, 0x40087602)),
}
CLONE, CLONE3, SOCKET, SET_OPTION, SIGACTION = (56, 220), 435, (41, 198), (54, 208), (13, 134)
SOCKETPAIR, CONNECT, SET_LIMIT, SECCOMP, UNAME = (53, 199), (42, 203), (302, 261), (317, 277), (63, 160)
SOL_SOCKET, QUEUE_SIZES = 1, (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF, and the same by force
NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW… flag that clone() takes
CLONE_PARENT, CLONE_THREAD, EXIT_SIGNAL, SIGCHLD = 0x8000, 0x10000, 0xFF, 17
FORKS = (57, 58)  # fork and vfork of x86_64; other machines have only clone
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, ERROR, KILL, ASK = 0x7FFF0000, 0x00050000, 0x80000000, 0x7FC00000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; an argument has 8 bytes
Line = tuple[int, int, int, int]
DENY: Line = (RETURN, 0, 0, ERROR | errno.EPERM)
IGNORE: Line = (RETURN, 0, 0, ERROR)
ASKED: Line = (RETURN, 0, 0, ASK)
PR_SET_SECCOMP, FILTER_MODE = 22, 2
SET_MODE_FILTER, NEW_LISTENER = 1, 8
SOCK_STREAM, SOCK_SEQPACKET, TYPES = 1, 5, 15

Place = Literal["namespaces", "network", "landlock", "supervised", "bare"]
"""The isolation of a program: its own namespaces, also with a network for the internet's protocols; or without
namespaces: confined by Landlock and supervised, only supervised, or neither."""


def _program(place: Place, reaps: bool, column: int) -> list[Line]:
    parted = place in ("namespaces", "network")
    denied = DENIED if parted else DENIED | UNPARTED | (SIGNALS if place == "bare" else {})
    denied |= OF_FILES if place == "landlock" else {}
    lines: list[Line] = [
        (JUMP_AT_LEAST, 0, 1, 0x40000000),
        DENY,
        (JUMP_EQUAL, 0, 1, CLONE3),
        (RETURN, 0, 0, ERROR | errno.ENOSYS),
    ]
    for numbers, which, values in (DENIED_ARGUMENTS if parted else DENIED_ARGUMENTS | UNPARTED_ARGUMENTS).values():
        tests = [line for value in values for line in ((JUMP_EQUAL, 0, 1, value), DENY)]
        lines += _argument(numbers[column], which, tests)
    if not parted:  # limits of another process
        lines += _argument(SET_LIMIT[column], 0, [(JUMP_EQUAL, 1, 0, 0), DENY])
    if place == "landlock":  # a message finds any socket that has a path, so only connections are left
        connected = [(AND, 0, 0, TYPES), (JUMP_EQUAL, 2, 0, SOCK_STREAM), (JUMP_EQUAL, 1, 0, SOCK_SEQPACKET), DENY]
        lines += _argument(SOCKET[column], 1, connected) + _argument(SOCKETPAIR[column], 1, connected)
    if reaps:
        lines += _reaping(column)
    # A process whose parent hears nothing of its end, or is another one, would not be counted.
    lines += _argument(
        CLONE[column],
        0,
        [
            (JUMP_ANY_BIT, 0, 1, NEW_NAMESPACES | CLONE_PARENT),
            DENY,
            (AND, 0, 0, EXIT_SIGNAL),
            (JUMP_EQUAL, 2, 0, 0),
            (JUMP_EQUAL, 1, 0, SIGCHLD),
            DENY,
        ],
    )
    # Queues belong to no process: a socket keeps the small ones that it has, which the system may do anyway.
    sizes = [line for value in QUEUE_SIZES for line in ((JUMP_EQUAL, 0, 1, value), IGNORE)]
    option = (LOAD, 0, 0, FIRST_ARGUMENT + 16)
    lines += _argument(SET_OPTION[column], 1, [(JUMP_EQUAL, 0, len(sizes) + 1, SOL_SOCKET), option, *sizes])
    families = (AF_UNIX, AF_INET, AF_INET6) if place == "network" else (AF_UNIX,)
    known = [(JUMP_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    lines += _argument(SOCKET[column], 0, [*known, DENY])
    answers = {numbers[column]: DENY for numbers in denied.values()}
    if place == "landlock":
        answers |= {numbers[column]: IGNORE for numbers in IGNORED.values()}
    if place in ("landlock", "supervised"):  # the supervisor reads memory of programs only if Landlock parts them
        calls = supervised_calls().items()
        answers |= {number: ASKED for name, number in calls if place == "landlock" or name not in ("connect", "uname")}
    return lines + _search(sorted((number, answer) for number, answer in answers.items() if number >= 0))


def _search(answers: list[tuple[int, Line]]) -> list[Line]:
    """The answers to calls by their numbers, in order; all others are allowed. The kernel walks a new filter once for
    each call there is, so a search by halves makes filters that are installed much sooner."""
    if len(answers) <= 3:
        return [line for number, answer in answers for line in ((JUMP_EQUAL, 0, 1, number), answer)] + [
            (RETURN, 0, 0, ALLOW)
        ]
    middle = len(answers) // 2
    below, above = _search(answers[:middle]), _search(answers[middle:])
    return [(JUMP_AT_LEAST, len(below), 0, answers[middle][0]), *below, *above]


def supervised_calls() -> dict[str, int]:
    """The calls that the supervisor answers, with their numbers on this machine; none where it has no filter."""
    if os.uname().machine not in ARCHITECTURES:
        return {}
    column = ARCHITECTURES[os.uname().machine][0]
    calls = {name: numbers[column] for name, numbers in SIGNALS.items()}
    forks = {"fork": FORKS[0], "vfork": FORKS[1]} if column == 0 else {}
    return calls | forks | {"clone": CLONE[column], "connect": CONNECT[column], "uname": UNAME[column]}


def _reaping(column: int) -> list[Line]:
    """Ended children stay until the program waits for them: otherwise their use is unknown."""
    handler = FIRST_ARGUMENT + 8
    tests = [
        (JUMP_EQUAL, 0, 5, SIGCHLD),
        (LOAD, 0, 0, handler),
        (JUMP_EQUAL, 0, 2, 0),
        (LOAD, 0, 0, handler + 4),
        (JUMP_EQUAL, 1, 0, 0),
        DENY,
    ]
    return _argument(SIGACTION[column], 0, tests)


def _lonely(column: int) -> list[Line]:
    """The filter by which a process can start threads, and no other process."""
    forks = FORKS if column == 0 else ()
    lines = [line for number in forks for line in ((JUMP_EQUAL, 0, 1, number), DENY)]
    return lines + _argument(CLONE[column], 0, [(JUMP_ANY_BIT, 1, 0, CLONE_THREAD), DENY])


def _argument(number: int, which: int, tests: list[Line]) -> list[Line]:
    """Lines that apply `tests` to the low half of an argument of a system call, and then go on."""
    load = (LOAD, 0, 0, FIRST_ARGUMENT + 8 * which)
    return [(JUMP_EQUAL, 0, len(tests) + 2, number), load, *tests, (LOAD, 0, 0, NUMBER)]


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


class Filter:
    """A filter, made once and installed in every child."""

    def __init__(self, lines: Callable[[int], list[Line]]) -> None:
        """`lines` takes which of the two numbers of a call are this machine's; others have no filter."""
        self._filter: _Filter | None = None
        if os.uname().machine in ARCHITECTURES:
            column, architecture = ARCHITECTURES[os.uname().machine]
            start = [(LOAD, 0, 0, ARCHITECTURE), (JUMP_EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILL)]
            code = [*start, (LOAD, 0, 0, NUMBER), *lines(column), (RETURN, 0, 0, ALLOW)]
            self._code = b"".join(struct.pack("<HBBI", *line) for line in code)
            self._filter = _Filter(len(self._code) // 8, self._code)

    def install(self, libc: ctypes.CDLL) -> bool:
        """Bind this process to the filter for good; False if that fails. Needs no_new_privs."""
        if self._filter is None:
            return False
        return bool(libc.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(self._filter), 0, 0) == 0)

    def listen(self, libc: ctypes.CDLL) -> int:
        """Bind this process to the filter for good; the descriptor at which its questions are answered. Raises
        `OSError` if that fails: one process can have one such filter."""
        if self._filter is None:
            raise OSError("there is no filter for this machine")
        call = SECCOMP[ARCHITECTURES[os.uname().machine][0]]
        handle = int(libc.syscall(call, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(self._filter)))
        if handle < 0:
            raise OSError(ctypes.get_errno(), f"no supervision: {os.strerror(ctypes.get_errno())}")
        return handle


def general(place: Place, *, reaps: bool = False) -> Filter:
    """The filter for every program in such a place. If it `reaps`, it hides no child's use; other programs are limited
    by the clock."""
    return Filter(lambda column: _program(place, reaps, column))


def lonely() -> Filter:
    """The filter for a program that starts no other process."""
    return Filter(_lonely)
