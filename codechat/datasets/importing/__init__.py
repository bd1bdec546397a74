"""Import published completions as recorded sessions, so that a replay can be compared with results from elsewhere.

One file per format: a registered factory that reads the sources which its config names. Values that a source lacks stay
null or zero; nothing is invented.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from codechat.base.config import Config, original_option, place_option
from codechat.base.records import SessionRecord
from codechat.base.registry import Registry


class ImportConfig(Config):
    """Options every format has."""

    format: str = original_option(..., "what the source is")
    source: str = place_option(..., "the published completions of one mode of one model", min_length=1)
    tasks: str | None = place_option(None, "the task file, if no fitting one is in the source's folder", min_length=1)
    model: str | None = original_option(
        None, "the model's name for the records, if the file's name does not have it", min_length=1
    )


@dataclass(frozen=True, slots=True)
class Imported:
    """The sessions, the other files that were read, and what a user should know of the source.

    A source with several models or datasets has `parts`: the same sessions by the name of the file that each goes to.
    """

    sessions: list[SessionRecord]
    companions: list[Path]
    remarks: list[str] = field(default_factory=list)
    parts: dict[str, list[SessionRecord]] = field(default_factory=dict)


def nothing(config: Any) -> Iterable[str]:
    """No remarks."""
    return ()


@dataclass(frozen=True)
class FormatTraits:
    """`preview` gives the remarks that are said before the source is converted, such as how its columns are read."""

    preview: Callable[[Any], Iterable[str]] = nothing


FORMATS: Registry[Imported, FormatTraits] = Registry(
    "format", "codechat.datasets.importing", FormatTraits, Imported, ImportConfig, key="format"
)

__all__ = ["FORMATS", "FormatTraits", "ImportConfig", "Imported"]
