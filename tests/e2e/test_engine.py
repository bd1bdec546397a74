"""The engine from Python: a cell without a terminal, also where an event loop runs already."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import codechat
from codechat import compose, run
from codechat.base.domain import Program, Verdict
from codechat.base.errors import BrokenTest
from codechat.base.records import SessionRecord, TurnRecord
from codechat.base.seal import SEAL, edited
from codechat.run.cell import Cell
from codechat.run.cell.budget import Budget
from codechat.run.running.observer import Silent
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.calls import Calls
from codechat.testing import dataset_tasks
from support.mistakes import mistake

SMALL = ["model=echo", "dataset.limit=2", "agenda.turns=3", "tracking=none", "hardware.workers=1"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_cell_from_python_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = run(compose(SMALL))
    assert capfd.readouterr() == ("", "")
    assert outcome.status == 0
    assert outcome.metrics is not None and outcome.metrics["mst"] == 3.0
    assert outcome.folder.parent == Path("runs") and (outcome.folder / "metrics.json").exists()
    assert [session.status for session in outcome.sessions] == ["completed"] * 2
    assert len(list(outcome.sessions)) == 2, "they can be read again"
    assert json.loads((outcome.folder / "metrics.json").read_text()) == json.loads(json.dumps(outcome.metrics))


async def test_it_runs_where_a_loop_runs_already() -> None:
    assert asyncio.get_running_loop().is_running()
    assert run(compose(SMALL)).status == 0


class Listener(Silent):
    """Writes down what it is given."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def begin(self, cell: Cell, turns: int, budget: Budget) -> None:
        self.heard.append(f"begin {turns}")

    def turn(self, turn: TurnRecord, *, new: bool) -> None:
        self.heard.append(f"turn {turn.turn} {new}")

    def session(self, session: SessionRecord, planned: int) -> None:
        self.heard.append(f"session of {planned}")

    def recalled(self, session: SessionRecord, planned: int) -> None:
        self.heard.append("recalled")

    def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
        self.heard.append("measured")


def test_an_observer_hears_of_everything_in_order() -> None:
    first, second = Listener(), Listener()
    assert run(compose(SMALL), first).status == run(compose(SMALL), second).status == 0
    assert first.heard[0] == "begin 6" and first.heard[-1] == "measured"
    assert sorted(first.heard[1:-1]) == sorted([f"turn {n} True" for n in range(3)] * 2 + ["session of 3"] * 2)
    assert second.heard == ["begin 6", "recalled", "recalled", "measured"]


def test_a_mistake_is_raised_and_a_dry_run_is_an_estimate() -> None:
    with mistake("'ecko'", "echo"):
        compose(["model=ecko"])
    outcome = run(compose([*SMALL, "dry_run=true"]))
    assert (outcome.status, outcome.metrics) == (0, None)
    assert outcome.estimate is not None and outcome.estimate.sessions == 2
    assert not outcome.folder.exists() and list(outcome.sessions) == []


def test_a_judge_that_the_protocol_does_not_use_is_neither_built_nor_asked() -> None:
    row = {"task_id": "t/1", "prompt": "p", "entry_point": "f", "canonical_solution": "def f(x):\n    return x\n"}
    row |= {"tests": ["assert f(1) == 1"], "requirements": [{"type": "A", "text": "a", "tests": "assert f(2) == 2"}]}
    Path("tasks.jsonl").write_text(json.dumps(row) + "\n")
    words = ["protocol=static", "dataset=jsonl", "dataset.path=tasks.jsonl", "model=echo", "tracking=none"]
    outcome = run(compose([*words, "judge=llm", "judge.applicability.base_url=http://127.0.0.1:9/v1"]))
    assert outcome.status == 0
    assert outcome.cell.contents == {}


def test_broken_tests_end_their_sessions_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number in a row, too: nothing outside failed."""
    tests = Calls.check

    async def check(suite: Calls, program: Program, sandbox: Sandbox) -> Verdict:
        if suite.name in broken:
            raise BrokenTest("the model's test does not parse")
        return await tests(suite, program, sandbox)

    monkeypatch.setattr(Calls, "check", check)
    broken = {task.task_id for task in dataset_tasks("starter")[:7]}
    words = ["model=echo", "dataset.limit=8", "agenda.turns=2", "tracking=none", "hardware.workers=1"]
    outcome = codechat.run(codechat.compose(words))
    *errors, last = [session.error for session in outcome.sessions]
    assert outcome.status == 3
    assert [str(error).rpartition(": ")[2] for error in errors] == ["the model's test does not parse"] * 7
    assert last is None


def test_the_package_says_what_it_offers() -> None:
    assert set(codechat.__all__) == {"UserError", "__version__", "compose", "run"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        codechat.nothing  # noqa: B018


@pytest.mark.usefixtures("rendered")
def test_the_summary_comes_last_and_a_seal_says_that_all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[set[str]] = []

    class Summary(Silent):
        def measured(self, cell: Cell, metrics: Mapping[str, Any], seconds: float) -> None:
            there.append({path.name for path in cell.folder.iterdir()} & {"metrics.json", "tables", "figures", SEAL})

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("codechat.run.run.write_figures", interrupted)
        run(compose(SMALL), Summary())
    folder = next(Path("runs").iterdir())
    assert not (folder / SEAL).exists(), "a seal says that all is there"
    run(compose(SMALL), Summary())
    assert there == [{"metrics.json", "tables", "figures", SEAL}], "a closed pipe loses nothing"
    assert (folder / SEAL).is_file() and not edited(folder) and (folder / "figures" / "turns.svg").is_file()
