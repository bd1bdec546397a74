"""What coding agents did: the key `agent` of metrics.json, itself in the shape of a metrics.json.

Counted are the turns of completed sessions with a trajectory; a skipped turn has none. A figure is a mean over these
turns, also by turn (`by_turn`) and by the scope of the instructions (`by_scope`), with the number of turns (`n`) and
the 95 % interval by task (`ci`). `COUNTS` are sums, `completed` is the number of sessions with a trajectory.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from codechat.base.domain import SCOPES, Trajectory, TurnEnd
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.counts import AGENT
from codechat.report.metrics.measures import Breakdown, Final, Measures, Series, Unit, value_of
from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio
from codechat.report.metrics.sums import Tally, at, size

_ROWS: tuple[tuple[str, str, Unit, str], ...] = (
    ("commands", "Commands per turn", "number", "commands that the agent ran, without steps that are not kept"),
    ("ran_code", "Ran its code", "share", "turns with a command that ran the code before the answer"),
    ("requests", "Requests per turn", "number", "calls of the model's endpoint"),
    ("tokens", "Tokens per turn", "number", "input tokens, cached ones included, and output tokens"),
    ("edited_elsewhere", "Edited elsewhere", "share", "turns that changed other files than the code's"),
    ("files_elsewhere", "Other files per turn", "number", "changed files other than the code's"),
    ("lines", "Lines changed per turn", "number", "lines added and removed in the code's file, after turn 0"),
    ("limited", "Ended by a limit", "share", "turns that a limit ended"),
)
FINALS = tuple(Final(key, label, "", unit, None, meaning) for key, label, unit, meaning in _ROWS)
COUNTS = (
    *(Final(f"ended_{end}", f"Ended: {end}", "", "count", None) for end in get_args(TurnEnd)),
    Final("asked_again", "Asked again", "", "count", None, "turns asked again after an interruption"),
    Final("replayed", "Replayed", "", "count", None, "requests answered by replies to an interrupted attempt"),
    Final("unmetered", "Unmetered", "", "count", None, "requests answered without usage"),
    Final("omitted", "Steps not kept", "", "count", None, "steps that the records leave out"),
)
AGENTS = Measures(
    AGENT, "Coding agents", tuple(Series(each.key, each.label, f"by_turn.{each.key}", 0, each.unit) for each in FINALS),
    FINALS, tuple(Breakdown(each.key, each.label, "scope", f"by_scope.{each.key}", each.unit, None) for each in FINALS),
)  # fmt: skip
OF_STEPS = ("commands", "ran_code")
"""Figures that are unknown if no turn of a cell has a step, since the agent's output names none."""


@dataclass
class AgentSums:
    """The sums behind the figures, over sessions that are added one by one."""

    tasks: list[str] = field(default_factory=list)
    overall: Tally = field(default_factory=Tally)
    turns: list[Tally] = field(default_factory=list)
    scopes: dict[str, Tally] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    steps: int = 0

    def add(self, session: SessionRecord) -> SessionRecord:
        """Count a session, and return it. A turn belongs to a scope if all its instructions do."""
        worked = [(turn, turn.trajectory) for turn in session.turns if turn.trajectory is not None]
        if session.status != "completed" or not worked:
            return session
        self.tasks.append(session.task_id)
        for turn, did in worked:
            scopes = {asked.scope for asked in turn.asked}
            tallies = [self.overall, at(self.turns, turn.turn, Tally)]
            tallies += [self.scopes.setdefault(scope, Tally()) for scope in scopes if len(scopes) == 1]
            for tally in tallies:
                tally.count(session.task_id, {name: (int(value), 1) for name, value in _values(turn, did)})
            self.steps += len(did.steps) + did.omitted
            self.counts.update({f"ended_{did.ended}": 1, "asked_again": int(did.attempts > 1)})
            self.counts.update(replayed=did.replayed, unmetered=did.unmetered, omitted=did.omitted)
        return session

    def content(self, seed: int) -> dict[str, Any]:
        """The key with its figures; `seed` seeds the resampling. Empty without a trajectory."""
        if not self.tasks:
            return {}
        bootstrap = TaskBootstrap(self.tasks, seed)
        figures = {
            "completed": len(self.tasks),
            **self._figures(lambda figure: figure.rate),
            **{count.key: self.counts[count.key] for count in COUNTS},
            "n": self._figures(size),
            "ci": self._figures(lambda figure: (ends := bootstrap.interval(figure)) and list(ends)),
        }
        return {AGENT: figures}

    def _figures(self, value: Callable[[TaskRatio], Any]) -> dict[str, Any]:
        names = [each.key for each in FINALS if self.steps or each.key not in OF_STEPS]
        scopes = [(scope, self.scopes[scope]) for scope in SCOPES if scope in self.scopes]
        return {
            **{name: value(self.overall[name]) for name in names},
            "by_turn": {name: [value(tally[name]) for tally in self.turns] for name in names},
            "by_scope": {name: {scope: value(tally[name]) for scope, tally in scopes} for name in names},
        }


def _values(turn: TurnRecord, did: Trajectory) -> Iterator[tuple[str, int]]:
    """A turn's part in each figure."""
    yield "commands", sum(step.kind == "command" for step in did.steps)
    yield "ran_code", did.ran_code
    yield "requests", did.requests
    yield "tokens", turn.usage.input_tokens + turn.usage.output_tokens
    yield "edited_elsewhere", did.elsewhere > 0
    yield "files_elsewhere", did.elsewhere
    yield "limited", did.ended not in ("exit", "error")
    if turn.turn:  # turn 0 writes the file
        yield "lines", did.lines_added + did.lines_removed


def measures_of(cells: Sequence[Mapping[str, Any]]) -> Measures:
    """The measures of the cells' figures, without counts that are 0 in each of them."""
    counts = tuple(count for count in COUNTS if any(value_of(figures, count) for figures in cells))
    return replace(AGENTS, finals=(*FINALS, *counts))
