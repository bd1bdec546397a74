"""The shared view of an experiment: MLflow opens on the charts that one came for, in their order.

MLflow keeps such a view as a tag of the experiment, and a link names it by its key. Without one it sorts its sections
by name, so that costs come first.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from codechat.files import content_hash
from codechat.tracking import FinishedCell

TAG = "mlflow.sharedViewState."
SECTIONS = ("turn", "final", "cost")
OPEN = ("turn", "final")


class View(NamedTuple):
    """A view's key, and its content as the tag holds it. Equal views have one key."""

    key: str
    content: str

    @property
    def tag(self) -> str:
        """The name of the experiment's tag."""
        return TAG + self.key


def view_of(cell: FinishedCell) -> View:
    """The headline first: its series over the turns, then its final figures; MLflow adds all others behind them."""
    state = {
        "compareRunCharts": list(_charts(cell)),
        "compareRunSections": [
            {"uuid": name, "name": name, "display": name in OPEN, "isReordered": True, "isGenerated": True}
            for name in SECTIONS
        ],
        "isAccordionReordered": True,
    }
    content = json.dumps(state, separators=(",", ":"))
    return View(f"codechat-{content_hash(content.encode())[:8]}", content)


def _charts(cell: FinishedCell) -> Iterator[dict[str, Any]]:
    """A chart for each headline figure that the cell has: a line over the turns, or a bar."""
    for key in cell.headline:
        steps = [point.step for point in cell.points if point.key == key]
        section, _, name = key.partition("/")
        if steps:
            yield {
                "type": "LINE" if max(steps) > 0 else "BAR",
                "uuid": key,
                "metricSectionId": section,
                "metricKey": key,
                "displayName": name,
                "runsCountToCompare": 10,
                "isGenerated": True,
                "deleted": False,
                **(LINE if max(steps) > 0 else {}),
            }


LINE = {
    "lineSmoothness": 0,
    "xAxisScaleType": "linear",
    "scaleType": "linear",
    "range": {},
    "xAxisKey": "step",
    "selectedXAxisMetricKey": "",
    "yAxisKey": "metric",
    "yAxisExpressions": [],
    "ignoreOutliers": False,
    "useGlobalXaxisKey": True,
    "useGlobalLineSmoothing": True,
}
"""How MLflow draws a line unless told otherwise: it takes a chart as it is given."""
