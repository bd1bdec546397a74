"""What sets the cells of a report apart, in words that a reader knows, as short as can be."""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from codechat.base.config import Config, is_identity, part_of
from codechat.base.environment import data_folder

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
    alike = (os.path.commonprefix([text, other]) for other in others if other != text)  # noqa: RUF071  characters count
    same = max(map(len, alike), default=0)
    start = 0 if same < LONGEST // 2 else text.rfind(" ", 0, same) + 1
    cut, more = text[start : start + LONGEST - 1], len(text) > start + LONGEST - 1
    kept = cut.rpartition(" ")[0] or cut if more else cut
    return ("…" if start else "") + kept + ("…" if more else "")


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


Options = Callable[[str, Mapping[str, Any]], type[Config] | None]
"""The option model of a config's part: `""` is the whole, `model` a group; None if nothing is known of it.

It says which options can change a result. Without one, every option counts.
"""
# Options that change no result by themselves, but select the tasks.
SELECTION = {"dataset.limit", "dataset.tasks", "dataset.languages", "dataset.kind", "dataset.build"}
CHOICES = "choices"  # of config.yaml: the chosen option of every group
RESCORED = "rescored_from"  # of a rescored cell's config.yaml: the recorded cell's id
RECORDED = "recorded_model"  # of a replaying cell's config.yaml: the model whose replies it holds
OWN = {"model", "dataset"}  # groups in which the cells of one comparison may differ
SEED = "seed"
OTHER_QUESTIONS = {"applicability", "constraint", "votes", "reference"}  # of a judge's options
NO_SETTINGS = {CHOICES, RESCORED, RECORDED}


class Named(NamedTuple):
    """A cell by its model and dataset, the content of its config.yaml, and its id."""

    model: str
    dataset: str
    config: Mapping[str, Any]
    cell_id: str = ""


class Setting(NamedTuple):
    """An option's value, and its default, `...` if it has none."""

    value: Any
    default: Any = ...

    @property
    def key(self) -> str:
        """The value as a text to compare."""
        return json.dumps(self.value, sort_keys=True, default=str)


def differences(cells: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """For each cell what varies among the report's cells, in words by the option's key; empty if nothing does.

    An option of model or dataset counts if it varies among the cells of one model and dataset. An option's own
    keys are told only if two cells choose the same option of that group: `escalating` says all that its distribution
    would say. What else sets cells apart, such as a file's name, is told of those that nothing else tells apart.
    """
    settings = [dict(_settings(cell.config, options)) for cell in cells]
    keys = dict.fromkeys(key for found in settings for key in found)
    varying = {key for key in keys if any(_varies(key, group) for group in _groups(key, cells, settings).values())}
    of_dataset = {(key, cell.dataset) for key in varying for cell in cells if key.startswith("dataset.")} & {
        (key, name)
        for key in varying
        for (*_, name), group in _groups(key, cells, settings).items()
        if _varies(key, group)
    }
    named = []
    for cell, found in zip(cells, settings, strict=True):
        shown = [
            key
            for key in found
            if key in varying and (not key.startswith("dataset.") or (key, cell.dataset) in of_dataset)
        ]
        distinct = {key: {each[key].key: each[key].value for each in settings if key in each} for key in shown}
        words = {key: told(key, *found[key], distinct[key].values()) for key in shown}
        named.append(told_presets(words, {key: found[key].value for key in shown}))
    for more in (_rescored, _placed, _numbered):
        for twins in _twins(cells, named):
            for number, words in more([cells[number] for number in twins], options):
                named[twins[number]].update(words)
    return named


def setup_of(config: Mapping[str, Any], options: Options) -> str:
    """All that can change a result but the model and the dataset, as a text to compare."""
    settings = {key: setting.key for key, setting in _settings(config, options) if key.partition(".")[0] not in OWN}
    return json.dumps(settings, sort_keys=True)


def settings_of(config: Mapping[str, Any], options: Options) -> str:
    """All that can change a result, as a text to compare."""
    return json.dumps({key: setting.key for key, setting in _settings(config, options)}, sort_keys=True)


def judge_in(config: Mapping[str, Any], options: Options) -> str:
    """All that can change a verdict on adherence, as a text to compare."""
    settings = {
        key: setting.key
        for key, setting in _settings(config, options)
        if key.startswith("judge.") and not OTHER_QUESTIONS & {*key.split(".")}
    }
    return json.dumps(settings, sort_keys=True)


def without_seed(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without its seed, and without that of its agenda."""
    found = {name: value for name, value in config.items() if name != SEED}
    agenda = config.get("agenda")
    if isinstance(agenda, Mapping):
        found["agenda"] = {**agenda, SEED: None}
    return found


def _groups(
    key: str, cells: Sequence[Named], settings: Sequence[Mapping[str, Setting]]
) -> Mapping[tuple[Hashable, ...], list[Mapping[str, Setting]]]:
    """The cells among which a key can vary: those of one dataset, and of one model if it is about the model."""
    own = key.partition(".")[0] in OWN
    groups: dict[tuple[Hashable, ...], list[Mapping[str, Setting]]] = defaultdict(list)
    for cell, found in zip(cells, settings, strict=True):
        groups[(cell.model, cell.dataset) if own else (cell.dataset,)].append(found)
    return groups


def _varies(key: str, settings: Sequence[Mapping[str, Setting]]) -> bool:
    """Whether cells differ in a key; for an option's own key, whether those of cells of the same option do."""
    group = key.partition(".")[0]
    values: dict[str, set[str | None]] = defaultdict(set)
    for found in settings:
        option = "" if key in (group, "agenda.turns") or group not in found else found[group].key
        values[option].add(found[key].key if key in found else None)
    return any(len(seen) > 1 for seen in values.values())


def _settings(config: Mapping[str, Any], options: Options) -> Iterator[tuple[str, Setting]]:
    """Everything in a config that can change a result: the chosen option of each group, then single keys."""
    choices = config.get(CHOICES) or {}
    for group, values in config.items():
        chosen = group in choices and isinstance(values, Mapping)
        if chosen and _counts(options("", config), group) and _counts(options(group, values), "kind"):
            yield group, Setting(str(choices[group]))
    yield from _leaves("", {name: value for name, value in config.items() if name not in NO_SETTINGS}, options, None)


def _counts(model: type[Config] | None, name: str) -> bool:
    """Whether an option can change a result."""
    field = model.model_fields.get(name) if model is not None else None
    return field is None or is_identity(field)


def _leaves(
    prefix: str, values: Mapping[str, Any], options: Options, nested: type[Config] | None
) -> Iterator[tuple[str, Setting]]:
    """Single keys; a mapping is one value if an option is declared as such. A missing option has its default."""
    model = options(prefix.rstrip("."), values) or nested
    fields = model.model_fields if model is not None else {}
    later = {name: field.default for name, field in fields.items() if name not in values and prefix}
    for name, value in {**values, **{name: each for name, each in later.items() if _plain(each)}}.items():
        key = prefix + name
        if not _counts(model, name) and key not in SELECTION:
            continue
        field = fields.get(name)
        kind = field.annotation if field is not None else None
        inner = kind if isinstance(kind, type) and issubclass(kind, Config) else None
        if isinstance(value, Mapping) and (field is None or inner is not None):
            yield from _leaves(f"{key}.", value, options, inner)
        else:
            default = field.get_default(call_default_factory=True) if field is not None else ...
            yield key, Setting(value, ... if field is None or field.is_required() else default)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


More = Iterator[tuple[int, dict[str, str]]]


def _twins(cells: Sequence[Named], named: Sequence[Mapping[str, str]]) -> list[list[int]]:
    """The numbers of cells that have the same name."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, (cell, words) in enumerate(zip(cells, named, strict=True)):
        found[cell.model, cell.dataset, ", ".join(words.values())].append(number)
    return [numbers for numbers in found.values() if len(numbers) > 1]


def _rescored(twins: Sequence[Named], options: Options) -> More:
    """Which of them judge recorded replies again."""
    for number, cell in enumerate(twins):
        if RESCORED in cell.config:
            yield number, {RESCORED: "rescored"}


def _placed(twins: Sequence[Named], options: Options) -> More:
    """Where they took their files from, or whom they asked."""
    places = [dict(_places(cell.config, options)) for cell in twins]
    differing = [key for key in dict.fromkeys(key for each in places for key in each)
                 if len({each.get(key) for each in places}) > 1]  # fmt: skip
    for number, each in enumerate(places):
        yield number, {key: told_place(key, each[key]) for key in differing if key in each}


def _places(config: Mapping[str, Any], options: Options) -> Iterator[tuple[str, str]]:
    for group, values in config.items():
        model = options(group, values) if isinstance(values, Mapping) else None
        for name, field in model.model_fields.items() if model is not None else ():
            value = values.get(name)
            if part_of(field) == "place" and isinstance(value, str):
                yield f"{group}.{name}", value


def _numbered(twins: Sequence[Named], options: Options) -> More:
    """The beginnings of their ids, by which their folders end."""
    for number, cell in enumerate(twins):
        yield number, {"cell_id": f"cell {cell.cell_id[:8]}"}
