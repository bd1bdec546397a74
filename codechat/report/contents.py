"""Datasets of one name and several contents: nothing is paired or pooled across them, so each has its own name."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from codechat.report.study import LoadedCell

HASH = re.compile(r"[0-9a-f]{64}")
PARTS = ("part", "level")  # options by which a dataset has several contents


def tell_apart(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells; where a dataset's name stands for several contents, a mark of the content follows it.

    That is the part of the dataset if no other content is of that part, and else the beginning of the content's hash.
    """
    contents: dict[str, set[str]] = defaultdict(set)
    of_part: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cell in cells:
        contents[cell.dataset].add(cell.content)
        of_part[cell.dataset, _part_of(cell)].add(cell.content)
    found = []
    for cell in cells:
        part = _part_of(cell)
        alone = part and len(of_part[cell.dataset, part]) == 1
        mark = part if alone else _digits_of(cell.content)
        several = len(contents[cell.dataset]) > 1
        found.append(replace(cell, dataset=f"{cell.dataset} ({mark})", mark=mark) if several else cell)
    return found


def _part_of(cell: LoadedCell) -> str:
    """The part of the dataset that the cell runs on, in words; empty if it has none."""
    options = cell.config.get("dataset") or {}
    return ", ".join(str(options[name]) for name in PARTS if options.get(name) is not None)


def _digits_of(content: str) -> str:
    return content[:8] if HASH.fullmatch(content) else content or "content unknown"


def content_notes(cells: Sequence[LoadedCell]) -> Iterator[str]:
    """A sentence for every cell whose files were edited, and for every name that stands for several contents."""
    yield from (f"{part.folder}: {part.edited}." for cell in cells for part in cell.parts if part.edited)
    named: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.mark:
            named[cell.dataset.removesuffix(f" ({cell.mark})")][cell.dataset].append(cell.folder.name)
    for name, found in named.items():
        listed = "; ".join(f"{dataset}: {', '.join(folders)}" for dataset, folders in found.items())
        yield (
            f"Different tasks are called {name}, and nothing is compared or averaged across them: {listed}. "
            "Tasks of your own get a name by dataset.name=NAME."
        )
