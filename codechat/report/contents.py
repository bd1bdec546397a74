"""Datasets of one name and several contents: nothing is paired or pooled across them, so each has its own name."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from codechat.report.study import LoadedCell

HASH = re.compile(r"[0-9a-f]{64}")


def tell_apart(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells; where a dataset's name stands for several contents, a mark of the content follows it."""
    contents: dict[str, set[str]] = defaultdict(set)
    for cell in cells:
        contents[cell.dataset].add(cell.content)
    return [_marked(cell) if len(contents[cell.dataset]) > 1 else cell for cell in cells]


def _marked(cell: LoadedCell) -> LoadedCell:
    mark = cell.content[:8] if HASH.fullmatch(cell.content) else cell.content or "content unknown"
    return replace(cell, dataset=f"{cell.dataset} ({mark})", mark=mark)


def content_notes(cells: Sequence[LoadedCell]) -> Iterator[str]:
    """A sentence for every cell whose files were edited, and for every name that stands for several contents."""
    yield from (f"{cell.folder}: {cell.edited}." for cell in cells if cell.edited)
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
