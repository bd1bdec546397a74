"""Who answers a cell's calls: recorded in its journal, and another checkpoint under the same name is refused."""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from codechat.engine.config import CellConfig
from codechat.errors import UserError
from codechat.journal import Journal, Met
from codechat.models import MODELS, UNDER_TEST, ModelConfig
from codechat.models.endpoints import IDENTIFYING, Introducing, Statement, address_of, read_statement
from codechat.models.roles import models_in


def endpoints_of(config: CellConfig) -> dict[str, ModelConfig]:
    """The models behind endpoints that the cell may ask, by their place in the config."""
    places = {UNDER_TEST: config.model, **dict(models_in(config.protocol, "protocol"))}
    if "judge" in config.uses:
        places |= dict(models_in(config.judge, "judge"))
    return {place: each for place, each in places.items() if address_of(each) is not None}


async def introduction_of(config: ModelConfig) -> Statement | None:
    """What the endpoint of a model says of itself; None if it does not answer at once, or cannot be asked."""
    model = MODELS.build(config)
    try:
        return await model.introduction() if isinstance(model, Introducing) else None
    finally:
        await model.aclose()


class Register:
    """The witness of one cell, on its journal. `note` gets remarks for the user, one a place."""

    def __init__(self, config: CellConfig, journal: Journal, note: Callable[[str], None]) -> None:
        self._journal, self._note = journal, note
        self._places = endpoints_of(config)
        self._met: dict[str, list[Met]] = {place: [] for place in self._places}
        for met in journal.met():
            self._met.setdefault(met.place, []).append(met)
        self._noted: set[tuple[str, str]] = set()
        self._heard: set[tuple[int, str]] = set()

    def known(self, config: ModelConfig) -> Statement | None:
        address = address_of(config)
        for place in self.places(config):
            for met in reversed(self._met[place]):
                if met.base_url == address:
                    return read_statement(met.base_url, met.said)
        return None

    async def check_again(self) -> None:
        """Ask the endpoints that the cell was begun with, before any call. Raises `UserError` for another checkpoint.

        One that does not answer at once is checked before its first call.
        """
        for place, config in self._places.items():
            if any(_facts(met) for met in self._met[place]):
                said = await introduction_of(config)
                if said is not None:
                    refuse_other_weights(place, config, self._met[place], said)

    async def meets(self, config: ModelConfig, said: Statement) -> None:
        for place in self.places(config):
            refuse_other_weights(place, config, self._met[place], said)
            refuse_other_length(place, config, said)
            for kind, text in _remarks(place, self._met[place], said):
                self._remark(place, kind, text)
        for place in self.places(config):
            await self._record(place, Met(place, said.base_url, said.text(), (), time.time()))

    async def hears(self, config: ModelConfig, fingerprint: str) -> None:
        if (id(config), fingerprint) in self._heard:
            return
        self._heard.add((id(config), fingerprint))
        for place in self.places(config):
            known = {each for met in self._met[place] for each in met.fingerprints}
            if known and fingerprint not in known:
                text = f"replies carry the fingerprint {fingerprint}, earlier ones {_listed(known)}"
                self._remark(place, "fingerprint", f"{place}: {text}: it is recorded, and the cell goes on")
            last = self._met[place][-1]
            await self._record(place, last._replace(fingerprints=(fingerprint,)))

    async def _record(self, place: str, met: Met) -> None:
        """Record an endpoint, with all fingerprints that it had under the same words."""
        same = [each for each in self._met[place] if (each.base_url, each.said) == (met.base_url, met.said)]
        heard = [name for each in (*same, met) for name in each.fingerprints]
        whole = met._replace(fingerprints=tuple(dict.fromkeys(heard)))
        self._met[place] = [*(each for each in self._met[place] if each not in same), whole]
        await self._journal.meet(whole)

    def places(self, config: ModelConfig) -> list[str]:
        return [place for place, each in self._places.items() if each == config]

    def _remark(self, place: str, kind: str, text: str) -> None:
        if (place, kind) not in self._noted:
            self._noted.add((place, kind))
            self._note(text)


def refuse_other_weights(place: str, config: ModelConfig, earlier: Sequence[Met], said: Statement) -> None:
    """Raise `UserError` if the endpoint's id or root differs from what the cell's endpoints said before."""
    for key in IDENTIFYING:
        before, now = _last(earlier, key), said.facts.get(key)
        if before is None or now is None or before[0] == now:
            continue
        apart = f"{place}.weights.revision=NAME or another runs_dir" if hasattr(config, "weights") else "runs_dir"
        raise UserError(
            f"{place}: {shown(said.base_url)} serves another checkpoint than this cell was begun with: its {key} is "
            f"'{now}', and was '{before[0]}' at {shown(before[1].base_url)} on {date_of(before[1].met)}",
            f"to measure it apart, set {apart}; to go on with this cell, serve the earlier checkpoint",
        )


def refuse_other_length(place: str, config: ModelConfig, said: Statement) -> None:
    """Raise `UserError` if the endpoint takes conversations of another length than the config says."""
    weights = getattr(config, "weights", None)
    wanted, told = getattr(weights, "max_model_len", None), said.facts.get("max_model_len")
    if wanted is not None and told is not None and told != wanted:
        raise UserError(
            f"{place}: {shown(said.base_url)} takes conversations of {told} tokens (max_model_len), and "
            f"{place}.weights.max_model_len={wanted}",
            f"start that server with --max-model-len {wanted}, or set {place}.weights.max_model_len={told}",
        )


def _remarks(place: str, earlier: Sequence[Met], said: Statement) -> Iterable[tuple[str, str]]:
    """What differs from before without being a reason to stop, each with its kind."""
    url = shown(said.base_url)
    for key in IDENTIFYING:
        before, now = _last(earlier, key), said.facts.get(key)
        if before is not None and now is None:
            yield (
                "silent",
                (
                    f"{place}: {url} does not tell its {key}, which was '{before[0]}' on {date_of(before[1].met)}: "
                    "whether it serves the same weights is not known, and the cell goes on"
                ),
            )
    before, now = _last(earlier, "created"), said.facts.get("created")
    if before is not None and now is not None and before[0] != now:
        yield (
            "created",
            (
                f"{place}: {url} says created {_moment(now)}, and before {_moment(before[0])}: "
                "id and root are the same, and the cell goes on"
            ),
        )


def _last(earlier: Sequence[Met], key: str) -> tuple[Any, Met] | None:
    """What was said last under a key, and by whom."""
    return next(((_facts(met)[key], met) for met in reversed(earlier) if key in _facts(met)), None)


def _facts(met: Met) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(met.said)
    return facts


def _moment(value: Any) -> str:
    return date_of(value) if isinstance(value, int | float) and 0 < value < 10**11 else str(value)


def _listed(names: Iterable[str]) -> str:
    first, *rest = sorted(names)
    return f"{first} and {len(rest)} more" if rest else first


def date_of(seconds: float) -> str:
    """A time as people write it, in this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def shown(base_url: str) -> str:
    """An address without its query, which may hold a key."""
    return base_url.partition("?")[0]
