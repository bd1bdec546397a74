"""What sets the cells of a report apart, as `key=value` words of the command line, as few as can be."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from codechat.base.config import Config, is_identity, part_of
from codechat.base.environment import data_folder
from codechat.base.files import content_hash

LONGEST = 40
UNTOLD = {"model", "protocol", "agenda", "dataset"}  # groups that are left out of a key, which is known without
PROMPTS = ".prompts."


def word(key: str, value: Any) -> str:
    """A setting as a word: `judge=llm`, `temperature=0.7`; a long text as the beginning of its hash."""
    group, _, rest = key.partition(".")
    text = f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
    shown = text if len(text) <= LONGEST and text.isprintable() else f"#{content_hash(text)[:6]}"
    return f"{rest if rest and group in UNTOLD else key}={shown}"


def words_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The words of a cell's settings, by their keys; prompts of one preset are one word: `prompts=plain`."""
    presets = {key: _presets().get(str(settings[key]).strip()) for key in settings if PROMPTS in key}
    shown = {**settings, **{key: preset for key, preset in presets.items() if preset}}
    for owner in {key.partition(PROMPTS)[0] for key in presets}:
        keys = [key for key in presets if key.startswith(owner + PROMPTS)]
        preset = presets[keys[0]]
        if len(keys) > 1 and preset and all(presets[key] == preset for key in keys):
            shown = {key: value for key, value in shown.items() if key not in keys} | {f"{owner}.prompts": preset}
    return {key: word(key, value) for key, value in shown.items()}


@cache
def _presets() -> Mapping[str, str]:
    """The presets of the prompts that codechat brings, by the prompts' texts."""
    files = (data_folder("conf") / "prompts").glob("*/*/*.md")
    return {path.read_text(encoding="utf-8").strip(): path.parent.name for path in files}


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
NO_SETTINGS = {CHOICES, RESCORED, RECORDED}


class Named(NamedTuple):
    """A cell by its model and dataset, the content of its config.yaml, and its id."""

    model: str
    dataset: str
    config: Mapping[str, Any]
    cell_id: str = ""


def differences(cells: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """For each cell what varies among the report's cells, in words by the option's key; empty if nothing does.

    An option of model or dataset counts if it varies among the cells of one model and dataset. An option's own
    keys are named only if two cells choose the same option of that group: `agenda=escalating` says all that its
    distribution would say. Cells that are still equal get a further word, such as a file's name.
    """
    settings = [_settings(cell.config, options) for cell in cells]
    # by key the datasets among whose cells it varies
    varying = {
        key: {name for (*_, name), group in _groups(key, cells, settings).items() if _varies(key, group)}
        for found in settings
        for key in found
    }
    named = []
    for cell, found in zip(cells, settings, strict=True):
        shown = {
            key: value
            for key, value in found.items()
            if varying[key] and (not key.startswith("dataset.") or cell.dataset in varying[key])
        }
        named.append(words_of(shown))
    for more in (_rescored, _placed, _numbered):
        for twins in _twins(cells, named):
            for number, words in zip(twins, more([cells[number] for number in twins], options), strict=True):
                named[number].update(words)
    return named


def settings_text(config: Mapping[str, Any], options: Options, wanted: Callable[[str], bool] = lambda key: True) -> str:
    """All that can change a result, of the keys that are wanted, as a text to compare."""
    found = {key: _text(value) for key, value in _settings(config, options).items() if wanted(key)}
    return json.dumps(found, sort_keys=True)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def without_seed(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without its seed, and without that of its agenda."""
    found = {name: value for name, value in config.items() if name != SEED}
    agenda = config.get("agenda")
    if isinstance(agenda, Mapping):
        found["agenda"] = {**agenda, SEED: None}
    return found


def _groups(
    key: str, cells: Sequence[Named], settings: Sequence[Mapping[str, Any]]
) -> Mapping[tuple[Hashable, ...], list[Mapping[str, Any]]]:
    """The cells among which a key can vary: those of one dataset, and of one model if it is about the model."""
    own = key.partition(".")[0] in OWN
    groups: dict[tuple[Hashable, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for cell, found in zip(cells, settings, strict=True):
        groups[(cell.model, cell.dataset) if own else (cell.dataset,)].append(found)
    return groups


def _varies(key: str, settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether cells differ in a key; for an option's own key, whether those of cells of the same option do."""
    group = key.partition(".")[0]
    values: dict[str, set[str | None]] = defaultdict(set)
    for found in settings:
        option = "" if key in (group, "agenda.turns") or group not in found else _text(found[group])
        values[option].add(_text(found[key]) if key in found else None)
    return any(len(seen) > 1 for seen in values.values())


def _settings(config: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Everything in a config that can change a result: the chosen option of each group, then single keys."""
    choices = config.get(CHOICES) or {}
    chosen = {
        group: str(choices[group])
        for group, values in config.items()
        if group in choices
        and isinstance(values, Mapping)
        and _counts(options("", config), group)
        and _counts(options(group, values), "kind")
    }
    own = {name: value for name, value in config.items() if name not in NO_SETTINGS}
    return chosen | dict(_leaves("", own, options, None))


def _counts(model: type[Config] | None, name: str) -> bool:
    """Whether an option can change a result."""
    field = model.model_fields.get(name) if model is not None else None
    return field is None or is_identity(field)


def _leaves(
    prefix: str, values: Mapping[str, Any], options: Options, nested: type[Config] | None
) -> Iterator[tuple[str, Any]]:
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
            yield key, value


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _twins(cells: Sequence[Named], named: Sequence[Mapping[str, str]]) -> list[list[int]]:
    """The numbers of cells that have the same name."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, (cell, words) in enumerate(zip(cells, named, strict=True)):
        found[cell.model, cell.dataset, ", ".join(words.values())].append(number)
    return [numbers for numbers in found.values() if len(numbers) > 1]


def _rescored(twins: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """Which of them judge recorded replies again."""
    return [{RESCORED: "rescored"} if RESCORED in cell.config else {} for cell in twins]


def _placed(twins: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """Where they took their files from, or whom they asked: addresses, and the names of files."""
    places = [dict(_places(cell.config, options)) for cell in twins]
    differing = [key for key in dict.fromkeys(key for each in places for key in each)
                 if len({each.get(key) for each in places}) > 1]  # fmt: skip
    return [
        {key: word(key, each[key] if "://" in each[key] else Path(each[key]).name) for key in differing if key in each}
        for each in places
    ]


def _places(config: Mapping[str, Any], options: Options) -> Iterator[tuple[str, str]]:
    for group, values in config.items():
        model = options(group, values) if isinstance(values, Mapping) else None
        for name, field in model.model_fields.items() if model is not None else ():
            value = values.get(name)
            if part_of(field) == "place" and isinstance(value, str):
                yield f"{group}.{name}", value


def _numbered(twins: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """The beginnings of their ids, by which their folders end."""
    return [{"cell_id": f"cell={cell.cell_id[:8]}"} for cell in twins]
