"""Paid replies, kept across cells and processes: the same question is asked once, also if two calls ask it at a time.

The journal is the truth: the cache is written later, in groups, and an unusable file causes one warning and nothing
else.

A provider uses it in one line, and calls `settle` when it closes::

    reply = await recall_or_ask(CachedQuestion(address, name, body, sample), lambda: self._ask(request))
"""

import asyncio
import contextlib
import json
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codechat.base.domain import Reply, Usage
from codechat.base.files import content_hash
from codechat.models.calls.cache_file import BUSY, WrongSchema, location, open_file, unfit, write
from codechat.models.calls.limits import COUNTERS

log = logging.getLogger(__name__)

GROUPING_S = 0.25
"""Replies within so many seconds share a transaction."""
MOST_USES = 1_000
"""Uses of replies that are noted in memory before they are written."""


@dataclass(frozen=True, slots=True)
class CachedQuestion:
    """Everything that determines an answer: the address of the API, the model, and the request's whole body.

    `sample` numbers independent draws; None if decoding is greedy, so that there is only one answer. `weights` says
    which weights answer to the model's name, empty if nothing is known of them.
    """

    address: str
    model: str
    body: Mapping[str, Any]
    sample: int | None
    weights: str = ""

    def key(self) -> str:
        """The key of the reply in the cache."""
        parts = [self.address, self.model, self.body, self.sample]
        return content_hash([*parts, self.weights] if self.weights else parts)


def is_final(reply: Reply) -> bool:
    """Whether the same question would get this answer again; a provider's filter differs from day to day."""
    return reply.finish_reason != "content_filter"


async def recall_or_ask(
    question: CachedQuestion | None, ask: Callable[[], Awaitable[Reply]], keep: Callable[[Reply], bool] = is_final
) -> Reply:
    """The cached reply, with its recorded usage and latency; else that of `ask`, cached if `keep` agrees.

    If the same question is already under way, this call waits for its reply and takes it as a cached one. If that reply
    is not to be kept, this call asks for itself; if that call was cancelled, this one takes its place. A question of
    None is never cached. Raises only what `ask` raises.
    """
    if question is None:
        return await ask()
    place = (asyncio.get_running_loop(), location(), question.key())
    while (known := _shelf(place[1]).recall(place[2])) is None:
        first = _UNDER_WAY.get(place)
        if first is None:
            return await _ask_first(place, question.model, ask, keep)
        outcome = await asyncio.shield(first)
        if outcome is None:
            return (await _ask(place, question.model, ask, keep))[0]
        if outcome.reply is not None:
            known = outcome.reply
            break
    COUNTERS.cache_hits += 1
    return known


def has(question: CachedQuestion) -> bool:
    """Whether the cache has a reply."""
    return _shelf(location()).get(question.key()) is not None


def recall(question: CachedQuestion) -> Reply | None:
    """The cached reply, which counts as used: for who decides by itself whether it still holds."""
    return _shelf(location()).recall(question.key())


def keep(question: CachedQuestion, reply: Reply) -> None:
    """Keep a reply, unless there is one already; `settle` before the event loop ends."""
    _shelf(location()).put(question.key(), question.model, reply)


async def settle() -> None:
    """Write what is pending and close the files; the next question opens them again."""
    for path, shelf in list(_SHELVES.items()):
        await shelf.settle()
        if not shelf.broken and _SHELVES.get(path) is shelf:  # a broken one stays, so that it is reported once
            del _SHELVES[path]


# -- questions under way -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answered:
    """How the first caller's question ended: with a reply to share, as the cache gives it; None if it was cancelled."""

    reply: Reply | None


_Place = tuple[asyncio.AbstractEventLoop, Path, str]
_UNDER_WAY: dict[_Place, "asyncio.Future[_Answered | None]"] = {}
"""Questions under way, by loop, file and key. The future is None if its reply is not to be shared."""


async def _ask_first(
    place: _Place, model: str, ask: Callable[[], Awaitable[Reply]], keep: Callable[[Reply], bool]
) -> Reply:
    under_way = _UNDER_WAY[place] = place[0].create_future()
    outcome: _Answered | None = None
    try:
        reply, kept = await _ask(place, model, ask, keep)
        outcome = _Answered(_reply(_text(reply))) if kept else None
        return reply
    except asyncio.CancelledError:
        outcome = _Answered(None)
        raise
    finally:
        del _UNDER_WAY[place]
        under_way.set_result(outcome)


async def _ask(
    place: _Place, model: str, ask: Callable[[], Awaitable[Reply]], keep: Callable[[Reply], bool]
) -> tuple[Reply, bool]:
    """The reply, and whether it went into the cache."""
    reply = await ask()
    kept = keep(reply)
    if kept:
        _shelf(place[1]).put(place[2], model, reply)
    return reply, kept


# -- the file ----------------------------------------------------------------------------------------------------


class _Shelf:
    """One process's use of the file. After an error the file is not touched again, as if it were empty."""

    def __init__(self, path: Path) -> None:
        self.broken = False
        self._path = path
        self._pending: dict[str, tuple[str, str]] = {}
        self._used: dict[str, int] = {}
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._files = contextlib.ExitStack()
        if reason := unfit(path):
            self.broken = True
            log.warning("the response cache %s is not used: %s", path, reason)
            return
        try:
            self._writer = self._files.enter_context(contextlib.closing(open_file(path)))
            self._reader = self._files.enter_context(contextlib.closing(open_file(path, wait_s=0.05)))
        except (sqlite3.Error, OSError, WrongSchema) as problem:
            self._files.close()
            self._give_up(problem)

    def get(self, key: str) -> Reply | None:
        """An indexed read of some 20 µs; None if the file is busy."""
        if self.broken:
            return None
        try:
            if key in self._pending:
                return _reply(self._pending[key][1])
            row = self._reader.execute("SELECT reply FROM replies WHERE key=?", (key,)).fetchone()
            return None if row is None else _reply(row[0])
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode not in BUSY:
                self._give_up(problem)
        except (sqlite3.Error, ValueError, TypeError) as problem:
            self._give_up(problem)
        return None

    def recall(self, key: str) -> Reply | None:
        """The same, and it counts as a use of the reply, which will leave the file later for it."""
        found = self.get(key)
        if found is not None:
            self._used[key] = time.time_ns() // 1_000_000
            if len(self._used) >= MOST_USES:
                self._begin_writing()
        return found

    def put(self, key: str, model: str, reply: Reply) -> None:
        """Keep a reply; a thread writes it a moment later."""
        if self.broken:
            return
        self._pending[key] = (model, _text(reply))
        self._begin_writing()

    def _begin_writing(self) -> None:
        if self._writing is None or self._writing.done():
            self._hurry = asyncio.Event()
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while self._pending or len(self._used) >= MOST_USES:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), GROUPING_S)
            await self._commit()

    async def _commit(self) -> None:
        """Write what is pending, which is found in memory until then."""
        batch, used = dict(self._pending), self._used
        self._used = {}
        await asyncio.to_thread(self._store, batch, used)
        for key in batch:
            self._pending.pop(key, None)

    def _store(self, batch: Mapping[str, tuple[str, str]], used: Mapping[str, int]) -> None:
        try:
            rows = [(key, *each) for key, each in batch.items()]
            write(self._writer, rows, [(when, key) for key, when in used.items()])
        except sqlite3.Error as problem:
            if batch:  # else only the order in which replies will leave is not noted
                self._give_up(problem)

    async def settle(self) -> None:
        """Write what is pending, and close."""
        if self._writing is not None and not self._writing.done():
            self._hurry.set()
            await self._writing
        if (self._pending or self._used) and not self.broken:  # a write may be lost with an event loop that ended
            await self._commit()
        self._files.close()

    def _give_up(self, problem: Exception) -> None:
        if not self.broken:
            self.broken = True
            log.warning("the response cache %s is not used: %s; `codechat cache clear` renews it", self._path, problem)


def _text(reply: Reply) -> str:
    usage = reply.usage
    counted = [usage.input_tokens, usage.output_tokens, usage.cached_input_tokens]
    more = usage.fields() if usage.tiers or usage.cache_write_tokens else counted  # a form that all versions read
    return json.dumps([reply.text, reply.finish_reason, more, reply.latency_s])


def _reply(text: str) -> Reply:
    answer, finish_reason, counted, latency_s = json.loads(text)
    usage = Usage.of(counted) if isinstance(counted, dict) else Usage(*counted)
    return Reply(answer, finish_reason, latency_s, usage=usage, cached=True)


_SHELVES: dict[Path, _Shelf] = {}


def _shelf(path: Path) -> _Shelf:
    if path not in _SHELVES:
        _SHELVES[path] = _Shelf(path)
    return _SHELVES[path]
