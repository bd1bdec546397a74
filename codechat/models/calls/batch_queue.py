"""A model's requests on their way into batches and back, see `codechat.models.calls.batches`."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Collection, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakSet

from codechat.base.domain import Usage
from codechat.base.texts import read_json
from codechat.models.calls.answers import OTHER_SHAPES, usage_in
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
MOST_LOOKS, LOOK_S = 8, 2.5
"""Looks for a batch whose creation was not answered, before its requests are sent again, and the least seconds between
them: a provider's list may show a new batch late."""
SUBMITTED = State("submitted", 0, ended=False)


@dataclass(slots=True)
class _Pending:
    body: bytes
    call: RequestKey
    answer: "asyncio.Future[Result]"


@dataclass
class _RunningBatch:
    """A batch under way: the futures of awaited answers, and the results that were not asked for yet.

    `calls` are the calls of the requests that this process knows, `again` further paid answers to one request, and
    `looks` how often the batch was not found.
    """

    batch: Batch
    calls: dict[str, RequestKey] = field(default_factory=dict)
    again: dict[str, list[Result]] = field(default_factory=dict)
    looks: int = 0
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
        self._unseen: list[_RunningBatch] = []  # given up, but perhaps made and paid
        self._submitting: set[asyncio.Task[None]] = set()

    @property
    def is_old(self) -> bool:
        return bool(self._queue) and time.monotonic() - self._since >= self._policy.age_s

    async def ask(self, body: bytes, call: RequestKey) -> Result:
        """The answer to a request, from its present or future batch. Raises `Lost`."""
        key = call.key(body)
        with self._scheduler.waits(call.unit):
            batch = self._scheduler.batch_of(key)
            answer = self._collect(key, body, call) if batch is None else await self._attach(batch, key, call)
            result = await asyncio.shield(answer)
        if result.status == 0:
            raise Lost(result.body.decode())
        if result.is_good:
            call.answered, call.body = key, result.body
        return result

    async def reject(self, call: RequestKey) -> None:
        """Release the request that was answered last, because the answer is unreadable: it may be sent again.

        The answer was paid all the same.
        """
        if call.answered:
            await self._scheduler.release([call.answered])
            await self._pay(call, call.body)
            call.answered, call.body = "", b""

    async def _pay(self, call: RequestKey, body: bytes) -> None:
        """Count an answer that no call returns."""
        await self._scheduler.store.charge(call.payer, paid_in(body))

    def give_up(self, why: str) -> None:
        """End every wait; submitted batches stay submitted."""
        running = (answer for each in self._running.values() for answer in each.answers.values())
        for answer in (*(pending.answer for pending in self._queue.values()), *running):
            _give(answer, Result(0, why.encode()))
        self._queue.clear()

    async def aclose(self) -> None:
        """Stop polling; batches continue at the provider."""
        self.give_up("closed")
        tasks = [*self._submitting, *(each.task for each in self._running.values() if each.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._scheduler.queues.remove(self)

    def _collect(self, key: str, body: bytes, call: RequestKey) -> "asyncio.Future[Result]":
        if key in self._queue:
            return self._queue[key].answer
        if not self._queue:
            self._since = time.monotonic()
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue[key] = _Pending(body, call, answer)
        self._bytes += len(body)
        if len(self._queue) >= self._size or self._bytes >= self._protocol.most_bytes:
            self.flush()
        return answer

    def flush(self) -> None:
        """Submit the collected requests."""
        if self._queue:
            queue, self._queue, self._bytes = self._queue, {}, 0
            self._begin(_guard([each.answer for each in queue.values()], self._submit(queue)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._submitting.add(task)
        task.add_done_callback(self._submitting.discard)

    async def _submit(self, queue: dict[str, _Pending]) -> None:
        pending = dict(self._affordable(queue))
        if not pending:
            return
        batch = Batch(secrets.token_hex(8), len(pending), time.time())
        running = self._running[batch.name] = _RunningBatch(batch, submitting=True)
        running.answers = {key: each.answer for key, each in pending.items()}
        running.calls = {key: each.call for key, each in pending.items()}
        for each in pending.values():
            self._charge_later(each.call, each.answer)
        COUNTERS.batches += 1
        requests = {key: each.body for key, each in pending.items()}
        await self._scheduler.begin(batch, requests.keys())
        uploaded = False
        try:
            await self._update(running, replace(batch, file=await self._protocol.upload(batch, requests)))
            uploaded = True
            remote = await self._protocol.create(running.batch, requests)
            await self._update(running, replace(running.batch, remote=remote))
        except (Unreached, Declined, *OTHER_SHAPES) as problem:
            if not uploaded or isinstance(problem, Declined):
                await self._not_made(running, problem)
                return
            # else the batch may exist: `_watch` looks it up
        running.submitting = False
        self._follow(running)

    async def _update(self, running: _RunningBatch, batch: Batch) -> None:
        running.batch = batch
        await self._scheduler.update(batch)

    def _affordable(self, queue: dict[str, _Pending]) -> Iterator[tuple[str, _Pending]]:
        """The requests within the budget; the others are lost."""
        brake = BRAKE.get()
        for key, pending in queue.items():
            self._scheduler.store.expect(pending.call.payer, pending.call.expected)
            if not brake.reason:
                yield key, pending
            else:
                self._scheduler.store.expect_no_more(pending.call.payer, pending.call.expected)
                _give(pending.answer, Result(0, brake.reason.encode()))

    def _charge_later(self, call: RequestKey, answer: "asyncio.Future[Result]") -> None:
        """Count the expected tokens until the answer arrives."""
        answer.add_done_callback(lambda _: self._scheduler.store.expect_no_more(call.payer, call.expected))

    async def _not_made(self, running: _RunningBatch, problem: Exception) -> None:
        await self._scheduler.release(list(running.answers))
        lost = Result(0, f"no batch could be made: {problem}".encode())
        self._end(running, Result(problem.status, problem.body) if isinstance(problem, Declined) else lost)

    async def _attach(self, batch: Batch, key: str, call: RequestKey) -> "asyncio.Future[Result]":
        """The answer to a request of an earlier batch, perhaps of another process."""
        running = self._running.get(batch.name)
        if running is None or (running.results is not None and key not in running.results):
            running = self._running[batch.name] = _RunningBatch(batch)  # fetches the results, perhaps again
        running.calls[key] = call
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
        """Poll a batch until it ends, and distribute the answers."""
        failed = 0
        while running.results is None:
            try:
                if not running.batch.remote and not await self._is_found(running):
                    return
                await self._look_for_unseen()
                running.state = await self._protocol.state(running.batch)
                if running.state.ended:
                    running.results, running.again = _sorted(await self._protocol.results(running.batch, running.state))
                    break
                failed = 0
            except Unsure:
                pass
            except (Unreached, *OTHER_SHAPES) as problem:
                failed += 1
                if failed >= MOST_FAILED_POLLS:
                    self._end(running, Result(0, f"batch {running.batch.remote}: {problem}".encode()))
                    return
            except Declined as problem:
                if problem.status == 404:
                    await self._scheduler.release(list(running.answers))
                    self._end(running, Result(0, f"batch {running.batch.remote} is gone".encode()))
                else:
                    self._end(running, Result(problem.status, problem.body))
                return
            await asyncio.sleep(self._policy.poll_s)
        await self._distribute(running)

    async def _is_found(self, running: _RunningBatch) -> bool:
        """Look up a batch whose creation was not answered, several times, because a list may show it late.

        If it does not exist, its requests may be sent again. Raises `Unsure`.
        """
        keys = self._scheduler.store.keys_of(running.batch) or list(running.answers)
        remote = await self._protocol.find(running.batch, keys)
        if remote:
            await self._update(running, replace(running.batch, remote=remote))
            return True
        running.looks += 1
        if running.looks < MOST_LOOKS:
            await asyncio.sleep(LOOK_S)
            raise Unsure
        await self._scheduler.release(keys)
        self._unseen.append(running)
        self._end(running, Result(0, b"its batch was never made"))
        return False

    async def _look_for_unseen(self) -> None:
        """Pay for batches that were given up, and exist after all: their requests were sent twice."""
        for lost in list(self._unseen):
            remote = ""
            with contextlib.suppress(Unsure, Unreached, Declined, *OTHER_SHAPES):
                remote = await self._protocol.find(lost.batch, list(lost.calls))
            if remote and lost in self._unseen:
                self._unseen.remove(lost)
                await self._update(lost, replace(lost.batch, remote=remote))
                self._begin(self._pay_for(lost))

    async def _pay_for(self, lost: _RunningBatch) -> None:
        """Count the answers of a batch that was given up; the expected tokens if its end is not seen."""
        paid = {key: call.expected for key, call in lost.calls.items()}
        try:
            for _ in range(MOST_FAILED_POLLS):
                with contextlib.suppress(Unreached, Declined, *OTHER_SHAPES):
                    state = await self._protocol.state(lost.batch)
                    if state.ended:
                        found, _ = _sorted(await self._protocol.results(lost.batch, state))
                        good = {key: result for key, result in found.items() if result.is_good}
                        paid = {key: paid_in(result.body) for key, result in good.items()}
                        break
                await asyncio.sleep(self._policy.poll_s)
        finally:
            known = [(lost.calls[key].payer, usage) for key, usage in paid.items() if key in lost.calls]
            await asyncio.gather(*(self._scheduler.store.charge(payer, usage) for payer, usage in known))

    async def _distribute(self, running: _RunningBatch) -> None:
        """Set the awaited answers of an ended batch; other results stay until they are asked for."""
        assert running.results is not None
        why = running.state.problem or f"the batch has the state {running.state.word}, and no answer to this request"
        none = Result(0, why.encode())
        awaited = {key: running.results.get(key, none) for key, answer in running.answers.items() if not answer.done()}
        if unanswered := [key for key, result in awaited.items() if not result.is_good]:
            await self._scheduler.release(unanswered)
        for key, result in awaited.items():
            running.results.pop(key, None)
            for second in running.again.pop(key, ()):
                await self._pay(running.calls[key], second.body)
            if key in running.answers:  # else a call that joined meanwhile has given it out
                _give(running.answers.pop(key), result)
        if not running.results:
            self._running.pop(running.batch.name, None)

    def _end(self, running: _RunningBatch, result: Result) -> None:
        """End the waits for a batch; a later request for it starts polling again."""
        self._running.pop(running.batch.name, None)
        for answer in running.answers.values():
            _give(answer, result)

    def words(self) -> Iterator[str]:
        """Progress, for people."""
        if self._queue:
            yield f"{len(self._queue):,} collected"
        for running in self._running.values():
            waiting = sum(1 for answer in running.answers.values() if not answer.done())
            if waiting:
                state = running.state
                yield f"batch of {running.batch.size:,}: {state.word.replace('_', ' ')}, {state.done:,} done"


def paid_in(body: bytes) -> Usage:
    """The tokens in the body of a good answer; none if they cannot be read."""
    try:
        return usage_in(read_json(body)["usage"])
    except OTHER_SHAPES:
        return Usage()


async def _guard(answers: Collection["asyncio.Future[Result]"], work: Coroutine[Any, Any, None]) -> None:
    """Run work that answers depend on; its exception becomes their exception."""
    try:
        await work
    except Exception as failure:  # noqa: BLE001  raised to every waiting call
        for answer in list(answers):
            if not answer.done():
                answer.set_exception(failure)


def _sorted(results: Iterator[tuple[str, Result]]) -> tuple[dict[str, Result], dict[str, list[Result]]]:
    """The answer to each request, a good one if there is one, and further good answers, which were paid too."""
    best, again = dict[str, Result](), dict[str, list[Result]]()
    for key, result in results:
        if key not in best or (result.is_good and not best[key].is_good):
            best[key] = result
        elif result.is_good:
            again.setdefault(key, []).append(result)
    return best, again


def _give(answer: "asyncio.Future[Result]", result: Result) -> None:
    if not answer.done():
        answer.set_result(result)


_QUEUES: "WeakSet[BatchQueue]" = WeakSet()


def batches_in_words() -> list[str]:
    """The progress of all models' batches in this process."""
    return [words for queue in list(_QUEUES) for words in queue.words()]
