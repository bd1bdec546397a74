"""What sets cells of one model and dataset apart, in words as short as can be."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from codechat.config import Config, is_identity

Options = Callable[[str, Mapping[str, Any]], type[Config] | None]
"""The option model of a config's part: `""` is the whole, `model` a group; None if nothing is known of it.

It says which options can change a result. Without one, every option counts.
"""
# Options that change no result by themselves, but select the tasks.
SELECTION = {"dataset.limit", "dataset.tasks"}
CHOICES = "choices"  # of config.yaml: the chosen option of every group
LONGEST = 40


def variants(cells: Sequence[tuple[str, str, Mapping[str, Any]]], options: Options) -> list[str]:
    """For each (model, dataset, config) what varies among the cells of its model and dataset; empty if nothing does.

    An option's own keys are shown only if two cells choose the same option of that group: `escalating` says all
    that its distribution would say.
    """
    settings = [dict(_settings(config, options)) for _, _, config in cells]
    groups: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for (model, dataset, _), found in zip(cells, settings, strict=True):
        groups[model, dataset].append(found)
    varying = {key for members in groups.values() for found in members for key in found if _varies(key, members)}
    names = [
        (*cell[:2], ", ".join(_words(key, found[key]) for key in found if key in varying and found[key] != "null"))
        for cell, found in zip(cells, settings, strict=True)
    ]
    return [
        name[2] if names.count(name) == 1 else ", ".join(filter(None, [name[2], f"cell {number}"]))
        for number, name in enumerate(names, 1)
    ]


def _varies(key: str, settings: Sequence[Mapping[str, str]]) -> bool:
    """Whether cells differ in a key; for an option's own key, whether those of cells of the same option do."""
    group = key.partition(".")[0]
    values: dict[str, set[str | None]] = defaultdict(set)
    for found in settings:
        values["" if key in (group, "agenda.turns") else found.get(group, "")].add(found.get(key))
    return any(len(seen) > 1 for seen in values.values())


def _settings(config: Mapping[str, Any], options: Options) -> Iterator[tuple[str, str]]:
    """Everything in a config that can change a result: the chosen option of each group, then single keys, as text."""
    choices = config.get(CHOICES) or {}
    for group, values in config.items():
        chosen = group in choices and isinstance(values, Mapping)
        if chosen and _counts(options("", config), group) and _counts(options(group, values), "kind"):
            yield group, str(choices[group])
    yield from _leaves("", {name: value for name, value in config.items() if name != CHOICES}, options, None)


def _counts(model: type[Config] | None, name: str) -> bool:
    """Whether an option can change a result."""
    field = model.model_fields.get(name) if model is not None else None
    return field is None or is_identity(field)


def _leaves(
    prefix: str, values: Mapping[str, Any], options: Options, nested: type[Config] | None
) -> Iterator[tuple[str, str]]:
    """Single keys; a mapping is one value if an option is declared as such."""
    model = options(prefix.rstrip("."), values) or nested
    for name, value in values.items():
        key = prefix + name
        if not _counts(model, name) and key not in SELECTION:
            continue
        field = model.model_fields.get(name) if model is not None else None
        kind = field.annotation if field is not None else None
        inner = kind if isinstance(kind, type) and issubclass(kind, Config) else None
        if isinstance(value, Mapping) and (field is None or inner is not None):
            yield from _leaves(f"{key}.", value, options, inner)
        else:
            yield key, value if isinstance(value, str) else json.dumps(value)


def _words(key: str, value: str) -> str:
    text = " ".join(value.split())
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    if key == "agenda":
        return text
    if key == "agenda.turns":
        return f"{text} turns"
    if key in ("seed", "judge"):
        return f"{key} {text}"
    if key.startswith("protocol."):
        return f"{key.removeprefix('protocol.')} {text}"
    return f"{key}={text}"
