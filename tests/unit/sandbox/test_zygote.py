"""What a zygote does where the system grants no namespaces, and what its parent says of one that died."""

import io
import json
import os
import sys
import tempfile
from typing import Any, cast

import pytest

from codechat.sandbox.inside import zygote
from codechat.sandbox.inside.zygote import OWN_USERS
from codechat.sandbox.watch import WorkerDied
from codechat.sandbox.workers import Inside, Launch, Worker


@pytest.mark.parametrize(
    ("ranges", "own"),
    [
        ("0 0 4294967295", True), ("{0} 0 1", True), ("0 0 1\n{0} 9 6", True), ("0 1000 1", False), ("{1} 0 9", False),
        ("0 0 {0}", False), ("", False),
    ],
)  # fmt: skip
def test_a_zygotes_user_is_its_own_above_all_that_systems_hand_out(
    monkeypatch: pytest.MonkeyPatch, ranges: str, own: bool
) -> None:
    mine = OWN_USERS + os.getpid()
    monkeypatch.setattr(zygote, "open", lambda path: io.StringIO(ranges.format(mine, mine + 1)), raising=False)
    assert zygote._own_user() == (mine if own else None)


def test_a_handed_over_file_is_read_from_its_beginning_to_its_end() -> None:
    with tempfile.TemporaryFile() as stream:
        stream.write(b"all of it")
        stream.flush()
        assert zygote._whole(stream.fileno()) == b"all of it" and stream.tell() == 9


@pytest.mark.parametrize(
    ("printed", "told"),
    [(b"", "it printed nothing"), (b" why \n", "why"), (b"x" * 10 + b"y" * 1000, "y" * 1000), (b"\xff", "\ufffd")],
)
def test_the_end_of_what_a_dead_zygote_printed_is_told(printed: bytes, told: str) -> None:
    worker = Worker(cast(Launch, None))
    assert worker._errors_tail() == ""
    with tempfile.TemporaryFile() as stream:
        stream.write(printed)
        worker._errors = cast(Any, stream)
        assert worker._errors_tail() == told


CONNECTS = "import socket, sys\none = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\none.connect(sys.argv[1] + '/control')\none.send(b'here')"


@pytest.mark.parametrize(("code", "told"), [(CONNECTS, ""), ("import sys\nsys.exit('no engine')", "no engine")])
def test_a_zygote_that_inherits_nothing_connects_or_says_why_not(code: str, told: str) -> None:
    def command(arguments: list[str], folder: str) -> list[str]:
        return [sys.executable, "-S", "-c", code, folder]

    worker = Worker(Launch(command, "", Inside([], {}, []), place=None, meeting="/meeting/control"))
    worker._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
    if told:
        with pytest.raises(WorkerDied, match=told):
            worker._meet()
        return
    with worker._meet() as control:
        assert control.recv(10) == b"here"
    worker.stop()


def test_a_zygote_that_connected_and_ended_before_anybody_looked_has_connected() -> None:
    worker = Worker(Launch(lambda _, folder: [sys.executable, "-c", CONNECTS, folder], "", Inside([], {}, []), None))
    worker._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by `stop`
    spawn = worker._spawn

    def spawn_and_wait(stdin: int, folder: str) -> None:
        spawn(stdin, folder)
        assert worker._process is not None and worker._process.wait() == 0

    worker._spawn = spawn_and_wait  # type: ignore[method-assign]
    with worker._meet() as control:
        assert control.recv(10) == b"here"
    worker.stop()


def test_a_zygote_that_has_started_may_take_its_time() -> None:
    hello = {"place": "namespaces", "refusal": "", "proc": True, "seccomp": True, "blind": "", "mine": 1}
    code = CONNECTS.replace("b'here'", repr(json.dumps(hello).encode())) + "\none.recv(10)"
    inside = Inside([], {}, [])
    worker = Worker(Launch(lambda _, folder: [sys.executable, "-c", code, folder], "", inside, None, "/meeting"))
    worker.start()
    try:
        assert worker.hello == hello and worker._control is not None and worker._control.gettimeout() is None
    finally:
        worker.stop()


WHOLE = {"place": "namespaces", "refusal": "", "proc": True, "seccomp": True, "blind": ""}


@pytest.mark.parametrize(
    ("launch", "hello", "told"),
    [
        ({}, {}, ""), ({"place": "namespaces"}, {}, ""), ({"place": "namespaces"}, {"place": "bare"}, "no namespaces"),
        ({}, {"place": "bare", "proc": False, "seccomp": False}, ""),
        ({"place": "namespaces"}, {"seccomp": False}, "no filter"), ({"meeting": "/m"}, {"seccomp": False}, "no filter"),
        ({"meeting": "/m"}, {"place": "bare"}, ""), ({"proc": True}, {"proc": False}, "no /proc"),
        ({"proc": True}, {"proc": False, "place": "bare"}, ""), ({}, {"blind": "/opt"}, "/opt"),
    ],
)  # fmt: skip
def test_what_a_zygote_must_have_and_lacks_is_told(launch: dict[str, Any], hello: dict[str, Any], told: str) -> None:
    inside = Inside([], {}, [], proc=launch.get("proc", False))
    made = Launch(lambda *_: [], "", inside, place=launch.get("place"), meeting=launch.get("meeting"))
    found = Worker(made)._lacking(WHOLE | hello)
    assert bool(found) is bool(told) and told in found
