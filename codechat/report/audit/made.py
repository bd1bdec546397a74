"""What people label of tasks that were made: is each sound? Kept items and dropped ones are drawn, unseen which."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.report.audit.kinds import WORDS, Kind, Question, Row, Stratum, register
from codechat.report.comparison import LoadedCell

ITEMS, DROPPED, YIELD = "items.jsonl", "dropped.jsonl", "yield.json"
"""The files of a construction that are read (docs/construct.md)."""
ASKED = "Can this task be done as it is asked, and do its tests demand what it asks, and no more?"


class _Items(Kind):
    """Items of constructions; the recipe judged an item sound if it kept it.

    The column `content` is a hash of the text that is labelled, of recipes that read labels; `edit` a better text that
    a person writes in its place.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        place = ("sample", "dataset", "task_id", "turn", "place", "recipe", "content")
        labels = ("sound", "edit", "note", "annotator")
        return (*place, "asked", *labels, "judge_sound", "judge", "judge_reason", "cell_id")

    @property
    def source(self) -> str:
        return "folders that `construct` made"

    def stratum(self, row: Row) -> Stratum:
        """The recipe, and where the item ended."""
        return row["recipe"], row["judge_reason"].partition(":")[0], ""

    def rows(self, runs: Sequence[Path]) -> tuple[list[Row], Sequence[LoadedCell]]:
        """The items of constructions: folders of them, or folders that hold such."""
        found: list[Row] = []
        for folder in runs:
            for place in [folder, *sorted(folder.glob("*/"))] if folder.is_dir() else []:
                if (place / YIELD).is_file() and (place / ITEMS).is_file():
                    made = json.loads((place / YIELD).read_text(encoding="utf-8"))
                    found += _items_of(place, str(made["recipe"]), str(made["id"]))
        if not found:
            raise UserError(f"the runs hold no {self.one}", f"give {self.source}")
        return found, ()


def _items_of(place: Path, recipe: str, identity: str) -> Iterator[Row]:
    for name, kept in ((ITEMS, True), (DROPPED, False)):
        for number, row in enumerate(_rows(place / name)):
            data = {k: v for k, v in row.items() if k != "provenance"} if kept else row["data"]
            yield MADE.row(
                {"item": _text(data)}, asked=ASKED, recipe=recipe, content=row["provenance"].get("content", ""),
                dataset=place.name, task_id=row.get("id") or row.get("task_id") or number, turn=0, place=0,
                cell_id=identity, judge_sound=WORDS[kept], judge=f"recipe={recipe}",
                judge_reason="kept" if kept else f"{row['stage']}: {row['reason']}",
            )  # fmt: skip


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as stream:
            yield from (json.loads(line) for line in stream)
    except (OSError, ValueError) as error:
        raise UserError(
            f"cannot read {path}: {error}", "run the construction again: it writes its files anew"
        ) from error


def _text(data: Mapping[str, Any]) -> str:
    """An item to read: every entry below its name, texts of several lines inside of others too."""
    return "\n\n".join(f"## {name}\n{text}" for key, each in data.items() for name, text in _entries(key, each))


def _entries(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif "\\n" not in (text := json.dumps(value, indent=1, ensure_ascii=False)):
        yield name, text
    else:
        parts = value.items() if isinstance(value, dict) else enumerate(value, 1)
        for key, each in parts:
            yield from _entries(f"{name} {key}", each)


MADE = register(
    _Items(
        "items",
        one="item of `codechat construct`",
        questions=(Question("asked", "sound"),),
        groups=("recipe",),
        ask="Is this task sound?",
        heading="The task",
    )
)
