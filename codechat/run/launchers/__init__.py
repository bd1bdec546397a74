"""Launchers: where the cells of a sweep run, and how many of them at once. One file per kind.

A launcher gets the cells as words and a function that runs one of them. It is part of no cell's config or id, and
changes no result.
"""

import contextlib
import io
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

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

    `number` is its place in the sweep, from 0; `sweep` the tag of its tracked run; `command` the command line that
    resumes it. Cells that need the same `servers` run in a row, so that these start once.
    """

    number: int
    composed: Composed
    sweep: str
    command: tuple[str, ...]
    servers: frozenset[Server] = frozenset()


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """The progress of running cells; `scored` counts the turns that have a verdict."""

    turns: int = 0
    planned: int = 0
    passed: int = 0
    scored: int = 0


class Printed(NamedTuple):
    """A piece of a cell's output in another process, and whether it went to standard error."""

    text: str
    error: bool


@dataclass(frozen=True)
class Result:
    """The end of a cell, or its state.

    `status` is its exit status; None if it has not ended: `state` describes where it is then. `metrics` and `folder`
    are None before the cell has them; `estimate` is set in a dry run. `untracked` is the store's reason to refuse the
    cell, else empty. `printed` is output that the user has not seen.
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
    """A function of a module that runs a cell in this process, and reports its counts.

    Raises nothing: a mistake, a bug or an interruption is the result's status.
    """

    def __call__(self, job: Job, report: Report | None = None) -> Result: ...


class _Recorder(io.TextIOBase):
    """A stream that keeps all writes."""

    def __init__(self, printed: list[Printed], *, error: bool) -> None:
        self._printed, self._error = printed, error

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._printed.append(Printed(text, self._error))
        return len(text)


def run_recorded(run: Run, job: Job, report: Report | None = None) -> Result:
    """Run a cell, with its output in the result."""
    printed: list[Printed] = []
    out, err = _Recorder(printed, error=False), _Recorder(printed, error=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = run(job, report)
        except KeyboardInterrupt:  # before the cell had begun, or after its end
            result = Result(INTERRUPTED)
    return replace(result, printed=tuple(printed))


class View(Protocol):
    def begins(self, job: Job) -> None:
        """A cell begins in this process, or its output from another process follows."""

    def ended(self, job: Job, result: Result) -> None:
        """A cell that ran in another process has ended."""

    def note(self, text: str) -> None:
        """Show a remark."""

    def watching(self, tally: Callable[[], TurnCounts]) -> AbstractContextManager[object]:
        """Surrounds the running of cells in other processes; `tally` has their counts."""

    def interruptible(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Within, an interruption calls `stop` instead of raising; the third one raises `KeyboardInterrupt`."""


@dataclass(frozen=True)
class Sweep:
    """The cells to run. `folder` is for files of the launcher; `recall` returns the result of a finished cell."""

    name: str
    jobs: tuple[Job, ...]
    folder: Path
    run: Run
    recall: Callable[[Job], Result | None]


@dataclass(frozen=True)
class LauncherTraits:
    """`apart`: the cells run in processes other than codechat's own."""

    apart: bool = False


class Launcher(Protocol):
    """Runs the cells of a sweep."""

    def launch(self, sweep: Sweep, view: View) -> Mapping[int, Result]:
        """The results by the jobs' numbers; a cell that was not begun has none. Raises `UserError`."""


LAUNCHERS: Registry[Launcher, LauncherTraits] = Registry(
    "launcher", "codechat.run.launchers", LauncherTraits, Launcher, LauncherConfig
)
