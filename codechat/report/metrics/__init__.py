"""Metrics: from session records to numbers, as pure functions, from which the studies make their metrics.

`Measures` describes a protocol's metrics.json. MLflow's points, the summary, tables, figures and the report follow.
"""

from codechat.models.prices import Price
from codechat.report.metrics.counts import caution_of
from codechat.report.metrics.measures import Breakdown, Final, Measures, Point, Series, headline_of, points_of
from codechat.report.metrics.spending import Effort, spending_of, tokens_of

__all__ = [
    "Breakdown", "Effort", "Final", "Measures", "Point", "Price", "Series", "caution_of", "headline_of", "points_of",
    "spending_of", "tokens_of",
]  # fmt: skip
