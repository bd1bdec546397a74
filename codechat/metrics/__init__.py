"""Metrics: from session records to numbers, as pure functions. One file per protocol, and the pieces they share.

`refine_metrics` makes the content of a refinement cell's metrics.json, `refine_points` what of it MLflow draws.
"""

from codechat.metrics.points import Point, refine_points
from codechat.metrics.refine import RefineMetrics, refine_metrics
from codechat.metrics.spending import Price

__all__ = ["Point", "Price", "RefineMetrics", "refine_metrics", "refine_points"]
