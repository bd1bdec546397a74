"""Requests on their way into batches and back: who waits for what, what is sent again, and what is expected to cost."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import httpx2
import pytest

from codechat.base.domain import Usage
from codechat.models.calls import batch_queue, batches
from codechat.models.calls.batch_queue import MOST_FAILED_POLLS, MOST_LOOKS, BatchQueue, batches_in_words, paid_in
from codechat.models.calls.batches import (
    BATCH_SCHEDULER,
    REQUEST_KEY,
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
from codechat.models.calls.batches import (
    Store as NoStore,
)
from codechat.models.calls.brake import BRAKE, Brake
from codechat.models.calls.limits import COUNTERS
from codechat.models.calls.transport import BatchClient

GOOD = Result(200, b"{}")


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_queue, "LOOK_S", 0.0)


class Provider:
    """Makes batches at once, and answers every request; or does not, as `made` says of each batch in turn."""

    most_requests, most_bytes = 100, 10_000

    def __init__(self, *made: Exception) -> None:
        self._made, self.batches = list(made), list[list[str]]()

    async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
        return ""

    async def create(self, batch: Batch, requests: dict[str, bytes]) -> str:
        self.batches.append(list(requests))
        if self._made:
            raise self._made.pop(0)
        return f"made {len(self.batches)}"

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        return ""

    async def state(self, batch: Batch) -> State:
        return State("completed", batch.size, ended=True)

    async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
        return iter([(key, GOOD) for key in self.batches[int(batch.remote.split()[1]) - 1]])


class Store(NoStore):
    """Counts the tokens that are expected, and pulls the brake beyond `most`."""

    def __init__(self, brake: Brake, most: int) -> None:
        self.tokens, self._brake, self._most = Counter[str](), brake, most

    def expect(self, payer: str, usage: Usage) -> None:
        self.tokens[payer] += usage.input_tokens
        if self.tokens.total() > self._most:
            self._brake.pull("the budget is reached")

    def expect_no_more(self, payer: str, usage: Usage) -> None:
        self.tokens[payer] -= usage.input_tokens


def label(unit: str) -> RequestKey:
    return RequestKey(f"{unit}/0", unit, "model", Usage(10, 0))


def queue(provider: BatchProtocol, size: int = 2, most: int = 1000) -> tuple[BatchQueue, Store]:
    brake = Brake()
    BRAKE.set(brake)
    store = Store(brake, most)
    BATCH_SCHEDULER.set(BatchScheduler(store))
    return BatchQueue(provider, BatchPolicy(size, 60.0, 0.0)), store


async def test_as_many_requests_as_fit_make_a_batch_and_each_has_its_answer() -> None:
    provider = Provider()
    one, store = queue(provider)
    labels = [label(unit) for unit in "abcd"]
    assert await asyncio.gather(*(one.ask(b"x", each) for each in labels)) == [GOOD] * 4
    assert [len(batch) for batch in provider.batches] == [2, 2]
    assert [each.answered for each in labels] == [key for batch in provider.batches for key in batch]
    assert store.tokens == Counter(model=0)
    await one.aclose()


async def test_a_batch_is_written_down_before_the_provider_hears_of_it() -> None:
    told = list[str]()

    class Told(Store):
        async def begin(self, batch: Batch, keys: Collection[str]) -> None:
            told.append(f"begin {len(keys)}")

        async def update(self, batch: Batch) -> None:
            told.append(f"update {batch.remote}")

    class Telling(Provider):
        async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
            told.append("upload")
            return "file"

    BATCH_SCHEDULER.set(BatchScheduler(Told(Brake(), 1000)))
    one = BatchQueue(Telling(), BatchPolicy(1, 60.0, 0.0))
    assert await one.ask(b"x", label("a")) == GOOD
    assert told[:4] == ["begin 1", "upload", "update ", "update made 1"]
    await one.aclose()


async def test_requests_beyond_the_budget_are_in_no_batch_and_nobody_waits_for_them() -> None:
    provider = Provider()
    one, store = queue(provider, size=3, most=20)
    found = await asyncio.gather(*(one.ask(b"x", label(unit)) for unit in "abc"), return_exceptions=True)
    assert found[:2] == [GOOD] * 2 and isinstance(found[2], Lost) and str(found[2]) == "the budget is reached"
    assert [len(batch) for batch in provider.batches] == [2] and store.tokens == Counter(model=0)
    await one.aclose()


@pytest.mark.parametrize("made", [Unreached("no line"), Declined(503, b"later")])
async def test_a_request_whose_batch_was_not_made_is_sent_again(made: Exception) -> None:
    provider = Provider(made)
    one, _ = queue(provider, size=1)
    if isinstance(made, Declined):
        assert await one.ask(b"x", label("a")) == Result(503, b"later")
    else:
        with pytest.raises(Lost, match="never made"):
            await one.ask(b"x", label("a"))
    assert await one.ask(b"x", label("a")) == GOOD
    assert len(provider.batches) == 2 and provider.batches[0] == provider.batches[1]
    await one.aclose()


async def test_an_answer_that_cannot_be_read_is_asked_for_anew() -> None:
    provider = Provider()
    one, _ = queue(provider, size=1)
    asked = label("a")
    assert await one.ask(b"x", asked) == GOOD
    await one.reject(asked)
    assert asked.answered == "" and await one.ask(b"x", asked) == GOOD and len(provider.batches) == 2
    await one.aclose()


async def test_who_waits_when_it_is_closed_has_no_answer() -> None:
    one, _ = queue(Provider())
    waiting = asyncio.create_task(one.ask(b"x", label("a")))
    await asyncio.sleep(0)
    await one.aclose()
    with pytest.raises(Lost, match="closed"):
        await waiting


async def test_who_waits_when_a_client_is_closed_has_no_answer() -> None:
    client = BatchClient("http://127.0.0.1:9/v1", lambda *_: Provider(), BatchPolicy(2, 60.0, 0.0))
    REQUEST_KEY.set(label("a"))
    request = httpx2.Request("POST", "http://127.0.0.1:9/v1/chat", content=b"x")
    waiting = asyncio.create_task(client.send(request))
    await asyncio.sleep(0.01)
    await client.aclose()
    with pytest.raises(httpx2.RemoteProtocolError, match="closed"):
        await asyncio.wait_for(waiting, 2.0)


async def test_a_desk_looks_now_and_then_and_only_while_somebody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting:
        looks = 0

        @property
        def is_old(self) -> bool:
            self.looks += 1
            assert self.looks < 50, "it looks without a pause"
            return False

        def flush(self) -> None: ...

        def give_up(self, why: str) -> None: ...

    monkeypatch.setattr(batches, "TICK_S", 0.01)
    scheduler, one = BatchScheduler(), Waiting()
    scheduler.queues.append(one)
    with scheduler.waits("a"):
        await asyncio.sleep(0.1)
    assert 1 <= one.looks < 50
    await asyncio.sleep(0.05)
    looked = one.looks
    await asyncio.sleep(0.05)
    assert one.looks == looked and scheduler._ticking is not None and scheduler._ticking.done()


class Slow(Provider):
    """Ends its batches when it is told to, and says meanwhile what `says` gives, one after the other."""

    def __init__(self, *says: Any, found: str = "") -> None:
        super().__init__()
        self.says, self.found, self.looks, self.end = list(says), found, 0, asyncio.Event()

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        self.looks += 1
        said = self.says.pop(0) if self.says else self.found
        if isinstance(said, Exception):
            raise said
        return str(said)

    async def state(self, batch: Batch) -> State:
        self.looks += 1
        said = self.says.pop(0) if self.says else None
        if isinstance(said, Exception):
            raise said
        return said or State("in_progress", 1, ended=self.end.is_set())


class Held(NoStore):
    """A store that has a request in a batch of another process."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.released, self.updated = batch, list[str](), list[Batch]()

    def batch_of(self, key: str) -> Batch | None:
        return None if key in self.released else self.batch

    def keys_of(self, batch: Batch) -> list[str]:
        return [label("a").key(b"x"), label("b").key(b"x")]

    async def update(self, batch: Batch) -> None:
        self.updated.append(batch)

    async def release(self, keys: Collection[str]) -> None:
        self.released += keys


def held(provider: BatchProtocol, remote: str = "made 1") -> tuple[BatchQueue, Held]:
    BRAKE.set(Brake())
    store = Held(Batch("theirs", 2, 0.0, remote=remote))
    BATCH_SCHEDULER.set(BatchScheduler(store))
    return BatchQueue(provider, BatchPolicy(9, 60.0, 0.0)), store


async def turns(count: int = 8) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize(("bytes_", "batches_"), [(29, [3]), (30, [3]), (31, [3, 1])])
async def test_a_batch_is_made_as_soon_as_it_has_so_many_bytes(bytes_: int, batches_: list[int]) -> None:
    provider = Provider()
    provider.most_bytes = 30
    one, _ = queue(provider, size=100)
    asked = [asyncio.create_task(one.ask(b"x" * size, label(f"{at}"))) for at, size in enumerate((10, 10, bytes_ - 20))]
    asked += [asyncio.create_task(one.ask(b"y", label("later")))] if bytes_ > 30 else []
    await turns()
    if bytes_ == 29:
        assert provider.batches == []
    one.flush()
    assert await asyncio.gather(*asked) == [GOOD] * len(asked)
    assert [len(each) for each in provider.batches] == batches_
    await one.aclose()


async def test_no_batch_is_larger_than_the_provider_takes_and_it_is_counted() -> None:
    provider = Provider()
    provider.most_requests = 2
    one, _ = queue(provider, size=100)
    before = COUNTERS.batches
    assert await asyncio.gather(*(one.ask(b"x", label(unit)) for unit in "abcd")) == [GOOD] * 4
    assert [len(each) for each in provider.batches] == [2, 2] and COUNTERS.batches == before + 2
    await one.aclose()


async def test_an_equal_request_is_asked_once_while_it_waits() -> None:
    provider = Provider()
    one, _ = queue(provider, size=2)
    found = await asyncio.gather(*(one.ask(b"x", label(unit)) for unit in "aab"))
    assert found == [GOOD] * 3 and [len(each) for each in provider.batches] == [2]
    await one.aclose()


async def test_the_oldest_request_says_how_old_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(batch_queue.time, "monotonic", lambda: now[0])
    one, _ = queue(Provider(), size=9)
    assert not one.is_old
    now[0] = 1000.0
    asked = [asyncio.create_task(one.ask(b"x", label("a")))]
    await turns(2)
    now[0] = 1059.0
    asked.append(asyncio.create_task(one.ask(b"x", label("b"))))
    await turns(2)
    assert not one.is_old
    now[0] = 1060.0
    assert one.is_old
    one.give_up("enough")
    assert not one.is_old
    assert all(isinstance(each, Lost) for each in await asyncio.gather(*asked, return_exceptions=True))
    await one.aclose()


async def test_what_waits_where_is_told() -> None:
    provider = Slow()
    one, _ = queue(provider, size=2)
    asked = [asyncio.create_task(one.ask(b"x", label(unit))) for unit in "abc"]
    await turns(20)
    collected, batch = sorted(one.words())
    assert collected.startswith("1 ") and batch.startswith("batch of 2: ") and batch.endswith("1 done")
    assert set(one.words()) <= set(batches_in_words())
    one.give_up("interrupted")
    assert list(one.words()) == []
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(each) for each in found] == ["interrupted"] * 3
    await one.aclose()


async def test_an_answer_without_a_model_is_paid_for_and_kept_by_nobody() -> None:
    class Refusing(Provider):
        async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
            keys = self.batches[int(batch.remote.split()[1]) - 1]
            return iter([(keys[0], Result(429, b"slowly"))]) if len(self.batches) == 1 else iter([(keys[0], GOOD)])

    provider = Refusing()
    one, store = queue(provider, size=2)
    first, second = label("a"), label("b")
    found = await asyncio.gather(one.ask(b"x", first), one.ask(b"x", second), return_exceptions=True)
    assert found[0] == Result(429, b"slowly") and first.answered == ""
    assert isinstance(found[1], Lost) and "completed" in str(found[1])
    assert store.tokens == Counter(model=0)
    task = asyncio.create_task(one.ask(b"x", first))
    await turns()
    one.flush()
    assert await task == GOOD and len(provider.batches) == 2
    await one.aclose()


@pytest.mark.parametrize(("status", "good"), [(199, False), (200, True), (299, True), (300, False)])
def test_an_answer_is_the_models_by_its_status(status: int, good: bool) -> None:
    assert Result(status, b"").is_good is good


async def test_a_request_is_another_in_another_call() -> None:
    keys = {label("a").key(b"x"), label("b").key(b"x"), label("a").key(b"y")}
    assert len(keys) == 3 and {len(each) for each in keys} == {40}


async def test_the_batch_of_another_process_is_followed_and_charged() -> None:
    provider = Slow()
    provider.batches = [[label("a").key(b"x"), label("b").key(b"x")]]
    one, store = held(provider)
    tokens = Counter[str]()
    store.expect = lambda payer, usage: tokens.update({payer: usage.input_tokens})  # type: ignore[method-assign]
    store.expect_no_more = lambda payer, usage: tokens.subtract({payer: usage.input_tokens})  # type: ignore[method-assign]
    asked = [asyncio.create_task(one.ask(b"x", label(unit))) for unit in "aa"]
    await turns(4)
    assert tokens == Counter(model=10)
    provider.end.set()
    assert await asyncio.gather(*asked) == [GOOD] * 2
    await turns(2)
    assert tokens == Counter(model=0)
    looks = provider.looks
    assert await one.ask(b"x", label("b")) == GOOD and provider.looks == looks  # its answer was there already
    assert list(one.words()) == [] and store.released == []
    assert await one.ask(b"x", label("b")) == GOOD and provider.looks > looks  # asked again: it is fetched again
    await one.aclose()


@pytest.mark.parametrize(
    "failure", [Unreached("no line"), KeyError("status"), ValueError("no number"), OverflowError("infinity"), Unsure()]
)
async def test_a_provider_that_fails_now_and_then_is_asked_on(failure: Exception) -> None:
    provider = Slow(
        *([failure] * (MOST_FAILED_POLLS - 1)), State("x", 0, False), *([failure] * (MOST_FAILED_POLLS - 1))
    )
    provider.batches = [[label("a").key(b"x")]]
    provider.end.set()
    one, _ = held(provider)
    assert await one.ask(b"x", label("a")) == GOOD
    assert provider.looks == 2 * MOST_FAILED_POLLS
    await one.aclose()


async def test_a_provider_that_only_fails_is_given_up() -> None:
    provider = Slow(*([Unreached("no line")] * (MOST_FAILED_POLLS + 5)))
    one, store = held(provider)
    with pytest.raises(Lost, match="made 1: no line"):
        await one.ask(b"x", label("a"))
    assert provider.looks == MOST_FAILED_POLLS == 20 and store.released == []
    await one.aclose()


async def test_a_request_that_joins_an_ended_batch_while_it_is_given_out_has_its_answer() -> None:
    """Both calls find the first one's answer to be none, and write that down before they give it out."""

    class Partly(Slow):
        async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
            return iter([(label("a").key(b"x"), Result(500, b"internal")), (label("b").key(b"x"), GOOD)])

    released = asyncio.Event()

    class Slowly(Held):
        async def release(self, keys: Collection[str]) -> None:
            released.set()
            await turns(6)
            await super().release(keys)

    provider = Partly()
    one, _ = held(provider)
    scheduler = BATCH_SCHEDULER.get()
    assert scheduler is not None
    scheduler.store = Slowly(Batch("theirs", 2, 0.0, remote="made 1"))
    first = asyncio.create_task(one.ask(b"x", label("a")))
    provider.end.set()
    await released.wait()
    second = asyncio.create_task(one.ask(b"x", label("b")))
    assert await asyncio.gather(first, second) == [Result(500, b"internal"), GOOD]
    await one.aclose()


@pytest.mark.parametrize("status", [403, 404])
async def test_a_batch_that_is_gone_is_made_again_and_one_that_is_refused_is_not(status: int) -> None:
    one, store = held(Slow(Declined(status, b"no")))
    if status == 404:
        with pytest.raises(Lost, match="gone"):
            await one.ask(b"x", label("a"))
        assert store.released == [label("a").key(b"x")]
    else:
        assert await one.ask(b"x", label("a")) == Result(403, b"no") and store.released == []
    await one.aclose()


async def test_a_batch_whose_name_was_lost_is_looked_up() -> None:
    provider = Slow(Unsure(), "made 1")
    provider.batches = [[label("a").key(b"x")]]
    provider.end.set()
    one, store = held(provider, remote="")
    assert await one.ask(b"x", label("a")) == GOOD
    assert [each.remote for each in store.updated] == ["made 1"] and store.released == []
    await one.aclose()


async def test_all_requests_of_a_batch_that_was_never_made_are_free() -> None:
    one, store = held(Slow(), remote="")
    with pytest.raises(Lost, match="never made"):
        await one.ask(b"x", label("a"))
    assert store.released == [label("a").key(b"x"), label("b").key(b"x")]
    await one.aclose()


async def test_what_fails_here_fails_those_who_wait() -> None:
    class Full(Provider):
        async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
            raise OSError("no space left")

    one, _ = queue(Full(), size=1)
    with pytest.raises(OSError, match="no space left"):
        await asyncio.wait_for(one.ask(b"x", label("a")), 5.0)
    await one.aclose()


async def test_an_upload_that_nobody_answers_makes_no_batch() -> None:
    class Deaf(Provider):
        async def upload(self, batch: Batch, requests: dict[str, bytes]) -> str:
            raise Unreached("no line")

    provider = Deaf()
    one, store = queue(provider, size=1)
    with pytest.raises(Lost, match=r"no batch.*: no line"):
        await one.ask(b"x", label("a"))
    assert provider.batches == [] and store.tokens == Counter(model=0) and list(one.words()) == []
    await one.aclose()


async def test_a_closed_queue_has_no_scheduler_and_follows_nothing() -> None:
    provider = Slow()
    one, _ = queue(provider, size=1)
    scheduler = BATCH_SCHEDULER.get()
    assert scheduler is not None and scheduler.queues == [one]
    asked = asyncio.create_task(one.ask(b"x", label("a")))
    await turns(20)
    await one.aclose()
    assert scheduler.queues == [] and isinstance((await asyncio.gather(asked, return_exceptions=True))[0], Lost)
    looks = provider.looks
    await turns(20)
    assert provider.looks == looks > 0


class Noted(BatchQueue):
    """A model's requests, as a scheduler sees them."""

    is_old = False

    def __init__(self, *, is_old: bool = False) -> None:
        self.is_old, self.flushed, self.given = is_old, asyncio.Event(), list[str]()

    def flush(self) -> None:
        self.flushed.set()

    def give_up(self, why: str) -> None:
        self.given.append(why)


@pytest.mark.parametrize(
    ("active", "waiting", "old", "due"),
    [(2, 1, False, False), (2, 2, False, True), (1, 2, False, True), (2, 1, True, True), (0, 1, False, False)],
)
async def test_a_batch_is_due_when_no_session_can_add_to_it_or_it_is_old(
    monkeypatch: pytest.MonkeyPatch, active: int, waiting: int, old: bool, due: bool
) -> None:
    monkeypatch.setattr(batches, "TICK_S", 0.001)
    scheduler, one = BatchScheduler(), Noted(is_old=old)
    scheduler.queues.append(one)
    with contextlib.ExitStack() as stack:
        for _ in range(active):
            stack.enter_context(scheduler.working())
        for unit in range(waiting):
            stack.enter_context(scheduler.waits(f"{unit}"))
            stack.enter_context(scheduler.waits(f"{unit}"))  # two calls of one session
        assert scheduler.active == active and len(scheduler.waiting) == waiting
        if due:
            await asyncio.wait_for(one.flushed.wait(), 5.0)
        else:
            await asyncio.sleep(0.02)
            assert not one.flushed.is_set()
    assert scheduler.active == 0 and scheduler.waiting == Counter() and not one.given


async def test_after_an_interruption_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "TICK_S", 0.001)
    brake = Brake()
    BRAKE.set(brake)
    scheduler, one = BatchScheduler(), Noted(is_old=True)
    scheduler.queues.append(one)
    brake.pull("interrupted", interrupted=True)
    with scheduler.waits("a"):
        await asyncio.sleep(0.02)
    assert set(one.given) == {"interrupted"} and not one.flushed.is_set()


async def test_a_desk_knows_better_than_its_store() -> None:
    class Written(NoStore):
        def __init__(self) -> None:
            self.calls = list[Any]()

        def batch_of(self, key: str) -> Batch | None:
            return Batch("theirs", 1, 0.0) if key == "old" else None

        async def begin(self, batch: Batch, keys: Collection[str]) -> None:
            self.calls.append(("begin", batch.name, list(keys)))

        async def update(self, batch: Batch) -> None:
            self.calls.append(("update", batch.remote))

        async def release(self, keys: Collection[str]) -> None:
            self.calls.append(("release", list(keys)))

    store = Written()
    scheduler = BatchScheduler(store)
    assert scheduler.batch_of("new") is None
    assert scheduler.batch_of("old") == Batch("theirs", 1, 0.0) == scheduler.known["theirs"]
    await scheduler.begin(Batch("ours", 1, 0.0), ["new"])
    await scheduler.update(Batch("ours", 1, 0.0, remote="r"))
    found = scheduler.batch_of("new")
    assert found is not None and found.remote == "r"
    await scheduler.release(["new", "old"])
    assert scheduler.batch_of("new") is None and scheduler.batch_of("old") is None
    assert store.calls == [("begin", "ours", ["new"]), ("update", "r"), ("release", ["new", "old"])]


PAID = b'{"usage": {"prompt_tokens": 7, "completion_tokens": 1}}'


class Late(Provider):
    """Loses the answer to the first creation, and lists that batch from the look with the number `shown` on."""

    def __init__(self, shown: int) -> None:
        super().__init__(Unreached("no line"))
        self._shown, self.looks = shown, 0

    async def find(self, batch: Batch, keys: Collection[str]) -> str:
        self.looks += 1
        return "made 1" if self.looks >= self._shown else ""

    async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
        return iter([(key, Result(200, PAID)) for key in self.batches[int(batch.remote.split()[1]) - 1]])


class Charged(Store):
    """Notes what no call returns."""

    def __init__(self, brake: Brake, most: int) -> None:
        super().__init__(brake, most)
        self.charged = list[tuple[str, Usage]]()

    async def charge(self, payer: str, usage: Usage) -> None:
        self.charged.append((payer, usage))


def charging(provider: BatchProtocol, size: int = 1) -> tuple[BatchQueue, Charged]:
    brake = Brake()
    BRAKE.set(brake)
    store = Charged(brake, 1000)
    BATCH_SCHEDULER.set(BatchScheduler(store))
    return BatchQueue(provider, BatchPolicy(size, 60.0, 0.0)), store


@pytest.mark.parametrize("shown", [2, 5, MOST_LOOKS])
async def test_a_batch_that_the_list_shows_late_is_not_made_again(shown: int) -> None:
    provider = Late(shown)
    one, store = charging(provider)
    assert await one.ask(b"x", label("a")) == Result(200, PAID)
    assert len(provider.batches) == 1 and store.charged == []
    await one.aclose()


async def test_a_batch_that_was_given_up_and_exists_is_paid_for() -> None:
    provider = Late(MOST_LOOKS + 1)
    one, store = charging(provider)
    with pytest.raises(Lost):
        await one.ask(b"x", label("a"))
    assert await one.ask(b"x", label("a")) == Result(200, PAID)
    assert len(provider.batches) == 2
    await turns(20)
    assert store.charged == [("model", Usage(7, 1))]
    await one.aclose()


@pytest.mark.parametrize("problem", [Declined(429, b"slowly"), Declined(404, b"none"), Unreached("no line"), Unsure()])
async def test_a_list_that_fails_holds_no_batch_under_way(problem: Exception) -> None:
    class Unlisted(Late):
        async def find(self, batch: Batch, keys: Collection[str]) -> str:
            if self.looks == MOST_LOOKS:
                raise problem
            return await super().find(batch, keys)

    one, store = charging(Unlisted(MOST_LOOKS + 1))
    with pytest.raises(Lost):
        await one.ask(b"x", label("a"))
    assert await asyncio.wait_for(one.ask(b"x", label("a")), 5.0) == Result(200, PAID)
    assert store.charged == []
    await one.aclose()


async def test_a_given_up_batch_whose_end_is_not_seen_is_paid_as_expected() -> None:
    class Endless(Late):
        async def state(self, batch: Batch) -> State:
            return State("running", 0, ended=batch.remote == "made 2")

    one, store = charging(Endless(MOST_LOOKS + 1))
    with pytest.raises(Lost):
        await one.ask(b"x", label("a"))
    assert await one.ask(b"x", label("a")) == Result(200, PAID)
    await one.aclose()
    assert store.charged == [("model", Usage(10, 0))]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
async def test_of_several_answers_to_a_request_a_good_one_counts_and_all_are_paid(order: tuple[int, ...]) -> None:
    found = [Result(500, b"internal"), Result(200, PAID), Result(200, PAID.replace(b"7", b"8"))]

    class Twice(Provider):
        async def results(self, batch: Batch, state: State) -> Iterator[tuple[str, Result]]:
            return iter([(key, found[n]) for key in self.batches[0] for n in order])

    one, store = charging(Twice())
    call = label("a")
    assert await one.ask(b"x", call) == found[1]
    assert store.charged == [("model", Usage(8, 1))]
    await one.reject(call)
    assert store.charged == [("model", Usage(8, 1)), ("model", Usage(7, 1))], "an unreadable answer was paid too"
    await one.aclose()


@pytest.mark.parametrize("error", [KeyError("id"), TypeError("no object"), ValueError("no JSON")])
async def test_an_unreadable_answer_to_a_creation_is_looked_up(error: Exception) -> None:
    class Found(Provider):
        async def find(self, batch: Batch, keys: Collection[str]) -> str:
            return "made 1"

    provider = Found(error)
    one, _ = charging(provider)
    assert await one.ask(b"x", label("a")) == GOOD
    assert len(provider.batches) == 1
    await one.aclose()


@pytest.mark.parametrize("body", [b"no json", b"[]", b"{}", b'{"usage": "none"}'])
def test_an_answer_without_counts_costs_nothing(body: bytes) -> None:
    assert paid_in(body) == Usage()
