"""Kinds of decisions other than those on instructions: their rows with labels, and how they are drawn.

To add a kind, register one in the file `audit.py` of a study.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.plugins import import_all
from codechat.base.records import SessionRecord
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.report.audit.strata import Stratum, draw_by_stratum, shuffled
from codechat.report.loading import content_notes, load_cells
from codechat.report.study import LoadedCell

Judged = Literal["yes", "no", "undecided"]
WORDS: Mapping[bool | None, Judged] = {True: "yes", False: "no", None: "undecided"}
"""The words for a judge's decision."""


def without_case(value: object) -> object:
    """A label in lower case, however people wrote it."""
    return value.strip().lower() if isinstance(value, str) else value


Label = Annotated[Literal["yes", "no", ""], BeforeValidator(without_case)]
"""A label; empty if there is none."""


class JudgedRow(BaseModel):
    """One decision with its label; an empty label is no label.

    `place` is the decision's number within the turn, from 0. A kind adds these columns, in this order: the groups
    that its decisions are scored by, the question in words (the column is named by `question`), the label (named by
    `label`), and the decision (`judge_` and the label's name).
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    question: ClassVar[str]
    label: ClassVar[str]
    grouped: ClassVar[tuple[str, ...]]
    by_turn: ClassVar[bool] = True  # whether decisions of several turns can differ in nothing but the turn

    sample: str
    dataset: str
    task_id: str
    turn: int
    place: int
    note: str = ""
    annotator: str = ""
    judge: str
    judge_reason: str
    cell_id: str

    @classmethod
    def of(cls, cell: LoadedCell, session: SessionRecord, at: tuple[int, int], met: bool | None, **own: str) -> Self:
        """The row, without a label, of a decision at a turn and a place in it.

        `own` are the judge and the columns of the kind.
        """
        judged, (turn, place) = WORDS[met], at
        known = {"dataset": cell.dataset, "task_id": session.task_id, "cell_id": session.cell_id}
        key = cls.key_of(session.cell_id, session.task_id, turn, place, judged)
        return cls.model_validate(
            {"sample": key, "turn": turn, "place": place, f"judge_{cls.label}": judged, **known, **own}
        )

    @classmethod
    def key_of(cls, cell_id: str, task_id: str, turn: int, place: int, judged: str) -> str:
        """The hash of a decision: its place and its verdict."""
        where = [cell_id, task_id, turn, place] if cls.by_turn else [cell_id, task_id, place]
        return content_hash([cls.question, *where, judged])[:16]

    @property
    def given_label(self) -> str:
        """The label that a person gave; empty if none is given."""
        return str(getattr(self, self.label))

    @property
    def decision(self) -> str:
        """The judge's decision."""
        return str(getattr(self, f"judge_{self.label}"))

    @property
    def is_genuine(self) -> bool:
        """Whether the row is unchanged except for its labels."""
        return self.sample == self.key_of(self.cell_id, self.task_id, self.turn, self.place, self.decision)

    @property
    def instruction(self) -> str:
        """The question in words."""
        return str(getattr(self, self.question))

    @property
    def groups(self) -> Mapping[str, str]:
        """The groups by which decisions are scored."""
        return {name: str(getattr(self, name)) for name in self.grouped}

    @property
    def stratum(self) -> Stratum:
        """The stratum that the decision is drawn from: its narrowest group, and its judge."""
        return self.groups[self.grouped[-1]], self.judge, ""

    @model_serializer(mode="wrap")
    def _in_order(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The columns in order: the decision comes after the label, so that it does not influence the reader."""
        values = handler(self)
        *own, judged = (name for name in values if name not in JudgedRow.model_fields)
        first, middle = ("sample", "dataset", "task_id", "turn", "place"), ("note", "annotator")
        return {name: values[name] for name in (*first, *own, *middle, judged, "judge", "judge_reason", "cell_id")}


@dataclass(frozen=True, slots=True)
class JudgedDecision:
    """A row without labels, and by column the texts that the decision rests on; the judged text comes last."""

    row: JudgedRow
    texts: Mapping[str, str]

    @property
    def key(self) -> str:
        """A hash that identifies the decision."""
        return self.row.sample


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of decision that people label.

    `what` names one decision and the subject of decisions, `one` names it in full. `decisions_of` takes a cell of
    one of the `protocols` and returns the function that finds the decisions in its completed sessions; `made` finds
    those of a kind that is of no cell, in the folders that are given. `ask` is the
    question of the labelling page, which shows the judged text under `heading`.
    """

    row: type[JudgedRow]
    what: tuple[str, str]
    one: str
    protocols: tuple[str, ...]
    decisions_of: Callable[[LoadedCell], Callable[[SessionRecord], Iterator[JudgedDecision]]] | None
    ask: str
    heading: str = "Code"
    made: Callable[[Iterable[Path]], Iterator[JudgedDecision]] | None = None

    @property
    def name(self) -> str:
        """The subject of the decisions, which also is the name of the setting that draws them."""
        return self.what[1]

    @property
    def sources(self) -> str:
        """The folders that such decisions are drawn from, in words."""
        return f"cells of {' and '.join(self.protocols)}" if self.protocols else "folders that `construct` made"

    @property
    def several(self) -> str:
        """The plural, in words."""
        return f"{self.what[0]}s on {self.what[1]}"


_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Add a kind. It is known by the name of the setting that draws it."""
    _KINDS[kind.name] = kind
    return kind


@cache
def kinds() -> Mapping[str, Kind]:
    """The kinds of decisions that people label besides those on instructions, by the setting that draws them."""
    import_all("codechat.report.audit", "audit")
    return dict(sorted(_KINDS.items(), reverse=True))


@dataclass(frozen=True, slots=True)
class Drawn:
    """The drawn decisions of a kind, the number of all decisions, and remarks about the cells."""

    kind: Kind
    decisions: tuple[JudgedDecision, ...]
    population: int
    notes: tuple[str, ...]


def draw(kind: Kind, runs: Iterable[Path], size: int, seed: int) -> Drawn:
    """Draw `size` decisions from all completed sessions of the kind's cells, each stratum by its share.

    Raises `UserError` if there is nothing to draw, or a cell's tasks cannot be read.
    """
    cells: list[LoadedCell] = []
    found: list[JudgedDecision] = []
    if kind.made is not None:
        found += kind.made(runs)
    elif kind.decisions_of is not None:
        cells += (cell for cell in load_cells(list(runs)) if cell.protocol in kind.protocols)
    for cell in cells:
        assert kind.decisions_of is not None
        find = kind.decisions_of(cell)
        found += [one for session in cell.sessions() if session.status == "completed" for one in find(session)]
    if not found:
        protocols = "cells of " + " or ".join(f"protocol={name}" for name in kind.protocols)
        raise UserError(f"the runs hold no {kind.one}", f"give {protocols if kind.protocols else kind.sources}")
    found = [*{one.key: one for one in found}.values()]  # of the same data in several cells, each once
    ordered = sorted(found, key=lambda one: (one.row.cell_id, one.row.task_id, one.row.turn, one.row.place))
    strata = [one.row.stratum for one in ordered]
    drawn = shuffled(draw_by_stratum(ordered, strata, size, seed, f"audit/{kind.name}"), seed)
    return Drawn(kind, tuple(drawn), len(ordered), tuple(content_notes(cells)))


def tasks_of(cell: LoadedCell) -> tuple[Task, ...]:
    """The cell's tasks, since records do not hold what they ask in words. Repositories are not needed to read them."""
    values: dict[str, Any] = dict(cell.config.get("dataset") or {})
    values.pop("repos", None)
    return tuple(DATASETS.build(DATASETS.validate(values)).tasks)


def other_data(cell: LoadedCell, task_id: str, what: str) -> UserError:
    """The error for a dataset that has changed since the cell ran."""
    return UserError(
        f"{cell.folder}: {task_id} has other {what} in the dataset now, or is not there",
        "give dataset.path the file that the cell ran on, or leave the cell out",
    )
