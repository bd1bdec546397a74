"""`codechat rescore`: score a cell's recorded replies again, by another judge or in another sandbox."""

import contextlib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from codechat.base.environment import shell_command
from codechat.base.errors import UserError, nearest
from codechat.base.files import from_yaml
from codechat.base.seal import edited
from codechat.base.texts import read_json
from codechat.cli.run import run_built_cell
from codechat.cli.terminal import err, parse_words
from codechat.run.cell import is_unused
from codechat.run.cell.rescored import RescoredCell, other_tests, read_recording, rescored_cell
from codechat.run.settings.compose import compose_values, names_cell
from codechat.run.settings.config import GROUPS, CellConfig

_OWN = {
    "run": "folder of the cell whose replies are scored again",
    "out": "folder for the rescored cell; never one that holds something",
}


def run_rescore(words: list[str]) -> int:
    """`rescore run=DIR [judge=J] out=DIR`; other settings as for a run. Raises `UserError`."""
    own = [word for word in words if word.partition("=")[0] in _OWN]
    settings = [word for word in words if word not in own]
    for key in map(_key, settings):
        if key.partition(".")[0] not in CellConfig.whole().model_fields:
            raise UserError(f"there is no setting '{key}'", nearest(key, [*_OWN, *CellConfig.whole().model_fields]))
    values = parse_words(own, _OWN, required=("run", "out"))
    source, place = Path(values["run"]), Path(values["out"])
    config, choices = _source(source)
    if warning := edited(source):
        err.print(f"{source}: {warning}", markup=False)
    if config.get("stop"):
        raise UserError(f"{source} ended when enough was known (stop.*)", "score cells that ran all their tasks")
    recorded = CellConfig.from_values(config)
    for key in map(_key, settings):
        if not recorded.can_change_in_rescoring(key):
            may = [name for name in CellConfig.whole().model_fields if recorded.can_change_in_rescoring(name)]
            remedy = f"what may: {', '.join(may)}, and paths"
            raise UserError(f"{key} cannot change: the dialogues are recorded", remedy)
    recording = read_recording(source / "sessions.jsonl")
    config, choices = _change(config, choices, settings)
    changed = CellConfig.from_values(config)
    name = source.resolve().name.removesuffix(f"-{recording.cell_id[:8]}")
    name = " ".join([name, "rescored", *(word for word in settings if names_cell(changed, word))])
    cell = rescored_cell(changed, choices, recording, name[:200], place)
    _refuse_to_overwrite(cell)
    if recording.errored:
        err.print(f"{recording.errored} errored sessions have no whole dialogue: left out", markup=False)
    if changed_tests := other_tests(cell):
        err.print(changed_tests, markup=False)
    return run_built_cell(cell, [shell_command("codechat"), "rescore", *words]).status


def _key(word: str) -> str:
    """The key that a word sets: `judge.adherence` for `model@judge.adherence=gpt5`."""
    return word.lstrip("+~").partition("=")[0].rpartition("@")[2]


def _source(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The config and the choices of a cell."""
    path = folder / "config.yaml"
    config = _config(path)
    if config is None:
        raise UserError(f"{folder} is no cell: there is no {path}", "run=DIR names the folder of a cell")
    choices = config.pop("choices", None) or {}
    # budgets of the recorded cell do not apply to its scoring
    for key in ("rescored_from", "recorded_model", "budget_usd", "budget_tokens"):
        config.pop(key, None)
    return config, {str(group): str(choice) for group, choice in choices.items()}


def _config(path: Path) -> dict[str, Any] | None:
    try:
        config = from_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"cannot read {path}: {str(error).splitlines()[0]}", "give the folder of a cell") from error
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: it holds no mapping", "give the folder of a cell")
    return config


def _change(
    config: Mapping[str, Any], choices: Mapping[str, str], settings: list[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The config with the settings applied: a newly chosen group replaces the old one, others only their keys."""
    if not settings:
        return dict(config), dict(choices)
    groups = {_key(word).partition(".")[0] for word in settings}
    renewed = {_key(word) for word in settings} & GROUPS.keys()
    base = [f"{group}={choices[group]}" for group in sorted(groups - renewed) if group in choices]
    composed, chosen = compose_values([*base, *settings])
    changed = deepcopy(dict(config))
    for key in sorted(map(_key, settings)):  # a group comes before its keys
        *parents, last = key.split(".")
        target, origin = changed, composed
        for name in parents:
            target, origin = target[name], origin[name]
        target[last] = origin[last]
    return changed, {**choices, **{group: chosen[group] for group in renewed}}


def _refuse_to_overwrite(cell: RescoredCell) -> None:
    """Raise `UserError` if the folder holds anything except an interrupted rescoring by the same settings."""
    place = cell.folder
    if is_unused(place, "config.yaml"):
        return
    config, metrics = place / "config.yaml", place / "metrics.json"
    with contextlib.suppress(ValueError, KeyError, TypeError):  # a file that is not codechat's is not overwritten
        finished = metrics.is_file() and read_json(metrics.read_bytes())["errored"] == 0
        if config.is_file() and config.read_bytes() == cell.config_yaml().encode() and not finished:
            return
    raise UserError(f"{place} is there already, and nothing is overwritten", "choose another out=DIR")
