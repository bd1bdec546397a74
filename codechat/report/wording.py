"""Settings in words that a reader of a report knows."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from codechat.environment import data_folder

LONGEST = 40
UNTOLD = {"model", "protocol", "agenda", "dataset"}  # groups whose options speak for themselves
FIRST: Mapping[str, Callable[[Any], str]] = {
    "agenda": str,
    "agenda.turns": lambda turns: f"{turns} turn{'' if turns == 1 else 's'}",
    "dataset.limit": lambda limit: "all tasks" if limit is None else f"first {limit} tasks",
}
PLACES = {"path": "from {}", "url": "from {}"}


def told(key: str, value: Any, default: Any, others: Collection[Any] = ()) -> str:
    """A setting in words: `escalating`, `5 turns`, `temperature 0.7`; `others` are its values in other cells.

    `default` is the option's default, `...` if it has none. A long text is told by where it differs from the others.
    """
    group, _, rest = key.partition(".")
    if key in FIRST:
        return FIRST[key](value)
    noun = (key if group not in UNTOLD or not rest else rest).replace("prompts.", "", 1).replace(".", " ")
    noun = noun.replace("_", " ") + (" prompt" if ".prompts." in key else "")
    if preset := preset_of(value):
        return f"{preset} {noun}"
    if value is None or value in ({}, []):
        return f"default {noun}" if value == default else f"no {noun}"
    return f"{noun} {_value(value, others)}"


def told_place(key: str, value: str) -> str:
    """A file or an address in words; only the end of a path, which the reader knows it by."""
    group, _, name = key.partition(".")
    told_so = PLACES.get(name, f"{name} {{}}").format(value if "://" in value else Path(value).name)
    return told_so if group in UNTOLD else f"{group} {told_so}"


def _value(value: Any, others: Collection[Any]) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return _short(", ".join(str(each) for each in value), [])
    if isinstance(value, str):
        text = " ".join(value.split())
        known = [" ".join(other.split()) for other in others if isinstance(other, str)]
        return text if len(text) <= LONGEST and " " not in text else f"“{_short(text, known)}”"
    return _short(json.dumps(value, ensure_ascii=False), [])


def _short(text: str, others: Collection[str]) -> str:
    """The text, or so much of it as fits, from the word on at which it differs from the others."""
    if len(text) <= LONGEST:
        return text
    same = max((_shared(text, other) for other in others if other != text), default=0)
    start = 0 if same < LONGEST // 2 else text.rfind(" ", 0, same) + 1
    cut, more = text[start : start + LONGEST - 1], len(text) > start + LONGEST - 1
    kept = cut.rpartition(" ")[0] or cut if more else cut
    return ("…" if start else "") + kept + ("…" if more else "")


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(one), len(other)))


def told_presets(words: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, str]:
    """The words of a cell's settings, by their keys; prompts of one preset are told together: `plain prompts`.

    `settings` are the values of the same keys.
    """
    together: dict[str, list[str]] = defaultdict(list)
    for key in words:
        owner, found, _ = key.partition(".prompts.")
        if found:
            together[owner].append(key)
    shown = dict(words)
    for owner, keys in together.items():
        presets = {preset_of(settings[key]) for key in keys}
        if len(keys) > 1 and len(presets) == 1 and None not in presets:
            for key in keys:
                del shown[key]
            shown[f"{owner}.prompts"] = " ".join([str(presets.pop()), *([] if owner in UNTOLD else [owner]), "prompts"])
    return shown


def preset_of(value: Any) -> str | None:
    """The preset that a prompt belongs to, in words; None if it is none of codechat's own."""
    return _presets().get(value.strip()) if isinstance(value, str) else None


@cache
def _presets() -> Mapping[str, str]:
    """The presets of the prompts that codechat brings, by the prompts' texts."""
    files = (data_folder("conf") / "prompts").glob("*/*/*.md")
    return {path.read_text(encoding="utf-8").strip(): path.parent.name.replace("_", " ") for path in files}
