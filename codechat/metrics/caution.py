"""Whether a cell's figures rest on enough turns."""

from collections.abc import Mapping
from typing import Any

MOST = 0.2
"""A larger share of follow-up turns that were skipped or undecided is told before any figure."""


def caution_of(metrics: Mapping[str, Any]) -> str:
    """What to know before reading the figures of a metrics.json; empty if nothing.

    A skipped turn repeats the code of the turn before, so that Pass@1 and sustained turns look better than they are.
    """
    skipped, undecided = (metrics.get(name) for name in ("skipped_turns", "undecided"))
    curve, completed = metrics.get("pass_at_1"), metrics.get("completed")
    if not (isinstance(skipped, int) and isinstance(undecided, int) and isinstance(completed, int) and curve):
        return ""
    turns = completed * (len(curve) - 1)
    if skipped + undecided <= MOST * turns:
        return ""
    return (
        f"{skipped + undecided} of {turns} follow-up turns were skipped ({skipped}) or undecided ({undecided}): "
        "the figures rest on the others, and skipped turns repeat the verdict before them"
    )
