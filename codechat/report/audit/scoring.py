"""Score the judges against people's labels (paper IV-D): accuracy, precision and recall, agreement.

Undecided judgements are counted but left out of the scores: they are not wrong. An adherence judgement is right
only if the instruction was applicable, so its label is one of adhered, violated and inapplicable. All intervals are at
95 %: Wilson's for shares, asymptotic for Cohen's kappa.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from codechat.report.audit.kinds import UNDECIDED, Question, Row


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
    all is one class. `groups` holds the accuracy by group and value, that of each judge under `judge`.
    `llm_disagreed` counts the rules' decisions that a language model contradicted, and those of them in which the
    labels agree with the rules.
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
        """Whether the judgement is the label."""
        return self.label == self.judged


def items_of(rows: Iterable[Row], question: Question) -> list[Item]:
    """The labelled rows among those that count for a question."""
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
    return Score(
        labelled=len(items),
        unlabelled=sum(row.asked(question) for row in rows) - len(items),
        undecided=len(items) - len(decided),
        accuracy=_accuracy(decided),
        classes={name: _class_score(decided, name) for name in question.words},
        kappa=kappa([(item.label, item.judged) for item in decided]),
        confusion=_confusion(items, question),
        groups={
            **{group: _by([(item.row[group], item) for item in decided]) for group in groups},
            "judge": _by([(item.judge, item) for item in decided]),
        },
        llm_disagreed=_accuracy([item for item in decided if disputed and item.reason.startswith(disputed)]),
    )


def agreement(first: Mapping[str, Row], second: Mapping[str, Row], question: Question) -> Agreement:
    """Two annotators' agreement on the rows that both labelled."""
    other = {item.row["sample"]: item for item in items_of(second.values(), question)}
    mine = items_of(first.values(), question)
    both = [(item, other[item.row["sample"]]) for item in mine if item.row["sample"] in other]
    decided = [pair for pair in both if pair[0].judged != UNDECIDED]
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


def _confusion(items: Sequence[Item], question: Question) -> dict[str, dict[str, int]]:
    labels = [*question.words, *([question.otherwise] if question.otherwise else [])]
    counts = Counter((item.label, item.judged) for item in items)
    return {label: {word: counts[label, word] for word in (*question.words, UNDECIDED)} for label in labels}


def _by(items: Sequence[tuple[str, Item]]) -> dict[str, Share]:
    """The accuracy by group; each item comes with its own."""
    return {name: _accuracy([item for own, item in items if own == name]) for name in sorted({own for own, _ in items})}
