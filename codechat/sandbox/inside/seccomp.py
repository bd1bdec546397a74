"""System call filters: no namespaces, mounts, tracing, keys, kernel interfaces, shared memory or network, and nothing
by which a program could slow itself down or hide what it uses.

Denied calls return an error instead of killing, so that libraries that merely probe keep working.
"""

import ctypes
import errno
import platform
import struct
from collections.abc import Callable

# name: numbers on x86_64 and aarch64
DENIED = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "syslog": (103, 116),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "pidfd_getfd": (438, 438),
    # A program of low priority, or on a processor that it keeps busy itself, would take for ever.
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    "set_mempolicy": (238, 237),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
# Without a PID namespace a program could signal any process of this user.
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
# name: numbers, which argument, its denied values
DENIED_ARGUMENTS = {"prctl": ((157, 167), 0, (62,))}  # PR_SCHED_CORE keeps others off a processor
SIGNAL_ARGUMENTS = {
    "fcntl": ((72, 25), 1, (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX: a file's events become signals
    "ioctl": ((16, 29), 1, (0x8901, 0x8902)),  # FIOSETOWN, SIOCSPGRP
}
CLONE, CLONE3, SOCKET, SET_OPTION, SIGACTION = (56, 220), 435, (41, 198), (54, 208), (13, 134)
SOL_SOCKET, QUEUE_SIZES = 1, (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF, and the same by force
NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW… flag that clone() takes
CLONE_PARENT, CLONE_THREAD, EXIT_SIGNAL, SIGCHLD = 0x8000, 0x10000, 0xFF, 17
FORKS = (57, 58)  # fork and vfork of x86_64; other machines have only clone
AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; an argument has 8 bytes
DENY, IGNORE = (RETURN, 0, 0, ERROR | errno.EPERM), (RETURN, 0, 0, ERROR)
Line = tuple[int, int, int, int]
PR_SET_SECCOMP, FILTER_MODE = 22, 2


def _program(contained: bool, sockets: bool, column: int) -> list[Line]:
    """The filter for every program."""
    lines: list[Line] = [
        (JUMP_AT_LEAST, 0, 1, 0x40000000),
        DENY,
        (JUMP_EQUAL, 0, 1, CLONE3),
        (RETURN, 0, 0, ERROR | errno.ENOSYS),
    ]
    for numbers in (DENIED if contained else DENIED | SIGNALS).values():
        lines += [(JUMP_EQUAL, 0, 1, numbers[column]), DENY]
    for numbers, which, values in (DENIED_ARGUMENTS if contained else DENIED_ARGUMENTS | SIGNAL_ARGUMENTS).values():
        tests = [line for value in values for line in ((JUMP_EQUAL, 0, 1, value), DENY)]
        lines += _argument(numbers[column], which, tests)
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
    families = (AF_UNIX, AF_INET, AF_INET6) if sockets else (AF_UNIX,)
    known = [(JUMP_EQUAL, len(families) - place, 0, family) for place, family in enumerate(families)]
    return lines + _argument(SOCKET[column], 0, [*known, DENY])


def _reaping(column: int) -> list[Line]:
    """The filter by which ended children are kept until they are waited for: else nobody knew what they used."""
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


def _assemble(lines: list[Line], architecture: int) -> bytes:
    start = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
    ]
    return b"".join(struct.pack("<HBBI", *line) for line in (*start, *lines, (RETURN, 0, 0, ALLOW)))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


class Filter:
    """A filter, made once and installed in every child."""

    def __init__(self, lines: Callable[[int], list[Line]]) -> None:
        """`lines` takes which of the two numbers of a call are this machine's; others have no filter."""
        self._filter: _Filter | None = None
        if platform.machine() in ARCHITECTURES:
            column, architecture = ARCHITECTURES[platform.machine()]
            self._code = _assemble(lines(column), architecture)
            self._filter = _Filter(len(self._code) // 8, self._code)

    def install(self, libc: ctypes.CDLL) -> bool:
        """Bind this process to the filter for good; False if that fails. Needs no_new_privs."""
        if self._filter is None:
            return False
        return bool(libc.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(self._filter), 0, 0) == 0)


def general(contained: bool, sockets: bool = False) -> Filter:
    """The filter for every program. `contained`: it has its own PID namespace; `sockets`: and its own network, in which
    it may use the internet's protocols."""
    return Filter(lambda column: _program(contained, sockets, column))


def lonely() -> Filter:
    """The filter for a program that starts no other process."""
    return Filter(_lonely)


def reaping() -> Filter:
    """The filter for a candidate's process, which hides no child's use. Other programs are limited by the clock."""
    return Filter(_reaping)
