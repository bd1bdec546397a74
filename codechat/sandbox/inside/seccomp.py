"""A system call filter: no namespaces, mounts, tracing, keys, kernel interfaces, shared memory or network.

Denied calls return an error instead of killing, so that libraries that merely probe keep working.
"""

import ctypes
import errno
import platform
import struct

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
CLONE, CLONE3, SOCKET = (56, 220), 435, (41, 198)
NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW… flag that clone() takes
AF_UNIX = 1
ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, ERROR, KILL = 0x7FFF0000, 0x00050000, 0x80000000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
PR_SET_SECCOMP, FILTER_MODE = 22, 2


def _program(denied: dict[str, tuple[int, int]]) -> bytes | None:
    """The filter's instructions for this machine, or None if its numbers are not known."""
    if platform.machine() not in ARCHITECTURES:
        return None
    column, architecture = ARCHITECTURES[platform.machine()]
    deny = (RETURN, 0, 0, ERROR | errno.EPERM)
    lines = [
        (LOAD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_AT_LEAST, 0, 1, 0x40000000),
        deny,
        (JUMP_EQUAL, 0, 1, CLONE3),
        (RETURN, 0, 0, ERROR | errno.ENOSYS),
    ]
    for numbers in denied.values():
        lines += [(JUMP_EQUAL, 0, 1, numbers[column]), deny]
    lines += [
        (JUMP_EQUAL, 0, 3, CLONE[column]),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_ANY_BIT, 0, 1, NEW_NAMESPACES),
        deny,
    ]
    lines += [(LOAD, 0, 0, NUMBER), (JUMP_EQUAL, 0, 3, SOCKET[column]), (LOAD, 0, 0, FIRST_ARGUMENT)]
    lines += [(JUMP_EQUAL, 1, 0, AF_UNIX), deny, (RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


class Filter:
    """The filter, made once and installed in every child. `contained`: the child has its own PID namespace."""

    def __init__(self, contained: bool) -> None:
        code = _program(DENIED if contained else DENIED | SIGNALS)
        self._code = code
        self._filter = _Filter(len(code) // 8, code) if code else None

    def install(self, libc: ctypes.CDLL) -> bool:
        """Bind this process to the filter for good; False if that fails. Needs no_new_privs."""
        if self._filter is None:
            return False
        return bool(libc.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(self._filter), 0, 0) == 0)
