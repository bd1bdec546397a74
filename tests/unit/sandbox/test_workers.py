"""Workers that are lent: who gets which, what is kept and ended, and who is at fault if a worker dies."""

from types import SimpleNamespace
from typing import Any

import pytest

from codechat.sandbox import SANDBOXES, Command, Ran, TakenDown
from codechat.sandbox import workers as room
from codechat.sandbox.inside import wire
from codechat.sandbox.watch import WorkerDied
from codechat.sandbox.workers import SPARE, Worker, ZygoteSandbox, _Box, _probe

CONFIG: Any = SANDBOXES.validate({"kind": "process", "output_mb": 2})
INSIDE = SimpleNamespace(proc=False)
HELLO = {"place": "namespaces", "seccomp": True, "proc": True, "blind": "", "refusal": "why"}


def launch(**more: Any) -> Any:
    return SimpleNamespace(**{"place": "namespaces", "meeting": None, "inside": INSIDE, **more})


@pytest.mark.parametrize(
    ("start", "hello", "lacking"),
    [
        ({}, {}, ""),
        ({}, {"place": "bare"}, "why"),
        ({"place": None}, {"place": "bare"}, ""),
        ({}, {"seccomp": False}, "filter"),
        ({"place": None}, {"seccomp": False}, ""),
        ({"place": None, "meeting": "/m"}, {"seccomp": False}, "filter"),
        ({"inside": SimpleNamespace(proc=True)}, {"proc": False}, "/proc"),
        ({"inside": SimpleNamespace(proc=True)}, {}, ""),
        ({"inside": SimpleNamespace(proc=True), "place": None}, {"proc": False, "place": "bare"}, ""),
        ({}, {"proc": False}, ""),
        ({}, {"blind": "/home/x"}, "/home/x"),
    ],
)
def test_a_sandbox_without_its_isolation_does_not_start(start: Any, hello: Any, lacking: str) -> None:
    found = Worker(launch(**start))._lacking({**HELLO, **hello})
    assert (lacking in found) if lacking else found == ""


def test_a_closed_worker_does_not_start_and_tells_no_errors() -> None:
    worker = Worker(launch())
    assert worker._errors_tail() == ""
    worker.close()
    with pytest.raises(WorkerDied, match="closed"):
        worker.start()
    with pytest.raises(WorkerDied, match="gone"):
        worker._need()


class Helper:
    stopped = 0

    def stop(self) -> None:
        self.stopped += 1


def test_a_helper_is_started_once_and_stopped_with_its_worker() -> None:
    worker, helper, started = Worker(launch()), Helper(), list[str]()

    def start() -> Helper:
        started.append("x")
        return helper

    assert worker.keep("a", start) is worker.keep("a", start) is helper and len(started) == 1
    worker.keep("b", Helper)
    worker.stop()
    assert helper.stopped == 0
    worker.close()
    assert helper.stopped == 1
    worker.end()
    assert helper.stopped == 2 and worker.keep("a", start) is helper and len(started) == 2


class Sandbox(ZygoteSandbox):
    """One whose workers start nothing."""

    def __init__(self, workers: int = 1, *, weak: bool = False) -> None:
        self.seen = list[tuple[str, ...]]()
        super().__init__(CONFIG, self._made, workers, weak, "notice")

    def _made(self, tools: tuple[str, ...]) -> Any:
        self.seen.append(tools)
        return launch()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "check_tools", lambda tools, *, own_folders, movable: (*tools, f"movable={movable}"))


def test_an_idle_worker_that_sees_the_same_tools_is_taken_the_latest_first() -> None:
    sandbox = Sandbox()
    one, two, other = sandbox._take(()), sandbox._take(()), sandbox._take(("/tool",))
    assert len({one, two, other}) == 3 and sandbox._workers == {one, two, other}
    for each in (one, other, two):
        sandbox._give_back(each)
    assert sandbox._take(()) is two and sandbox._take(()) is one and sandbox._take(("/tool",)) is other
    assert sandbox.seen == [("movable=True",), ("/tool", "movable=True")], "a launch is made once"
    weak = Sandbox(weak=True)
    weak._take(())
    assert weak.seen == [("movable=False",)] and (weak.weak, weak.notice) == (True, "notice")


def test_the_oldest_of_too_many_idle_workers_is_ended() -> None:
    sandbox, ended = Sandbox(workers=2), list[Any]()
    taken = [sandbox._take(()) for _ in range(2 + SPARE + 1)]
    for each in taken:
        each.end = lambda each=each: ended.append(each)  # type: ignore[method-assign, misc]
        sandbox._give_back(each)
        assert len(sandbox._idle) <= 2 + SPARE
    assert ended == [taken[0]] and sandbox._workers == {*taken[1:]}


def test_modules_are_for_workers_without_tools() -> None:
    sandbox = Sandbox()
    early, tooled = sandbox._take(()), sandbox._take(("/tool",))
    sandbox.preload(["numpy"])
    late = sandbox._take(())
    assert (early.modules, late.modules, tooled.modules) == (("numpy",), ("numpy",), ())
    assert sandbox._take(("/tool",)).modules == ()
    assert not sandbox.contained
    early.hello = {"place": "namespaces"}
    assert sandbox.contained


async def test_a_closed_sandbox_has_no_workers_any_more() -> None:
    sandbox = Sandbox()
    worker, ended = sandbox._take(()), list[str]()
    worker.end = lambda: ended.append("x")  # type: ignore[method-assign]
    sandbox._give_back(worker)
    await sandbox.aclose()
    assert worker._closed and ended == ["x"] and sandbox._take(("/tool",))._closed


@pytest.mark.parametrize(
    ("deaths", "probes", "end"), [(0, True, "done"), (1, True, "done"), (2, True, TakenDown), (2, False, WorkerDied)]
)
async def test_a_program_that_kills_two_workers_is_at_fault_if_another_one_runs(
    monkeypatch: pytest.MonkeyPatch, deaths: int, probes: bool, end: Any
) -> None:
    sandbox, tries = Sandbox(), list[Any]()

    def probe(worker: Worker) -> None:
        if not probes:
            raise WorkerDied("nothing runs")

    monkeypatch.setattr(room, "_probe", probe)

    def work(box: Any) -> str:
        tries.append(box)
        if len(tries) <= deaths:
            raise WorkerDied("killed")
        return "done"

    if isinstance(end, str):
        assert await sandbox.lend(work, ["/tool"]) == end and len(tries) == deaths + 1
    else:
        with pytest.raises(end):
            await sandbox.lend(work, ["/tool"])
        assert len(tries) == 2
    assert len(sandbox._idle) == 1 and tries[0]._tools == ("/tool",) and tries[0]._output_limit == 2 << 20


async def test_a_command_that_takes_the_box_down_ends_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lend(self: Any, work: Any, tools: Any) -> Any:
        raise TakenDown

    sandbox = Sandbox()
    monkeypatch.setattr(ZygoteSandbox, "lend", lend)
    assert await sandbox.run(Command(argv=("x",), wall_s=1.0)) == Ran(-9, why="down")


def test_a_box_has_the_tools_that_it_was_lent_with() -> None:
    worker: Any = Worker(launch())
    worker.hello = {"place": "namespaces"}
    box = _Box(worker, ("/tool",), 1, moves=True)
    assert box.parts_processes() is True
    worker.hello = {"place": "bare"}
    assert box.parts_processes() is False
    worker.hello = {"place": "landlock"}
    assert box.parts_processes(["threads"]) and not box.parts_processes(["threads", "network"])
    with pytest.raises(ValueError, match="/other"):
        box._job(Command(argv=("x",), wall_s=1.0, tools=("/other", "/tool")))


@pytest.mark.parametrize("runs", [True, False])
def test_a_trivial_program_says_whether_the_sandbox_works(runs: bool) -> None:
    worker: Any = Worker(launch())

    def run(job: Any, reader: Any) -> None:
        if runs:
            assert reader(wire.HEADER.pack(wire.DONE, 0, 0)) == (b"", False)

    worker.run = run
    if runs:
        _probe(worker)
    else:
        with pytest.raises(WorkerDied, match="trivial"):
            _probe(worker)
