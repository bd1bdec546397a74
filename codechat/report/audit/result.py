"""The files of an audit: audit.json, audit.md, confusion.csv and the disagreements to discuss."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.spreadsheet import csv_text
from codechat.report.audit.kinds import UNDECIDED, Question, Row
from codechat.report.audit.labels import read_labels
from codechat.report.audit.scoring import Agreement, Item, Kappa, Score, Share, agreement, interval, items_of, score
from codechat.report.formats import markdown_text

AGREED = "agreed"
BY_VERDICT = (
    "{} rows were drawn by verdict and scope for the correction, not by their shares: the figures below are of these "
    "rows, not of all decisions. `codechat report … audit=DIR` weights them."
)


@dataclass(frozen=True, slots=True)
class Dispute:
    """A row to discuss: two annotators label it differently, or the labels contradict the judge."""

    question: str
    between: Literal["annotators", "labels and judge"]
    sample: str
    task_id: str
    turn: str
    instruction: str
    labels: str
    judged: str
    judge: str
    reason: str
    notes: str


@dataclass(frozen=True)
class Audit:
    """Scores by labels: one per annotator's file, and `agreed` by the rows that all annotators label alike.

    Both go by the questions' names; `pairs` has by two annotators' names (`ada, bob`) how far they agree.
    """

    questions: tuple[Question, ...]
    scores: Mapping[str, Mapping[str, Score]]
    pairs: Mapping[str, Mapping[str, Agreement]]
    disputes: tuple[Dispute, ...]
    by_verdict: int = 0
    """The number of rows that were drawn by verdict, for the correction of adherence."""


def audit(paths: list[Path]) -> Audit:
    """Score the labels of one annotator or of several. Raises `UserError` if a file is wrong or samples differ."""
    if twice := [path for number, path in enumerate(paths) if path in paths[:number]]:
        raise UserError(f"{twice[0]} is given twice", "give each annotator's file once: labels=FILE[,FILE]")
    files = [read_labels(path) for path in paths]
    rows = [{sample: row for sample, (_, row) in file.items()} for file in files]
    names = [path.stem for path in paths]
    if len({*names, AGREED}) <= len(names):
        names = [str(path) for path in paths]
    for path, file in zip(paths[1:], files[1:], strict=True):
        for sample, (line, _) in file.items():
            if sample not in files[0]:
                raise UserError(f"{path}:{line}: {paths[0]} has no such row", "all must label one and the same sample")
    questions = next(iter(rows[0].values())).kind.questions
    scores = {
        name: {question.name: score(list(each.values()), question) for question in questions}
        for name, each in zip(names, rows, strict=True)
    }
    pairs = {
        f"{one}, {two}": {question.name: agreement(first, second, question) for question in questions}
        for (one, first), (two, second) in combinations(zip(names, rows, strict=True), 2)
    }
    if pairs:
        scores[AGREED] = {question.name: score(_agreed_rows(rows, question), question) for question in questions}
    by_verdict = sum(row.columns.get("counts_for") == "correction" for row in rows[0].values())
    return Audit(questions, scores, pairs, tuple(_disputes(rows, questions)), by_verdict)


def _agreed_rows(rows: Sequence[Mapping[str, Row]], question: Question) -> list[Row]:
    """The first annotator's rows that have the same label as all others'."""
    first, *others = _items_by_annotator(rows, question)
    return [
        item.row
        for sample, item in first.items()
        if all(sample in other and other[sample].label == item.label for other in others)
    ]


def _items_by_annotator(rows: Sequence[Mapping[str, Row]], question: Question) -> list[dict[str, Item]]:
    return [{item.row["sample"]: item for item in items_of(each.values(), question)} for each in rows]


def _disputes(rows: Sequence[Mapping[str, Row]], questions: Sequence[Question]) -> Iterator[Dispute]:
    for question in questions:
        first, *others = _items_by_annotator(rows, question)
        for sample, item in first.items():
            items = [item, *(other[sample] for other in others if sample in other)]
            if len({each.label for each in items}) > 1:
                yield _dispute(question, items, "annotators")
            elif not item.right and item.judged != UNDECIDED:
                yield _dispute(question, items, "labels and judge")


def _dispute(question: Question, items: Sequence[Item], between: Literal["annotators", "labels and judge"]) -> Dispute:
    item = items[0]
    row = item.row
    return Dispute(
        question=question.name,
        between=between,
        sample=row["sample"],
        task_id=row["task_id"],
        turn=row["turn"],
        instruction=row[row.kind.wording],
        labels=" / ".join(dict.fromkeys(one.label for one in items)),
        judged=item.judged,
        judge=item.judge,
        reason=item.reason,
        notes=" / ".join(one.row["note"] for one in items if one.row["note"]),
    )


def write_audit(found: Audit, folder: Path) -> None:
    """Write all files, replacing those of an earlier scoring."""
    pairs = {pair: {question: asdict(one) for question, one in each.items()} for pair, each in found.pairs.items()}
    values = {
        "scores": {name: {q: _values(one) for q, one in each.items()} for name, each in found.scores.items()},
        "agreement": next(iter(pairs.values())) if len(pairs) == 1 else None,
        "pairs": pairs,
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


def _values(one: Score) -> dict[str, Any]:
    values = asdict(one)
    return values | {f"by_{name}": shares for name, shares in values.pop("groups").items()}


def markdown(found: Audit) -> str:
    """The audit in words and tables."""
    lines = ["# Audit of the judges", ""]
    if not any(each.after for each in found.questions):
        lines += ["Shares with Wilson's 95 % interval. What was left undecided is counted and left out."]
    else:
        lines += ["Shares with Wilson's 95 % interval. An adherence judgement is right only if the"]
        lines += ["instruction was applicable; what the judge left undecided is counted and left out."]
    for question in (each.name for each in found.questions):
        lines += ["", f"## {question.capitalize()}"]
        if question == "adherence" and found.by_verdict:
            lines += ["", BY_VERDICT.format(found.by_verdict)]
        for pair, agreed in found.pairs.items():
            one, who = agreed[question], "the annotators" if len(found.pairs) == 1 else markdown_text(pair)
            lines += [
                "",
                f"- {who} agree on {show(one.same_label)}",
                f"- Cohen's kappa of their labels: {show_kappa(one.kappa)}",
                f"- of whether the judge is right, as the paper counts: {show_kappa(one.kappa_on_correctness)}",
            ]
        for name, each in found.scores.items():
            who = (
                f"Where {'both' if len(found.pairs) == 1 else 'all'} label alike"
                if name == AGREED
                else f"By the labels of {markdown_text(name)}"
            )
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
    shares = {
        f"by {name}" if group == "judge" else name: share
        for group, each in one.groups.items() for name, share in each.items()
    }  # fmt: skip
    return lines + [f"| {markdown_text(name)} | {show(share)} |" for name, share in shares.items()]


def show(one: Share) -> str:
    """`0.910 [0.838, 0.952] (91 of 100)`."""
    if one.value is None or one.low is None or one.high is None:
        return "—"
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}] ({one.count} of {one.of})"


def show_kappa(one: Kappa | None) -> str:
    """`0.709 [0.502, 0.916]`; a dash if all is one class."""
    return "—" if one is None else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


def read_scores(folder: Path) -> dict[str, dict[str, Any]]:
    """What people's labels come to by question, from the audit.json of a folder; empty if there is none.

    `labelled` by group (`all`, and each group that the question is scored by) has the mean share over the annotators,
    how many labels it rests on, and Wilson's interval for as many rows as they label in common. `same` and `kappa` are
    means over the pairs of annotators, None without a pair; `kappa_interval` is that of a single pair.
    """
    try:
        values = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    own = [each for name, each in values["scores"].items() if name != AGREED]
    known: dict[str, Mapping[str, Any]] = values.get("pairs") or {"both": values.get("agreement") or {}}
    found = {}
    for question in own[0]:
        pairs = [each[question] for each in known.values() if question in each]
        kappas = [pair["kappa"] for pair in pairs if pair["kappa"]]
        same = [pair["same_label"]["value"] for pair in pairs if pair["same_label"]["value"] is not None]
        found[question] = {
            "labelled": _pooled([each[question] for each in own]),
            "same": fmean(same) if same else None,
            "kappa": fmean(each["value"] for each in kappas) if kappas else None,
            "kappa_interval": [kappas[0]["low"], kappas[0]["high"]] if len(kappas) == len(pairs) == 1 else None,
        }
    return found


def _pooled(scores: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The annotators' shares together, by group."""
    groups = [
        {"all": each["accuracy"], **each.get("by_category", {}), **each.get("by_language", {})} for each in scores
    ]
    found = {}
    for name in dict.fromkeys(name for each in groups for name in each):
        shares = [each[name] for each in groups if name in each]
        count, of = (sum(share[key] for share in shares) for key in ("count", "of"))
        low, high = interval(count / len(shares), of / len(shares)) if of else (None, None)
        found[name] = {"count": count, "of": of, "value": count / of if of else None, "low": low, "high": high}
    return found
