"""What sets cells of one model and dataset apart, in words as short as can be."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codechat.agendas import AGENDAS
from codechat.config import Config, is_identity
from codechat.datasets import DATASETS
from codechat.errors import UserError
from codechat.instructions import INSTRUCTIONS
from codechat.judges import JUDGES
from codechat.models import MODELS
from codechat.registry import Registry
from codechat.sandbox import SANDBOXES

GROUPS: Mapping[str, Registry[Any, Any]] = {
    "model": MODELS,
    "dataset": DATASETS,
    "instructions": INSTRUCTIONS,
    "agenda": AGENDAS,
    "judge": JUDGES,
    "sandbox": SANDBOXES,
}
# Part of a cell's identity by the tasks they select, though not by themselves.
SELECTION = {"dataset.limit", "dataset.tasks"}
ELSEWHERE = {"choices", "hardware", "tracking", "sandbox.kind", "model.name"} | {
    "runs_dir", "max_errors", "budget_usd", "budget_tokens", "dry_run",
}  # fmt: skip
LONGEST = 40


def variants(cells: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """For each (model, dataset, config) what varies among the cells of its model and dataset; empty where nothing does.

    An option's own keys are told only where two cells choose the same option of that group: `escalating` says all
    that its distribution would say.
    """
    settings = [dict(_settings(config)) for _, _, config in cells]
    varying: set[str] = set()
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, (model, dataset, _) in enumerate(cells):
        groups[model, dataset].append(index)
    for members in groups.values():
        for key in dict.fromkeys(key for index in members for key in settings[index]):
            if _varies(key, [settings[index] for index in members]):
                varying.add(key)
    names = [
        ", ".join(_told(key, value) for key, value in found.items() if key in varying and value != "null")
        for found in settings
    ]
    return [
        name if _alone(index, names, cells) else ", ".join(filter(None, [name, f"cell {index + 1}"]))
        for index, name in enumerate(names)
    ]


def _alone(index: int, names: Sequence[str], cells: Sequence[tuple[str, str, Mapping[str, Any]]]) -> bool:
    me = (names[index], *cells[index][:2])
    return sum((name, *cell[:2]) == me for name, cell in zip(names, cells, strict=True)) == 1


def _varies(key: str, settings: Sequence[Mapping[str, str]]) -> bool:
    """Whether cells differ in a key; for an option's own key, whether cells of the same option do."""
    group = key.partition(".")[0]
    values: dict[str, set[str | None]] = defaultdict(set)
    for found in settings:
        values["" if key in (group, "agenda.turns") else found.get(group, "")].add(found.get(key))
    return any(len(seen) > 1 for seen in values.values())


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything in a config that can change a result: the chosen option of each group, then single keys, as text."""
    choices = config.get("choices") or {}
    for group in ("agenda", "judge", "protocol", "instructions"):
        if group in choices:
            yield group, str(choices[group])
    for name, value in config.items():
        if name in ELSEWHERE:
            continue
        if isinstance(value, Mapping):
            yield from _leaves(f"{name}.", value, _model(name, value))
        else:
            yield name, value if isinstance(value, str) else json.dumps(value)


def _model(group: str, values: Mapping[str, Any]) -> type[Config] | None:
    """The option model of a group's values; None where it is not known (another version's, or the protocol's)."""
    registry = GROUPS.get(group)
    try:
        return registry[str(values.get(registry.key))].config if registry is not None else None
    except UserError:
        return None


def _leaves(prefix: str, values: Mapping[str, Any], model: type[Config] | None) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        key = prefix + name
        field = model.model_fields.get(name) if model is not None else None
        if key in ELSEWHERE or (field is not None and not is_identity(field) and key not in SELECTION):
            continue
        kind = field.annotation if field is not None else None
        nested = kind if isinstance(kind, type) and issubclass(kind, Config) else None
        if isinstance(value, Mapping) and (nested is not None or field is None):
            yield from _leaves(f"{key}.", value, nested)
        else:
            yield key, value if isinstance(value, str) else json.dumps(value)


def _told(key: str, value: str) -> str:
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
