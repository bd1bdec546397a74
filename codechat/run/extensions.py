"""Additions of studies to commands, in files `commands.py` and `commands_*.py`: topics of `codechat list`, folders of
`codechat cache`, the work of `codechat probe`, and results of recorded cells for `report` and `export`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from codechat.base.plugins import import_study_files
from codechat.sandbox import SandboxConfig


class Section(NamedTuple):
    """A part of a listing: a heading with words after it, rows below named columns or pairs, and plain `lines`."""

    heading: str = ""
    words: str = ""
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    lines: Sequence[str] = ()


class Listing(NamedTuple):
    """The sections of a topic; `faulty` if they show mistakes, so that the command exits with 2."""

    sections: Sequence[Section]
    faulty: bool = False


class CacheContents(NamedTuple):
    """The contents of a cache, present or removed: bytes, and numbers of things by name."""

    path: Path
    size: int
    counts: Mapping[str, int]


class StudyCache(NamedTuple):
    """A folder of a study below the cache's root."""

    contents: Callable[[], CacheContents]
    clear: Callable[[], CacheContents]


class View(Protocol):
    """Shows the user remarks and the progress."""

    def notice(self, text: str) -> None: ...

    def progress(self, done: int, of: int) -> None: ...


@dataclass(frozen=True)
class Probing:
    """The cells (folders, or folders of such), the folder for the results, and the inputs: `count` a task, made with
    `seed` from `all` inputs of the task or its `base` ones; `inputs` is a folder with inputs of an earlier probe."""

    cells: Sequence[Path]
    out: Path
    count: int
    seed: int
    source: Literal["all", "base"]
    inputs: Path | None
    sandbox: SandboxConfig
    workers: int

    @property
    def making(self) -> tuple[int, int, str]:
        """All that decides new inputs, the task apart."""
        return self.count, self.seed, self.source


Prober = Callable[[Probing, View], Awaitable[list[str]]]
"""Probes the cells; returns the lines of a summary. The progress is in tasks.

Raises `UserError` for the user's mistakes and `InfrastructureError` if the sandbox fails.
"""


class AddedColumn(NamedTuple):
    """A column of `codechat export`: its name, the type of its values, and the meaning."""

    name: str
    kind: Literal["string", "int64"]
    meaning: str


class Results(NamedTuple):
    """Results of recorded cells in a separate folder, which `report` and `export` take under their name.

    `cells` returns the ids of the cells in a folder; `columns` the values of the `added` columns by cell, session and
    turn. Both raise `UserError` if the folder has no such results.
    """

    meaning: str
    cells: Callable[[Path], frozenset[str]]
    added: Sequence[AddedColumn]
    columns: Callable[[Path], Mapping[tuple[str, str, int], Sequence[str | int | None]]]


class Extensions(NamedTuple):
    """Additions by name. A topic makes a listing of composed values, None without settings."""

    topics: dict[str, Callable[[Mapping[str, Any] | None], Listing]]
    caches: dict[str, StudyCache]
    probers: dict[str, Prober]
    results: dict[str, Results]


_ADDED = Extensions({}, {}, {}, {})


def add_topic(name: str, listing: Callable[[Mapping[str, Any] | None], Listing]) -> None:
    """Add a topic. A group's name shows it below the group's options, and lets it take settings."""
    _ADDED.topics[name] = listing


def add_cache(name: str, cache: StudyCache) -> None:
    _ADDED.caches[name] = cache


def add_prober(name: str, prober: Prober) -> None:
    """Add the work of `codechat probe` for a study's cells."""
    _ADDED.probers[name] = prober


def add_results(name: str, results: Results) -> None:
    """Add results that `report` and `export` take as name=DIR; a chapter finds the folder in `LoadedCell.results`."""
    _ADDED.results[name] = results


@cache
def extensions() -> Extensions:
    """The additions of all installed studies. Raises `UserError` for a broken package."""
    import_study_files("commands")
    return _ADDED
