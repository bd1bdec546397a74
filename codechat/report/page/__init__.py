"""The report as one HTML file that needs no network: its sections, and every dialogue to read."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

from codechat.files import write_atomically
from codechat.report.data import ReportData
from codechat.report.page.archive import Archive, archive
from codechat.report.page.document import document
from codechat.report.study import LoadedCell

__all__ = ["write_page"]

MOST_BYTES = 52_000_000  # of packed sessions; the page as a whole stays below 60 MB
LIMITS = (None, 16_000, 6_000, 2_000)  # characters of a text that are kept, tried until the page is small enough


def write_page(report: ReportData, out: Path) -> Path:
    """Write `index.html` into the folder `out`, and give its path.

    The same report gives the same bytes. If all dialogues together are too much for a browser, long texts keep their
    two ends, and the page says so. Raises `UserError` if a cell cannot be read or the page not be written.
    """
    path = out / "index.html"
    write_atomically(path, document(_packed(report.cells), report))
    return path


def _packed(cells: Sequence[LoadedCell]) -> Archive:
    """All sessions, with texts as long as the page can bear."""
    bounds = [(limit, inf if limit == LIMITS[-1] else MOST_BYTES) for limit in LIMITS]
    tried = (archive((cell.sessions() for cell in cells), limit, most) for limit, most in bounds)
    return next(found for found in tried if found is not None)
