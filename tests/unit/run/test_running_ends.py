"""How sessions and what is shown of a cell end: which error counts, when it is hopeless, what a store is told."""

import asyncio
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat import compose, run
from codechat.base.domain import Usage
from codechat.base.errors import InfrastructureError, Stopped, UserError
from codechat.base.records import SessionRecord, TurnRecord
from codechat.models.calls import Brake
from codechat.report.metrics.spending import Tariff
from codechat.run.cell.budget import Budget
from codechat.run.cell.estimate import Estimate, total
from codechat.run.journal import Charge, Ledger
from codechat.run.running.observer import Counts, Follow, Silent, following
from codechat.run.running.sessions import _Workers, finish_steps, unwrap_group

BUDGET = Budget(None, None, Tariff())


def session(error: str | None, *, turns: int = 0) -> SessionRecord:
    return SessionRecord(
        cell_id="c", session_id="s", task_id="t", dataset="d", model="m", protocol="p", agenda=[], seed=0,
        status="completed" if error is None else "errored", error=error,
        turns=[TurnRecord(turn=at, passed=at == 0, outcome="pass" if at == 0 else "fail") for at in range(turns)],
    )  # fmt: skip


def test_a_cell_is_hopeless_after_so_many_failures_in_a_row() -> None:
    from codechat.run.running.sessions import FAILURES_IN_A_ROW

    nothing: Any = None
    progress = _Workers(*[nothing] * 8)
    for number in range(FAILURES_IN_A_ROW - 1):
        progress.note_end(session(f"failure {number}"))
    assert not progress.hopeless
    progress.note_end(session(None))
    for number in range(FAILURES_IN_A_ROW):
        assert not progress.hopeless
        progress.note_end(session(f"again {number}"))
    last = f"again {FAILURES_IN_A_ROW - 1}"
    assert progress.hopeless and progress.last_failure == last
    progress.note_end(session("not attempted"))
    assert progress.last_failure == last


BUG, MISTAKE, AWAY, STOP = (
    ValueError("bug"),
    UserError("mistake", "mend"),
    InfrastructureError("away"),
    Stopped("budget"),
)


@pytest.mark.parametrize(
    ("several", "raised"),
    [
        ([STOP, AWAY, MISTAKE, BUG], BUG),
        ([STOP, AWAY, MISTAKE], MISTAKE),
        ([STOP, AWAY], AWAY),
        ([STOP], STOP),
        ([STOP, BaseExceptionGroup("inner", [AWAY, BaseExceptionGroup("deeper", [BUG])])], BUG),
    ],
)
async def test_of_several_errors_the_most_important_one_is_told(several: list[Any], raised: Exception) -> None:
    async def fail() -> None:
        raise BaseExceptionGroup("outer", several)

    with pytest.raises(type(raised)) as caught:
        await unwrap_group(fail())
    assert caught.value is raised


async def test_a_single_error_is_told_as_it_is() -> None:
    async def fail() -> None:
        raise AWAY

    with pytest.raises(InfrastructureError):
        await unwrap_group(fail())
    await unwrap_group(asyncio.sleep(0))


@pytest.mark.parametrize(
    ("end", "finishes"), [(None, True), (AWAY, True), (KeyboardInterrupt(), True), (asyncio.CancelledError(), False)]
)
async def test_steps_under_way_are_waited_for_unless_it_is_cancelled(end: BaseException | None, finishes: bool) -> None:
    done = list[Any]()

    async def note(what: str, *given: float) -> None:
        done.append(what)

    journal: Any = SimpleNamespace(
        finish_steps=lambda grace: note("finished", grace), abandon=lambda: note("abandoned")
    )
    try:
        async with finish_steps(journal):
            if end is not None:
                raise end
    except BaseException as raised:
        assert raised is end
    else:
        assert end is None
    assert done == (["finished", "abandoned"] if finishes else ["abandoned"])


class Shown:
    """What a store shows of a cell."""

    def __init__(self, told: list[Any]) -> None:
        self._told = told

    def stop(self) -> None:
        self._told.append("stop")

    def end(self, ending: str) -> None:
        self._told.append(("end", ending))


class Live:
    """A store that shows running cells."""

    def __init__(self, *, shows: bool = True) -> None:
        self.told, self.shows = list[Any](), shows
        self.tell: Any = None
        self.figures: Any = None

    def log(self, cell: Any) -> Any: ...

    def show(self, begun: Any, figures: Any, tell: Any) -> Any:
        self.tell, self.figures = tell, figures
        return Shown(self.told) if self.shows else None

    def open(self, runs_dir: Any) -> None: ...


async def shown(tracker: Any, notes: list[str]) -> Follow:
    follow = Follow(tracker, BUDGET, lambda: None)  # type: ignore[arg-type, return-value]
    with follow.sessions(Counts(4), Ledger(), notes.append):
        if tracker.tell:
            tracker.tell("slow")
            await asyncio.sleep(0.01)
    return follow


async def test_a_store_is_told_while_sessions_run_and_what_it_says_is_a_warning() -> None:
    tracker, notes = Live(), list[str]()
    follow = await shown(tracker, notes)
    assert tracker.told == ["stop"] and notes == ["warning: slow"] and tracker.figures()["sessions"] == 0
    follow.end("FAILED")
    follow.end("KILLED")
    assert tracker.told == ["stop", ("end", "FAILED")]
    follow = await shown(tracker, notes)
    follow.tracked()
    follow.end("KILLED")
    assert tracker.told[2:] == ["stop"], "the store knows"


async def test_a_store_that_shows_nothing_is_told_nothing() -> None:
    tracker = Live(shows=False)
    follow = await shown(tracker, [])
    follow.tracked()
    follow.end("FAILED")
    silent: Any = SimpleNamespace(tell=None)
    follow = await shown(silent, [])
    assert follow.shown is None and tracker.told == []


@pytest.mark.parametrize(
    ("end", "ending"), [(None, "KILLED"), (KeyboardInterrupt(), "KILLED"), (asyncio.CancelledError(), "KILLED"), (BUG, "FAILED")]
)  # fmt: skip
def test_whatever_ends_a_cell_ends_what_is_shown_of_it(end: BaseException | None, ending: str) -> None:
    told = list[Any]()
    tracker: Any = None
    begun: Any = None
    try:
        with following(tracker, BUDGET, begun) as follow:
            follow.shown = Shown(told)  # type: ignore[assignment]
            if end is not None:
                raise end
    except BaseException as raised:
        assert raised is end
    else:
        assert end is None
    assert told == [("end", ending)]


def test_what_errored_or_was_recalled_counts_too() -> None:
    counts = Counts(10)
    counts.turn(TurnRecord(turn=0), new=True)
    counts.session(session("away", turns=1), 4)
    counts.recalled(session(None, turns=2), 3)
    assert (counts.turns, counts.done, counts.errored, counts.passed, counts.scored, counts.planned) == (
        3,
        3,
        1,
        1,
        2,
        6,
    )
    assert "3/6" in counts.words(2)[0] and len(counts.words(2)) == 4
    assert len(Counts(1).words(1)) == 2


def test_counts_come_before_the_observer(tmp_path: Path) -> None:
    seen = list[Any]()

    class Noting(Silent):
        def watching(self, counts: Counts, ledger: Any) -> Any:
            self.counts = counts
            return nullcontext()

        def turn(self, turn: TurnRecord, *, new: bool) -> None:
            seen.append(("turn", new, self.counts.turns))

        def session(self, session: SessionRecord, planned: int) -> None:
            seen.append(("session", planned, self.counts.sessions))

        def recalled(self, session: SessionRecord, planned: int) -> None:
            seen.append(("recalled", planned, self.counts.sessions))

    words = ["model=echo", "dataset.limit=1", "agenda.turns=2", "tracking=none", f"runs_dir={tmp_path}"]
    for _ in range(2):
        run(compose(words), Noting())
    assert seen == [("turn", True, 1), ("turn", True, 2), ("session", 2, 1), ("recalled", 2, 1)]


def test_estimates_of_cells_are_summed_by_role() -> None:
    one = Estimate(1, 2, {"a": 3}, {"a": Usage(4, 5)}, {"a": 1.0, "x": None}, {"a": 2.0}, {"a": 7.0})
    two = Estimate(
        10, 20, {"a": 30, "b": 1}, {"b": Usage(1, 1)}, {"a": None, "x": 1.0, "b": 3.0}, {}, {"a": 1.0, "b": 2.0}
    )
    found = total([one, two])
    assert (found.sessions, found.turns, found.calls) == (11, 22, {"a": 33, "b": 1})
    assert found.tokens == {"a": Usage(4, 5), "b": Usage(1, 1)}
    assert found.usd == {"a": None, "x": None, "b": 3.0} and found.uncached_usd == {"a": 2.0}
    assert found.seconds == {"a": 8.0, "b": 2.0}
    assert total([one]) == one


@pytest.mark.parametrize(("tokens", "reached"), [(9, True), (10, True), (11, False), (None, False)])
def test_a_budget_is_reached_when_all_of_it_is_spent(tokens: int | None, reached: bool) -> None:
    ledger, brake = Ledger(), Brake()
    ledger.add(Charge("model", calls=1, input_tokens=7, output_tokens=3))
    budget = Budget(None, tokens, Tariff())
    reason = budget.reason_to_stop(ledger)
    assert bool(reason) is reached
    assert budget.words_on_stop(ledger, brake) == ""
    brake.pull(reason or "interrupted")
    assert budget.words_on_stop(ledger, brake) == "", "no call was kept from being started"
    with pytest.raises(Stopped):
        brake.check()
    assert ("budget_tokens" in budget.words_on_stop(ledger, brake)) is reached
