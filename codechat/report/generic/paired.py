"""Two models on the same tasks: a task that is hard for one is often hard for the other, so tests are paired."""

from collections.abc import Sequence
from dataclasses import dataclass

from codechat.metrics.statistics import percentile_interval, rate
from codechat.report.data import Interval


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two entrants fare on the same tasks at one turn: the counts of a 2x2 table of matched pairs."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @classmethod
    def of(cls, a: Sequence[bool | None], b: Sequence[bool | None]) -> "Agreement":
        """Count the pairs that have two verdicts; both sequences hold the same tasks in the same order."""
        pairs = list(zip(a, b, strict=True))
        return cls(*(pairs.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))))

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def p(self) -> float | None:
        """McNemar's exact test, two-sided: whether the pairs that differ lean to one side; None without a pair."""
        from statsmodels.stats.contingency_tables import mcnemar

        if not self.pairs:
            return None
        return float(mcnemar([[self.both, self.only_a], [self.only_b, self.neither]], exact=True).pvalue)

    @property
    def risk_difference(self) -> float | None:
        """The share that passes with A, minus the share that passes with B."""
        return rate(self.only_a - self.only_b, self.pairs)

    @property
    def odds_ratio(self) -> float | None:
        """The odds ratio of matched pairs; None if no task speaks for B."""
        return rate(self.only_a, self.only_b)


@dataclass(frozen=True, slots=True)
class SignedRanks:
    """Wilcoxon's signed-rank test of paired numbers, pairs without a difference left out.

    `p` is two-sided; `rank_biserial` is the effect size for matched pairs: 1 where every difference favours A, -1 where
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


def difference(a: Sequence[float | None], b: Sequence[float | None]) -> Interval | None:
    """The 95 % interval of A minus B. Both hold the figure in the same resamples of the same tasks."""
    pairs = zip(a, b, strict=True)
    return Interval.of(percentile_interval(None if x is None or y is None else x - y for x, y in pairs))
