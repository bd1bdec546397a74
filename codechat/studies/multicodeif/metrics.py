"""The further fields of turns whose code must keep constraints, and the sums over them (docs/multicodeif.md)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from codechat.base.domain import Outcome
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.metrics.measures import Breakdown
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import Part, Tally, Value
from codechat.studies.multicodeif.constraints import solved_types

GROUPS = ("category", "type", "language", "check")
"""By what constraints are grouped; `check` is what decides them."""
NO_LANGUAGE = "none"
"""The group of tasks that name no language."""
VERDICTS = ("met", "guarded", "official")
"""Who says that a constraint is met: the chosen harness, or one by name."""


UNDECIDED_DECISIONS = ("undecided_decisions", "Undecided decisions")
"""Key and label of the share of undecided constraints: a task is decided if one of its constraints is unmet."""
ALWAYS = ("undecided", "parses")
"""The figures that rest on no verdict."""
MOST_UNDECIDED = 0.9
"""The share of a group's decisions beyond which the group has no figure but this share."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ConstraintRecord(_Part):
    """The verdict on one constraint: `met` by the chosen harness, null if undecided; `reason` is one line.

    `guarded` and `official` are the verdicts under each harness; a type that a judge decides has the judge's in both.
    """

    type: str
    category: str
    by: Literal["rule", "judge", "classifier", "compiler"]
    met: bool | None
    reason: str
    guarded: bool | None
    official: bool | None


class OfficialTurn(_Part):
    """All constraints by the published harness; null if one is undecided and none unmet."""

    passed: bool | None
    outcome: Outcome | None
    reason: str | None


class ConstrainedTurn(_Part):
    """The fields that `repair` and `levels` add to a turn.

    `level` is `single` or L1, L2, …; `round` counts repairs. `carried`: a met reply that was judged again, without a
    request. `parses` says whether the code parses in the task's language, null if that is not known; `grammar` is the
    package that read it, with its version, null if none did.
    """

    level: str
    round: int
    carried: bool = False
    constraints: list[ConstraintRecord]
    parses: bool | None = None
    grammar: str | None = None
    official: OfficialTurn | None = None

    @classmethod
    def of(cls, turn: TurnRecord) -> "ConstrainedTurn":
        """The fields of a recorded turn."""
        known = turn.model_extra or {}
        return cls.model_validate({name: known[name] for name in cls.model_fields if name in known})

    def all_met(self, verdict: str) -> bool | None:
        """Whether all constraints are met by one of `VERDICTS`: one unmet decides; None if that is open."""
        return all_met([getattr(each, verdict) for each in self.constraints]) if self.constraints else None

    @property
    def leaks(self) -> bool:
        """Whether the published answer of a constraint is a whole solution: `protocol.feedback=paper` hands it out."""
        solved = solved_types()
        return any(each.type in solved for each in self.constraints)


def all_met(found: Sequence[bool | None]) -> bool | None:
    """Whether all constraints are met: one unmet decides; None if none is known to be unmet, but one is undecided."""
    return False if False in found else None if None in found else True


ByGroup = tuple[str, str, bool | None, str]
"""A figure of groups: its key, label, whether higher is better, and its meaning."""


def breakdowns_of(figures: Sequence[ByGroup], of_languages: ByGroup) -> tuple[Breakdown, ...]:
    """The figures by each of `GROUPS`, with one more by language."""
    return tuple(
        Breakdown(key, label, by, f"by_{by}.{key}", higher_is_better=better, help=meaning)
        for by in GROUPS
        for key, label, better, meaning in (*figures, *([of_languages] if by == "language" else []))
    )


_OF_TURNS = {
    "hsr": "accuracy",
    "hsr_guarded": "guarded",
    "hsr_official": "official",
    "undecided": "undecided",
    "parses": "parses",
}  # figures of whole turns, by the names that groups have for them


@dataclass
class Groups:
    """Tallies by group: of constraints by category, type and what decides them, of turns by language."""

    tallies: dict[str, dict[str, Tally]] = field(default_factory=lambda: {by: {} for by in GROUPS})

    def add(self, session: SessionRecord, turn: TurnRecord, own: ConstrainedTurn) -> None:
        """Count the verdicts of a turn."""
        for each in own.constraints:
            for by, name in groups_of(each):
                self.at(by, name).count(session.task_id, dict(_constraint_parts(each)))
        parts = turn_parts(turn, own)
        known = {name: parts[source] for source, name in _OF_TURNS.items() if source in parts}
        self.at("language", session.language or NO_LANGUAGE).count(session.task_id, known)

    def at(self, by: str, name: str) -> Tally:
        """The tally of a group."""
        return self.tallies[by].setdefault(name, Tally())

    def values(self, shown: Iterable[Breakdown], value: Value) -> dict[str, dict[str, Any]]:
        """A value of every group's figures at their places in metrics.json."""
        found: dict[str, dict[str, Any]] = {}
        for part in shown:
            shown = found.setdefault(f"by_{part.by}", {})[part.key] = {}
            for name, tally in sorted(self.tallies[part.by].items()):
                if part.key in tally.figures and (part.key in ALWAYS or not is_open(tally["undecided"])):
                    shown[name] = value(tally[part.key])
        return found


def is_open(undecided: TaskRatio) -> bool:
    """Whether a group is almost wholly undecided, so that a share of the few decided ones says nothing of it."""
    return (undecided.rate or 0.0) > MOST_UNDECIDED


def groups_of(constraint: ConstraintRecord) -> Iterator[tuple[str, str]]:
    """The groups of a constraint, each with what groups by."""
    yield from (("category", constraint.category), ("type", constraint.type), ("check", constraint.by))


def _constraint_parts(constraint: ConstraintRecord) -> Iterator[tuple[str, Part]]:
    yield "undecided", (constraint.met is None, 1)
    for name, met in (("accuracy", constraint.met), ("guarded", constraint.guarded), ("official", constraint.official)):
        if met is not None:
            yield name, (met, 1)


def turn_parts(turn: TurnRecord, own: ConstrainedTurn) -> dict[str, Part]:
    """A turn's part of each figure: `hsr` of turns, `ssr` of constraints, by verdict; undecided ones are in no rate.

    `undecided` counts turns, `undecided_decisions` constraints.
    A turn with one constraint unmet and another undecided is decided: not all are met.
    """
    open_ones = sum(each.met is None for each in own.constraints)
    parts: dict[str, Part] = {
        "undecided": (turn.passed is None, 1), "undecided_decisions": (open_ones, len(own.constraints)),
    }  # fmt: skip
    if own.parses is not None:
        parts["parses"] = (own.parses, 1)
    for verdict in VERDICTS:
        mark = "" if verdict == "met" else f"_{verdict}"
        passed = turn.passed if verdict == "met" else own.all_met(verdict)
        if passed is not None:
            parts[f"hsr{mark}"] = (passed, 1)
        known = [met for each in own.constraints if (met := getattr(each, verdict)) is not None]
        if known:
            parts[f"ssr{mark}"] = (sum(known), len(known))
    return parts
