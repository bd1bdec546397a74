"""Statistics of matched pairs: two entrants on the same tasks, in the same order."""

from collections.abc import Sequence
from typing import NamedTuple

from codechat.metrics.statistics import percentile_interval, rate
from codechat.report.data import Interval


class Agreement(NamedTuple):
    """How two entrants fare on the same tasks at one turn: the counts of a 2x2 table of matched pairs.

    With several samples of a task, the counts that are expected if one sample of each side is drawn.
    """

    both: float
    only_a: float
    only_b: float
    neither: float

    @classmethod
    def of(cls, a: Sequence[bool | None], b: Sequence[bool | None]) -> "Agreement":
        """Count the pairs that have two verdicts; both sequences hold the same tasks in the same order."""
        pairs = list(zip(a, b, strict=True))
        return cls(*(pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))

    @classmethod
    def expected(cls, shares: Sequence[tuple[float, float]]) -> "Agreement":
        """Of tasks of which these shares of the samples pass, of A and of B."""
        return cls(
            sum(a * b for a, b in shares),
            sum(a * (1 - b) for a, b in shares),
            sum((1 - a) * b for a, b in shares),
            sum((1 - a) * (1 - b) for a, b in shares),
        )

    @property
    def p(self) -> float | None:
        """McNemar's exact test, two-sided: whether the pairs that differ lean to one side; None without a pair."""
        from statsmodels.stats.contingency_tables import mcnemar

        return float(mcnemar([self[:2], self[2:]], exact=True).pvalue) if sum(self) else None

    @property
    def risk_difference(self) -> float | None:
        """The share that passes with A, minus the share that passes with B."""
        return rate(self.only_a - self.only_b, sum(self))

    @property
    def odds_ratio(self) -> float | None:
        """The odds ratio of matched pairs; None if no task speaks for B."""
        return rate(self.only_a, self.only_b)


class SignedRanks(NamedTuple):
    """Wilcoxon's signed-rank test of paired numbers, pairs without a difference left out.

    `p` is two-sided; `rank_biserial` is the effect size for matched pairs: 1 if every difference favours A, -1 if
    every one favours B. Both are None if no pair differs.
    """

    p: float | None
    rank_biserial: float | None


def signed_ranks(a: Sequence[float], b: Sequence[float]) -> SignedRanks:
    """Compare numbers of the same tasks in the same order."""
    from scipy.stats import wilcoxon

    differences = [x - y for x, y in zip(a, b, strict=True) if x != y]
    if not differences:
        return SignedRanks(None, None)
    ranks = len(differences) * (len(differences) + 1) / 2
    in_favour = float(wilcoxon(differences, alternative="greater", method="asymptotic").statistic)
    method = "exact" if len({abs(value) for value in differences}) == len(differences) <= 50 else "asymptotic"
    return SignedRanks(float(wilcoxon(differences, method=method).pvalue), 2 * in_favour / ranks - 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction over all tests of a family; a test that could not be made is None and takes no part."""
    from statsmodels.stats.multitest import multipletests

    known = [p for p in p_values if p is not None]
    corrected = iter(multipletests(known, method="holm")[1] if known else ())
    return [None if p is None else float(next(corrected)) for p in p_values]


def minus(a: float | None, b: float | None) -> float | None:
    """A minus B; None if either is missing."""
    return None if a is None or b is None else a - b


def difference(a: Sequence[float | None], b: Sequence[float | None]) -> Interval | None:
    """The 95 % interval of A minus B. Both hold the figure in the same resamples of the same tasks."""
    return Interval.of(percentile_interval(map(minus, a, b)))
