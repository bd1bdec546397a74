"""What a child asks the system for before a program's first line, by a system that notes it."""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.sandbox.inside import isolate
from codechat.sandbox.inside.isolate import NotGranted
from codechat.sandbox.process import another_user
from support.machine import skip_without

LIMITS = {"file": 1 << 20, "memory": 2 << 30, "cpu": 10, "open_files": 64, "processes": 9}


class System:
    """Stands for libc: everything is granted but what is named, and noted."""

    def __init__(self, *denied: str) -> None:
        self.asked, self._denied = list[tuple[Any, ...]](), denied
        self._exit = ctypes.CDLL(None)._exit

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> int:
            self.asked.append((name, *given))
            return -1 if name in self._denied else 0

        return call

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [given for what, *given in self.asked if what == name]  # type: ignore[misc]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    found = System()
    monkeypatch.setattr(isolate, "libc", found)
    return found


def test_what_is_denied_is_told() -> None:
    assert (isolate.checked(0, "it"), isolate.checked(3, "it")) == (0, 3)
    ctypes.set_errno(1)
    with pytest.raises(NotGranted, match="it: ") as caught:
        isolate.checked(-1, "it")
    assert caught.value.errno == 1


def test_a_mount_is_asked_for_as_the_kernel_wants_it(system: System) -> None:
    isolate.mount("none", "/a", "tmpfs", 3, "size=1")
    isolate.mount("/b", "/a", "", 4)
    assert system.of("mount") == [[b"none", b"/a", b"tmpfs", 3, b"size=1"], [b"/b", b"/a", None, 4, None]]


def test_covered_folders_hold_so_much(system: System) -> None:
    isolate.empty_folders(["/a", "/b"], 1 << 20, 8)
    assert [(each[1], each[3] & 8) for each in system.of("mount")] == [(b"/a", 8), (b"/b", 8)]
    options = dict(part.split("=") for part in system.of("mount")[0][4].decode().split(","))
    assert options == {"mode": "1777", "size": str(1 << 20), "nr_inodes": str(1 << 20 >> 13)}


@pytest.fixture
def confined(monkeypatch: pytest.MonkeyPatch, system: System) -> list[Any]:
    """What `confine` does, in order."""
    done = list[Any]()
    for name in ("own_mounts", "own_proc", "_own_network", "_drop_capabilities"):
        monkeypatch.setattr(isolate, name, lambda name=name: done.append(name))
    monkeypatch.setattr(isolate, "empty_folders", lambda folders, size, flags=0: done.append((*folders, size, flags)))
    monkeypatch.setattr(isolate, "_limit", lambda which, value: done.append((which, value)))
    monkeypatch.setattr(isolate.os, "chdir", lambda folder: done.append(f"cd {folder}"))
    monkeypatch.setattr(isolate, "_lonely", SimpleNamespace(install=lambda libc: done.append("_lonely")))
    monkeypatch.setattr(
        isolate,
        "filter_of",
        lambda place, reaps=False: SimpleNamespace(install=lambda libc: done.append(("filter", place))),
    )
    return done


BOUNDS = [
    (resource.RLIMIT_AS, 2 << 30), (resource.RLIMIT_CPU, 20), (resource.RLIMIT_FSIZE, 1 << 20),
    (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_NPROC, 9), (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_STACK, isolate.STACK),
]  # fmt: skip
IN_NAMESPACES, FILTER = ["own_mounts", ("/tmp", 1 << 20, 0), "cd /tmp"], [("filter", "namespaces")]


@pytest.mark.parametrize(
    ("child", "before", "after"),
    [
        (("bare", (), False), [], [("filter", "bare")]),
        (("bare", ("network", "processes", "commands"), False), [], [("filter", "bare")]),
        (("landlock", (), False), [], []), (("supervised", ("network",), True), [], ["_lonely"]),
        (("namespaces", (), False), IN_NAMESPACES, FILTER),
        (("namespaces", (), True), ["own_mounts", ("/tmp", 1 << 20, isolate.MS_NOEXEC), "cd /tmp"], [*FILTER, "_lonely"]),
        (("namespaces", ("processes",), False), ["own_mounts", "own_proc", *IN_NAMESPACES[1:]], FILTER),
        (("namespaces", ("commands",), False), IN_NAMESPACES, FILTER),
        (("namespaces", ("network",), False), ["own_mounts", "_own_network", *IN_NAMESPACES[1:]], [("filter", "network")]),
    ],
)  # fmt: skip
def test_a_child_is_confined_by_what_its_tests_need(
    confined: list[Any], system: System, child: tuple[Any, Any, bool], before: list[Any], after: list[Any]
) -> None:
    place, needs, alone = child
    isolate.confine(LIMITS, place, ["/tmp"], needs, alone=alone)
    late = () if place in ("namespaces", "bare") else (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC)
    bounds = [each for each in BOUNDS if each[0] not in late]
    assert confined == [*before, *bounds, "_drop_capabilities", *after]
    ended = dict(system.of("signal"))
    assert ended.keys() == {signal.SIGPROF, signal.SIGALRM, signal.SIGVTALRM}
    assert {end.value for end in ended.values()} == {ctypes.cast(system._exit, ctypes.c_void_p).value}


def test_a_command_in_an_environment_renounces_its_rights(confined: list[Any]) -> None:
    isolate.renounce({1: 2, 3: 4})
    assert confined == [(1, 2), (3, 4), "_drop_capabilities", ("filter", "network")]


@pytest.mark.parametrize(("hard", "value", "wanted"), [(resource.RLIM_INFINITY, 5, 5), (7, 5, 5), (5, 5, 5), (4, 5, 4)])
def test_no_limit_is_above_the_hard_one(monkeypatch: pytest.MonkeyPatch, hard: int, value: int, wanted: int) -> None:
    made = list[Any]()
    monkeypatch.setattr(isolate.resource, "getrlimit", lambda which: (1, hard))
    monkeypatch.setattr(isolate.resource, "setrlimit", lambda which, both: made.append((which, both)))
    isolate._limit(3, value)
    assert made == [(3, (wanted, wanted))]


def test_capabilities_and_users_are_dropped(monkeypatch: pytest.MonkeyPatch, system: System) -> None:
    isolate._drop_capabilities()
    ((header, sets),) = system.of("capset")
    assert len(header) == 8 and header[4:] == bytes(4) and sets == bytes(24)
    monkeypatch.setattr(isolate, "libc", System("capset"))
    with pytest.raises(NotGranted):
        isolate._drop_capabilities()
    monkeypatch.setattr(isolate, "libc", system)
    done = list[Any]()
    for name in ("setgroups", "setresgid", "setresuid"):
        monkeypatch.setattr(isolate.os, name, lambda *given, name=name: done.append((name, *given)))
    isolate.drop_user(7)
    assert done == [("setgroups", []), ("setresgid", 7, 7, 7), ("setresuid", 7, 7, 7)]
    assert [isolate.PR_SET_DUMPABLE, 1, 0, 0, 0] in system.of("prctl")


def test_a_zygotes_children_gain_no_rights(system: System) -> None:
    isolate.lock_down()
    asked = system.of("prctl")
    assert [each[1] for each in asked if each[0] == isolate.PR_CAPBSET_DROP] == list(range(64))
    assert asked[64:] == [[isolate.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0], [isolate.PR_SET_DUMPABLE, 0, 0, 0, 0],
                          [isolate.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0]]  # fmt: skip


def test_namespaces_are_asked_for_one_by_one(monkeypatch: pytest.MonkeyPatch, system: System) -> None:
    isolate.new_pid_namespace()
    isolate.own_mounts()
    isolate.back_to(5)
    assert system.of("unshare") == [[isolate.NEWPID], [isolate.NEWNS]] and system.of("setns") == [[5, isolate.NEWPID]]
    for act in (isolate.new_pid_namespace, isolate.own_mounts, lambda: isolate.back_to(5), isolate._own_network):
        monkeypatch.setattr(isolate, "libc", System("unshare", "setns"))
        with pytest.raises(NotGranted):
            act()


def test_proc_shows_this_namespace_with_the_settings_as_far_as_they_are_granted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mounts, written = list[Any](), list[Any]()
    monkeypatch.setattr(isolate, "mount", lambda *given: mounts.append(given))
    monkeypatch.setattr(isolate, "_write", lambda *given: written.append(given))
    isolate.own_proc()
    assert [each[:3] for each in mounts] == [("proc", "/proc", "proc")] and mounts[0][3] & isolate.MS_RDONLY
    isolate.own_proc({"ipv4/x": "1", "ipv4/y": "2"})
    assert written == [("/proc/sys/net/ipv4/x", "1"), ("/proc/sys/net/ipv4/y", "2")]
    assert [bool(each[3] & isolate.MS_RDONLY) for each in mounts[1:]] == [False, True]

    def refuse(path: str, text: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(isolate, "_write", refuse)
    isolate.own_proc({"ipv4/x": "1"})
    assert len(mounts) == 5


@pytest.mark.parametrize("named", [True, False])
def test_a_network_of_its_own_has_names_where_they_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: System, named: bool
) -> None:
    done = list[Any]()
    monkeypatch.setattr(isolate, "ETC", str(tmp_path if named else tmp_path / "nowhere"))
    monkeypatch.setattr(isolate, "mount", lambda *given: done.append(given[:2]))
    monkeypatch.setattr(isolate, "loopback_up", lambda: done.append("up"))
    isolate._own_network()
    names = [(f"{tmp_path}/{name}", f"/etc/{name}") for name in ("hosts", "nsswitch.conf")]
    assert done == [*(names if named else []), "up"] and system.of("unshare") == [[isolate.NEWNET]]


def test_a_folder_that_others_may_not_enter_is_abarrier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    for each in (tmp_path, *tmp_path.parents):
        if not each.stat().st_mode & 0o001:
            monkeypatch.setattr(isolate.os.path, "realpath", lambda path: path)
    real = os.stat

    def stat(path: str) -> Any:
        inside = str(path).startswith(f"{tmp_path}/")
        return real(path) if inside else SimpleNamespace(st_mode=0o755)

    monkeypatch.setattr(isolate.os, "stat", stat)
    assert isolate.barrier(str(inner)) is None
    (tmp_path / "a" / "b").chmod(0o750)
    assert isolate.barrier(str(inner)) == str(tmp_path / "a" / "b")
    (tmp_path / "a").chmod(0o754)
    assert isolate.barrier(str(inner)) == str(tmp_path / "a")
    assert isolate.barrier(str(tmp_path)) is None


def test_only_the_interpreters_folders_lie_behind_abarrier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: System
) -> None:
    mounts = list[Any]()
    paths = [tmp_path / "home" / "python", tmp_path / "home" / "packages", tmp_path / "free"]
    for each in paths:
        each.mkdir(parents=True)
    monkeypatch.setattr(isolate, "mount", lambda *given: mounts.append(given))
    monkeypatch.setattr(isolate, "barrier", lambda path: str(tmp_path / "home") if "home" in path else None)
    isolate.reach([str(paths[2])], 7)
    assert system.asked == [] and mounts == []
    isolate.reach(list(map(str, paths)), 7)
    assert system.of("unshare") == [[isolate.NEWNS]]
    assert [each[1] for each in mounts] == ["/", str(tmp_path / "home"), str(paths[0]), str(paths[1])]
    assert all(each[0].startswith("/proc/self/fd/") and each[3] & isolate.MS_BIND for each in mounts[2:])


def test_whether_the_filter_can_be_installed_is_tried_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    for works in (True, False):
        taken = SimpleNamespace(install=lambda libc, works=works: works)
        monkeypatch.setattr(isolate, "filter_of", lambda _, taken=taken: taken)
        assert isolate.filter_works() is works


def test_what_a_child_left_is_killed_until_nothing_is_left() -> None:
    script = """
import os, time
from codechat.sandbox.inside import isolate
isolate.lock_down()
isolate.sweep()
if os.fork() == 0:
    for _ in range(3): os.fork()
    os.setsid()
    time.sleep(600)
time.sleep(0.3)
isolate.sweep()
assert isolate._children() == []
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_root_has_all_users_where_the_kernel_has_no_user_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.delattr(Path, "read_text")
    assert another_user() == isolate.NO_USER


# In a new user namespace, where it has all users but may not leave its groups, starts the rest of its arguments.
NO_GROUPS = """
import ctypes, os, sys
(mapped, map_now), (made, made_now) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(made_now, b"x")
    os.read(mapped, 1)
    os.execv(sys.argv[1], sys.argv[1:])
os.read(made, 1)
for name, text in (("setgroups", "deny"), ("uid_map", "0 0 2200000000"), ("gid_map", "0 0 2200000000")):
    with open(f"/proc/{child}/{name}", "w") as stream:
        stream.write(text)
os.write(map_now, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root, who alone maps many users")


@pytest.mark.parametrize(
    "within",
    [
        pytest.param(["unshare", "-Ur"], id="one user"),
        pytest.param([sys.executable, "-c", NO_GROUPS], id="groups", marks=ROOT),
    ],
)
def test_root_of_a_namespace_without_other_users_or_groups_runs_programs(within: list[str]) -> None:
    skip_without()
    script = """
import asyncio
from codechat.base.domain import Program
from codechat.sandbox import SANDBOXES
from codechat.sandbox.process import another_user
from codechat.sandbox.suites.calls import Calls
assert another_user() is None
suite = Calls("f", None, base=((1,),), expected_base=(1,))
for kind in ("bubblewrap", "landlock", "process"):
    room = SANDBOXES.build(SANDBOXES.validate({"kind": kind}), workers=1)
    print(asyncio.run(suite.check(Program("def f(x):\\n    open('file', 'w')\\n    return x"), room)).outcome)
"""
    done = subprocess.run([*within, sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "pass\n" * 3), done.stderr
