"""What studies add to commands: topics of `codechat list` and folders of `codechat cache`, in files `commands.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from codechat.base.plugins import import_study_files


@dataclass(frozen=True)
class Section:
    """A part of a listing: a heading with words after it, and rows below named columns, or pairs without names.

    `lines` are printed as they are.
    """

    heading: str = ""
    words: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Listing:
    """The sections of a topic; `faulty` if what was listed has mistakes, so that the command exits with 2."""

    sections: Sequence[Section]
    faulty: bool = False


@dataclass(frozen=True)
class CacheContents:
    """What a cache holds or what was removed from it: bytes, and by their names the numbers of things."""

    path: Path
    size: int
    counts: Mapping[str, int]


@dataclass(frozen=True)
class StudyCache:
    """A folder of a study below the cache's root."""

    contents: Callable[[], CacheContents]
    clear: Callable[[], CacheContents]


@dataclass(frozen=True)
class Extensions:
    """`topics` give a listing of composed values, None if no settings were given; `caches` are by their names."""

    topics: dict[str, Callable[[Mapping[str, Any] | None], Listing]]
    caches: dict[str, StudyCache]


_ADDED = Extensions({}, {})


def add_topic(name: str, listing: Callable[[Mapping[str, Any] | None], Listing]) -> None:
    """Add a topic. One with the name of a group is shown below the group's options, and takes settings."""
    _ADDED.topics[name] = listing


def add_cache(name: str, cache: StudyCache) -> None:
    """Add a cache."""
    _ADDED.caches[name] = cache


@cache
def extensions() -> Extensions:
    """The additions of all installed studies. Raises `UserError` for a broken package."""
    import_study_files("commands")
    return _ADDED
