"""Launchers: where the cells of a sweep run, and how many of them at once. One file per kind.

A launcher gets the cells as words and a function that runs one of them. It is part of no cell's config or id: nothing
here can change a result.
"""

import contextlib
import io
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from codechat.base.config import Config, run_option
from codechat.base.registry import Registry
from codechat.models.serving import Server
from codechat.run.cell.estimate import Estimate
from codechat.run.run import INTERRUPTED
from codechat.run.settings.compose import Composed


class LauncherConfig(Config):
    """Options every launcher has."""

    kind: str = run_option(..., "where the cells of a sweep run")


@dataclass(frozen=True, slots=True)
class Job:
    """One cell of a sweep.

    `number` is its place in the sweep, from 0; `composed` is its config with the words that it is composed from;
    `sweep` is the tag of its tracked run; `command` is the command line that resumes it. `servers`
    names the servers that must run beside it: cells with equal ones run in a row, so that these start once.
    """

    number: int
    composed: Composed
    sweep: str
    command: tuple[str, ...]
    servers: frozenset[Server] = frozenset()


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """How far running cells are: what a progress bar shows. `scored` counts the turns that have a verdict."""

    turns: int = 0
    planned: int = 0
    passed: int = 0
    scored: int = 0

    def __add__(self, other: "TurnCounts") -> "TurnCounts":
        return TurnCounts(
            self.turns + other.turns,
            self.planned + other.planned,
            self.passed + other.passed,
            self.scored + other.scored,
        )


@dataclass(frozen=True, slots=True)
class Printed:
    """A piece of a cell's output in another process, and whether it went to standard error."""

    text: str
    error: bool


@dataclass(frozen=True)
class Result:
    """The end of a cell, or where it stands.

    `status` is its exit status; None if it is not over, and `state` says in words where it stands. `metrics` and
    `folder` are None if it did not come so far; `estimate` is there in a dry run. `untracked` is why the store refused
    the cell, empty if it did not. `printed` is its output that the user does not see.
    """

    status: int | None
    state: str = ""
    folder: Path | None = None
    metrics: Mapping[str, Any] | None = None
    estimate: Estimate | None = None
    untracked: str = ""
    printed: tuple[Printed, ...] = ()


Report = Callable[[TurnCounts], None]
"""Takes the counts of a running cell, as often as they change."""


class Run(Protocol):
    """Runs a cell in this process. Raises nothing: a mistake, a bug or an interruption is the result's status.

    It is a function of a module, so that another process can import it by its name.
    """

    def __call__(self, job: Job, report: Report | None = None) -> Result:
        """Run it; its counts go to `report`, if there is one."""


class _Recorder(io.TextIOBase):
    """A stream that keeps what is written."""

    def __init__(self, printed: list[Printed], *, error: bool) -> None:
        self._printed, self._error = printed, error

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._printed.append(Printed(text, self._error))
        return len(text)


def run_recorded(run: Run, job: Job, report: Report | None = None) -> Result:
    """Run a cell, keeping what it prints in its result."""
    printed: list[Printed] = []
    out, err = _Recorder(printed, error=False), _Recorder(printed, error=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = run(job, report)
        except KeyboardInterrupt:  # before the cell had begun, or after its end
            result = Result(INTERRUPTED)
    return replace(result, printed=tuple(printed))


class View(Protocol):
    """The user's view of a sweep."""

    def begins(self, job: Job) -> None:
        """A cell begins in this process, or what it printed elsewhere follows."""

    def ended(self, job: Job, result: Result) -> None:
        """A cell that ran in another process is over."""

    def note(self, text: str) -> None:
        """Show a remark."""

    def watching(self, tally: Callable[[], TurnCounts]) -> AbstractContextManager[object]:
        """Surrounds the running of cells in other processes; `tally` has their counts."""

    def interruptible(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Within, an interruption calls `stop` instead of raising; the third one raises `KeyboardInterrupt`."""


@dataclass(frozen=True)
class Sweep:
    """The cells to run, and all that a launcher needs for it.

    `folder` is where the launcher may keep files of this sweep. `recall` finds the result of a cell without running it;
    None if the cell has not finished.
    """

    name: str
    jobs: tuple[Job, ...]
    folder: Path
    run: Run
    recall: Callable[[Job], Result | None]


@dataclass(frozen=True)
class LauncherTraits:
    """Known of a launcher before it is built: whether its cells run in processes other than codechat's own."""

    apart: bool = False


class Launcher(Protocol):
    """Runs the cells of a sweep."""

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results by the jobs' numbers; a cell that was not begun has none. Raises `UserError`."""


LAUNCHERS: Registry[Launcher, LauncherTraits] = Registry(
    "launcher", "codechat.run.launchers", LauncherTraits, Launcher, LauncherConfig
)
