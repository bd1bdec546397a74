"""Sessions reduced to what figures need."""

import pytest

from codechat.base.domain import Outcome
from codechat.report.metrics.outline import SessionOutline, SessionOutlines, TurnOutline


def turn(outcome: Outcome | None, *, skipped: bool = False) -> TurnOutline:
    return TurnOutline(outcome, outcome == "pass", skipped, not skipped, None, None)


@pytest.mark.parametrize(
    ("turns", "count"),
    [
        ((turn("no_code"), turn(None, skipped=True), turn(None, skipped=True)), 1),
        ((turn("no_code"), turn(None, skipped=True), turn("pass")), 0),
        ((turn("pass"), turn("no_code", skipped=True)), 0),
        ((turn("no_code"),), 0),
    ],
)
def test_sessions_whose_first_reply_held_no_code_are_counted_by_it(turns: tuple[TurnOutline, ...], count: int) -> None:
    assert SessionOutlines(completed=[SessionOutline("t", turns)]).without_code == count
