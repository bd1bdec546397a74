"""Labels of constructed tasks: is each sound? Kept and dropped items are drawn, without showing which."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.texts import read_json
from codechat.report.audit.kinds import WORDS, Kind, Question, Row, Stratum, register
from codechat.report.comparison import LoadedCell

ITEMS, DROPPED, YIELD = "items.jsonl", "dropped.jsonl", "yield.json"
"""The files of a construction that are read (docs/construct.md)."""
ASKED = "Can this task be done as it is asked, and do its tests demand what it asks, and no more?"


class _Items(Kind):
    """Items of constructions; the recipe judged an item sound if it kept the item. The column `content` is a hash of
    the labelled text, for recipes that read labels; `edit` is a better text by a person."""

    @property
    def columns(self) -> tuple[str, ...]:
        place = ("sample", "dataset", "task_id", "turn", "place", "recipe", "content")
        labels = ("sound", "edit", "note", "annotator")
        return (*place, "asked", *labels, "judge_sound", "judge", "judge_reason", "cell_id")

    @property
    def source(self) -> str:
        return "folders that `construct` made"

    def stratum(self, row: Row) -> Stratum:
        """The recipe, and the stage at which the item ended."""
        return row["recipe"], row["judge_reason"].partition(":")[0], ""

    def rows(self, runs: Sequence[Path]) -> tuple[list[Row], Sequence[LoadedCell]]:
        """The items in folders of constructions, or in folders that contain such folders."""
        found: list[Row] = []
        for folder in runs:
            for place in [folder, *sorted(folder.glob("*/"))] if folder.is_dir() else []:
                if (place / YIELD).is_file() and (place / ITEMS).is_file():
                    made = read_json((place / YIELD).read_bytes())
                    found += _items_of(place, str(made["recipe"]), str(made["id"]))
        if not found:
            raise UserError(f"the runs hold no {self.one}", f"give {self.source}")
        return found, ()


def _items_of(place: Path, recipe: str, identity: str) -> Iterator[Row]:
    for name, kept in ((ITEMS, True), (DROPPED, False)):
        try:
            rows = list(map(read_json, (place / name).read_bytes().splitlines()))
        except (OSError, ValueError) as error:
            remedy = "run the construction again: it writes its files anew"
            raise UserError(f"cannot read {place / name}: {error}", remedy) from error
        for number, row in enumerate(rows):
            data = {k: v for k, v in row.items() if k != "provenance"} if kept else row["data"]
            yield MADE.row(
                {"item": _text(data)}, asked=ASKED, recipe=recipe, content=row["provenance"].get("content", ""),
                dataset=place.name, task_id=row.get("id") or row.get("task_id") or number, turn=0, place=0,
                cell_id=identity, judge_sound=WORDS[kept], judge=f"recipe={recipe}",
                judge_reason="kept" if kept else f"{row['stage']}: {row['reason']}",
            )  # fmt: skip


def _text(data: Mapping[str, Any]) -> str:
    """An item to read: every entry below its name, also texts of several lines inside other values."""
    return "\n\n".join(f"## {name}\n{text}" for key, each in data.items() for name, text in _entries(key, each))


def _entries(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif "\\n" not in (text := json.dumps(value, indent=1, ensure_ascii=False)):
        yield name, text
    else:
        for key, each in value.items() if isinstance(value, dict) else enumerate(value, 1):
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
