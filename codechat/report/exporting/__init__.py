"""Records of a cell in the formats of other tools.

One file per format: a registered factory that reads the cell named by the config. Values that a cell lacks are left
out; nothing is invented.
"""

from collections.abc import Iterable, Mapping
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
        return Path(self.run) / "sessions.jsonl"


@dataclass(frozen=True, slots=True)
class Exported:
    """The file's text, a summary of the content, and remarks for the user. `suffix` is the file suffix that the other
    tool requires; empty if it takes any. A tool that reads a folder gets `files` in place of a text."""

    text: Iterable[str]
    counts: str
    remarks: list[str] = field(default_factory=list)
    suffix: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)


EXPORTS: Registry[Exported, NoTraits] = Registry(
    "export", "codechat.report.exporting", NoTraits, Exported, ExportConfig, key="format"
)

__all__ = ["EXPORTS", "ExportConfig", "Exported"]
