"""What the person at the terminal sees: progress while a cell runs, then its figures."""

import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from codechat.records import SessionRecord, TurnRecord

# What is piped or logged must not be folded at 80 columns.
_PIPED_WIDTH = 160
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH)


class ProgressBar:
    """Turns done, sessions done, the share of turns that pass, errors, time left; on a terminal only."""

    def __init__(self, sessions: int, turns: int) -> None:
        self._sessions = sessions
        self._per_session = turns // sessions
        self._done = self._errored = self._turns = self._passed = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("turns · {task.fields[facts]}"),
            TimeElapsedColumn(),
            TextColumn("· left"),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
        )
        self._task = self._bar.add_task("running", total=turns, facts="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def note(self, text: str) -> None:
        """Show a line above the bar."""
        self._bar.console.print(text, markup=False)

    def turn(self, turn: TurnRecord) -> None:
        """Count a finished turn."""
        self._turns += 1
        self._passed += turn.passed
        self._show()

    def session(self, session: SessionRecord) -> None:
        """Count a finished session; one that came from the journal brings its turns with it."""
        self._done += 1
        self._errored += session.status == "errored"
        if self._done * self._per_session > self._turns:
            missed = min(len(session.turns), self._done * self._per_session - self._turns)
            self._turns += missed
            self._passed += sum(turn.passed for turn in session.turns[:missed])
        self._show()

    def _show(self) -> None:
        share = f"{100 * self._passed / self._turns:.0f} % pass" if self._turns else ""
        errors = f" · {self._errored} errored" if self._errored else ""
        facts = f"{self._done}/{self._sessions} sessions · {share}{errors}"
        self._bar.update(self._task, completed=self._turns, facts=facts)


def counting_bar(unit: str) -> Progress:
    """A bar for work that is counted in one unit; on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn(f"{unit} ·"),
        TimeElapsedColumn(),
        TextColumn("· left"),
        TimeRemainingColumn(),
        console=err,
        disable=not err.is_terminal,
    )


def summary(metrics: Mapping[str, Any], title: str) -> Table:
    """A cell's headline figures."""
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    last = len(metrics["pass_at_1"]) - 1
    trend = metrics["mann_kendall"]["pass_at_1"]
    rows = [
        ("sessions", _sessions(metrics)),
        (f"Pass@1, turn 0 → {last}", _ends(metrics["pass_at_1"], metrics["delta_pct"])),
        ("Mann–Kendall trend", "—" if trend is None else f"{trend['trend']} (p = {trend['p']:.3g})"),
        ("Mean Sustainable Turns", _interval(metrics["mst"], metrics["ci"]["mst"]) + f" of {last + 1}"),
        (f"adherence, turn 1 → {last}", _ends(metrics["iar"], metrics["iar_delta_pct"])),
        ("regression", _rates(metrics["regression"])),
        ("self-correction", _rates(metrics["self_correction"])),
        ("outcomes", ", ".join(f"{count} {name}" for name, count in metrics["outcomes"].items() if count) or "—"),
    ]
    for name, value in rows:
        table.add_row(f"[bold]{name}[/bold]", value)
    return table


def _sessions(metrics: Mapping[str, Any]) -> str:
    parts = [f"{metrics['completed']} completed"]
    for key, word in (("errored", "errored"), ("skipped_turns", "turns skipped"), ("undecided", "turns undecided")):
        if metrics[key]:
            parts.append(f"{metrics[key]} {word}")
    return ", ".join(parts)


def _ends(series: list[float | None], delta: float | None) -> str:
    if not series:
        return "—"
    ends = " → ".join("—" if value is None else f"{value:.3f}" for value in (series[0], series[-1]))
    return ends if delta is None else f"{ends} ({delta:+.1f} %)"


def _interval(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None:
        return "—"
    return f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def _rates(rates: Mapping[str, Any]) -> str:
    if rates["overall"] is None:
        return "—"
    scopes = ", ".join(f"{name} {value:.3f}" for name, value in rates["by_scope"].items() if value is not None)
    return f"{rates['overall']:.3f} ({scopes})"
