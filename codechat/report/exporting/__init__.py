"""Records of a cell in the formats of other tools.

One file per format: a registered factory that reads the cell which its config names. What a cell does not hold is left
out; nothing is invented.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from codechat.base.config import Config, original_option, place_option
from codechat.base.registry import NoTraits, Registry


class ExportConfig(Config):
    """Options every format has."""

    format: str = original_option(..., "the tool that is to read it")
    run: str = place_option(..., "the cell's folder", min_length=1)

    @property
    def sessions(self) -> Path:
        """The file of the cell's records."""
        return Path(self.run) / "sessions.jsonl"


@dataclass(frozen=True, slots=True)
class Exported:
    """The file's text, what is in it in words, and what a user should know of it.

    `suffix` is that of the only names by which the other tool opens such a file; empty if it takes any.
    """

    text: Iterable[str]
    counts: str
    remarks: list[str] = field(default_factory=list)
    suffix: str = ""


EXPORTS: Registry[Exported, NoTraits] = Registry(
    "export", "codechat.report.exporting", NoTraits, Exported, ExportConfig, key="format"
)

__all__ = ["EXPORTS", "ExportConfig", "Exported"]
