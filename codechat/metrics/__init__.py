"""Metrics: from session records to numbers, as pure functions. One file per protocol, and the pieces they share.

`refine_metrics` makes the content of a refinement cell's metrics.json. `Measures` describes a protocol's metrics.json;
MLflow's points (`points_of`), the summary, tables, figures and the report are made from it.
"""

from codechat.metrics.caution import caution_of
from codechat.metrics.measures import Breakdown, Final, Measures, Series
from codechat.metrics.points import Point, headline_of, points_of
from codechat.metrics.refine import RefineMetrics, refine_metrics
from codechat.metrics.refine_measures import REFINE
from codechat.metrics.spending import Effort, Price, spending_of, tokens_of

__all__ = [
    "REFINE",
    "Breakdown",
    "Effort",
    "Final",
    "Measures",
    "Point",
    "Price",
    "RefineMetrics",
    "Series",
    "caution_of",
    "headline_of",
    "points_of",
    "refine_metrics",
    "spending_of",
    "tokens_of",
]
