"""The endpoints that a cell met, as they described themselves."""

import json
from typing import NamedTuple, Self

INTO = "endpoints (place, base_url, said, fingerprints, met)"
ALL_MET = "SELECT place, base_url, said, fingerprints, met FROM endpoints ORDER BY met, rowid"
"""All that were met, the last one last."""


class Met(NamedTuple):
    """One endpoint that answered, or was about to answer, for the model at a place of the config.

    `said` is what it said of the model, as JSON; `fingerprints` are those of its replies; `met` is when it was met
    last, in seconds since 1970.
    """

    place: str
    base_url: str
    said: str
    fingerprints: tuple[str, ...]
    met: float

    def row(self) -> tuple[str | float, ...]:
        """The row of the table."""
        return (self.place, self.base_url, self.said, json.dumps(self.fingerprints), self.met)

    @classmethod
    def of(cls, row: tuple[str, str, str, str, float]) -> Self:
        """Read a row."""
        return cls(*row[:3], tuple(json.loads(row[3])), row[4])
