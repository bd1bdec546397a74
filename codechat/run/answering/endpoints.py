"""The endpoints of a cell, recorded in its journal: another checkpoint under the same name is refused."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from codechat.base.config import Config
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.models import MODELS, UNDER_TEST, ModelConfig
from codechat.models.endpoints import IDENTIFYING, TEMPERATURE, Describable, EndpointInfo, address_of, at_address
from codechat.models.roles import role_of
from codechat.report.metrics.counts import TEMPERATURES
from codechat.run.cell import Cell, session_id
from codechat.run.cell.stopping import tasks_needed
from codechat.run.journal import EndpointRecord, Journal


async def describe_endpoint(config: ModelConfig) -> EndpointInfo | None:
    """An endpoint's description of its model; None if it does not answer at once, or cannot be asked."""
    model = MODELS.build(config)
    try:
        return await model.describe() if isinstance(model, Describable) else None
    finally:
        await model.aclose()


class EndpointCheck:
    """Checks and records the endpoints of one cell in its journal. `note` gets remarks, one a place."""

    def __init__(self, places: Mapping[str, ModelConfig], journal: Journal, note: Callable[[str], None]) -> None:
        self._journal, self._note, self._places, records = journal, note, places, journal.endpoints()
        self._records = {place: [each for each in records if each.place == place] for place in places}
        self._noted: set[tuple[str, str]] = set()
        self._heard: set[tuple[int, str]] = set()

    def known(self, config: ModelConfig) -> EndpointInfo | None:
        address = address_of(config)
        records = [record for place in self.places(config) for record in reversed(self._records[place])]
        return next((EndpointInfo(each.base_url, each.facts) for each in records if each.base_url == address), None)

    async def check_again(self) -> None:
        """Check endpoints of earlier runs before any call. Raises `UserError` for another checkpoint.

        An endpoint that does not answer at once is checked before its first call.
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
                first, *others = sorted(known)
                earlier = f"{first} and {len(others)} more" if others else first
                text = f"replies carry the fingerprint {fingerprint}, earlier ones {earlier}"
                self._remark(place, "fingerprint", f"{place}: {text}: it is recorded, and the cell continues")
            last = self._records[place][-1]
            await self._record(place, last._replace(fingerprints=(fingerprint,)))

    async def _record(self, place: str, record: EndpointRecord) -> None:
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
    """Raise `UserError` if the endpoint's id or root differs from the cell's earlier endpoints."""
    for key in IDENTIFYING:
        before, now = _last(earlier, key), info.facts.get(key)
        if before is None or now is None or before[0] == now:
            continue
        apart = f"{place}.weights.revision=NAME or another runs_dir" if hasattr(config, "weights") else "runs_dir"
        value, record = before
        raise UserError(
            f"{place}: {without_query(info.base_url)} serves another checkpoint than this cell was begun with: its "
            f"{key} is '{now}', and was '{value}' at {without_query(record.base_url)} on {_date_of(record.at)}",
            f"to measure it apart, set {apart}; to continue this cell, serve the earlier checkpoint",
        )


def _refuse_other_length(place: str, config: ModelConfig, info: EndpointInfo) -> None:
    """Raise `UserError` if the endpoint's length of conversations differs from the config's."""
    weights = getattr(config, "weights", None)
    wanted, stated = getattr(weights, "max_model_len", None), info.facts.get("max_model_len")
    if wanted is not None and stated is not None and stated != wanted:
        raise UserError(
            f"{place}: {without_query(info.base_url)} takes conversations of {stated} tokens (max_model_len), and "
            f"{place}.weights.max_model_len={wanted}",
            f"start that server with --max-model-len {wanted}, or set {place}.weights.max_model_len={stated}",
        )


def _remarks(place: str, earlier: Sequence[EndpointRecord], info: EndpointInfo) -> Iterable[tuple[str, str]]:
    """Remarks on differences that are no reason to stop, each with its kind."""
    url = without_query(info.base_url)
    for key in IDENTIFYING:
        before, now = _last(earlier, key), info.facts.get(key)
        if before is not None and now is None:
            silent = f"{url} does not give its {key}, which was '{before[0]}' on {_date_of(before[1].at)}"
            yield "silent", f"{place}: {silent}: the weights may have changed, and the cell continues"
    before, now = _last(earlier, "created"), info.facts.get("created")
    if before is not None and now is not None and before[0] != now:
        created = f"{url} says created {_moment(now)}, and before {_moment(before[0])}"
        yield "created", f"{place}: {created}: id and root are the same, and the cell continues"


def _last(earlier: Sequence[EndpointRecord], key: str) -> tuple[Any, EndpointRecord] | None:
    """The last known value of a fact, and the endpoint that stated it."""
    return next(((record.facts[key], record) for record in reversed(earlier) if key in record.facts), None)


def _moment(value: Any) -> str:
    return _date_of(value) if isinstance(value, int | float) and 0 < value < 10**11 else str(value)


def _date_of(seconds: float) -> str:
    """A time in this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def without_query(base_url: str) -> str:
    """An address without its query, which may hold a key."""
    return base_url.partition("?")[0]


def temperatures(cell: Cell, journal: Journal) -> dict[str, Any]:
    """The entry of metrics.json about endpoints that refused their temperature, by place; empty without any."""
    found = dict[str, Any]()
    for record in journal.endpoints():
        if TEMPERATURE in record.facts and record.place in cell.endpoints:
            configured = getattr(cell.endpoints[record.place], TEMPERATURE, None)
            entry = found.setdefault(record.place, {"configured": configured, "sent": []})
            entry["sent"].append(record.facts[TEMPERATURE])
    return {TEMPERATURES: found} if found else {}


def is_finished(cell: Cell, journal: Journal) -> bool:
    """Whether every session of the cell is completed."""
    ids = (session_id(cell.id, task.task_id) for task in tasks_needed(cell, journal))
    return all(journal.outline(identity, completed=True) for identity in ids)


async def recall(cell: Cell, journal: Journal) -> tuple[Cell, str, list[str]]:
    """A finished cell with the addresses that answered it, when and where it was finished, and remarks.

    Only an endpoint at a new address is asked. Raises `UserError` if it serves another checkpoint.
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
    return replace(cell, config=config), words, notes


def _answered(cell: Cell, journal: Journal) -> dict[str, list[EndpointRecord]]:
    """The endpoints that answered, by place; for an older journal without records, by the folder's config.yaml."""
    answered: dict[str, list[EndpointRecord]] = {}
    for place in cell.endpoints:
        records = [each for each in journal.endpoints() if each.place == place]
        charge = journal.ledger.of.get(role_of(place))
        if not records and charge is not None and charge.calls and (address := _address_in(cell.folder, place)):
            records = [EndpointRecord(place, address, "{}", (), 0.0)]
        if records:
            answered[place] = records
    return answered


async def _compare(place: str, model: ModelConfig, earlier: list[EndpointRecord]) -> str:
    """A remark about an endpoint at a new address. Raises `UserError` if it serves another checkpoint."""
    new, old = without_query(str(address_of(model))), without_query(earlier[-1].base_url)
    figures = f"the figures come from {old}"
    info = await describe_endpoint(model)
    if info is None:
        return f"{place}: {new} does not answer at once, so it is not compared: {figures}"
    refuse_other_weights(place, model, earlier, info)
    if not info.facts or not any(record.facts for record in earlier):
        silent = new if not info.facts else old
        return f"{place}: {new} was not asked for any reply, and {silent} gives nothing to compare by: {figures}"
    return f"{place}: {new} gives the same id and root, and was not asked for any reply: {figures}"


def _described(place: str, model: ModelConfig, record: EndpointRecord) -> str:
    root = record.facts.get("root")
    weights = f" (root {root})" if root not in (None, model.name) else ""
    who = model.name if place == UNDER_TEST else f"{place} {model.name}"
    return f"{who} at {without_query(record.base_url)}{weights}"


def _at_address(config: Any, place: list[str], address: str) -> Any:
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
