"""A cell that was finished before: nothing runs, so it says when it was finished, and against which endpoints."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from codechat.config import Config
from codechat.engine.cell import Cell, session_id
from codechat.engine.endpoints import date_of, endpoints_of, introduction_of, refuse_other_weights, shown
from codechat.journal import Journal, Met
from codechat.models import UNDER_TEST, ModelConfig
from codechat.models.endpoints import address_of, at_address
from codechat.models.roles import role_of


@dataclass(frozen=True)
class Recalled:
    """A finished cell.

    `cell` has the addresses that its figures come from, whatever the command says now. `words` say when it was
    finished and against what; `notes` are remarks for the user.
    """

    cell: Cell
    words: str
    notes: tuple[str, ...] = ()


def is_finished(cell: Cell, journal: Journal) -> bool:
    """Whether every session is completed."""
    return all(journal.outline(session_id(cell.id, task.task_id), completed=True) for task in cell.tasks)


async def recall(cell: Cell, journal: Journal) -> Recalled:
    """What is known of a finished cell. Only an endpoint at a new address is asked, who it is.

    Raises `UserError` if it serves another checkpoint than the one that answered.
    """
    answered = _answered(cell, journal)
    notes: list[str] = []
    config = cell.config
    for place, model in endpoints_of(cell.config).items():
        earlier = answered.get(place)
        if earlier and earlier[-1].base_url != address_of(model):
            notes.append(await _compare(place, model, earlier))
            config = _at_address(config, place.split("."), earlier[-1].base_url)
    ended = journal.ended()
    when = f"finished on {date_of(ended)}" if ended is not None else "finished before its end was recorded"
    against = [_described(place, endpoints_of(cell.config)[place], met[-1]) for place, met in answered.items()]
    words = f"{when} against {', '.join(against)}: nothing was run" if against else f"{when}: nothing was run"
    return Recalled(replace(cell, config=config), words, tuple(notes))


def _answered(cell: Cell, journal: Journal) -> dict[str, list[Met]]:
    """Those who answered, by place. An older journal has no record of them, but the folder's config has addresses."""
    met: dict[str, list[Met]] = {}
    recorded = journal.met()
    written = _written(cell.folder / "config.yaml")
    for place in endpoints_of(cell.config):
        found = [each for each in recorded if each.place == place]
        address = _address_in(written, place)
        charge = journal.ledger.of.get(role_of(place))
        if not found and address and charge is not None and charge.calls:
            found = [Met(place, address, "{}", (), 0.0)]
        if found:
            met[place] = found
    return met


async def _compare(place: str, model: ModelConfig, earlier: list[Met]) -> str:
    """A remark about an endpoint at a new address. Raises `UserError` if it serves another checkpoint."""
    new, old = shown(str(address_of(model))), shown(earlier[-1].base_url)
    figures = f"the figures are those of {old}"
    said = await introduction_of(model)
    if said is None:
        return f"{place}: {new} does not answer at once, so it is not compared: {figures}"
    refuse_other_weights(place, model, earlier, said)
    if not said.facts or not any(json.loads(met.said) for met in earlier):
        silent = new if not said.facts else old
        return f"{place}: {new} was not asked for any reply, and {silent} tells nothing to compare by: {figures}"
    return f"{place}: {new} tells the same id and root, and was not asked for any reply: {figures}"


def _described(place: str, model: ModelConfig, met: Met) -> str:
    root = json.loads(met.said).get("root")
    weights = f" (root {root})" if root not in (None, model.name) else ""
    who = model.name if place == UNDER_TEST else f"{place} {model.name}"
    return f"{who} at {shown(met.base_url)}{weights}"


def _at_address(config: Any, place: list[str], address: str) -> Any:
    """The config with another address for one of its models."""
    if not place:
        return at_address(config, address)
    name, *rest = place
    inner: Config = _at_address(getattr(config, name), rest, address)
    return config.model_copy(update={name: inner})


def _written(path: Path) -> Mapping[str, Any]:
    """The config in the cell's folder; empty if there is none that can be read."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _address_in(config: Mapping[str, Any], place: str) -> str | None:
    node: Any = config
    for name in (*place.split("."), "base_url"):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, str) else None
