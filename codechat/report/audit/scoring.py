"""Score the judges against people's labels (paper IV-D), and write the results.

Undecided judgements are counted but left out of the scores: they are not wrong. An adherence judgement is right only
if the instruction was applicable, so its label is one of adhered, violated and inapplicable. All intervals are at
95 %: Wilson's for shares, asymptotic for Cohen's kappa. The files are audit.json, audit.md, confusion.csv and
disagreements.csv.
"""

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.spreadsheet import csv_text
from codechat.base.texts import read_json
from codechat.report.audit.kinds import UNDECIDED, Question, Row, read_labels
from codechat.report.formats import markdown_text
from codechat.report.metrics.statistics import rate, wilson

AGREED = "agreed"
BY_VERDICT = (
    "{} rows were drawn by verdict and scope for the correction, not by their shares: the figures below are of these "
    "rows, not of all decisions. `codechat report … audit=DIR` weights them."
)


@dataclass(frozen=True, slots=True)
class Share:
    """The share `count / of`; the value and its interval are None if `of` is 0."""

    count: int
    of: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa over n items, with its interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class ClassScore:
    """The shares of right rows: precision among rows judged as the class, recall among rows labelled as the class."""

    precision: Share
    recall: Share


@dataclass(frozen=True)
class Score:
    """The score of one question by one set of labels.

    `confusion[label][judged]` counts rows, undecided ones included. `kappa` compares judge and labels, None if all is
    one class. `groups` holds the accuracy by group and value, and by judge under `judge`. `llm_disagreed` counts the
    rules' decisions that a language model contradicted, and how many of them the labels confirm.
    """

    labelled: int
    unlabelled: int
    undecided: int
    accuracy: Share
    classes: dict[str, ClassScore]
    kappa: Kappa | None
    confusion: dict[str, dict[str, int]]
    groups: dict[str, dict[str, Share]]
    llm_disagreed: Share


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two annotators' agreement on one question: on the label and, as in the paper, on whether the judge is right."""

    same_label: Share
    kappa: Kappa | None
    kappa_on_correctness: Kappa | None


@dataclass(frozen=True, slots=True)
class Item:
    """A labelled row of one question."""

    row: Row
    label: str
    judged: str
    judge: str
    reason: str

    @property
    def right(self) -> bool:
        return self.label == self.judged


def items_of(rows: Iterable[Row], question: Question) -> list[Item]:
    """The labelled rows that count for a question."""
    return [
        Item(row, label, row[question.judged], row[question.judge], row[question.reason])
        for row in rows
        if row.asked(question) and (label := row.answer(question))
    ]


def score(rows: Sequence[Row], question: Question) -> Score:
    """The judges' score by one set of labels."""
    items = items_of(rows, question)
    decided = [item for item in items if item.judged != UNDECIDED]
    groups, disputed = (rows[0].kind.groups, rows[0].kind.disputed) if rows else ((), "")
    labels = [*question.words, *([question.otherwise] if question.otherwise else [])]
    counts = Counter((item.label, item.judged) for item in items)
    classes = {}
    for name in question.words:
        hits, judged = counts[name, name], sum(item.judged == name for item in decided)
        classes[name] = ClassScore(share(hits, judged), share(hits, sum(item.label == name for item in decided)))
    return Score(
        labelled=len(items),
        unlabelled=sum(row.asked(question) for row in rows) - len(items),
        undecided=len(items) - len(decided),
        accuracy=_accuracy(decided),
        classes=classes,
        kappa=kappa([(item.label, item.judged) for item in decided]),
        confusion={label: {word: counts[label, word] for word in (*question.words, UNDECIDED)} for label in labels},
        groups={
            **{group: _by([(item.row[group], item) for item in decided]) for group in groups},
            "judge": _by([(item.judge, item) for item in decided]),
        },
        llm_disagreed=_accuracy([item for item in decided if disputed and item.reason.startswith(disputed)]),
    )


def agreement(first: Mapping[str, Row], second: Mapping[str, Row], question: Question) -> Agreement:
    """Two annotators' agreement on the rows that both labelled."""
    other = {item.row["sample"]: item for item in items_of(second.values(), question)}
    items = items_of(first.values(), question)
    both = [(item, other[item.row["sample"]]) for item in items if item.row["sample"] in other]
    decided = [pair for pair in both if pair[0].judged != UNDECIDED]
    return Agreement(
        share(sum(one.label == two.label for one, two in both), len(both)),
        kappa([(one.label, two.label) for one, two in both]),
        kappa([(one.right, two.right) for one, two in decided]),
    )


def share(count: int, of: int) -> Share:
    """A share with Wilson's interval."""
    return Share(count, of, rate(count, of), *(wilson(count, of) or ()))


def kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> Kappa | None:
    """Cohen's kappa of two raters; None if both use only the same single class, because chance explains it all. If one
    of them uses only one class it is 0, and its interval has no width."""
    classes = sorted({one for pair in pairs for one in pair}, key=str)
    if len(classes) < 2:
        return None
    import numpy
    from statsmodels.stats.inter_rater import cohens_kappa

    counts = Counter(pairs)
    with numpy.errstate(invalid="ignore", divide="ignore"):  # its test statistic, not used here, may have no variance
        found = cohens_kappa([[counts[row, column] for column in classes] for row in classes])
    return Kappa(float(found.kappa), float(found.kappa_low), float(found.kappa_upp), len(pairs))


def _accuracy(items: Sequence[Item]) -> Share:
    return share(sum(item.right for item in items), len(items))


def _by(items: Sequence[tuple[str, Item]]) -> dict[str, Share]:
    """The accuracy by group; each item comes with its group."""
    names = sorted({name for name, _ in items})
    return {name: _accuracy([item for group, item in items if group == name]) for name in names}


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

    `scores` and `pairs` map names to results by question; a pair's name is two annotators' names (`ada, bob`).
    `by_verdict` is the number of rows that were drawn by verdict, for the correction of adherence.
    """

    questions: tuple[Question, ...]
    scores: Mapping[str, Mapping[str, Score]]
    pairs: Mapping[str, Mapping[str, Agreement]]
    disputes: tuple[Dispute, ...]
    by_verdict: int = 0


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


def _labelled(rows: Sequence[Mapping[str, Row]], question: Question) -> Iterator[list[Item]]:
    """By the first annotator's labelled rows, the items of all annotators who labelled the row."""
    first, *others = [{item.row["sample"]: item for item in items_of(each.values(), question)} for each in rows]
    yield from ([item, *(other[sample] for other in others if sample in other)] for sample, item in first.items())


def _agreed_rows(rows: Sequence[Mapping[str, Row]], question: Question) -> list[Row]:
    """The rows that all annotators label alike."""
    every = _labelled(rows, question)
    return [items[0].row for items in every if len(items) == len(rows) and len({each.label for each in items}) == 1]


def _disputes(rows: Sequence[Mapping[str, Row]], questions: Sequence[Question]) -> Iterator[Dispute]:
    for question, items in ((each, items) for each in questions for items in _labelled(rows, each)):
        item, row, differ = items[0], items[0].row, len({each.label for each in items}) > 1
        if differ or (not item.right and item.judged != UNDECIDED):
            yield Dispute(
                question=question.name,
                between="annotators" if differ else "labels and judge",
                **{name: row[name] for name in ("sample", "task_id", "turn")},
                instruction=row[row.kind.wording],
                labels=" / ".join(dict.fromkeys(each.label for each in items)),
                judged=item.judged,
                judge=item.judge,
                reason=item.reason,
                notes=" / ".join(each.row["note"] for each in items if each.row["note"]),
            )


def write_audit(found: Audit, folder: Path) -> None:
    """Write all files, and replace the files of an earlier scoring."""
    pairs = {pair: {question: asdict(one) for question, one in each.items()} for pair, each in found.pairs.items()}

    def values_of(one: Score) -> dict[str, Any]:
        values = asdict(one)
        return values | {f"by_{name}": shares for name, shares in values.pop("groups").items()}

    values = {
        "scores": {name: {q: values_of(one) for q, one in each.items()} for name, each in found.scores.items()},
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


def markdown(found: Audit) -> str:
    """The audit in words and tables."""
    lines = ["# Audit of the judges", "", "Shares with Wilson's 95 % interval. Undecided judgements are only counted."]
    if any(each.after for each in found.questions):
        lines += ["An adherence judgement is right only if the instruction was applicable."]
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
    if (disputed := one.llm_disagreed).of:
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
    """The results of people's labels by question, from the audit.json of a folder; empty if there is none.

    `labelled` has by group (`all`, and each group of the question) the mean share over the annotators, the number of
    labels, and Wilson's interval for the rows of one annotator on average. `same` and `kappa` are means over the pairs
    of annotators, None without a pair; `kappa_interval` exists for a single pair.
    """
    try:
        values = read_json((folder / "audit.json").read_bytes())
    except (OSError, ValueError):
        return {}
    scores = [each for name, each in values["scores"].items() if name != AGREED]
    known: dict[str, Mapping[str, Any]] = values.get("pairs") or {"both": values.get("agreement") or {}}
    found = {}
    for question in scores[0]:
        pairs = [each[question] for each in known.values() if question in each]
        kappas = [pair["kappa"] for pair in pairs if pair["kappa"]]
        same = [pair["same_label"]["value"] for pair in pairs if pair["same_label"]["value"] is not None]
        found[question] = {
            "labelled": _pooled([each[question] for each in scores]),
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
        low, high = wilson(count / len(shares), of / len(shares)) or (None, None)
        found[name] = {"count": count, "of": of, "value": rate(count, of), "low": low, "high": high}
    return found
