"""The rows that people label, as CSV: the question, the texts to read, the labels, and the judges' answers."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from codechat.base.errors import UserError
from codechat.base.spreadsheet import csv_text, unescape_formula
from codechat.report.audit.kinds import Kind, Row, kinds

LATER = {"counts_for": "both", "content": "", "edit": ""}
"""Columns that files of earlier versions lack, with the values that they stand for."""


def sample_csv(rows: Sequence[Row]) -> str:
    """The file's content: all columns, and the texts before the first label."""
    first = rows[0]
    place = first.kind.columns.index(first.kind.labels[0])
    table = [[*first.kind.columns[:place], *first.texts, *first.kind.columns[place:]]]
    for row in rows:
        values = list(row.columns.values())
        table.append([*values[:place], *row.texts.values(), *values[place:]])
    return csv_text(table)


def read_labels(path: Path) -> dict[str, tuple[int, Row]]:
    """An annotator's rows by sample, each with its line.

    Raises `UserError` naming file and line for an invalid label, and for a row that no export wrote.
    """
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
    """Raises `UserError` if the row is not what was exported, or a label is not one."""
    for question in row.kind.questions:
        if row[question.label] not in (*question.words, ""):
            remedy = f"write {' or '.join(question.words)}, or leave it empty"
            raise UserError(f"{place}: {question.label} is '{row[question.label]:.60}'", remedy)
    if not _is_genuine(row):
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


def _is_genuine(row: Row) -> bool:
    """Whether the row is unchanged except for its labels."""
    try:
        return row["sample"] == row.kind.key(row.columns)
    except (ValueError, KeyError):
        return False


def _rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The rows, each with its first line in the file; the columns show of which kind they are."""
    csv.field_size_limit(2**30)  # csv's own limit of 128 KiB is below what a model may write
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header = stream.readline()
            stream.seek(0)
            # in locales with a decimal comma, spreadsheets save with semicolons
            reader = csv.DictReader(stream, delimiter=";" if header.count(";") > header.count(",") else ",")
            kind = _kind_of(reader.fieldnames or (), path)
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


def _kind_of(header: Sequence[str], path: Path) -> Kind:
    found = [kind for kind in kinds().values() if kind.questions[0].judged in header]
    missing = [name for name in found[0].columns if name not in (*header, *LATER)] if found else ["of the decision"]
    if missing:
        raise UserError(f"{path}:1: the column {missing[0]} is missing", "keep the columns that were exported")
    return found[0]
