"""Requests on their way into batches and back: who waits for what, what is sent again, and what is expected to cost."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator

import httpx2
import pytest

from codechat.calls import batches
from codechat.calls.batches import (
    DESK,
    LABEL,
    Batch,
    BatchProtocol,
    Declined,
    Desk,
    Label,
    Lost,
    NoStore,
    Pace,
    Result,
    State,
    Unreached,
)
from codechat.calls.brake import BRAKE, Brake
from codechat.calls.collecting import Collector
from codechat.calls.transport import BatchClient
from codechat.domain import Usage

GOOD = Result(200, b"{}")


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


def label(unit: str) -> Label:
    return Label(f"{unit}/0", unit, "model", Usage(10, 0))


def collector(provider: BatchProtocol, size: int = 2, most: int = 1000) -> tuple[Collector, Store]:
    brake = Brake()
    BRAKE.set(brake)
    store = Store(brake, most)
    DESK.set(Desk(store))
    return Collector(provider, Pace(size, 60.0, 0.0)), store


async def test_as_many_requests_as_fit_make_a_batch_and_each_has_its_answer() -> None:
    provider = Provider()
    one, store = collector(provider)
    labels = [label(unit) for unit in "abcd"]
    assert await asyncio.gather(*(one.ask(b"x", each) for each in labels)) == [GOOD] * 4
    assert [len(batch) for batch in provider.batches] == [2, 2]
    assert [each.answered for each in labels] == [key for batch in provider.batches for key in batch]
    assert store.tokens == Counter(model=0)
    await one.aclose()


async def test_requests_beyond_the_budget_are_in_no_batch_and_nobody_waits_for_them() -> None:
    provider = Provider()
    one, store = collector(provider, size=3, most=20)
    found = await asyncio.gather(*(one.ask(b"x", label(unit)) for unit in "abc"), return_exceptions=True)
    assert found[:2] == [GOOD] * 2 and isinstance(found[2], Lost) and str(found[2]) == "the budget is reached"
    assert [len(batch) for batch in provider.batches] == [2] and store.tokens == Counter(model=0)
    await one.aclose()


@pytest.mark.parametrize("made", [Unreached("no line"), Declined(503, b"later")])
async def test_a_request_whose_batch_was_not_made_is_sent_again(made: Exception) -> None:
    provider = Provider(made)
    one, _ = collector(provider, size=1)
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
    one, _ = collector(provider, size=1)
    asked = label("a")
    assert await one.ask(b"x", asked) == GOOD
    await one.reject(asked)
    assert asked.answered == "" and await one.ask(b"x", asked) == GOOD and len(provider.batches) == 2
    await one.aclose()


async def test_who_waits_when_it_is_closed_has_no_answer() -> None:
    one, _ = collector(Provider())
    waiting = asyncio.create_task(one.ask(b"x", label("a")))
    await asyncio.sleep(0)
    await one.aclose()
    with pytest.raises(Lost, match="closed"):
        await waiting


async def test_who_waits_when_a_client_is_closed_has_no_answer() -> None:
    client = BatchClient("http://127.0.0.1:9/v1", lambda *_: Provider(), Pace(2, 60.0, 0.0))
    LABEL.set(label("a"))
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
    desk, one = Desk(), Waiting()
    desk.collectors.append(one)
    with desk.waits("a"):
        await asyncio.sleep(0.1)
    assert 1 <= one.looks < 50
    await asyncio.sleep(0.05)
    looked = one.looks
    await asyncio.sleep(0.05)
    assert one.looks == looked and desk._ticking is not None and desk._ticking.done()
