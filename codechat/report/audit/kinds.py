"""Kinds of decisions that people label: the questions, the drawing of decisions, and the sheet of rows as CSV.

To add a kind, register one in the file `audit.py` of a study.
"""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast

from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.plugins import import_all
from codechat.base.records import SessionRecord
from codechat.base.seeding import generator
from codechat.base.spreadsheet import csv_text, unescape_formula
from codechat.base.template import counted
from codechat.datasets import DATASETS, DatasetConfig, load
from codechat.datasets.tasks import Task
from codechat.report.comparison import LoadedCell
from codechat.report.loading import Options, content_notes, load_cells

WORDS: Mapping[bool | None, str] = {True: "yes", False: "no", None: "undecided"}
"""The words for a judge's decision."""
UNDECIDED = WORDS[None]
Stratum = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a decision, which people answer by one of `words` in the column `label`.

    `judge` and `reason` are the columns of the judge's name and reason. If the question follows only a yes to another
    question, `after` is the label column of the other question, and `otherwise` the label after a no. `drawn` holds the
    values of the column `counts_for` with which a row counts for this question; if empty, every row does.
    """

    name: str
    label: str
    words: tuple[str, str] = ("yes", "no")
    judge: str = "judge"
    reason: str = "judge_reason"
    after: str = ""
    otherwise: str = ""
    drawn: tuple[str, ...] = ()

    @property
    def judged(self) -> str:
        """The column of the judge's decision; its value is empty if the judge was not asked."""
        return f"judge_{self.label}"


@dataclass(frozen=True, slots=True)
class Row:
    """A decision with its labels; an empty label is no label.

    `columns` are the columns of the sheet, in order. `texts` holds by column the texts that people read to answer, the
    judged text last; rows that were read from a file have none.
    """

    kind: "Kind"
    columns: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, column: str) -> str:
        return self.columns[column]

    @property
    def groups(self) -> Mapping[str, str]:
        return {name: self[name] for name in self.kind.groups}

    def asked(self, question: Question) -> bool:
        """Whether the row counts for a question."""
        drawn = not question.drawn or self["counts_for"] in question.drawn
        return drawn and bool(self[question.judged])

    def answer(self, question: Question) -> str:
        """The label that a person gave; empty without one."""
        if question.after and self[question.after] != "yes":
            return question.otherwise if self[question.after] else ""
        return self[question.label]


Finder = Callable[[SessionRecord], Iterable[Row]]


@dataclass(frozen=True)
class Kind:
    """A kind of decision that people label.

    `name` is the subject of the decisions and the setting of `audit export` that draws them; `noun` names one decision
    in short, `one` in full. `find` takes a cell of one of the `protocols` and returns a function that finds the
    decisions in a completed session. `ask` is the question of the labelling page, which shows the judged text under
    `heading`. Without `by_turn`, the turn is no part of a decision's identity. A reason that begins with `disputed`
    belongs to a rule that a language model contradicts.
    """

    name: str
    one: str
    questions: tuple[Question, ...]
    groups: tuple[str, ...]
    ask: str
    heading: str = "Code"
    noun: str = "decision"
    protocols: tuple[str, ...] = ()
    find: Callable[[LoadedCell], Finder] | None = None
    by_turn: bool = True
    disputed: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the sheet. The decision comes after the label, so that it does not influence the reader."""
        (question,) = self.questions
        place = ("sample", "dataset", "task_id", "turn", "place")
        judged = (question.judged, question.judge, question.reason)
        return (*place, *self.groups, self.wording, question.label, "note", "annotator", *judged, "cell_id")

    @property
    def wording(self) -> str:
        """The column with the question's text."""
        return self.questions[0].name

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that people fill in."""
        filled = {*(question.label for question in self.questions), "edit", "note", "annotator"}
        return tuple(name for name in self.columns if name in filled)

    @property
    def several(self) -> str:
        return f"{self.noun}s on {self.name}"

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of `audit export` that draw this kind, each with its help."""
        return {self.name: f"instead of n: {self.several} to draw, of {self.source}"}

    @property
    def source(self) -> str:
        """The folders that the decisions are drawn from, in words."""
        return f"cells of {' and '.join(self.protocols)}"

    def concerns(self, cell: LoadedCell) -> bool:
        """Whether a cell can have such decisions."""
        return cell.protocol in self.protocols

    def row(self, texts: Mapping[str, str], /, **values: object) -> Row:
        """A row without labels, from the values of the columns."""
        columns = {name: str(values.get(name, "")) for name in self.columns}
        return Row(self, {**columns, "sample": self.key(columns)}, texts)

    def key(self, columns: Mapping[str, str]) -> str:
        """The hash of a decision: its place and its verdict."""
        (question,) = self.questions
        turn = [int(columns["turn"])] if self.by_turn else []
        where = [columns["cell_id"], columns["task_id"], *turn, int(columns["place"])]
        return content_hash([question.name, *where, columns[question.judged]])[:16]

    def stratum(self, row: Row) -> Stratum:
        """The stratum that a decision is drawn from: its narrowest group, and its judge."""
        return row[self.groups[-1]], row["judge"], ""

    def rows(self, runs: Sequence[Path]) -> tuple[list[Row], Sequence[LoadedCell]]:
        """All decisions in some folders, and their cells. Raises `UserError` if there is none."""
        cells = [cell for cell in load_cells(runs) if self.concerns(cell)]
        found: list[Row] = []
        for cell in cells:
            assert self.find is not None
            find = self.find(cell)
            found += [row for session in cell.sessions() if session.status == "completed" for row in find(session)]
        if not found:
            wanted = " or ".join(f"protocol={name}" for name in self.protocols)
            raise UserError(f"the runs hold no {self.one}", f"give cells of {wanted}")
        return found, cells

    def draw(self, runs: Sequence[Path], values: Mapping[str, str], seed: int, options: Options) -> "Drawn":
        """Draw by the settings of `audit export`. Raises `UserError` if there is nothing to draw."""
        return draw(self, runs, whole(self.name, values[self.name]), seed)

    def correct(
        self, cells: Sequence[LoadedCell], folder: Path, options: Options
    ) -> tuple[list[LoadedCell], Sequence[str]]:
        """The cells with the labels in a folder, for a chapter that corrects its figures by them, and remarks."""
        return [*cells], ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """The drawn rows, a summary of the counts, remarks, and further files by name."""

    rows: tuple[Row, ...]
    summary: str
    notes: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def draw(kind: Kind, runs: Sequence[Path], size: int, seed: int) -> Drawn:
    """Draw `size` decisions of a kind, each stratum by its share. Raises `UserError` if there is nothing to draw."""
    found, cells = kind.rows(runs)
    found = [*{row["sample"]: row for row in found}.values()]  # equal data of several cells count once
    found.sort(key=lambda row: (row["cell_id"], row["task_id"], int(row["turn"]), int(row["place"])))
    strata = [kind.stratum(row) for row in found]
    rows = shuffled(draw_by_stratum(found, strata, size, seed, f"audit/{kind.name}"), seed)
    summary = f"{len(rows)} of {counted(len(found), kind.noun)} on {kind.name} drawn"
    return Drawn(tuple(rows), summary, tuple(content_notes(cells)))


def draw_by_stratum(rows: Sequence[Row], names: Sequence[Stratum], size: int, seed: int, purpose: str) -> list[Row]:
    """A sample in which every stratum has its share (largest remainder), so that the accuracy is unbiased. `names`
    holds each row's stratum."""
    strata: dict[Stratum, list[Row]] = {}
    for row, name in zip(rows, names, strict=True):
        strata.setdefault(name, []).append(row)
    size = min(size, len(rows))
    shares = {name: size * len(members) / len(rows) for name, members in strata.items()}
    counts = {name: math.floor(share) for name, share in shares.items()}
    by_remainder = sorted(strata, key=lambda name: (counts[name] - shares[name], name))
    for name in by_remainder[: size - sum(counts.values())]:
        counts[name] += 1
    return [
        row
        for name in sorted(strata)
        for row in generator(seed, "/".join(name), purpose).sample(strata[name], counts[name])
    ]


def shuffled(rows: list[Row], seed: int) -> list[Row]:
    """The rows in random order, in place, so that no stratum is labelled only by tired people."""
    generator(seed, "", "audit/order").shuffle(rows)
    return rows


def whole(key: str, text: str, least: int = 1) -> int:
    """The whole number of a setting. Raises `UserError` if it is none, or less than `least`."""
    if not text.isdecimal() or int(text) < least:
        raise UserError(f"{key} is a whole number of at least {least} (got '{text}')", f"e.g. {key}={max(least, 100)}")
    return int(text)


DEFAULT = "instructions"
"""The kind that `audit export` draws unless another is named."""
_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    _KINDS[kind.name] = kind
    return kind


@cache
def kinds() -> Mapping[str, Kind]:
    """The kinds of decisions that people label, by name."""
    import_all("codechat.report.audit", "audit")
    return dict(sorted(_KINDS.items(), reverse=True))


def place_of(cell: LoadedCell, session: SessionRecord, turn: int, place: int) -> dict[str, object]:
    """The columns of a decision's place in a cell; `place` is the number within the turn, from 0."""
    where = {"dataset": cell.dataset, "task_id": session.task_id, "cell_id": session.cell_id}
    return {**where, "turn": turn, "place": place}


def tasks_of(cell: LoadedCell) -> tuple[Task, ...]:
    """The cell's tasks, whose texts records do not hold. Repositories are not needed to read them."""
    values = {name: value for name, value in (cell.config.get("dataset") or {}).items() if name != "repos"}
    return load(cast(DatasetConfig, DATASETS.validate(values))).tasks


def other_data(cell: LoadedCell, task_id: str, what: str) -> UserError:
    """The error for a dataset that has changed since the cell ran."""
    return UserError(
        f"{cell.folder}: {task_id} has other {what} in the dataset now, or is not there",
        "give dataset.path the file that the cell ran on, or leave the cell out",
    )


LATER = {"counts_for": "both", "content": "", "edit": ""}
"""Columns that files of earlier versions lack, with the values that they stand for."""


def sample_csv(rows: Sequence[Row]) -> str:
    """The sheet's content: all columns, and the texts before the first label."""
    columns, texts = rows[0].kind.columns, rows[0].texts
    place = columns.index(rows[0].kind.labels[0])
    table = [[*columns[:place], *texts, *columns[place:]]]
    for row in rows:
        values = list(row.columns.values())
        table.append([*values[:place], *row.texts.values(), *values[place:]])
    return csv_text(table)


def read_labels(path: Path) -> dict[str, tuple[int, Row]]:
    """An annotator's rows by sample, each with its line. Raises `UserError` naming file and line for an invalid label,
    and for a row that no export wrote."""
    rows: dict[str, tuple[int, Row]] = {}
    for line, row in _rows(path):
        _check(row, f"{path}:{line}")
        sample = row["sample"]
        if sample in rows:
            raise UserError(f"{path}:{line}: the row of line {rows[sample][0]} again", "label each row once")
        rows[sample] = line, row
    if not rows:
        raise UserError(f"{path} holds no row", "give what `audit export` wrote, or its page exported")
    return rows


def _check(row: Row, place: str) -> None:
    """Raises `UserError` if the row differs from the exported one, or a label is invalid."""
    for question in row.kind.questions:
        if row[question.label] not in (*question.words, ""):
            remedy = f"write {' or '.join(question.words)}, or leave it empty"
            raise UserError(f"{place}: {question.label} is '{row[question.label]:.60}'", remedy)
    try:
        genuine = row["sample"] == row.kind.key(row.columns)
    except (ValueError, KeyError):
        genuine = False
    if not genuine:
        raise UserError(
            f"{place}: no export drew this row ('{row['sample']:.40}'), or it was altered since",
            f"change nothing but {', '.join(row.kind.labels)}",
        )
    for question in row.kind.questions:
        label = question.label
        if not row[label] or not question.after:
            continue
        if not row[question.after]:
            remedy = f"label {question.after} as yes or no first"
            raise UserError(f"{place}: {label} is labelled, {question.after} is not", remedy)
        if row["counts_for"] not in question.drawn:
            raise UserError(
                f"{place}: this row was drawn for {row['counts_for']} alone, {label} is not asked", "empty it"
            )
        if not row[question.judged]:
            raise UserError(f"{place}: the judge judged no change here, so there is no {label} to label", "empty it")


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The rows, each with its first line in the file; the columns determine the kind."""
    csv.field_size_limit(2**30)  # csv's own limit of 128 KiB is below what a model may write
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header = stream.readline()
            stream.seek(0)
            # in locales with a decimal comma, spreadsheets save with semicolons
            reader = csv.DictReader(stream, delimiter=";" if header.count(";") > header.count(",") else ",")
            header_names = reader.fieldnames or ()
            kind = next((each for each in kinds().values() if each.questions[0].judged in header_names), None)
            columns = kind.columns if kind else ()
            missing = [name for name in columns if name not in (*header_names, *LATER)]
            if kind is None or missing:
                column = missing[0] if missing else "of the decision"
                raise UserError(f"{path}:1: the column {column} is missing", "keep the columns that were exported")
            words = {question.label for question in kind.questions}
            begin = reader.line_num + 1
            for values in reader:
                given = {name: unescape_formula(values.get(name) or LATER.get(name, "")) for name in kind.columns}
                yield begin, Row(kind, {k: v.strip().lower() if k in words else v for k, v in given.items()})
                begin = reader.line_num + 1
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "labels=FILE or labels=FILE,FILE") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV in UTF-8: {error}", "save it as CSV, encoded in UTF-8") from error
