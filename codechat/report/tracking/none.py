"""No tracking: only the cell's folder."""

from typing import Literal

from codechat.base.config import Config, run_option
from codechat.report.tracking import TRACKING, FinishedCell, Tracker


class NoTrackingConfig(Config):
    """No options."""

    kind: Literal["none"] = run_option("none", "where the cell's metrics are sent")


class NoTracker:
    """Does not track."""

    def log(self, cell: FinishedCell) -> None:
        """Do nothing: the cell's records and metrics.json are already written."""


@TRACKING.register("none", NoTrackingConfig)
def no_tracker(config: NoTrackingConfig) -> Tracker:
    """Track nowhere: only the cell's folder is kept."""
    return NoTracker()
