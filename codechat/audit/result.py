"""The files of an audit: audit.json, audit.md, confusion.csv and the disagreements to discuss."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal

from codechat.audit.labels import LabelRow, Row, read_labels
from codechat.audit.scoring import (
    QUESTIONS,
    Agreement,
    Item,
    Kappa,
    Question,
    Score,
    Share,
    agreement,
    items_of,
    questions_of,
    score,
)
from codechat.errors import UserError
from codechat.files import write_atomically
from codechat.report.formats import markdown_text
from codechat.spreadsheet import csv_text

AGREED = "agreed"
BY_VERDICT = (
    "{} rows were drawn by verdict and scope for the correction, not by their shares: the figures below are of these "
    "rows, not of all decisions. `codechat report … audit=DIR` weights them."
)


@dataclass(frozen=True, slots=True)
class Dispute:
    """A row to discuss: two annotators label it differently, or the labels contradict the judge."""

    question: Question
    between: Literal["annotators", "labels and judge"]
    sample: str
    task_id: str
    turn: int
    instruction: str
    labels: str
    judged: str
    judge: str
    reason: str
    notes: str


@dataclass(frozen=True)
class Audit:
    """Scores by labels: one per annotator's file, and `agreed` by the rows that two annotators label alike."""

    scores: Mapping[str, Mapping[Question, Score]]
    agreement: Mapping[Question, Agreement] | None
    disputes: tuple[Dispute, ...]
    by_verdict: int = 0
    """The number of rows that were drawn by verdict, for the correction of adherence."""


def audit(paths: list[Path]) -> Audit:
    """Score one annotator's labels, or two's. Raises `UserError` if a file is wrong or their samples differ."""
    if len(paths) > 2:
        raise UserError(
            f"{len(paths)} files of labels were given", "give one annotator's, or two's: labels=FILE[,FILE]"
        )
    files = [read_labels(path) for path in paths]
    rows = [{sample: row for sample, (_, row) in file.items()} for file in files]
    names = [path.stem for path in paths]
    if len({*names, AGREED}) <= len(names):
        names = [str(path) for path in paths]
    scores = {
        name: {question: score(list(each.values()), question) for question in questions_of(each.values())}
        for name, each in zip(names, rows, strict=True)
    }
    by_verdict = sum(isinstance(row, LabelRow) and row.counts_for == "correction" for row in rows[0].values())
    if len(rows) == 1:
        return Audit(scores, None, tuple(_disputes(rows[0], None)), by_verdict)
    for sample, (line, _) in files[1].items():
        if sample not in files[0]:
            raise UserError(f"{paths[1]}:{line}: {paths[0]} has no such row", "both must label one and the same sample")
    questions = questions_of(rows[0].values())
    both = {question: agreement(rows[0], rows[1], question) for question in questions}
    scores[AGREED] = {question: score(_agreed_rows(rows[0], rows[1], question), question) for question in questions}
    return Audit(scores, both, tuple(_disputes(*rows)), by_verdict)


def _agreed_rows(first: Mapping[str, Row], second: Mapping[str, Row], question: Question) -> list[Row]:
    """The first annotator's rows that have the same label as the second's."""
    other = {item.row.sample: item.label for item in items_of(second.values(), question)}
    return [item.row for item in items_of(first.values(), question) if other.get(item.row.sample) == item.label]


def _disputes(first: Mapping[str, Row], second: Mapping[str, Row] | None) -> Iterator[Dispute]:
    for question in questions_of(first.values()):
        other = {} if second is None else {item.row.sample: item for item in items_of(second.values(), question)}
        for item in items_of(first.values(), question):
            twin = other.get(item.row.sample)
            if twin is not None and twin.label != item.label:
                yield _dispute(question, item, twin, "annotators")
            elif not item.right and item.judged != "undecided":
                yield _dispute(question, item, twin, "labels and judge")


def _dispute(
    question: Question, item: Item, twin: Item | None, between: Literal["annotators", "labels and judge"]
) -> Dispute:
    row, both = item.row, [item] if twin is None else [item, twin]
    return Dispute(
        question=question,
        between=between,
        sample=row.sample,
        task_id=row.task_id,
        turn=row.turn,
        instruction=row.instruction,
        labels=" / ".join(dict.fromkeys(one.label for one in both)),
        judged=item.judged,
        judge=item.judge,
        reason=item.reason,
        notes=" / ".join(one.row.note for one in both if one.row.note),
    )


def write_audit(found: Audit, folder: Path) -> None:
    """Write all files, replacing those of an earlier scoring."""
    agreed = found.agreement.items() if found.agreement is not None else ()
    values = {
        "scores": {name: {q: asdict(one) for q, one in each.items()} for name, each in found.scores.items()},
        "agreement": {question: asdict(one) for question, one in agreed} or None,
        "disputes": len(found.disputes),
    }
    write_atomically(folder / "audit.json", json.dumps(values, indent=1, ensure_ascii=False) + "\n")
    write_atomically(folder / "audit.md", markdown(found))
    confusion = [["labels", "question", "label", "judged", "rows"]]
    confusion += [
        [name, question, label, judged, str(count)]
        for name, each in found.scores.items()
        for question, one in each.items()
        for label, counts in one.confusion.items()
        for judged, count in counts.items()
    ]
    write_atomically(folder / "confusion.csv", csv_text(confusion))
    columns = [each.name for each in fields(Dispute)]
    rows = ([getattr(one, name) for name in columns] for one in found.disputes)
    write_atomically(folder / "disagreements.csv", csv_text([columns, *rows]))


def markdown(found: Audit) -> str:
    """The audit in words and tables."""
    questions = tuple(next(iter(found.scores.values())))
    lines = ["# Audit of the judges", ""]
    if questions != QUESTIONS:
        lines += ["Shares with Wilson's 95 % interval. What was left undecided is counted and left out."]
    else:
        lines += ["Shares with Wilson's 95 % interval. An adherence judgement is right only if the"]
        lines += ["instruction was applicable; what the judge left undecided is counted and left out."]
    for question in questions:
        lines += ["", f"## {question.capitalize()}"]
        if question == "adherence" and found.by_verdict:
            lines += ["", BY_VERDICT.format(found.by_verdict)]
        if found.agreement is not None:
            one = found.agreement[question]
            lines += [
                "",
                f"- the annotators agree on {show(one.same_label)}",
                f"- Cohen's kappa of their labels: {show_kappa(one.kappa)}",
                f"- of whether the judge is right, as the paper counts: {show_kappa(one.kappa_on_correctness)}",
            ]
        for name, each in found.scores.items():
            who = "Where both label alike" if name == AGREED else f"By the labels of {markdown_text(name)}"
            lines += ["", f"### {who}", ""]
            lines += _section(each[question])
    return "\n".join([*lines, "", f"Rows to discuss: {len(found.disputes)} (disagreements.csv)", ""])


def _section(one: Score) -> list[str]:
    words = list(next(iter(one.confusion.values())))
    lines = [
        f"- labelled {one.labelled}, not labelled {one.unlabelled}, undecided by the judge {one.undecided}",
        f"- accuracy {show(one.accuracy)}",
        f"- Cohen's kappa with the judge: {show_kappa(one.kappa)}",
    ]
    if one.llm_disagreed.of:
        disputed = one.llm_disagreed
        lines.append(f"- where rules and language model disagree, the labels side with the rules: {show(disputed)}")
    lines += ["", "| class | precision | recall |", "| --- | --- | --- |"]
    lines += [f"| {name} | {show(each.precision)} | {show(each.recall)} |" for name, each in one.classes.items()]
    lines += ["", f"| label \\ judged | {' | '.join(words)} |", "| --- |" + " --- |" * len(words)]
    lines += [f"| {label} | {' | '.join(map(str, each.values()))} |" for label, each in one.confusion.items()]
    lines += ["", "| group | accuracy |", "| --- | --- |"]
    groups = {**one.by_scope, **one.by_change, **one.by_category, **one.by_type, **one.by_language}
    groups |= {f"by {name}": each for name, each in one.by_judge.items()}
    return lines + [f"| {markdown_text(name)} | {show(each)} |" for name, each in groups.items()]


def show(one: Share) -> str:
    """`0.910 [0.838, 0.952] (91 of 100)`."""
    if one.value is None or one.low is None or one.high is None:
        return "—"
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}] ({one.count} of {one.of})"


def show_kappa(one: Kappa | None) -> str:
    """`0.709 [0.502, 0.916]`; a dash if all is one class."""
    return "—" if one is None else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
