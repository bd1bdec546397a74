"""One test per program: what a cell records of it, and that it is the same however the verdicts came about."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.base.domain import Program, Verdict
from codechat.cli.app import main
from codechat.run.run import Outcome
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.calls import Calls

RIGHT = "def f(x):\n    total = x + 1\n    return total\n"
OTHER = "def f(x):\n    return 1 + x\n"
RAISING = "def f(x):\n    return x[0]\n"
WRONG = "def f(x):\n    return x\n"
TURNS: list[tuple[str, int | None]] = [
    (RIGHT, None),
    (f"# first\n{RIGHT}", None),
    (OTHER, None),
    (RIGHT, 0),
    (RIGHT.replace("total", "much"), None),
    (f"# first\n{RIGHT}", 1),
    (RAISING, None),
    (RAISING, 6),
    ("", None),
    (WRONG, None),
    (WRONG, 9),
    (OTHER, 2),
]
"""What the model answers, and the turn that it is tested as."""
EXPECTED = [earlier for _, earlier in TURNS]
TESTED = 6  # programs that are tested: the turns without an earlier one, except the one without code


@pytest.fixture
def tests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were tested."""
    seen: list[str] = []
    check = Calls.check

    async def noted(self: Calls, program: Program, sandbox: Sandbox) -> Verdict:
        seen.append(program.source)
        return await check(self, program, sandbox)

    monkeypatch.setattr(Calls, "check", noted)
    return seen


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    row = {
        "task_id": "a", "prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "    return x + 1\n",
        "base_input": [[1], [2]],
    }  # fmt: skip
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row))
    pool = "text,scope,rule\n" + "".join(
        f'Add at least {n} assertions.,cosmetic,"{{""pattern"": ""assert""}}"\n' for n in range(20)
    )
    (tmp_path / "pool.csv").write_text(pool)
    replies = json.dumps([f"```python\n{code}\n```" if code else "No." for code, _ in TURNS]).replace("\\n", "\n")
    return [
        "dataset=jsonl", f"dataset.path={tmp_path / 'tasks.jsonl'}", f"instructions.path={tmp_path / 'pool.csv'}",
        "model=scripted", f"model.replies={replies}", f"agenda.turns={len(TURNS)}", "agenda=cosmetic",
        "tracking=none", "sandbox.allow_weak=true",
    ]  # fmt: skip


def cell(words: list[str], folder: Path, *more: str) -> Outcome:
    outcome = run(compose([*words, *more, f"runs_dir={folder}"]))
    assert outcome.status == 0
    return outcome


def records(folder: Path) -> list[dict[str, Any]]:
    """The turns without their times."""
    lines = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    turns = [turn for line in lines for turn in line["turns"]]
    return [{key: value for key, value in turn.items() if not key.endswith("_s")} for turn in turns]


def told(turns: list[dict[str, Any]]) -> list[int | None]:
    return [turn.get("tested_as") for turn in turns]


def test_a_record_names_the_earliest_turn_of_the_same_program(
    words: list[str], tmp_path: Path, tests: list[str]
) -> None:
    outcome = cell(words, tmp_path / "runs")
    turns = records(outcome.folder)
    assert told(turns) == EXPECTED
    assert ["tested_as" in turn for turn in turns] == [earlier is not None for earlier in EXPECTED]
    assert len(tests) == TESTED + 1  # the reference of an own task is tested before
    outcomes = ["pass"] * 6 + ["fail"] * 2 + ["no_code"] + ["fail"] * 2 + ["pass"]
    assert [turn["outcome"] for turn in turns] == outcomes


@pytest.mark.parametrize("turns_left", [1, 3, 4, 7, 9, 11])
def test_a_session_that_goes_on_records_the_same(
    words: list[str], tmp_path: Path, tests: list[str], turns_left: int
) -> None:
    """The verdicts of its earlier turns are in the journal, and nowhere else."""
    outcome = cell(words, tmp_path / "runs")
    whole = records(outcome.folder)
    with sqlite3.connect(outcome.folder / "journal.db") as db:
        db.execute("DELETE FROM sessions")
        db.execute("DELETE FROM steps WHERE CAST(substr(name, 1, instr(name, '/') - 1) AS INTEGER) >= ?", (turns_left,))
    db.close()
    (outcome.folder / "sessions.jsonl").unlink()
    tests.clear()
    assert records(cell(words, tmp_path / "runs").folder) == whole
    assert len(tests) == sum(earlier is None and bool(code) for code, earlier in TURNS[turns_left:])


def test_scored_again_it_is_the_same(words: list[str], tmp_path: Path) -> None:
    outcome = cell(words, tmp_path / "runs")
    config = outcome.folder / "config.yaml"
    config.write_text(config.read_text().replace("sandbox:\n", "sandbox:\n  share: true\n", 1))  # of an older cell
    assert main(["rescore", f"run={outcome.folder}", f"out={tmp_path / 'again'}"]) == 0
    assert told(records(tmp_path / "again")) == EXPECTED


def test_samples_are_tested_anew_and_equal_ones_once(words: list[str], tmp_path: Path, tests: list[str]) -> None:
    cell(words, tmp_path / "runs")
    samples = [code for code, _ in TURNS if code]
    (tmp_path / "samples.jsonl").write_text(
        "".join(json.dumps({"task_id": "a", "solution": s}) + "\n" for s in samples)
    )
    tests.clear()
    given = [f"samples={tmp_path / 'samples.jsonl'}", f"out={tmp_path / 'out'}", *words[:2]]
    assert main(["verify", *given, "sandbox.allow_weak=true"]) == 0
    assert len((tmp_path / "out").read_text().splitlines()) == len(samples)
    assert len(tests) == len(set(samples)) == TESTED


def test_references_are_truly_tested(words: list[str], tmp_path: Path, tests: list[str]) -> None:
    assert main(["verify", *words[:2]]) == 0
    first = len(tests)
    assert main(["verify", *words[:2]]) == 0
    assert len(tests) == 2 * first > 0
