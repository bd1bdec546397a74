"""The rows that people label, as CSV: the question, the labels, and the judges' answers."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from codechat.base.domain import AdherenceVerdict, Change, Scope
from codechat.base.errors import UserError
from codechat.base.spreadsheet import csv_text, unescape_formula
from codechat.report.audit.judged import WORDS, Judged, JudgedDecision, JudgedRow, kinds, without_case
from codechat.report.audit.sampling import AuditDecision, CountsFor, decision_key

CODES = ("code_before", "code_after")
LATER = ("counts_for", "content", "edit")
"""Columns that files of earlier versions lack."""


def _yes_or_no() -> tuple[str, ...]:
    """The columns whose labels are yes or no."""
    return ("applicable", *(kind.row.label for kind in kinds().values()))


def label_columns() -> tuple[str, ...]:
    """The columns that people fill in, of all kinds of decisions."""
    return ("adherence", *_yes_or_no(), "edit", "note", "annotator")


Truth = Literal["yes", "no", "adhered", "violated", "inapplicable"]


class LabelRow(BaseModel):
    """One decision about an instruction with its labels; an empty label is no label.

    The fields are in the order of the columns. `sample` identifies the decision and the judges' answers, so that an
    altered row is detected. `counts_for` is the question that the row was drawn for; files whose rows were all
    drawn for both questions may lack this column.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    sample: str
    dataset: str
    task_id: str
    turn: int
    instruction_id: str
    scope: Scope
    change: Change
    instruction: str
    applicable: Literal["yes", "no", ""] = ""
    adherence: Literal["adhered", "violated", ""] = ""
    note: str = ""
    annotator: str = ""
    counts_for: CountsFor = "both"
    judge_applicable: Judged
    judge: str
    judge_reason: str
    judge_adherence: AdherenceVerdict | Literal[""]
    adherence_judge: str
    adherence_reason: str
    cell_id: str

    @field_validator("applicable", "adherence", mode="before")
    @classmethod
    def _forgive_case(cls, value: object) -> object:
        return without_case(value)

    @property
    def is_genuine(self) -> bool:
        """Whether the row is unchanged except for its labels."""
        applicable = {word: value for value, word in WORDS.items()}[self.judge_applicable]
        judged = (applicable, self.judge, self.judge_adherence or None, self.adherence_judge)
        place = (self.cell_id, self.task_id, self.turn, self.instruction_id)
        return self.sample == decision_key(place, judged, self.counts_for)

    @property
    def groups(self) -> Mapping[str, str]:
        """The groups by which decisions are scored."""
        return {"scope": self.scope, "change": self.change}

    @property
    def true_adherence(self) -> Truth | None:
        """The label of the change: `inapplicable` if the instruction did not apply; None without a label."""
        if not self.judge_adherence or not self.applicable:
            return None
        return "inapplicable" if self.applicable == "no" else self.adherence or None


Row = LabelRow | JudgedRow
"""A file has rows of one kind: decisions about instructions, or another of `kinds()`."""
Decision = AuditDecision | JudgedDecision


def row_of(decision: Decision) -> Row:
    """The decision as a row without labels."""
    if not isinstance(decision, AuditDecision):
        return decision.row
    instruction = decision.instruction
    return LabelRow(
        sample=decision.key,
        dataset=decision.dataset,
        task_id=decision.task_id,
        turn=decision.turn,
        instruction_id=instruction.id,
        scope=instruction.scope,
        change=instruction.change,
        instruction=instruction.text,
        counts_for=decision.counts_for,
        judge_applicable=WORDS[decision.applicable],
        judge=decision.by,
        judge_reason=decision.reason,
        judge_adherence=decision.adherence or "",
        adherence_judge=decision.adherence_by,
        adherence_reason=decision.adherence_reason,
        cell_id=decision.cell_id,
    )


def sample_csv(decisions: Sequence[Decision]) -> str:
    """The file's content: all columns, the code or answers included, with empty labels."""
    rows: list[list[Any]] = []
    for one in decisions:
        values = row_of(one).model_dump()
        names, texts = _texts(one)
        place = min([*values].index(name) for name in label_columns() if name in values)
        if not rows:
            rows.append([*[*values][:place], *names, *[*values][place:]])
        rows.append([*[*values.values()][:place], *texts, *[*values.values()][place:]])
    return csv_text(rows)


def _texts(one: Decision) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts that a decision rests on, by column."""
    if isinstance(one, AuditDecision):
        return CODES, (one.before, one.after or "")
    return tuple(one.texts), tuple(one.texts.values())


def read_labels(path: Path) -> dict[str, tuple[int, Row]]:
    """An annotator's rows by sample, each with its line.

    Raises `UserError` naming file and line for an invalid label, and for a row that no export wrote.
    """
    rows: dict[str, tuple[int, Row]] = {}
    for line, kind, values in _rows(path):
        try:
            row: Row = kind.model_validate({name: unescape_formula(text or "") for name, text in values.items()})
        except ValidationError as error:
            first = error.errors()[0]
            column = ".".join(map(str, first["loc"]))
            raise UserError(
                f"{path}:{line}: {column} is {first['input']!r:.60}: {first['msg']}", _remedy(kind, column)
            ) from error
        if not row.is_genuine:
            raise UserError(
                f"{path}:{line}: no export drew this row ('{row.sample:.40}'), or it was altered since",
                f"change nothing but {_labels(kind)}",
            )
        if row.sample in rows:
            raise UserError(f"{path}:{line}: the row of line {rows[row.sample][0]} again", "label each row once")
        if isinstance(row, LabelRow):
            _check_order(row, f"{path}:{line}")
        rows[row.sample] = line, row
    if not rows:
        raise UserError(f"{path} holds no row", "give what `audit export` wrote, or its page exported")
    return rows


def _check_order(row: LabelRow, place: str) -> None:
    if row.adherence and not row.applicable:
        raise UserError(f"{place}: adherence is labelled, applicable is not", "label applicable as yes or no first")
    if row.adherence and row.counts_for == "applicability":
        raise UserError(f"{place}: this row was drawn for applicability alone, adherence is not asked", "empty it")
    if row.adherence and not row.judge_adherence:
        raise UserError(f"{place}: the judge judged no change here, so there is no adherence to label", "empty it")


def _labels(kind: type[Row]) -> str:
    return ", ".join(name for name in label_columns() if name in kind.model_fields)


def _remedy(kind: type[Row], column: str) -> str:
    words = {"adherence": "adhered or violated", **dict.fromkeys(_yes_or_no(), "yes or no")}
    return f"write {words[column]}, or leave it empty" if column in words else f"change nothing but {_labels(kind)}"


def _rows(path: Path) -> Iterator[tuple[int, type[Row], dict[str, str | None]]]:
    """The rows, each with its first line in the file, and the kind that the columns show."""
    csv.field_size_limit(2**30)  # csv's own limit of 128 KiB is below what a model may write
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header = stream.readline()
            stream.seek(0)
            # in locales with a decimal comma, spreadsheets save with semicolons
            reader = csv.DictReader(stream, delimiter=";" if header.count(";") > header.count(",") else ",")
            rows: Mapping[str, type[Row]] = {f"judge_{kind.row.label}": kind.row for kind in kinds().values()}
            kind = next((rows[name] for name in reader.fieldnames or () if name in rows), LabelRow)
            needed = [name for name in kind.model_fields if name not in LATER]
            missing = [name for name in needed if name not in (reader.fieldnames or ())]
            if missing:
                raise UserError(f"{path}:1: the column {missing[0]} is missing", "keep the columns that were exported")
            begin = reader.line_num + 1
            for values in reader:
                yield begin, kind, values
                begin = reader.line_num + 1
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "labels=FILE or labels=FILE,FILE") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is no CSV in UTF-8: {error}", "save it as CSV, encoded in UTF-8") from error
