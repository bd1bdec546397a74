"""The filters of system calls, run as the kernel runs them: which calls they allow, refuse or pretend to have done."""

import errno
import platform
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest

from codechat.sandbox.inside import seccomp
from codechat.sandbox.inside.seccomp import ALLOW, ASK, ERROR, KILL, Filter, general, lonely

if platform.machine() not in seccomp.ARCHITECTURES:
    pytest.skip("needs filters of system calls", allow_module_level=True)
COLUMN, HERE = seccomp.ARCHITECTURES[platform.machine()]
CLONE, SOCKET, OPTION, SIGACTION = (
    numbers[COLUMN] for numbers in (seccomp.CLONE, seccomp.SOCKET, seccomp.SET_OPTION, seccomp.SIGACTION)
)
PRCTL, FCNTL = seccomp.DENIED_ARGUMENTS["prctl"][0][COLUMN], seccomp.UNPARTED_ARGUMENTS["fcntl"][0][COLUMN]
MOUNT, SIGNAL = seccomp.DENIED["mount"][COLUMN], seccomp.SIGNALS["tgkill"][COLUMN]
REFUSED, UNKNOWN, READ = ERROR | errno.EPERM, ERROR | errno.ENOSYS, (0, 63)[COLUMN]
THREAD, NEW_USERS, PARENT, CHILD = 0x10000, 0x10000000, 0x8000, 17
FREE, ONLINE, LANDLOCK, SUPERVISED, ALONE = (
    partial(general, place) for place in ("namespaces", "network", "landlock", "supervised", "bare")
)
reaping = partial(general, "namespaces", reaps=True)
CONNECT, PAIR, LIMIT, CHMOD, CHOWN = (
    seccomp.CONNECT[COLUMN],
    seccomp.SOCKETPAIR[COLUMN],
    seccomp.SET_LIMIT[COLUMN],
    *(of[name][COLUMN] for of, name in ((seccomp.IGNORED, "fchmod"), (seccomp.OF_FILES, "fchown"))),
)


def answer(of: Callable[[], Filter], number: int, *arguments: int, machine: int = HERE) -> int:
    """What the kernel does with a call: the value that the filter returns."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    lines, held, at = list(struct.iter_unpack("<HBBI", of()._code)), 0, 0
    while True:
        code, true, false, value = lines[at]
        at += 1
        if code == seccomp.RETURN:
            return int(value)
        if code == seccomp.LOAD:
            held = struct.unpack_from("<I", data, value)[0]
        elif code == seccomp.AND:
            held &= value
        else:
            holds = {
                seccomp.JUMP_EQUAL: held == value, seccomp.JUMP_AT_LEAST: held >= value,
                seccomp.JUMP_ANY_BIT: bool(held & value),
            }[code]  # fmt: skip
            at += true if holds else false


@pytest.mark.parametrize(
    ("of", "call", "wanted"),
    [
        (FREE, (READ,), ALLOW), (FREE, (MOUNT,), REFUSED), (ALONE, (MOUNT,), REFUSED),
        (FREE, (0x40000000,), REFUSED), (FREE, (0x3FFFFFFF,), ALLOW), (FREE, (seccomp.CLONE3,), UNKNOWN),
        (FREE, (SIGNAL,), ALLOW), (ALONE, (SIGNAL,), REFUSED),
        (FREE, (PRCTL, 62), REFUSED), (FREE, (PRCTL, 4, 62), ALLOW),
        (FREE, (FCNTL, 3, 8), ALLOW), (ALONE, (FCNTL, 3, 8), REFUSED), (ALONE, (FCNTL, 8, 3), ALLOW),
        (FREE, (CLONE, CHILD), ALLOW), (FREE, (CLONE, 0), ALLOW), (FREE, (CLONE, THREAD), ALLOW),
        (FREE, (CLONE, CHILD | NEW_USERS), REFUSED), (FREE, (CLONE, CHILD | PARENT), REFUSED),
        (FREE, (CLONE, 10), REFUSED), (FREE, (CLONE, 1), REFUSED),
        (FREE, (OPTION, 3, 1, 7), ERROR), (FREE, (OPTION, 3, 1, 33), ERROR), (FREE, (OPTION, 3, 1, 2), ALLOW),
        (FREE, (OPTION, 3, 6, 7), ALLOW), (FREE, (OPTION, 1, 3, 7), ALLOW),
        (FREE, (SOCKET, 1), ALLOW), (FREE, (SOCKET, 2), REFUSED), (FREE, (SOCKET, 16, 1), REFUSED),
        (ONLINE, (SOCKET, 1), ALLOW), (ONLINE, (SOCKET, 2), ALLOW), (ONLINE, (SOCKET, 10), ALLOW),
        (ONLINE, (SOCKET, 16), REFUSED), (ONLINE, (MOUNT,), REFUSED),
        (lonely, (CLONE, THREAD | CHILD), ALLOW), (lonely, (CLONE, CHILD), REFUSED), (lonely, (READ,), ALLOW),
        (SUPERVISED, (SIGNAL,), ASK), (LANDLOCK, (SIGNAL,), ASK), (LANDLOCK, (CLONE, CHILD), ASK),
        (LANDLOCK, (CLONE, CHILD | NEW_USERS), REFUSED), (LANDLOCK, (seccomp.CLONE3,), UNKNOWN),
        (LANDLOCK, (CONNECT, 3), ASK), (SUPERVISED, (CONNECT, 3), ALLOW), (ALONE, (CONNECT, 3), ALLOW),
        (LANDLOCK, (SOCKET, 1, 1), ALLOW), (LANDLOCK, (SOCKET, 1, 0o2000005), ALLOW), (LANDLOCK, (SOCKET, 1, 2), REFUSED),
        (LANDLOCK, (SOCKET, 2, 1), REFUSED), (LANDLOCK, (PAIR, 1, 1), ALLOW), (LANDLOCK, (PAIR, 1, 3), REFUSED),
        (LANDLOCK, (LIMIT, 0, 7), ALLOW), (LANDLOCK, (LIMIT, 7, 0), REFUSED), (FREE, (LIMIT, 7, 0), ALLOW),
        (LANDLOCK, (CHMOD,), ERROR), (LANDLOCK, (CHOWN,), REFUSED), (FREE, (CHMOD,), ALLOW), (ALONE, (CHOWN,), ALLOW),
        (reaping, (SIGACTION, CHILD, 0), ALLOW), (reaping, (SIGACTION, CHILD, 0x10), REFUSED),
        (reaping, (SIGACTION, CHILD, 1 << 32), REFUSED), (reaping, (SIGACTION, 10, 0x10), ALLOW),
        (reaping, (SIGACTION, 0x10, CHILD), ALLOW), (reaping, (READ, CHILD, 0x10), ALLOW),
    ],
)  # fmt: skip
def test_a_call_is_allowed_refused_or_done_in_appearance(
    of: Callable[[], Filter], call: tuple[int, ...], wanted: int
) -> None:
    assert answer(of, *call) == wanted


def test_no_denied_call_passes_and_no_other_machines() -> None:
    for numbers in seccomp.DENIED.values():
        assert answer(FREE, numbers[COLUMN]) == answer(ALONE, numbers[COLUMN]) == REFUSED
    for numbers in (*seccomp.SIGNALS.values(), *seccomp.UNPARTED.values()):
        assert (answer(FREE, numbers[COLUMN]), answer(ALONE, numbers[COLUMN])) == (ALLOW, REFUSED)
    for numbers in seccomp.UNPARTED.values():
        assert answer(LANDLOCK, numbers[COLUMN]) == answer(SUPERVISED, numbers[COLUMN]) == REFUSED
    for number in seccomp.FORKS if COLUMN == 0 else ():
        assert (answer(lonely, number), answer(FREE, number)) == (REFUSED, ALLOW)
    for of in (FREE, ALONE, ONLINE, LANDLOCK, SUPERVISED, lonely, reaping):
        assert answer(of, READ, machine=HERE ^ 1) == KILL


INSTALLING = """
import ctypes, errno, os
from codechat.sandbox.inside import isolate, seccomp
filters = {
    "free": (seccomp.general("namespaces"), True), "alone": (seccomp.general("bare"), True),
    "online": (seccomp.general("network"), True), "lonely": (seccomp.lonely(), False),
    "reaping": (seccomp.general("namespaces", reaps=True), True),
}
for name, (made, refuses) in filters.items():
    child = os.fork()
    if child == 0:
        isolate.libc.prctl(isolate.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        taken, _ = made.install(isolate.libc), isolate.libc.mount(None, None, None, 0, None)
        os._exit(0 if taken and (ctypes.get_errno() == errno.EPERM or not refuses) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, name
isolate.libc.prctl(isolate.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
assert isolate.filter_works()
"""


def test_the_kernel_takes_the_filters_and_refuses_by_them() -> None:
    subprocess.run([sys.executable, "-c", INSTALLING], check=True, timeout=60)
