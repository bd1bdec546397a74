"""`upload run=DIR`: sends a finished cell to MLflow, if that was not possible when it ended."""

from collections.abc import Sequence
from pathlib import Path

from codechat.base.errors import UserError
from codechat.cli.cell_view import show_tracked
from codechat.cli.terminal import parse_words
from codechat.report.tracking import TRACKING, TrackingError, read_tracking
from codechat.run.settings.compose import compose

SETTINGS = {"run": "the folder of a finished cell"}


def upload(words: Sequence[str]) -> int:
    """Run the command; returns 0. Raises `UserError`, also if the store still cannot be reached."""
    chosen = [word for word in words if word.partition("=")[0].split(".")[0] == "tracking"]
    given = parse_words(
        [word for word in words if word not in chosen],
        {**SETTINGS, "tracking.uri": "the store", "tracking.experiment": "the experiment"},
        required=SETTINGS,
    )
    config = compose(chosen).config.tracking
    cell = read_tracking(Path(given["run"]))
    try:
        tracked = TRACKING.build(config).log(cell)
    except TrackingError as error:
        raise UserError(f"not uploaded: {error}", "start the store, or name another: tracking.uri=…") from error
    if tracked is None:
        raise UserError("tracking=none keeps nothing", "leave it out, or name a store: tracking.uri=…")
    show_tracked(tracked)
    return 0
