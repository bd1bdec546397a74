"""References that fail their own tests: how the first failure and the defects of many tasks are told."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import Failure, Program, Verdict
from codechat.base.errors import UserError
from codechat.datasets.tasks import Task
from codechat.run.cell import references
from codechat.run.cell.references import LONGEST, SHOWN, Defect, References, _refusal, _short, describe, now_and_then
from codechat.sandbox import SANDBOXES

CONFIG: Any = SANDBOXES.validate({"kind": "process"})


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Failure("why"), "fails its own tests: why"),
        (Failure("why", index=3), "fails tests[3]: why"),
        (Failure("why", suite="base", index=0), "fails base_input[0]: why"),
        (Failure("why", suite="base"), "fails base_input: why"),
        (Failure("why", index=0, input="1"), "fails tests[0] (1): why"),
        (Failure("why", index=0, expected="2", actual="3"), "expected 2, got 3"),
        (Failure("why", index=0, expected="2"), "expected 2, got "),
        (Failure("an exception", index=0, exception="a\nb"), "tests[0]: b"),
        (Failure("another", index=0, exception="a\nb"), "tests[0]: another"),
        (Failure("another", exception="a\nb"), "another: b"),
    ],
)
def test_the_first_failure_is_told_in_one_line(failure: Failure, told: str) -> None:
    assert describe(failure).endswith(told) and "\n" not in describe(failure)


def test_a_long_text_is_cut() -> None:
    assert _short("a\n  b") == "a b"
    assert _short("x" * LONGEST) == "x" * LONGEST
    assert _short("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"


@pytest.mark.parametrize(("count", "lines"), [(1, 2), (SHOWN, SHOWN + 1), (SHOWN + 1, SHOWN + 1)])
def test_the_first_of_many_defects_are_shown(count: int, lines: int) -> None:
    found = [Defect(f"t{at // 2}", "", "problem") for at in range(count)]
    told = _refusal(found, 9).splitlines()
    assert len(told) == lines and f"{(count + 1) // 2} of 9" in told[0]
    assert (str(count) in told[0].partition("9 tasks")[2]) is (count > SHOWN)


def test_progress_is_noted_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now, notes = [0.0], list[str]()
    monkeypatch.setattr(references.time, "monotonic", lambda: now[0])
    progress = now_and_then(notes.append)
    for at, count in (
        (references.EVERY_S - 1, 0),
        (references.EVERY_S, 1),
        (references.EVERY_S + 1, 1),
        (2 * references.EVERY_S, 2),
    ):
        now[0] = at
        progress(3, 7)
        assert len(notes) == count
    assert "3 of 7" in notes[0]


class Suite:
    """Tests that a program passes if it says so; `written` ones have snippets that no program can pass."""

    kind = "own"

    def __init__(self, key: str = "key") -> None:
        self.key = key

    async def check(self, program: Program, sandbox: Any) -> Verdict: ...


class Written(Suite):
    def unusable(self, entry_point: str) -> Any:
        yield "it does not parse"


class Checked:
    """Checks programs by their text, and notes them."""

    def __init__(self) -> None:
        self.seen = list[str]()

    async def check(self, program: Program, suite: Any) -> Verdict:
        self.seen.append(program.source)
        return Verdict("pass", True) if "right" in program.source else Verdict("fail", False, Failure("no"))


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checked:
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr(references, "secret_folder", lambda name: tmp_path / "marks")
    return Checked()


def checking(tests: Any, *, own: bool = True, **options: Any) -> References:
    dataset: Any = SimpleNamespace(own=own, places={"wrong": "file:2"})
    return References(
        dataset, tests, CONFIG, lambda text: None, options.pop("progress", lambda done, of: None), **options
    )


def task(name: str, suite: Any, reference: str | None = None) -> Task:
    return Task(name, "p", suite=suite, reference=reference)


async def test_defects_are_told_in_the_order_of_tasks_and_passes_are_kept(tests: Checked) -> None:
    steps = list[tuple[int, int]]()
    tasks = [task("right", Suite(), "right"), task("wrong", Suite(), "wrong"), task("bare", None, "wrong"),
             task("none", Suite()), task("broken", Written(), "right")]  # fmt: skip
    found = await checking(tests, progress=lambda done, of: steps.append((done, of))).defects(tasks)
    assert [(each.task_id, each.place) for each in found] == [("wrong", "file:2"), ("broken", "")]
    assert sorted(tests.seen) == ["right", "wrong"] and steps == [(1, 2), (2, 2)]
    assert "its own tests: no" in found[0].problem and found[1].problem == "it does not parse"
    await checking(tests).defects(tasks)
    assert sorted(tests.seen) == ["right", "wrong", "wrong"], "what has passed is not run again"
    await checking(tests, anew=True).defects(tasks)
    assert len(tests.seen) == 5
    await checking(tests).defects([task("right", Suite("another"), "right")])
    assert len(tests.seen) == 6


async def test_the_users_own_tasks_are_refused_and_published_ones_are_not(tests: Checked) -> None:
    tasks = [task("wrong", Suite(), "wrong")]
    with pytest.raises(UserError, match="1 of 1"):
        await checking(tests).refuse(tasks)
    await checking(tests, own=False).refuse(tasks)
    await checking(tests).refuse([task("right", Suite(), "right")])
    assert len(tests.seen) == 2
    assert await checking(tests, stopped=lambda: True).defects(tasks) == [] and len(tests.seen) == 2


async def test_what_the_tests_demand_is_made_ready_once_a_suite(tests: Checked) -> None:
    ready = list[Any]()

    class Demands(Suite):
        def make_ready(self, config: Any, note: Any) -> None:
            ready.append((self.key, config))

    await checking(tests, own=False).refuse([task("a", Demands("k")), task("b", Demands("k")), task("c", Demands("l"))])
    assert sorted(key for key, _ in ready) == ["k", "l"] and ready[0][1] is CONFIG
