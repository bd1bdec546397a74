"""`export format=harbor`: what cannot become a task of Harbor is refused by its name, and TOML holds any text."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message, Target
from codechat.base.records import AdherenceRecord, AskedRecord, InstructionRecord, SessionRecord, TurnRecord
from codechat.cli.app import main
from codechat.datasets.tasks import Task
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls, Driven
from codechat.studies.refine.export_harbor import _require_exportable, _task
from codechat.studies.refine.format_harbor import Frozen
from support.mistakes import mistake

FOLLOWED = AdherenceRecord(verdict="adhered", by="rules", reason="")
FROZEN = {"file": "f", "task_id": "t", "dataset": "d", "language": "python", "agenda": ["cosmetic"], "seed": 0}
CALLS = Calls("f", None, ((1,),), expected_base=(1,))


def session(**more: Any) -> SessionRecord:
    """One with a skipped turn, whose texts are hard to write in TOML."""
    hard = InstructionRecord(id="hard", text='a "quote", \\\\ a \x7f, \x00, \n and 😀', scope="semantic", change="add")
    turns = [
        TurnRecord(turn=0, request=[Message("system", "be brief"), Message("user", "write f")], code="x"),
        TurnRecord(turn=1, skipped=True),
        TurnRecord(turn=2, request=[Message("user", "write f"), Message("user", hard.text)], instruction=hard),
    ]
    fields = {"cell_id": "c", "session_id": "s", "task_id": "own/one", "dataset": "own", "model": "m", "seed": 0}
    fields |= {"protocol": "refine", "agenda": ["semantic"], "status": "completed", "turns": turns}
    return SessionRecord(**{**fields, **more})


def test_several_instructions_of_a_step_are_frozen_too() -> None:
    both = [AskedRecord(id=name, text=name, scope="cosmetic", change="add", adherence=FOLLOWED) for name in "ab"]
    turns = [*session().turns, TurnRecord(turn=3, request=[Message("user", "1. a\n2. b")], asked=both)]
    made = _task("own-one", session(turns=turns), Task("own/one", "write f", suite=CALLS), 5)
    *_, one, several = tomllib.loads(str(made["task.toml"]))["metadata"]["codechat"]["turns"]
    assert [each["id"] for each in several["asked"]] == ["a", "b"] and "instruction" not in several
    assert one["instruction"]["id"] == "hard" and "asked" not in one
    assert [each.id for each in Frozen.model_validate(FROZEN | {"turns": [several]}).turns[0].asked] == ["a", "b"]


def test_a_step_is_a_request(tmp_path: Path) -> None:
    made = _task("own-one", session(), Task("own/one", "write f", suite=CALLS), 5)
    assert [name for name in made if name.startswith("steps/")] == [
        "steps/turn-0/instruction.md", "steps/turn-2/instruction.md",
    ]  # fmt: skip
    assert str(made["steps/turn-0/instruction.md"]).startswith(
        "be brief\n\nwrite f\n\nThe code stands in the file solution.py"
    )
    config = tomllib.loads(str(made["task.toml"]))
    assert [step["name"] for step in config["steps"]] == ["turn-0", "turn-2"]
    kept = config["metadata"]["codechat"]
    assert [turn["skipped"] for turn in kept["turns"]] == [False, True, False]
    asked = session().turns[2].instruction
    assert asked is not None
    assert kept["turns"][2]["instruction"] == asked.model_dump()
    assert "solution/solve.sh" not in made


@pytest.mark.parametrize(
    ("suite", "named"),
    [
        (None, "none"),
        (Assertions(("assert f(1) == 1",)), "assertions"),
        (Driven.of(CALLS, "javascript", "f(x)"), "javascript"),
    ],
)
def test_tests_that_need_a_sandbox_are_refused(suite: Any, named: str) -> None:
    task = Task("own/one", "write f", Target("javascript" if isinstance(suite, Driven) else "python"), suite)
    with mistake("own/one", named):
        _require_exportable(session(), task)


def test_other_protocols_and_unknown_tasks_are_refused() -> None:
    with mistake("static"):
        _require_exportable(session(protocol="static"), None)
    with mistake("own/one"):
        _require_exportable(session(), None)


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["tracking=none", "sandbox.allow_weak=true", "model=echo", "dataset.limit=1", "agenda.turns=2"]
    assert main(words) == 0
    (run,) = Path("runs").iterdir()
    words = ["export", "format=harbor", f"run={run}", "out=tasks"]
    assert main(words) == 0
    assert (tmp_path / "tasks").is_dir()
    assert main(words) == 2
