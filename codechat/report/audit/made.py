"""What people label of tasks that were made: is each sound? Kept items and dropped ones are drawn, unseen which."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from codechat.base.errors import UserError
from codechat.report.audit.judged import WORDS, Judged, JudgedDecision, JudgedRow, Kind, Label, register
from codechat.report.audit.strata import Stratum

ITEMS, DROPPED, YIELD = "items.jsonl", "dropped.jsonl", "yield.json"
"""The files of a construction that are read (docs/construct.md)."""


class ItemRow(JudgedRow):
    """One item with its label `sound`; the recipe judged it sound if it kept it.

    `content` is a hash of the text that is labelled, of recipes that read labels; `edit` a better text that a person
    writes in its place.
    """

    question: ClassVar[str] = "asked"
    label: ClassVar[str] = "sound"
    grouped: ClassVar[tuple[str, ...]] = ("recipe",)

    recipe: str
    content: str = ""
    asked: str = "Can this task be done as it is asked, and do its tests demand what it asks, and no more?"
    sound: Label = ""
    edit: str = ""
    judge_sound: Judged

    @property
    def stratum(self) -> Stratum:
        """The recipe, and where the item ended."""
        return self.recipe, self.judge_reason.partition(":")[0], ""


def items_in(runs: Iterable[Path]) -> Iterator[JudgedDecision]:
    """The items of constructions: folders of them, or folders that hold such. Raises `UserError`."""
    for folder in runs:
        for place in [folder, *sorted(folder.glob("*/"))] if folder.is_dir() else []:
            if (place / YIELD).is_file() and (place / ITEMS).is_file():
                made = json.loads((place / YIELD).read_text(encoding="utf-8"))
                yield from _items_of(place, str(made["recipe"]), str(made["id"]))


def _items_of(place: Path, recipe: str, identity: str) -> Iterator[JudgedDecision]:
    for name, kept in ((ITEMS, True), (DROPPED, False)):
        for number, row in enumerate(_rows(place / name)):
            item = str(row.get("id") or row.get("task_id") or number)
            reason = "kept" if kept else f"{row['stage']}: {row['reason']}"
            key = ItemRow.key_of(identity, item, 0, 0, WORDS[kept])
            about = {"sample": key, "dataset": place.name, "task_id": item, "turn": 0, "place": 0, "cell_id": identity}
            judged = {"judge": f"recipe={recipe}", "judge_reason": reason, "judge_sound": WORDS[kept]}
            judged |= {"recipe": recipe, "content": str(row["provenance"].get("content", ""))}
            data = {k: v for k, v in row.items() if k != "provenance"} if kept else row["data"]
            yield JudgedDecision(ItemRow.model_validate({**about, **judged}), {"item": _text(data)})


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
    Kind(
        ItemRow, ("decision", "items"), "item of `codechat construct`", (), None,
        "Is this task sound?", "The task", made=items_in,
    )
)  # fmt: skip
