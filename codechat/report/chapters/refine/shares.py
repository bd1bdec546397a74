"""The interval of a plain share."""

from codechat.report.data import Interval


def wilson(hits: int, total: int) -> Interval | None:
    """Wilson's 95 % score interval, which holds for few trials and for shares near 0 and 1; None without a trial."""
    from statsmodels.stats.proportion import proportion_confint

    if not total:
        return None
    low, high = proportion_confint(hits, total, alpha=0.05, method="wilson")
    return Interval(float(low), float(high))
