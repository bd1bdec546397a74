"""Further published formats: what a source says stands in the record, and what it does not say is null."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord
from codechat.datasets.importing import FORMATS


def run(kind: str, path: Path, content: Any, **options: str) -> list[SessionRecord]:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text)
    return FORMATS.build(FORMATS.validate({"format": kind, "source": str(path), **options})).sessions


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def official(session: SessionRecord) -> list[bool | None]:
    said = [(turn.model_extra or {})["official"] for turn in session.turns]
    return [each and each["passed"] for each in said]


def test_evalplus_samples_of_several_turns(tmp_path: Path) -> None:
    rows = [
        {"task_id": "HumanEval/0", "solution": "b = 1", "turn": 1, "base_status": "pass", "plus_status": "timeout"},
        {"task_id": "HumanEval/0", "solution": "a = 1", "turn": 0, "base_status": "pass", "plus_status": "pass"},
        {"task_id": "Mbpp/2", "solution": "c = 1", "turn": 0},
    ]
    first, second = run("evalplus_turns", tmp_path / "m.jsonl", lines(*rows))
    assert [turn.code for turn in first.turns] == ["a = 1", "b = 1"]
    assert (official(first), [turn.outcome for turn in first.turns]) == ([True, False], ["pass", "timeout"])
    assert (first.dataset, second.dataset, first.model) == ("humaneval", "mbpp", "m")
    (unsaid,) = second.turns
    assert (official(second), unsaid.outcome, unsaid.passed, unsaid.response) == ([None], None, None, None)


def test_evalplus_results_and_lines_that_may_be_samples(tmp_path: Path) -> None:
    results = {"date": "", "eval": {"Mbpp/2": [{"solution": "a = 1", "plus_status": "fail"}, {"solution": "a = 2"}]}}
    with pytest.raises(UserError, match="a second line of Mbpp/2 without a turn"):
        run("evalplus_turns", tmp_path / "r.json", results)
    (session,) = run("evalplus_turns", tmp_path / "r.json", results, lines="turns")
    assert official(session) == [False, None]
    with pytest.raises(UserError, match=r"r\.json:1: no solution"):
        run("evalplus_turns", tmp_path / "r.json", lines({"task_id": "Mbpp/2", "completion": "x"}))


def test_lats_has_a_verdict_on_the_last_implementation_alone(tmp_path: Path) -> None:
    row = {"task_id": "HumanEval/0", "implementations": ["a = 1", "a = 2"], "is_solved": True, "solution": "a = 2"}
    other = {"name": "f", "implementations": ["a = 1"], "is_solved": False, "solution": "a = 3", "reflections": ["hm"]}
    first, second = run("lats", tmp_path / "l.jsonl", lines(row, other))
    assert official(first) == [None, True]
    assert [turn.outcome for turn in first.turns] == [None, "pass"]
    assert ([turn.code for turn in second.turns], official(second)) == (["a = 1", "a = 3"], [None, False])
    assert (second.turns[0].model_extra or {})["source_fields"] == {"reflection": "hm"}
    with pytest.raises(UserError, match=r"l\.jsonl:2: a second log of HumanEval/0"):
        run("lats", tmp_path / "l.jsonl", lines(row, row))
    with pytest.raises(UserError, match="implementations"):
        run("lats", tmp_path / "l.jsonl", lines({"task_id": "x"}))


def test_intercode_has_its_actions_as_turns(tmp_path: Path) -> None:
    history = {"actions": ["def f(): pass", "submit f"], "observations": ["ok", "done"], "rewards": [0.5, 1.0]}
    log = {"0": {"environment": "ic_python", "task_id": 7, "query": "Write f.", "turn_history": history, "summary": {}}}
    (session,) = run("intercode", tmp_path / "i.json", log)
    assert (session.task_id, session.language, official(session)) == ("intercode/7", "python", [False, True])
    assert [len(turn.request) for turn in session.turns] == [1, 3]
    assert session.turns[1].request[-1].content == "ok"
    log["0"]["turn_history"] = {"actions": ["ls"]}
    (session,) = run("intercode", tmp_path / "i.json", log)
    assert official(session) == [None]
    with pytest.raises(UserError, match=r"task 0: .*actions"):
        run("intercode", tmp_path / "i.json", {"0": {"query": "x"}})


def test_files_that_are_one_object_over_several_lines(tmp_path: Path) -> None:
    results = {"date": "", "eval": {"Mbpp/2": [{"solution": "a = 1", "base_status": "pass", "plus_status": None}]}}
    (session,) = run("evalplus_turns", tmp_path / "r.json", json.dumps(results, indent=2))
    assert official(session) == [True]
    log = {"task_id": 7, "turn_history": {"actions": ["ls"], "rewards": [1]}}
    (session,) = run("intercode", tmp_path / "i.json", json.dumps({"0": log}, indent=2))
    assert (session.task_id, official(session)) == ("intercode/7", [True])
    assert [each.task_id for each in run("intercode", tmp_path / "i.jsonl", lines(log, {"actions": []}))] == [
        "intercode/7", "intercode/1"
    ]  # fmt: skip


def test_turns_are_numbered_all_or_none(tmp_path: Path) -> None:
    rows = [{"task_id": "Mbpp/2", "solution": f"a = {n}", "turn": str(n)} for n in (2, 1)]
    (session,) = run("evalplus_turns", tmp_path / "t.jsonl", lines(*rows))
    assert [turn.code for turn in session.turns] == ["a = 1", "a = 2"]
    with pytest.raises(UserError, match="only some lines say their turn"):
        run(
            "evalplus_turns",
            tmp_path / "t.jsonl",
            lines(rows[0], {"task_id": "Mbpp/2", "solution": "b"}),
            lines="turns",
        )


def test_logs_that_lack_implementations(tmp_path: Path) -> None:
    simple = {"task_id": "HumanEval/0", "is_solved": True, "solution": "a = 1"}
    broken = {"task_id": "HumanEval/1", "is_solved": False, "implementations": [None, "a = 2"]}
    first, second = run("lats", tmp_path / "l.jsonl", lines(simple, broken))
    assert ([turn.code for turn in first.turns], official(first)) == (["a = 1"], [True])
    assert ([turn.code for turn in second.turns], official(second)) == ([None, "a = 2"], [None, False])
    with pytest.raises(UserError, match=r"l\.jsonl:1: neither implementations nor a solution"):
        run("lats", tmp_path / "l.jsonl", lines({"task_id": "HumanEval/0", "is_solved": True}))


def test_a_dialogue_of_no_task_is_refused(tmp_path: Path) -> None:
    state = {"history": [{"role": "assistant", "content": "<solution>a = 1</solution>"}], "success": True}
    with pytest.raises(UserError, match=r"m\.jsonl:1: .* no id"):
        run("mint", tmp_path / "m.jsonl", lines({"state": state, "task": {"task_name": "mbpp"}}))
