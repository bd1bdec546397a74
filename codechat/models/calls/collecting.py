"""One model's requests on their way into batches and back: collected, submitted, followed, distributed."""

import asyncio
import secrets
import time
from collections.abc import Collection, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

from codechat.models.calls.batches import (
    DESK,
    Batch,
    BatchProtocol,
    Declined,
    Desk,
    Label,
    Lost,
    Pace,
    Result,
    State,
    Unreached,
    Unsure,
)
from codechat.models.calls.brake import BRAKE
from codechat.models.calls.limits import COUNTERS

MOST_FAILED_POLLS = 20
SUBMITTED = State("submitted", 0, ended=False)


@dataclass(slots=True)
class _Asked:
    """A request that waits to be sent."""

    body: bytes
    label: Label
    answer: "asyncio.Future[Result]"


@dataclass
class _Followed:
    """A batch that is under way: those who wait for its answers, and the answers that nobody has asked for yet."""

    batch: Batch
    task: "asyncio.Task[None] | None" = None
    answers: dict[str, "asyncio.Future[Result]"] = field(default_factory=dict)
    results: dict[str, Result] | None = None
    state: State = SUBMITTED
    submitting: bool = False


class Collector:
    """One model's requests: collects, submits, follows and distributes them. Belongs to one event loop."""

    def __init__(self, protocol: BatchProtocol, pace: Pace) -> None:
        self._protocol, self._pace = protocol, pace
        self._size = min(pace.size, protocol.most_requests)
        self._desk = DESK.get() or Desk()
        self._desk.collectors.append(self)
        _COLLECTORS.add(self)
        self._queue: dict[str, _Asked] = {}
        self._bytes, self._since = 0, 0.0
        self._followed: dict[str, _Followed] = {}
        self._submitting: set[asyncio.Task[None]] = set()

    @property
    def is_old(self) -> bool:
        """Whether its oldest request has waited long enough."""
        return bool(self._queue) and time.monotonic() - self._since >= self._pace.age_s

    async def ask(self, body: bytes, label: Label) -> Result:
        """The answer to a request, from the batch that it is in or will be in. Raises `Lost`."""
        key = label.key(body)
        with self._desk.waits(label.unit):
            batch = self._desk.batch_of(key)
            answer = self._collect(key, body, label) if batch is None else await self._attach(batch, key, label)
            result = await asyncio.shield(answer)
        if result.status == 0:
            raise Lost(result.body.decode())
        if result.is_good:
            label.answered = key
        return result

    async def reject(self, label: Label) -> None:
        """The answer that was returned last cannot be read: the request may be sent again."""
        if label.answered:
            await self._desk.release([label.answered])
            label.answered = ""

    def give_up(self, why: str) -> None:
        """Let nobody wait any longer: what is submitted stays so."""
        for asked in self._queue.values():
            _lose(asked.answer, why)
        self._queue.clear()
        for followed in self._followed.values():
            for answer in followed.answers.values():
                _lose(answer, why)

    async def aclose(self) -> None:
        """Stop following; batches go on at the provider."""
        self.give_up("closed")
        tasks = [*self._submitting, *(each.task for each in self._followed.values() if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._desk.collectors.remove(self)

    # -- collecting ------------------------------------------------------------------------------------------------

    def _collect(self, key: str, body: bytes, label: Label) -> "asyncio.Future[Result]":
        if key not in self._queue:
            if not self._queue:
                self._since = time.monotonic()
            self._queue[key] = _Asked(body, label, asyncio.get_running_loop().create_future())
            self._bytes += len(body)
            answer = self._queue[key].answer
            if len(self._queue) >= self._size or self._bytes >= self._protocol.most_bytes:
                self.flush()
            return answer
        return self._queue[key].answer

    def flush(self) -> None:
        """Submit what is collected."""
        if self._queue:
            queue, self._queue, self._bytes = self._queue, {}, 0
            task = asyncio.create_task(_guard([each.answer for each in queue.values()], self._submit(queue)))
            self._submitting.add(task)
            task.add_done_callback(self._submitting.discard)

    async def _submit(self, queue: dict[str, _Asked]) -> None:
        asked = dict(self._affordable(queue))
        if not asked:
            return
        batch = Batch(secrets.token_hex(8), len(asked), time.time())
        followed = self._followed[batch.name] = _Followed(batch, submitting=True)
        followed.answers = {key: each.answer for key, each in asked.items()}
        for each in asked.values():
            self._charge_later(each.label, each.answer)
        COUNTERS.batches += 1
        requests = {key: each.body for key, each in asked.items()}
        await self._desk.begin(batch, requests.keys())
        try:
            await self._name(followed, file=await self._protocol.upload(batch, requests))
        except (Unreached, Declined) as problem:
            await self._not_made(followed, problem)
            return
        try:
            await self._name(followed, remote=await self._protocol.create(followed.batch, requests))
        except Declined as problem:
            await self._not_made(followed, problem)
            return
        except Unreached:
            pass  # it may have been made: that is looked up
        followed.submitting = False
        self._follow(followed)

    async def _name(self, followed: _Followed, **names: str) -> None:
        followed.batch = replace(followed.batch, **names)  # type: ignore[arg-type]  # names are texts
        await self._desk.update(followed.batch)

    def _affordable(self, queue: dict[str, _Asked]) -> Iterator[tuple[str, _Asked]]:
        """The requests that the budget has room for; nobody waits for the others any more."""
        brake = BRAKE.get()
        for key, asked in queue.items():
            self._desk.store.expect(asked.label.payer, asked.label.expected)
            if not brake.reason:
                yield key, asked
            else:
                self._desk.store.expect_no_more(asked.label.payer, asked.label.expected)
                _lose(asked.answer, brake.reason)

    def _charge_later(self, label: Label, answer: "asyncio.Future[Result]") -> None:
        """The expected tokens count until the request has its answer."""
        answer.add_done_callback(lambda _: self._desk.store.expect_no_more(label.payer, label.expected))

    async def _not_made(self, followed: _Followed, problem: Exception) -> None:
        result = Result(0, f"no batch could be made: {problem}".encode())
        if isinstance(problem, Declined):
            result = Result(problem.status, problem.body)
        await self._desk.release(list(followed.answers))
        self._end(followed, result)

    # -- following -------------------------------------------------------------------------------------------------

    async def _attach(self, batch: Batch, key: str, label: Label) -> "asyncio.Future[Result]":
        """The answer to a request of a batch that was made before, perhaps by another process."""
        followed = self._followed.get(batch.name)
        if followed is None or (followed.results is not None and key not in followed.results):
            followed = self._followed[batch.name] = _Followed(batch)  # its results are fetched, again if need be
        answer = followed.answers.get(key)
        if answer is None or answer.done():
            answer = followed.answers[key] = asyncio.get_running_loop().create_future()
            self._desk.store.expect(label.payer, label.expected)
            self._charge_later(label, answer)
        if followed.results is not None:
            await self._distribute(followed)
        elif not followed.submitting:
            self._follow(followed)
        return answer

    def _follow(self, followed: _Followed) -> None:
        if followed.task is None or followed.task.done():
            followed.task = asyncio.create_task(_guard(followed.answers.values(), self._watch(followed)))

    async def _watch(self, followed: _Followed) -> None:
        """Follow a batch to its end, and give its answers to those who wait."""
        failed = 0
        while followed.results is None:
            try:
                if not followed.batch.remote and not await self._is_found(followed):
                    return
                followed.state = await self._protocol.state(followed.batch)
                if followed.state.ended:
                    followed.results = dict(await self._protocol.results(followed.batch, followed.state))
                    break
                failed = 0
            except Unsure:
                pass
            except (Unreached, LookupError, TypeError, ValueError, AttributeError) as problem:  # or of another shape
                failed += 1
                if failed >= MOST_FAILED_POLLS:
                    self._end(followed, Result(0, f"batch {followed.batch.remote}: {problem}".encode()))
                    return
            except Declined as problem:
                if problem.status == 404:  # it is not there any more
                    await self._desk.release(list(followed.answers))
                    self._end(followed, Result(0, f"batch {followed.batch.remote} is gone".encode()))
                else:
                    self._end(followed, Result(problem.status, problem.body))
                return
            await asyncio.sleep(self._pace.poll_s)
        await self._distribute(followed)

    async def _is_found(self, followed: _Followed) -> bool:
        """Look up a batch whose making was not answered. If it was not made, its requests may be sent again."""
        keys = self._desk.store.keys_of(followed.batch) or list(followed.answers)
        remote = await self._protocol.find(followed.batch, keys)
        if remote:
            await self._name(followed, remote=remote)
            return True
        await self._desk.release(keys)
        self._end(followed, Result(0, b"its batch was never made"))
        return False

    async def _distribute(self, followed: _Followed) -> None:
        """Give the answers of an ended batch to those who wait; the others are kept until they are asked for."""
        assert followed.results is not None
        why = followed.state.problem or f"the batch has the state {followed.state.word}, and no answer to this request"
        none = Result(0, why.encode())
        due = {key: followed.results.get(key, none) for key, answer in followed.answers.items() if not answer.done()}
        if unanswered := [key for key, result in due.items() if not result.is_good]:
            await self._desk.release(unanswered)
        for key, result in due.items():
            followed.results.pop(key, None)
            _give(followed.answers.pop(key), result)
        if not followed.results:
            self._followed.pop(followed.batch.name, None)

    def _end(self, followed: _Followed, result: Result) -> None:
        """Nobody waits for a batch any longer; one that was made is followed again when it is asked for."""
        self._followed.pop(followed.batch.name, None)
        for answer in followed.answers.values():
            _give(answer, result)

    # -- progress --------------------------------------------------------------------------------------------------

    def words(self) -> Iterator[str]:
        """What waits where."""
        if self._queue:
            yield f"{len(self._queue):,} collected"
        for followed in self._followed.values():
            waiting = sum(1 for answer in followed.answers.values() if not answer.done())
            if waiting:
                state = followed.state
                yield f"batch of {followed.batch.size:,}: {state.word.replace('_', ' ')}, {state.done:,} done"


async def _guard(answers: Collection["asyncio.Future[Result]"], work: Coroutine[Any, Any, None]) -> None:
    """Work that answers depend on: its failure is theirs."""
    try:
        await work
    except Exception as failure:  # noqa: BLE001  raised by those who wait
        for answer in list(answers):
            if not answer.done():
                answer.set_exception(failure)


def _give(answer: "asyncio.Future[Result]", result: Result) -> None:
    if not answer.done():
        answer.set_result(result)


def _lose(answer: "asyncio.Future[Result]", why: str) -> None:
    _give(answer, Result(0, why.encode()))


_COLLECTORS: "WeakSet[Collector]" = WeakSet()


def batches_in_words() -> list[str]:
    """What waits where, over all models of this process."""
    return [words for collector in list(_COLLECTORS) for words in collector.words()]
