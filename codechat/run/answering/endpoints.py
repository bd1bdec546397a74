"""Who answers a cell's calls: recorded in its journal, and another checkpoint under the same name is refused."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from codechat.base.config import Config
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.models import MODELS, UNDER_TEST, ModelConfig
from codechat.models.endpoints import IDENTIFYING, Describable, EndpointInfo, address_of, at_address
from codechat.models.roles import role_of
from codechat.run.cell import Cell, session_id
from codechat.run.cell.stopping import tasks_needed
from codechat.run.journal import EndpointRecord, Journal


async def describe_endpoint(config: ModelConfig) -> EndpointInfo | None:
    """An endpoint's description of itself; None if it does not answer at once, or cannot be asked."""
    model = MODELS.build(config)
    try:
        return await model.describe() if isinstance(model, Describable) else None
    finally:
        await model.aclose()


class EndpointCheck:
    """Checks and records the endpoints of one cell in its journal. `note` gets remarks for the user, one a place."""

    def __init__(self, places: Mapping[str, ModelConfig], journal: Journal, note: Callable[[str], None]) -> None:
        self._journal, self._note = journal, note
        self._places, records = places, journal.endpoints()
        self._records = {place: [each for each in records if each.place == place] for place in places}
        self._noted: set[tuple[str, str]] = set()
        self._heard: set[tuple[int, str]] = set()

    def known(self, config: ModelConfig) -> EndpointInfo | None:
        address = address_of(config)
        records = [record for place in self.places(config) for record in reversed(self._records[place])]
        return next((EndpointInfo(each.base_url, each.facts) for each in records if each.base_url == address), None)

    async def check_again(self) -> None:
        """Ask the endpoints that the cell was begun with, before any call. Raises `UserError` for another checkpoint.

        One that does not answer at once is checked before its first call.
        """
        for place, config in self._places.items():
            info = await describe_endpoint(config) if any(each.facts for each in self._records[place]) else None
            if info is not None:
                refuse_other_weights(place, config, self._records[place], info)

    async def on_connect(self, config: ModelConfig, info: EndpointInfo) -> None:
        for place in self.places(config):
            refuse_other_weights(place, config, self._records[place], info)
            _refuse_other_length(place, config, info)
            for kind, text in _remarks(place, self._records[place], info):
                self._remark(place, kind, text)
        for place in self.places(config):
            await self._record(place, EndpointRecord(place, info.base_url, info.text(), (), time.time()))

    async def on_fingerprint(self, config: ModelConfig, fingerprint: str) -> None:
        if (id(config), fingerprint) in self._heard:
            return
        self._heard.add((id(config), fingerprint))
        for place in self.places(config):
            known = {each for record in self._records[place] for each in record.fingerprints}
            if known and fingerprint not in known:
                first, *rest = sorted(known)
                earlier = f"{first} and {len(rest)} more" if rest else first
                text = f"replies carry the fingerprint {fingerprint}, earlier ones {earlier}"
                self._remark(place, "fingerprint", f"{place}: {text}: it is recorded, and the cell goes on")
            last = self._records[place][-1]
            await self._record(place, last._replace(fingerprints=(fingerprint,)))

    async def _record(self, place: str, record: EndpointRecord) -> None:
        """Record an endpoint, with all fingerprints that it had under the same words."""
        same = [each for each in self._records[place] if (each.base_url, each.info) == (record.base_url, record.info)]
        heard = [name for each in (*same, record) for name in each.fingerprints]
        whole = record._replace(fingerprints=tuple(dict.fromkeys(heard)))
        self._records[place] = [*(each for each in self._records[place] if each not in same), whole]
        await self._journal.record_endpoint(whole)

    def places(self, config: ModelConfig) -> list[str]:
        return [place for place, each in self._places.items() if each == config]

    def _remark(self, place: str, kind: str, text: str) -> None:
        if (place, kind) not in self._noted:
            self._noted.add((place, kind))
            self._note(text)


def refuse_other_weights(
    place: str, config: ModelConfig, earlier: Sequence[EndpointRecord], info: EndpointInfo
) -> None:
    """Raise `UserError` if the endpoint's id or root differs from what the cell's endpoints said before."""
    for key in IDENTIFYING:
        before, now = _last(earlier, key), info.facts.get(key)
        if before is None or now is None or before[0] == now:
            continue
        apart = f"{place}.weights.revision=NAME or another runs_dir" if hasattr(config, "weights") else "runs_dir"
        value, record = before
        raise UserError(
            f"{place}: {without_query(info.base_url)} serves another checkpoint than this cell was begun with: its "
            f"{key} is '{now}', and was '{value}' at {without_query(record.base_url)} on {_date_of(record.at)}",
            f"to measure it apart, set {apart}; to go on with this cell, serve the earlier checkpoint",
        )


def _refuse_other_length(place: str, config: ModelConfig, info: EndpointInfo) -> None:
    """Raise `UserError` if the endpoint takes conversations of another length than the config says."""
    weights = getattr(config, "weights", None)
    wanted, stated = getattr(weights, "max_model_len", None), info.facts.get("max_model_len")
    if wanted is not None and stated is not None and stated != wanted:
        raise UserError(
            f"{place}: {without_query(info.base_url)} takes conversations of {stated} tokens (max_model_len), and "
            f"{place}.weights.max_model_len={wanted}",
            f"start that server with --max-model-len {wanted}, or set {place}.weights.max_model_len={stated}",
        )


def _remarks(place: str, earlier: Sequence[EndpointRecord], info: EndpointInfo) -> Iterable[tuple[str, str]]:
    """Remarks on differences from before that are no reason to stop, each with its kind."""
    url = without_query(info.base_url)
    for key in IDENTIFYING:
        before, now = _last(earlier, key), info.facts.get(key)
        if before is not None and now is None:
            silent = f"{url} does not tell its {key}, which was '{before[0]}' on {_date_of(before[1].at)}"
            yield "silent", f"{place}: {silent}: whether it serves the same weights is not known, and the cell goes on"
    before, now = _last(earlier, "created"), info.facts.get("created")
    if before is not None and now is not None and before[0] != now:
        created = f"{url} says created {_moment(now)}, and before {_moment(before[0])}"
        yield "created", f"{place}: {created}: id and root are the same, and the cell goes on"


def _last(earlier: Sequence[EndpointRecord], key: str) -> tuple[Any, EndpointRecord] | None:
    """The last known value of a fact, and the endpoint that stated it."""
    return next(((record.facts[key], record) for record in reversed(earlier) if key in record.facts), None)


def _moment(value: Any) -> str:
    return _date_of(value) if isinstance(value, int | float) and 0 < value < 10**11 else str(value)


def _date_of(seconds: float) -> str:
    """A time as people write it, in this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def without_query(base_url: str) -> str:
    """An address without its query, which may hold a key."""
    return base_url.partition("?")[0]


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
    """Whether every session that the cell has to hold is completed."""
    return all(
        journal.outline(session_id(cell.id, task.task_id), completed=True) for task in tasks_needed(cell, journal)
    )


async def recall(cell: Cell, journal: Journal) -> Recalled:
    """A finished cell, with when and against what it was finished. Only an endpoint at a new address is asked.

    Raises `UserError` if it serves another checkpoint than the one that answered.
    """
    answered = _answered(cell, journal)
    notes: list[str] = []
    config = cell.config
    for place, model in cell.endpoints.items():
        earlier = answered.get(place)
        if earlier and earlier[-1].base_url != address_of(model):
            notes.append(await _compare(place, model, earlier))
            config = _at_address(config, place.split("."), earlier[-1].base_url)
    ended = journal.ended()
    when = f"finished on {_date_of(ended)}" if ended is not None else "finished before its end was recorded"
    against = [_described(place, cell.endpoints[place], records[-1]) for place, records in answered.items()]
    words = f"{when} against {', '.join(against)}: nothing was run" if against else f"{when}: nothing was run"
    return Recalled(replace(cell, config=config), words, tuple(notes))


def _answered(cell: Cell, journal: Journal) -> dict[str, list[EndpointRecord]]:
    """Those who answered, by place. An older journal has no record of them, but the folder's config has addresses."""
    answered: dict[str, list[EndpointRecord]] = {}
    records = journal.endpoints()
    for place in cell.endpoints:
        found = [each for each in records if each.place == place]
        charge = journal.ledger.of.get(role_of(place))
        if not found and charge is not None and charge.calls and (address := _address_in(cell.folder, place)):
            found = [EndpointRecord(place, address, "{}", (), 0.0)]
        if found:
            answered[place] = found
    return answered


async def _compare(place: str, model: ModelConfig, earlier: list[EndpointRecord]) -> str:
    """A remark about an endpoint at a new address. Raises `UserError` if it serves another checkpoint."""
    new, old = without_query(str(address_of(model))), without_query(earlier[-1].base_url)
    figures = f"the figures are those of {old}"
    info = await describe_endpoint(model)
    if info is None:
        return f"{place}: {new} does not answer at once, so it is not compared: {figures}"
    refuse_other_weights(place, model, earlier, info)
    if not info.facts or not any(record.facts for record in earlier):
        silent = new if not info.facts else old
        return f"{place}: {new} was not asked for any reply, and {silent} tells nothing to compare by: {figures}"
    return f"{place}: {new} tells the same id and root, and was not asked for any reply: {figures}"


def _described(place: str, model: ModelConfig, record: EndpointRecord) -> str:
    root = record.facts.get("root")
    weights = f" (root {root})" if root not in (None, model.name) else ""
    who = model.name if place == UNDER_TEST else f"{place} {model.name}"
    return f"{who} at {without_query(record.base_url)}{weights}"


def _at_address(config: Any, place: list[str], address: str) -> Any:
    """The config with another address for one of its models."""
    if not place:
        return at_address(config, address)
    name, *rest = place
    inner: Config = _at_address(getattr(config, name), rest, address)
    return config.model_copy(update={name: inner})


def _address_in(folder: Path, place: str) -> str | None:
    """The address of a model in the config.yaml of a cell's folder; None without one."""
    try:
        node = from_yaml((folder / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    for name in (*place.split("."), "base_url"):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, str) else None
