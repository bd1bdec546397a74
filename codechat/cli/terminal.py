"""What the person at the terminal sees while a cell runs."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

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
