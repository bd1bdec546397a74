"""The running counts of a cell, as the progress bar and a store show them."""

import pytest

from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.spending import Price, Tariff
from codechat.run.cell.budget import Budget
from codechat.run.journal import Charge, Ledger
from codechat.run.running.observer import Counts

PRICED = Budget(None, None, Tariff({"model": Price(1.0, 10.0, 0.1)}))
UNPRICED = Budget(None, None, Tariff())


def turn(number: int, *, passed: bool | None) -> TurnRecord:
    return TurnRecord(turn=number, outcome="pass" if passed else "fail", passed=passed, passed_base=passed)


def session(turns: list[TurnRecord], status: str) -> SessionRecord:
    return SessionRecord.model_validate(
        {
            **dict.fromkeys(("cell_id", "session_id", "task_id", "dataset", "model", "protocol"), "x"),
            "agenda": [], "seed": 0, "status": status, "turns": turns,
        }
    )  # fmt: skip


def test_what_is_not_known_is_absent() -> None:
    counts = Counts(20)
    assert counts.progress(Ledger(), UNPRICED) == {"sessions": 0, "tokens": 0, "errors": 0}
    counts.turn(turn(0, passed=None), new=True)
    assert "pass_rate" not in counts.progress(Ledger(), UNPRICED), "nothing was tested yet"


def test_progress_covers_what_was_recalled_and_what_is_new() -> None:
    counts = Counts(20)
    counts.recalled(session([turn(number, passed=True) for number in range(3)], "completed"), 3)
    counts.turn(turn(0, passed=False), new=True)
    counts.session(session([turn(0, passed=False)], "errored"), 3)
    ledger = Ledger()
    ledger.add(Charge("model", 1, 0, 1_000_000, 200_000, 500_000))
    assert counts.progress(ledger, PRICED) == {
        "sessions": 2,
        "pass_rate": 0.75,
        "tokens": 1_200_000,
        "dollars": pytest.approx(0.5 + 0.05 + 2.0),
        "errors": 1,
    }
    assert counts.planned == 18, "a session that ended early has no further turns"
