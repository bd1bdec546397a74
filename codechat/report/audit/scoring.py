"""Score the judges against people's labels (paper IV-D): accuracy, precision and recall, agreement.

Undecided judgements are counted but left out of the scores: they are not wrong. An adherence judgement is right
only if the instruction was applicable, so its label is one of adhered, violated and inapplicable. All intervals are at
95 %: Wilson's for shares, asymptotic for Cohen's kappa.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from codechat.report.audit.labels import LabelRow, Row
from codechat.studies.refine.judge_hybrid import DISAGREES

Question = str
"""The question that a judge answered: one of `QUESTIONS`, or that of a row's kind."""
QUESTIONS: tuple[Question, ...] = ("applicability", "adherence")
"""The questions about instructions."""
_UNDECIDED = "undecided"


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
    """Precision is the share of right rows among those judged as the class, recall that among those labelled as it."""

    precision: Share
    recall: Share


@dataclass(frozen=True)
class Score:
    """The score of one question by one set of labels.

    `confusion[label][judged]` counts rows, undecided ones included. `kappa` is that of judge and labels, None if
    all is one class. `llm_disagreed` counts the rules' decisions that a language model contradicted, and those of
    them in which the labels agree with the rules.
    """

    labelled: int
    unlabelled: int
    undecided: int
    accuracy: Share
    classes: dict[str, ClassScore]
    kappa: Kappa | None
    confusion: dict[str, dict[str, int]]
    by_scope: dict[str, Share] = field(default_factory=dict)
    by_change: dict[str, Share] = field(default_factory=dict)
    by_category: dict[str, Share] = field(default_factory=dict)
    by_type: dict[str, Share] = field(default_factory=dict)
    by_language: dict[str, Share] = field(default_factory=dict)
    by_judge: dict[str, Share] = field(default_factory=dict)
    llm_disagreed: Share = Share(0, 0)


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
        """Whether the judgement is the label."""
        return self.label == self.judged


def questions_of(rows: Iterable[Row]) -> tuple[Question, ...]:
    """The questions about these rows, which are of one kind."""
    row = next(iter(rows))
    return QUESTIONS if isinstance(row, LabelRow) else (row.question,)


def asked_of(rows: Iterable[Row], question: Question) -> list[Row]:
    """The rows that were drawn for a question and were judged on it, labelled or not."""
    if question not in QUESTIONS:
        return [*rows]
    kinds = ("both", question, *(("correction",) if question == "adherence" else ()))
    drawn = [row for row in rows if isinstance(row, LabelRow) and row.counts_for in kinds]
    return [row for row in drawn if question == "applicability" or row.judge_adherence]


def items_of(rows: Iterable[Row], question: Question) -> list[Item]:
    """The labelled rows among those that were drawn for a question."""
    items: list[Item] = []
    for row in asked_of(rows, question):
        if not isinstance(row, LabelRow):
            items += [Item(row, row.given_label, row.decision, row.judge, row.judge_reason)] if row.given_label else []
        elif question == "applicability" and row.applicable:
            items.append(Item(row, row.applicable, row.judge_applicable, row.judge, row.judge_reason))
        elif question == "adherence" and (label := row.true_adherence) is not None:
            items.append(Item(row, label, row.judge_adherence, row.adherence_judge, row.adherence_reason))
    return items


def score(rows: Sequence[Row], question: Question) -> Score:
    """The judges' score by one set of labels."""
    items = items_of(rows, question)
    decided = [item for item in items if item.judged != _UNDECIDED]
    disputed = [item for item in decided if item.reason.startswith(DISAGREES)]
    return Score(
        labelled=len(items),
        unlabelled=len(asked_of(rows, question)) - len(items),
        undecided=len(items) - len(decided),
        accuracy=_accuracy(decided),
        classes={name: _class_score(decided, name) for name in _classes_of(question)},
        kappa=kappa([(item.label, item.judged) for item in decided]),
        confusion=_confusion(items, question),
        by_scope=_by(decided, lambda item: item.row.groups.get("scope")),
        by_change=_by(decided, lambda item: item.row.groups.get("change")),
        by_category=_by(decided, lambda item: item.row.groups.get("category")),
        by_type=_by(decided, lambda item: item.row.groups.get("type")),
        by_language=_by(decided, lambda item: item.row.groups.get("language")),
        by_judge=_by(decided, lambda item: item.judge),
        llm_disagreed=_accuracy(disputed),
    )


def agreement(first: Mapping[str, Row], second: Mapping[str, Row], question: Question) -> Agreement:
    """Two annotators' agreement on the rows that both labelled."""
    other = {item.row.sample: item for item in items_of(second.values(), question)}
    mine = items_of(first.values(), question)
    both = [(item, other[item.row.sample]) for item in mine if item.row.sample in other]
    decided = [pair for pair in both if pair[0].judged != _UNDECIDED]
    return Agreement(
        share(sum(one.label == two.label for one, two in both), len(both)),
        kappa([(one.label, two.label) for one, two in both]),
        kappa([(one.right, two.right) for one, two in decided]),
    )


def share(count: int, of: int) -> Share:
    """A share with Wilson's interval."""
    return Share(count, of, count / of, *interval(count, of)) if of else Share(count, of)


def interval(count: float, of: float) -> tuple[float, float]:
    """Wilson's interval of the share `count / of`."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(count, of, method="wilson")
    return float(low), float(high)


def kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> Kappa | None:
    """Cohen's kappa of two raters; None if both use only the same single class, because chance explains it all.

    If one of them uses only one class it is 0, and its interval has no width.
    """
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


def _class_score(items: Sequence[Item], name: str) -> ClassScore:
    hits = sum(item.label == item.judged == name for item in items)
    judged, true = sum(item.judged == name for item in items), sum(item.label == name for item in items)
    return ClassScore(share(hits, judged), share(hits, true))


def _classes_of(question: Question) -> tuple[str, str]:
    return ("adhered", "violated") if question == "adherence" else ("yes", "no")


def _confusion(items: Sequence[Item], question: Question) -> dict[str, dict[str, int]]:
    classes = _classes_of(question)
    labels = [*classes, *(("inapplicable",) if question == "adherence" else ())]
    counts = Counter((item.label, item.judged) for item in items)
    return {label: {word: counts[label, word] for word in (*classes, _UNDECIDED)} for label in labels}


def _by(items: Sequence[Item], group: Callable[[Item], str | None]) -> dict[str, Share]:
    names = sorted({name for item in items if (name := group(item)) is not None})
    return {name: _accuracy([item for item in items if group(item) == name]) for name in names}
