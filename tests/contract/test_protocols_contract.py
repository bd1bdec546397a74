"""What every registered protocol must be: its records, its metrics and what it says of them, on one small task."""

import contextlib
import itertools
import json
import random
from typing import Any

import pytest

from codechat.base.domain import AgentStep, Trajectory
from codechat.base.records import SessionRecord, read_sessions
from codechat.report.metrics import Effort, points_of
from codechat.report.metrics.counts import count_decided
from codechat.report.metrics.measures import COMMON, Breakdown, Series, interval_of, value_of
from codechat.run.cell import Cell, build_cell
from codechat.run.journal import Journal
from codechat.run.protocols import PROTOCOLS
from codechat.run.results import measured
from codechat.run.run import run_built
from codechat.run.settings.compose import compose
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.multicodeif.rows import ConstrainedTask
from codechat.studies.sreval.rows import StepTask

ROW = {
    "task_id": "mine/1",
    "prompt": "Write double(x), which doubles a number.",
    "entry_point": "double",
    "canonical_solution": "def double(x):\n    return 2 * x\n",
    "tests": ["assert double(2) == 4"],
    "requirements": [
        {"type": "Edge Case Handling", "text": "0 gives 0.", "tests": "assert double(0) == 0"},
        {"type": "Annotation Coverage", "text": "Annotate it.", "tests": "assert double.__annotations__"},
    ],
}


STEPS = {
    "task_id": "mine/2",
    "entry_point": "double",
    "turns": [
        {"instruction": "Write double(x), which doubles a number.", "solution": "def double(x):\n    return 2 * x\n",
         "tests": "assert double(2) == 4"},
        {"instruction": "A text is an error.", "tests": "try:\n    double('a')\n    raise SystemError\nexcept TypeError: pass",
         "solution": "def double(x):\n    if isinstance(x, str):\n        raise TypeError\n    return 2 * x\n"},
    ],
}  # fmt: skip


KEEPING = {
    "task_id": "mine/3",
    "prompt": "Write double(x), which doubles a number.",
    "canonical_solution": "def double(some_number):\n    twice_it = 2 * some_number\n    return twice_it\n",
    "constraints": [{"type": "naming", "answer": "python;variable:snake_case"}],
}
ROWS = {StepTask: STEPS, ConstrainedTask: KEEPING}
REPLAYED = ("recorded", "refined")


@pytest.fixture(scope="module", params=[component.name for component in PROTOCOLS])
def cell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Cell:
    """A finished cell of the protocol as it is shipped."""
    folder = tmp_path_factory.mktemp(request.param)
    path = folder / "tasks.jsonl"
    row = ROWS.get(PROTOCOLS[request.param].traits.over, ROW)
    path.write_text(json.dumps(row) + "\n")
    words = [f"protocol={request.param}", "model=echo", "dataset=jsonl", f"dataset.path={path}", "tracking=none"]
    if PROTOCOLS[request.param].traits.over is AssistTask:
        words = [f"protocol={request.param}", "dataset=assist_starter", "dataset.limit=1", "tracking=none"]
    common = ["agenda.turns=3", "hardware.workers=1", f"runs_dir={folder / 'runs'}"]
    if request.param in REPLAYED:  # these test again what another cell left
        held = build_cell(compose(["protocol=refine", *words[1:], *common]))
        assert run_built(held, ["codechat"]).status == 0
        words += ["model=replay", f"model.path={held.folder / 'sessions.jsonl'}"]
        words.remove("model=echo")
    cell = build_cell(compose([*words, *common]))
    assert run_built(cell, ["codechat"]).status == 0
    return cell


@pytest.fixture
def sessions(cell: Cell) -> list[SessionRecord]:
    return list(read_sessions(cell.folder / "sessions.jsonl"))


def metrics_of(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((cell.folder / "metrics.json").read_text())
    return found


def test_the_record(cell: Cell, sessions: list[SessionRecord]) -> None:
    (session,) = sessions
    protocol = cell.protocol
    assert session.protocol == cell.config.protocol.kind  # type: ignore[attr-defined]
    assert session.status == "completed"
    assert 1 <= len(session.turns) <= protocol.turns(cell.tasks[0])
    assert [turn.turn for turn in session.turns] == list(range(len(session.turns)))
    if "sandbox" in cell.config.uses:
        assert session.turns[0].passed and session.turns[0].passed_base, "echo answers with the reference"
    else:
        assert session.turns[0].outcome is None and session.judgement["verdict"] == "CORRECT"
    assert len(protocol.agenda(random.Random(0))) == len(session.agenda)


def test_the_metrics_are_what_the_protocol_says(cell: Cell) -> None:
    metrics, measures = metrics_of(cell), cell.protocol.measures
    kind: str = cell.config.protocol.kind  # type: ignore[attr-defined]
    assert measures.protocol == {"refined": "refine"}.get(kind, kind), "published refinements are shown as refinements"
    assert set(COMMON) <= set(metrics)
    for measure in (*measures.series, *measures.finals, *measures.breakdowns, *measures.counts):
        value = value_of(metrics, measure)
        assert measure.label
        match measure:
            case Series():
                assert isinstance(value, list) and value
                interval = interval_of(metrics, measure)
                assert interval is None or len(interval) == len(value)
            case Breakdown():
                assert isinstance(value, dict)
            case _:
                assert value is None or isinstance(value, int | float), measure.key
    keys = [point.key for point in points_of(measures, metrics) if not point.key.startswith("turn/")]
    assert len(keys) == len(set(keys)), "no two measures are tracked under one name"


def test_the_metrics_follow_from_the_records_alone(cell: Cell, sessions: list[SessionRecord]) -> None:
    protocol = cell.protocol
    slim = [session.slim() for session in sessions]
    once = protocol.metrics(slim, seed=0, effort=Effort(wall_s=1.0))
    assert once == protocol.metrics(list(reversed(sessions)), seed=0, effort=Effort(wall_s=1.0))
    kept = metrics_of(cell)
    assert kept["decided"] == count_decided(sessions), "the engine counts it, for every protocol"
    of_the_engine = {"measures", "decided", "loaded", "replies"}
    differing = {*of_the_engine, "wall_s", "retries", "spent_usd", "cached_replies", "rate_limited"}
    assert {k: v for k, v in once.items() if k not in differing} == {
        k: v for k, v in kept.items() if k not in differing
    }
    protocol.metrics([], seed=0, effort=Effort())


def test_an_agents_work_is_measured_for_every_protocol(
    cell: Cell, sessions: list[SessionRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn in sessions[0].turns:
        turn.trajectory = Trajectory(turn.code, (AgentStep("command", "ls"),), lines_added=2)
    monkeypatch.setattr(measured, "SessionsInJournal", lambda *_: sessions)
    with contextlib.closing(Journal(cell.folder / "journal.db")) as journal:
        found = measured.measure(cell, journal, Effort())
    assert found["agent"]["commands"] == 1.0 and found["agent"]["n"]["commands"] == len(sessions[0].turns)
    assert "agent" not in metrics_of(cell)


def test_an_estimate_promises_no_more_of_a_prefix_cache_than_requests_share(
    cell: Cell, sessions: list[SessionRecord]
) -> None:
    """By characters, as if a reply were as long as it was here. The sizes themselves are guesses."""
    (session,), (task,) = sessions, cell.tasks
    asks = [ask for ask in cell.protocol.asks(task) if ask.role == "model"][: len(session.turns)]
    for ask in asks:
        assert 0 <= ask.shared <= ask.characters
        assert 0 <= ask.shared_replies <= ask.replies
    reply = sum(len(turn.response or "") for turn in session.turns) / len(session.turns)
    expected = [(ask.shared + ask.shared_replies * reply, ask.characters + ask.replies * reply) for ask in asks]
    before, real = "", list[tuple[int, int]]()
    for turn in session.turns:
        text = "".join(f"<{message.role}>{message.content}" for message in turn.request)
        alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, text, strict=False))
        real.append((sum(1 for _ in alike), len(text)))
        before = f"{text}<assistant>{turn.response}"
    promised, found = (sum(each[0] for each in pairs) / sum(each[1] for each in pairs) for pairs in (expected, real))
    assert promised <= found + 0.1
