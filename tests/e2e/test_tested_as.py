"""One test per compiled code: what a cell records of it, and that it is the same however the verdicts came about."""

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
from codechat.sandbox.suites import sharing
from codechat.sandbox.suites.calls import Calls

RIGHT = "def f(x):\n    total = x + 1\n    return total\n"
OTHER = "def f(x):\n    return 1 + x\n"
RAISING = "def f(x):\n    return x[0]\n"
TELLING = "def f(x):\n    return x + bool(f.__code__.co_firstlineno)\n"
WRONG = "def f(x):\n    return x\n"
TURNS: list[tuple[str, int | None]] = [
    (RIGHT, None),
    (f"# first\n{RIGHT}", 0),
    (OTHER, None),
    (RIGHT.replace("x + 1", "(\n        x\n        + 1)"), 0),
    (RIGHT.replace("total", "much"), None),
    (RIGHT.replace("    total", "    '''Says.'''\n    total", 1), None),
    (f"{OTHER}\n# again", 2),
    (RAISING, None),
    (f"# it tells its lines\n{RAISING}", None),
    (RAISING, 7),
    (TELLING, None),
    (f"# also\n{TELLING}", None),
    ("", None),
    (WRONG, None),
    (f"{WRONG}# again", 13),
    (WRONG.replace("(x)", "(x: int) -> int"), None),
]
"""What the model answers, and the turn that it is tested as."""
EXPECTED = [earlier for _, earlier in TURNS]
TESTED = 10  # programs that are tested: the turns without an earlier one, except the one without code
NOT_KEPT = 4  # of these: the ones that raise, and the ones that might tell how they are written


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


def without(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in turn.items() if key != "tested_as"} for turn in turns]


def test_a_record_names_the_earliest_turn_of_equal_code(words: list[str], tmp_path: Path, tests: list[str]) -> None:
    outcome = cell(words, tmp_path / "runs")
    turns = records(outcome.folder)
    assert told(turns) == EXPECTED
    assert ["tested_as" in turn for turn in turns] == [earlier is not None for earlier in EXPECTED]
    assert len(tests) == TESTED + 1  # the reference of an own task is tested before
    assert [turn["outcome"] for turn in turns] == ["pass"] * 7 + ["fail"] * 3 + ["pass"] * 2 + ["no_code"] + [
        "fail"
    ] * 3


def test_without_sharing_the_verdicts_are_the_same_in_a_cell_of_the_same_id(words: list[str], tmp_path: Path) -> None:
    shared, apart = cell(words, tmp_path / "one"), cell(words, tmp_path / "other", "sandbox.share=false")
    assert shared.folder.name == apart.folder.name
    assert told(records(apart.folder)) == [None] * len(TURNS)
    assert without(records(shared.folder)) == records(apart.folder)
    ours, theirs = (json.loads((each.folder / "metrics.json").read_text()) for each in (shared, apart))
    for figures in (ours, theirs):
        figures.pop("wall_s")
    assert ours == theirs


def test_what_another_cell_tested_is_taken_over_and_not_told(
    words: list[str], tmp_path: Path, tests: list[str]
) -> None:
    first = cell(words, tmp_path / "one")
    tests.clear()
    second = cell(words, tmp_path / "other")
    assert len(tests) == NOT_KEPT
    assert records(second.folder) == records(first.folder)
    sharing.clear()
    tests.clear()
    third = cell(words, tmp_path / "third")
    assert len(tests) >= TESTED
    assert records(third.folder) == records(first.folder)


def test_other_limits_are_other_tests(words: list[str], tmp_path: Path, tests: list[str]) -> None:
    cell(words, tmp_path / "one")
    tests.clear()
    cell(words, tmp_path / "other", "sandbox.min_cpu_s=2.5")
    assert len(tests) >= TESTED


@pytest.mark.parametrize("turns_left", [1, 3, 4, 8, 10, 14])
def test_a_session_that_goes_on_records_the_same(
    words: list[str], tmp_path: Path, tests: list[str], turns_left: int
) -> None:
    """The verdicts of its earlier turns are in the journal, and nowhere else."""
    outcome = cell(words, tmp_path / "runs")
    whole = records(outcome.folder)
    sharing.clear()
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
    sharing.clear()
    assert main(["rescore", f"run={outcome.folder}", f"out={tmp_path / 'again'}"]) == 0
    assert told(records(tmp_path / "again")) == EXPECTED
    assert main(["rescore", f"run={outcome.folder}", f"out={tmp_path / 'apart'}", "sandbox.share=false"]) == 0
    assert told(records(tmp_path / "apart")) == [None] * len(TURNS)
    assert without(records(tmp_path / "again")) == records(tmp_path / "apart")


def test_samples_are_tested_anew_and_equal_ones_once(words: list[str], tmp_path: Path, tests: list[str]) -> None:
    cell(words, tmp_path / "runs")
    samples = [code for code, _ in TURNS if code]
    (tmp_path / "samples.jsonl").write_text(
        "".join(json.dumps({"task_id": "a", "solution": s}) + "\n" for s in samples)
    )
    found = []
    for name, more in (("one", []), ("other", ["sandbox.share=false"])):
        tests.clear()
        given = [f"samples={tmp_path / 'samples.jsonl'}", f"out={tmp_path / name}", *words[:2], *more]
        assert main(["verify", *given, "sandbox.allow_weak=true"]) == 0
        lines = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        found.append([{key: value for key, value in line.items() if key != "cpu_s"} for line in lines])
        assert len(tests) == (TESTED if name == "one" else len(set(samples)))
    assert found[0] == found[1]


def test_references_are_truly_tested(words: list[str], tmp_path: Path, tests: list[str]) -> None:
    assert main(["verify", *words[:2]]) == 0
    first = len(tests)
    assert main(["verify", *words[:2]]) == 0
    assert len(tests) == 2 * first > 0


def test_refactored_references_have_the_same_verdicts_with_fewer_tests(tmp_path: Path, tests: list[str]) -> None:
    """The default dialogues, ten turns each."""
    found, counts = [], []
    for name, more in (("apart", ["sandbox.share=false"]), ("shared", []), ("later", [])):
        tests.clear()
        own = ["model=refactorer", "dataset.limit=10", "tracking=none", f"runs_dir={tmp_path / name}", *more]
        found.append(records(run(compose(own)).folder))
        counts.append(len(tests))
    assert found[0] == without(found[1])
    assert found[1] == found[2]
    apart, shared, later = counts
    assert later < shared < 0.9 * apart
