"""One model's requests on their way into batches and back: collected, submitted, followed, distributed."""

import asyncio
import secrets
import time
from collections.abc import Collection, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

from codechat.models.calls.batches import (
    BATCH_SCHEDULER,
    Batch,
    BatchPolicy,
    BatchProtocol,
    BatchScheduler,
    Declined,
    Lost,
    RequestKey,
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
class _Pending:
    """A request that waits to be sent."""

    body: bytes
    call: RequestKey
    answer: "asyncio.Future[Result]"


@dataclass
class _RunningBatch:
    """A batch that is under way: those who wait for its answers, and the answers that nobody has asked for yet."""

    batch: Batch
    task: "asyncio.Task[None] | None" = None
    answers: dict[str, "asyncio.Future[Result]"] = field(default_factory=dict)
    results: dict[str, Result] | None = None
    state: State = SUBMITTED
    submitting: bool = False


class BatchQueue:
    """One model's requests: collects, submits, follows and distributes them. Belongs to one event loop."""

    def __init__(self, protocol: BatchProtocol, policy: BatchPolicy) -> None:
        self._protocol, self._policy = protocol, policy
        self._size = min(policy.size, protocol.most_requests)
        self._scheduler = BATCH_SCHEDULER.get() or BatchScheduler()
        self._scheduler.queues.append(self)
        _QUEUES.add(self)
        self._queue: dict[str, _Pending] = {}
        self._bytes, self._since = 0, 0.0
        self._running: dict[str, _RunningBatch] = {}
        self._submitting: set[asyncio.Task[None]] = set()

    @property
    def is_old(self) -> bool:
        """Whether its oldest request has waited long enough."""
        return bool(self._queue) and time.monotonic() - self._since >= self._policy.age_s

    async def ask(self, body: bytes, call: RequestKey) -> Result:
        """The answer to a request, from the batch that it is in or will be in. Raises `Lost`."""
        key = call.key(body)
        with self._scheduler.waits(call.unit):
            batch = self._scheduler.batch_of(key)
            answer = self._collect(key, body, call) if batch is None else await self._attach(batch, key, call)
            result = await asyncio.shield(answer)
        if result.status == 0:
            raise Lost(result.body.decode())
        if result.is_good:
            call.answered = key
        return result

    async def reject(self, call: RequestKey) -> None:
        """The answer that was returned last cannot be read: the request may be sent again."""
        if call.answered:
            await self._scheduler.release([call.answered])
            call.answered = ""

    def give_up(self, why: str) -> None:
        """Let nobody wait any longer: what is submitted stays so."""
        for asked in self._queue.values():
            _lose(asked.answer, why)
        self._queue.clear()
        for running in self._running.values():
            for answer in running.answers.values():
                _lose(answer, why)

    async def aclose(self) -> None:
        """Stop following; batches go on at the provider."""
        self.give_up("closed")
        tasks = [*self._submitting, *(each.task for each in self._running.values() if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._scheduler.queues.remove(self)

    # -- collecting ------------------------------------------------------------------------------------------------

    def _collect(self, key: str, body: bytes, call: RequestKey) -> "asyncio.Future[Result]":
        if key not in self._queue:
            if not self._queue:
                self._since = time.monotonic()
            self._queue[key] = _Pending(body, call, asyncio.get_running_loop().create_future())
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

    async def _submit(self, queue: dict[str, _Pending]) -> None:
        asked = dict(self._affordable(queue))
        if not asked:
            return
        batch = Batch(secrets.token_hex(8), len(asked), time.time())
        running = self._running[batch.name] = _RunningBatch(batch, submitting=True)
        running.answers = {key: each.answer for key, each in asked.items()}
        for each in asked.values():
            self._charge_later(each.call, each.answer)
        COUNTERS.batches += 1
        requests = {key: each.body for key, each in asked.items()}
        await self._scheduler.begin(batch, requests.keys())
        try:
            await self._name(running, file=await self._protocol.upload(batch, requests))
        except (Unreached, Declined) as problem:
            await self._not_made(running, problem)
            return
        try:
            await self._name(running, remote=await self._protocol.create(running.batch, requests))
        except Declined as problem:
            await self._not_made(running, problem)
            return
        except Unreached:
            pass  # it may have been made: that is looked up
        running.submitting = False
        self._follow(running)

    async def _name(self, running: _RunningBatch, **names: str) -> None:
        running.batch = replace(running.batch, **names)  # type: ignore[arg-type]  # names are texts
        await self._scheduler.update(running.batch)

    def _affordable(self, queue: dict[str, _Pending]) -> Iterator[tuple[str, _Pending]]:
        """The requests that the budget has room for; nobody waits for the others any more."""
        brake = BRAKE.get()
        for key, asked in queue.items():
            self._scheduler.store.expect(asked.call.payer, asked.call.expected)
            if not brake.reason:
                yield key, asked
            else:
                self._scheduler.store.expect_no_more(asked.call.payer, asked.call.expected)
                _lose(asked.answer, brake.reason)

    def _charge_later(self, call: RequestKey, answer: "asyncio.Future[Result]") -> None:
        """The expected tokens count until the request has its answer."""
        answer.add_done_callback(lambda _: self._scheduler.store.expect_no_more(call.payer, call.expected))

    async def _not_made(self, running: _RunningBatch, problem: Exception) -> None:
        result = Result(0, f"no batch could be made: {problem}".encode())
        if isinstance(problem, Declined):
            result = Result(problem.status, problem.body)
        await self._scheduler.release(list(running.answers))
        self._end(running, result)

    # -- following -------------------------------------------------------------------------------------------------

    async def _attach(self, batch: Batch, key: str, call: RequestKey) -> "asyncio.Future[Result]":
        """The answer to a request of a batch that was made before, perhaps by another process."""
        running = self._running.get(batch.name)
        if running is None or (running.results is not None and key not in running.results):
            running = self._running[batch.name] = _RunningBatch(batch)  # its results are fetched, again if need be
        answer = running.answers.get(key)
        if answer is None or answer.done():
            answer = running.answers[key] = asyncio.get_running_loop().create_future()
            self._scheduler.store.expect(call.payer, call.expected)
            self._charge_later(call, answer)
        if running.results is not None:
            await self._distribute(running)
        elif not running.submitting:
            self._follow(running)
        return answer

    def _follow(self, running: _RunningBatch) -> None:
        if running.task is None or running.task.done():
            running.task = asyncio.create_task(_guard(running.answers.values(), self._watch(running)))

    async def _watch(self, running: _RunningBatch) -> None:
        """Follow a batch to its end, and give its answers to those who wait."""
        failed = 0
        while running.results is None:
            try:
                if not running.batch.remote and not await self._is_found(running):
                    return
                running.state = await self._protocol.state(running.batch)
                if running.state.ended:
                    running.results = dict(await self._protocol.results(running.batch, running.state))
                    break
                failed = 0
            except Unsure:
                pass
            except (Unreached, LookupError, TypeError, ValueError, AttributeError) as problem:  # or of another shape
                failed += 1
                if failed >= MOST_FAILED_POLLS:
                    self._end(running, Result(0, f"batch {running.batch.remote}: {problem}".encode()))
                    return
            except Declined as problem:
                if problem.status == 404:  # it is not there any more
                    await self._scheduler.release(list(running.answers))
                    self._end(running, Result(0, f"batch {running.batch.remote} is gone".encode()))
                else:
                    self._end(running, Result(problem.status, problem.body))
                return
            await asyncio.sleep(self._policy.poll_s)
        await self._distribute(running)

    async def _is_found(self, running: _RunningBatch) -> bool:
        """Look up a batch whose making was not answered. If it was not made, its requests may be sent again."""
        keys = self._scheduler.store.keys_of(running.batch) or list(running.answers)
        remote = await self._protocol.find(running.batch, keys)
        if remote:
            await self._name(running, remote=remote)
            return True
        await self._scheduler.release(keys)
        self._end(running, Result(0, b"its batch was never made"))
        return False

    async def _distribute(self, running: _RunningBatch) -> None:
        """Give the answers of an ended batch to those who wait; the others are kept until they are asked for."""
        assert running.results is not None
        why = running.state.problem or f"the batch has the state {running.state.word}, and no answer to this request"
        none = Result(0, why.encode())
        due = {key: running.results.get(key, none) for key, answer in running.answers.items() if not answer.done()}
        if unanswered := [key for key, result in due.items() if not result.is_good]:
            await self._scheduler.release(unanswered)
        for key, result in due.items():
            running.results.pop(key, None)
            _give(running.answers.pop(key), result)
        if not running.results:
            self._running.pop(running.batch.name, None)

    def _end(self, running: _RunningBatch, result: Result) -> None:
        """Nobody waits for a batch any longer; one that was made is followed again when it is asked for."""
        self._running.pop(running.batch.name, None)
        for answer in running.answers.values():
            _give(answer, result)

    # -- progress --------------------------------------------------------------------------------------------------

    def words(self) -> Iterator[str]:
        """What waits where."""
        if self._queue:
            yield f"{len(self._queue):,} collected"
        for running in self._running.values():
            waiting = sum(1 for answer in running.answers.values() if not answer.done())
            if waiting:
                state = running.state
                yield f"batch of {running.batch.size:,}: {state.word.replace('_', ' ')}, {state.done:,} done"


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


_QUEUES: "WeakSet[BatchQueue]" = WeakSet()


def batches_in_words() -> list[str]:
    """What waits where, over all models of this process."""
    return [words for queue in list(_QUEUES) for words in queue.words()]
