"""Dialogues as traces in a real MLflow store: whole, once, and not without bound."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord, write_sessions
from codechat.report.metrics import Point
from codechat.report.tracking import TRACKING, FinishedCell, TrackedRun, traces
from support.mlflow_store import client_of

pytestmark = pytest.mark.long

ASKED = {"id": "i1", "text": "Rename it.", "scope": "cosmetic", "change": "modify"}
TURNS = [
    {
        "turn": 0, "request": [{"role": "user", "content": "Write it."}], "response": "done", "code": "def f(): ...",
        "outcome": "pass", "passed": True, "passed_base": True, "latency_s": 2.0, "cpu_s": 0.5,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    },
    {
        "turn": 1, "instruction": ASKED, "request": [{"role": "user", "content": "Rename it."}], "response": "renamed",
        "code": "def g(): ...", "outcome": "fail", "passed": False, "passed_base": False,
        "failure": {"reason": "f(1) gave 2"}, "latency_s": 1.0, "usage": {"input_tokens": 20, "output_tokens": 6},
        "candidates": [{"id": "i1", "applicable": True, "by": "rules"}],
        "adherence": {"verdict": "adhered", "by": "rules", "reason": "no f is left"},
        "judge_usage": {"input_tokens": 3, "output_tokens": 1},
    },
    {"turn": 2, "skipped": True, "outcome": "fail", "passed": False, "passed_base": False},
]  # fmt: skip


def session(task: str, turns: list[dict[str, Any]] = TURNS) -> SessionRecord:
    return SessionRecord.model_validate(
        {
            "cell_id": "c0ffee", "session_id": f"id of {task}", "task_id": task, "dataset": "starter", "model": "echo",
            "protocol": "refine", "agenda": ["cosmetic"], "seed": 0, "status": "completed", "turns": turns,
        }
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def track(folder: Path, sessions: list[SessionRecord], *points: Point, **options: Any) -> TrackedRun:
    (folder / "run").mkdir(exist_ok=True)
    write_sessions(folder / "run" / "sessions.jsonl", sessions)
    config = TRACKING.validate({"kind": "mlflow", **options})
    run = TRACKING.build(config).log(FinishedCell("c0ffee", "echo", {}, points, folder / "run"))
    assert run is not None
    return run


def traces_in(folder: Path, run: TrackedRun) -> list[Any]:
    client = client_of(folder)
    found = client.search_traces(locations=[run.experiment_id])
    return sorted(found, key=lambda trace: str(trace.info.request_preview))


def test_a_dialogue_is_a_trace_with_all_its_parts(folder: Path) -> None:
    run = track(folder, [session("starter/a"), session("starter/b")], traces=True)
    assert run.notice is None
    first, second = traces_in(folder, run)
    assert [trace.info.request_preview for trace in (first, second)] == ["starter/a", "starter/b"]
    assert first.info.response_preview == "pass fail fail"
    assert first.info.trace_metadata["mlflow.sourceRun"] == run.run_id
    assert first.info.execution_duration == 3500
    assert first.info.token_usage == {"input_tokens": 30, "output_tokens": 11, "total_tokens": 41}
    spans = {span.span_id: span for span in first.data.spans}
    tree = [(spans[span.parent_id].name if span.parent_id else None, span.name) for span in spans.values()]
    assert sorted(tree, key=str) == sorted(
        [
            (None, "dialogue"), ("dialogue", "turn 0"), ("turn 0", "model"), ("turn 0", "sandbox"),
            ("dialogue", "turn 1"), ("turn 1", "model"), ("turn 1", "sandbox"), ("turn 1", "judge"),
            ("dialogue", "turn 2"),
        ],
        key=str,
    )  # fmt: skip
    told = {
        (span.name, verdict.name): (verdict.feedback.value, verdict.rationale, verdict.source.source_id)
        for verdict in first.info.assessments
        for span in [spans[verdict.span_id]]
    }
    assert told == {
        ("turn 0", "verdict"): ("pass", None, "sandbox"),
        ("turn 1", "verdict"): ("fail", "f(1) gave 2", "sandbox"),
        ("turn 1", "adherence"): ("adhered", "no f is left", "rules"),
        ("turn 2", "verdict"): ("fail", None, "sandbox"),
    }


def test_traces_are_off_unless_asked_for(folder: Path) -> None:
    assert traces_in(folder, track(folder, [session("starter/a")])) == []


def test_logging_again_replaces_the_traces(folder: Path) -> None:
    sessions = [session("starter/a"), session("starter/b")]
    old = track(folder, sessions, Point("turn/pass_at_1", 1.0, 1), traces=True)
    sessions[1] = session("starter/b", TURNS[:1])
    new = track(folder, sessions, Point("turn/pass_at_1", 0.5, 1), traces=True)
    assert new.run_id != old.run_id
    found = traces_in(folder, new)
    assert [trace.info.trace_metadata["mlflow.sourceRun"] for trace in found] == [new.run_id] * 2
    assert [trace.info.response_preview for trace in found] == ["pass fail fail", "pass"]
    assert [len(trace.data.spans) for trace in found] == [9, 4]
    assert [len(trace.info.assessments) for trace in found] == [4, 1]


def test_a_large_cell_gets_the_first_traces_and_a_notice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST", 5)
    monkeypatch.setattr(traces, "DIALOGUES_PER_BATCH", 2)
    run = track(folder, [session(f"starter/{number}", TURNS[:1]) for number in range(7)], traces=True)
    assert run.notice is not None
    assert run.notice.startswith("traces of the first 5 of 7 dialogues only")
    assert [trace.info.request_preview for trace in traces_in(folder, run)] == [f"starter/{n}" for n in range(5)]
