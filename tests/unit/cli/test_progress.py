"""What the progress bar tells, from counts alone."""

import io
import itertools
import threading
import time

import pytest
from rich.console import Console

from codechat.base.records import SessionRecord, TurnRecord
from codechat.cli import progress
from codechat.cli.progress import MARGIN, FactsBar, ProgressBar, long_calls
from codechat.models.calls import ATTEMPTS, COUNTERS
from codechat.models.calls.limits import UnderWay
from codechat.report.metrics.spending import Price, Tariff
from codechat.run.cell.budget import Budget
from codechat.run.journal import Charge, Ledger
from codechat.run.running.observer import Counts

PRICED = Budget(5.0, None, Tariff({"model": Price(1.0, 10.0, 0.1)}))


def turn(number: int, *, passed: bool = True) -> TurnRecord:
    return TurnRecord(turn=number, outcome="pass" if passed else "fail", passed=passed, passed_base=passed)


def session(turns: int, status: str = "completed") -> SessionRecord:
    return SessionRecord.model_validate(
        {
            **dict.fromkeys(("cell_id", "session_id", "task_id", "dataset", "model", "protocol"), "x"),
            "agenda": [], "seed": 0, "status": status, "turns": [turn(number) for number in range(turns)],
        }
    )  # fmt: skip


def bar(sessions: int, counts: Counts, ledger: Ledger | None = None, budget: Budget = PRICED) -> ProgressBar:
    return ProgressBar(sessions, counts, ledger or Ledger(), budget)


def test_a_session_that_ends_early_does_not_leave_the_bar_short() -> None:
    counts = Counts(30)
    shown = bar(3, counts)
    for number in range(10):
        counts.turn(turn(number, passed=number < 5), new=True)
    counts.session(session(10), 10)
    for number in range(4):
        counts.turn(turn(number), new=True)
    counts.session(session(4), 10)
    counts.session(session(0, "errored"), 10)
    assert shown.headline()[:4] == ["14/14 turns", "3/3 sessions", "64 % pass", "1 errored"]
    assert "left" not in " ".join(shown.headline())


def test_time_left_counts_only_what_this_process_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    counts = Counts(1000)
    shown = bar(100, counts)
    for _ in range(90):
        counts.recalled(session(10), 10)
    assert "left" not in " ".join(shown.headline()), "nothing is known of the speed yet"
    counts.turn(turn(0), new=False)
    now[0] += 10
    counts.turn(turn(1), new=True)
    assert "16:20 left" in shown.headline(), "98 turns at ten seconds each"


def test_spending_shows_nothing_that_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    assert bar(1, Counts(10), ledger, Budget(None, None, Tariff())).spending() == []
    shown = bar(1, Counts(10), ledger)
    ledger.add(Charge("model", 1, 0, 1_234_567, 98_765, 400_000))
    monkeypatch.setattr(COUNTERS, "in_flight", 32)
    monkeypatch.setattr(COUNTERS, "retries", COUNTERS.retries + 3)
    facts = shown.spending()
    assert facts[0] == "1.23M in (400k cached), 98.8k out"
    assert "$1.86 of $5.00" in facts
    assert facts[-3:-1] == ["32 in flight", "3 retries"]
    assert facts[-1].endswith("tok/s")


def test_both_lines_fit_a_hundred_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=MARGIN, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "err", screen)
    ledger = Ledger()
    counts = Counts(100_000)
    with bar(10_000, counts, ledger) as shown:
        ledger.add(Charge("model", 1, 0, 999_999_999, 888_888_888, 777_777_777))
        for name in ("in_flight", "retries", "rate_limited", "cache_hits"):
            monkeypatch.setattr(COUNTERS, name, 55_555)
        for number in range(2_000):
            counts.turn(turn(number % 10, passed=number % 3 == 0), new=True)
        counts.session(session(3, "errored"), 10)
        lines = screen.render_lines(shown.renderable(), screen.options, pad=False)
        texts = ["".join(segment.text for segment in line).rstrip() for line in lines]
    assert len(texts) == 2, texts
    assert all(len(text) <= MARGIN for text in texts), texts
    assert "2,000/99,993 turns" in texts[0]
    assert "left" in texts[0]
    assert "in flight" in texts[1]


def lines_of(monkeypatch: pytest.MonkeyPatch, first_s: float, *, lines: bool = True) -> list[str]:
    """What is written in half a second where a line comes after `first_s`, then every 0.1 s; nothing comes later."""
    screen = Console(file=(file := io.StringIO()), width=160, color_system=None)
    monkeypatch.setattr(progress, "err", screen)
    for name, value in (("FIRST_LINE_S", first_s), ("LINE_EVERY_S", 0.1)):
        monkeypatch.setattr(progress, name, value)
    counts = Counts(30)
    counts.turn(turn(0), new=True)
    with ProgressBar(3, counts, Ledger(), Budget(None, None, Tariff()), lines=lines):
        time.sleep(0.5)
    time.sleep(0.05)
    written = file.getvalue()
    time.sleep(0.3)
    assert file.getvalue() == written
    return written.splitlines()


def test_without_a_terminal_a_line_is_written_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    written = lines_of(monkeypatch, 0.05)
    assert len(written) >= 2 and all(line.startswith("1/30 turns · 0/3 sessions · 100 % pass · ") for line in written)
    assert lines_of(monkeypatch, 30.0) == [], "short work writes none"
    assert lines_of(monkeypatch, 0.05, lines=False) == [], "what runs in a sweep's other processes"


def test_the_pauses_between_lines_grow_up_to_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    written = list[float]()

    class Clocked(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            now[0] += timeout or 0
            written.append(now[0])
            return now[0] > 20_000

    monkeypatch.setattr(progress, "err", Console(file=io.StringIO()))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shown = FactsBar(lambda: (0, 0, ["x"]))
    shown._write_lines(Clocked())
    pauses = [round(later - earlier, 6) for earlier, later in itertools.pairwise(written)]
    assert written[:4] == [30, 90, 150, 210]
    assert pauses == sorted(pauses) and pauses[-1] == 600 and len(pauses) < 80


def test_a_bar_on_a_terminal_writes_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), width=MARGIN, force_terminal=True, color_system=None)
    monkeypatch.setattr(progress, "err", screen)
    monkeypatch.setattr(progress, "FIRST_LINE_S", 0.0)
    before = threading.active_count()
    with FactsBar(lambda: (0, 0, ["x"]), redirect=False) as shown:
        assert threading.active_count() == before + 1, "rich's alone"
    assert shown._ended is None


def test_a_call_that_takes_long_is_named_with_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    calls = {"new": UnderWay("a at http://x/v1", now - 5, 300), "batch": UnderWay("b", now - 9_000, 14 * 86_400.0)}
    monkeypatch.setattr(progress, "ATTEMPTS", calls)
    assert long_calls() == []
    calls["old"] = UnderWay("c at http://y/v1", now - 75, 300)
    assert long_calls() == ["a call to c at http://y/v1 for 1:15 (at most 5:00)"]
    assert long_calls()[0] in bar(1, Counts(10)).spending()
    assert not ATTEMPTS, "none is left behind"
