"""Metrics: from session records to numbers, as pure functions: the pieces that the studies' own metrics are made of.

`Measures` describes a protocol's metrics.json;
MLflow's points (`points_of`), the summary, tables, figures and the report are made from it.
"""

from codechat.report.metrics.caution import caution_of
from codechat.report.metrics.measures import Breakdown, Final, Measures, Series
from codechat.report.metrics.points import Point, headline_of, points_of
from codechat.report.metrics.spending import Effort, Price, spending_of, tokens_of

__all__ = [
    "Breakdown", "Effort", "Final", "Measures", "Point", "Price", "Series", "caution_of", "headline_of", "points_of",
    "spending_of", "tokens_of",
]  # fmt: skip
