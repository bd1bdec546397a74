"""Cells whose calls go into providers' batches: rounds, kills at any state, faults, expiry, budgets."""

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.cli.app import main
from codechat.models import remote
from codechat.models.calls import traffic
from codechat.run.journal import Journal
from codechat.run.running import sessions
from codechat.testing import (
    Answer,
    BatchServer,
    Call,
    Fault,
    OpenAIServer,
    Result,
    dataset_tasks,
    error,
    fading_solver,
)
from support.processes import Runner, records, runner, words
from support.provider_servers import AnthropicServer, MessageBatches

solve = fading_solver(dataset_tasks("starter"))
ALL = 3 * 3


class Claude(MessageBatches, AnthropicServer):
    """Anthropic's API with its batches."""


ANTHROPIC = ["model=provider", "model.provider=anthropic", "model.max_tokens=500"]
OTHERS = [(BatchServer, []), (Claude, ANTHROPIC)]


@pytest.fixture(autouse=True, scope="module")
def _key() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOME_KEY", "k")
        yield


def command(server: OpenAIServer, runs: Path, *more: str) -> list[str]:
    return words(server.base_url, runs, "model.api_key_env=SOME_KEY", *more)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The records of the same cells without batches, by the kind of server."""
    return Plain(tmp_path_factory)


class Plain(dict[str, list[Any]]):
    """Made when they are asked for: one provider's library takes long to load."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, name: str) -> list[Any]:
        kind, more = (AnthropicServer, ANTHROPIC) if name == "AnthropicServer" else (OpenAIServer, [])
        runs = self._folders.mktemp("plain") / "runs"
        with kind(solve) as server:
            plain = ["model.tier=standard", "model.api_key_env=null", *more]
            assert run(compose([*words(server.base_url, runs), *plain])).status == 0
        self[name] = records(runs)
        return self[name]


def of(expected: dict[str, list[Any]], kind: type[OpenAIServer]) -> list[Any]:
    return expected["AnthropicServer" if issubclass(kind, AnthropicServer) else "OpenAIServer"]


@pytest.mark.parametrize(("kind", "more"), OTHERS)
def test_a_round_a_turn_and_the_same_records(
    kind: type[BatchServer], more: list[str], tmp_path: Path, expected: dict[str, list[Any]]
) -> None:
    before = traffic().batches
    with kind(solve) as server:
        outcome = run(compose(command(server, tmp_path / "runs", *more)))
        sizes = [len(each.requests) for each in server.batches.values()]
    assert outcome.status == 0 and sizes == [3, 3, 3]
    assert traffic().batches - before == 3
    assert records(tmp_path / "runs") == of(expected, kind)
    used = [turn.usage for session in outcome.sessions for turn in session.turns]
    assert all(dict(usage.tiers)["batch"].input_tokens == usage.input_tokens for usage in used)


def test_judges_batches_too(tmp_path: Path) -> None:
    with BatchServer(solve) as server:
        judges = []
        for judge in ("applicability", "adherence"):
            judges += [f"model@judge.{judge}=openai", f"judge.{judge}.name=fading-0", f"judge.{judge}.tier=batch"]
            judges += [f"judge.{judge}.base_url={server.base_url}", f"judge.{judge}.batch_poll_s=0.01"]
            judges += [f"judge.{judge}.cache=false"]
        outcome = run(compose(command(server, tmp_path / "runs", "judge=llm", *judges)))
        assert outcome.status == 0 and outcome.metrics is not None
        assert server.answered == sum(len(each.requests) for each in server.batches.values())
        # Three turns, at each later one a check of a candidate, and a question about adherence: that one shares the
        # batch of the next check if the tests have ended by then.
        assert 3 + 2 <= len(server.batches) <= 3 + 2 * 2


@dataclass(frozen=True)
class Whole:
    """A cell that nobody has killed: what its server was asked about batches, and its records."""

    events: list[str]
    records: list[Any]

    def number(self, place: str, offset: int) -> int:
        """A request by its distance from the sending or the making of the second batch, or from the third one's."""
        _, second, third = [number for number, event in enumerate(self.events) if event.endswith(BEGINNINGS)]
        made = next(n for n, event in enumerate(self.events) if n >= second and event.endswith("/batches"))
        return {"sent": second, "made": made, "next": third}[place] + offset


BEGINNINGS = ("/files", "s/batches")
MOMENTS: dict[str, tuple[str, int, bool]] = {
    "written down, but not sent": ("sent", 0, False),
    "file handed over, its name not heard": ("sent", 0, True),
    "file known, batch not made": ("made", 0, False),
    "made, its name not heard": ("made", 0, True),
    "waiting": ("made", 1, True),
    "in progress": ("made", 2, True),
    "ended, but not heard": ("next", -2, True),
    "ended, but not read": ("next", -1, False),
    "read, but not distributed": ("next", -1, True),
    "distributed, the next one not sent": ("next", 0, False),
    "distributed, the next one sent": ("next", 0, True),
}
"""When the process is killed: at a request of the second batch or of the next, which arrives or not."""
HALF = "half distributed"
OF_FILES = ("file handed over, its name not heard", "file known, batch not made")


class Wholes(dict[type[BatchServer], Whole]):
    """Held when they are asked for."""

    def __init__(self, commands: Runner, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self.commands, self._folders = commands, folders

    def __missing__(self, kind: type[BatchServer]) -> Whole:
        runs = self._folders.mktemp("whole") / "runs"
        with kind(solve) as server:
            assert self.commands.run(command(server, runs, *quick(kind))) == 0
            self[kind] = Whole(list(server.events), records(runs))
        return self[kind]


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wholes]:
    with runner() as commands:
        yield Wholes(commands, tmp_path_factory)


def quick(kind: type[BatchServer]) -> list[str]:
    return ["sandbox=instant", *dict(OTHERS)[kind]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "moment"),
    [(kind, each) for kind, _ in OTHERS for each in (*MOMENTS, HALF) if kind is BatchServer or each not in OF_FILES],
)
def test_a_kill_at_any_state_of_a_batch_pays_nothing_twice_and_loses_nothing(
    kind: type[BatchServer], moment: str, wholes: Wholes, tmp_path: Path
) -> None:
    """At a request the killed process never hears the answer; half of a batch is one of its three answers."""
    commands, whole = wholes.commands, wholes[kind]
    place, offset, arrives = MOMENTS.get(moment, ("next", 99, True))
    killing = _killing(commands, whole.number(place, offset))
    with kind(solve, **{"loses" if arrives else "misses": killing}) as server:
        run_it = command(server, tmp_path / "runs", *quick(kind))
        assert commands.run(run_it, answers=3 + 1 if moment == HALF else None) == -9
        assert 0 < server.done.total() < ALL
        assert commands.run(run_it) == 0
        assert set(server.done.values()) == {1}, "paid twice"
        assert server.done.total() == ALL == server.answered
    assert records(tmp_path / "runs") == whole.records


def _killing(commands: Runner, number: int) -> Callable[[int, str], bool]:
    def loses(event: int, _: str) -> bool:
        if event == number:
            commands.kill()
        return event == number

    return loses


@pytest.mark.long
def test_an_interruption_waits_for_no_batch_and_cancels_none(
    tmp_path: Path, expected: dict[str, list[Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    with runner() as commands:

        def interrupts(event: int, _: str) -> bool:
            if event == 3:
                commands.kill(signal.SIGINT)
            return False

        with BatchServer(solve, loses=interrupts) as server:
            server.STATES = ("validating",) * 10_000  # it would not end by itself
            assert commands.run(command(server, tmp_path / "runs")) == 130
            assert "batches go on" in capfd.readouterr().err
            server.STATES = BatchServer.STATES
            assert commands.run(command(server, tmp_path / "runs")) == 0
            assert server.done.total() == ALL and len(server.batches) == 3
    assert records(tmp_path / "runs") == expected["OpenAIServer"]


@pytest.mark.parametrize(("kind", "more"), OTHERS)
def test_lost_answers_about_batches_pay_nothing_twice(
    kind: type[BatchServer], more: list[str], tmp_path: Path, expected: dict[str, list[Any]]
) -> None:
    """Every third answer about a batch is lost on the way, those about its making too."""
    with kind(solve, loses=lambda event, _: event % 3 == 1) as server:
        assert run(compose(command(server, tmp_path / "runs", *more))).status == 0
        assert set(server.done.values()) == {1} and server.done.total() == ALL
    assert records(tmp_path / "runs") == of(expected, kind)


def faulty(seen: dict[str, int]) -> Callable[[Call], Result]:
    """One request in five meets a fault of its own at first."""
    faults = [error(500, "internal"), error(429, "too many"), Answer(None, finish_reason="stop"), error(503, "busy")]

    def answer(call: Call) -> Result:
        asked = json.dumps(call.messages)
        seen[asked] = seen.get(asked, 0) + 1
        fault = faults[len(seen) % 3 if len(seen) % 3 != 2 else 3]
        return fault if seen[asked] == 1 and len(seen) % 5 == 0 else solve(call)

    return answer


@pytest.mark.parametrize(("kind", "more"), OTHERS)
def test_a_fifth_of_faults_and_of_expired_requests_changes_no_record(
    kind: type[BatchServer], more: list[str], tmp_path: Path, expected: dict[str, list[Any]]
) -> None:
    with kind(faulty({}), expires=lambda body, number: number < 4 and hash_of(body) % 5 == number % 5) as server:
        outcome = run(compose(command(server, tmp_path / "runs", *more)))
        assert outcome.status == 0 and outcome.metrics is not None and outcome.metrics["retries"] >= 1
        assert server.done.total() == ALL and set(server.done.values()) == {1}
    assert records(tmp_path / "runs") == of(expected, kind)


def hash_of(text: str) -> int:
    return sum(text.encode())


def test_a_batch_that_fails_in_validation_is_made_again(tmp_path: Path, expected: dict[str, list[Any]]) -> None:
    with BatchServer(solve, fails=lambda number: "Enqueued token limit reached" if number == 0 else "") as server:
        assert run(compose(command(server, tmp_path / "runs"))).status == 0
        assert len(server.batches) > 3 and server.done.total() == ALL
    assert records(tmp_path / "runs") == expected["OpenAIServer"]


def test_size_bounds_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "BATCH_SIZE", 2)
    with BatchServer(solve) as server:
        assert run(compose(command(server, tmp_path / "runs", "agenda.turns=2"))).status == 0
        sizes = [len(each.requests) for each in server.batches.values()]
        assert sum(sizes) == 6 and max(sizes) == 2 == sizes[0], "the third is sent alone, unless a reply came before"


def test_sessions_beyond_what_memory_holds_begin_as_others_end(
    tmp_path: Path, expected: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_BATCHED", 2)
    with BatchServer(solve) as server:
        assert run(compose(command(server, tmp_path / "runs"))).status == 0
        assert [len(each.requests) for each in server.batches.values()] == [2, 2, 2, 1, 1, 1]
    assert records(tmp_path / "runs") == expected["OpenAIServer"]


def test_what_a_batch_will_cost_counts_when_it_is_submitted(tmp_path: Path) -> None:
    """500 tokens a reply are expected at first, at half of $0.01: a second call would pass the budget."""
    prices = "model.prices={input: 0, output: 20, tiers: {batch: {input: 0, output: 10}}}"
    with BatchServer(solve) as server:
        outcome = run(compose(command(server, tmp_path / "runs", prices, "budget_usd=0.009")))
        assert outcome.status == 3
        assert next(len(each.requests) for each in server.batches.values()) == 1
        assert outcome.metrics is not None
        assert 0 < outcome.metrics["spent_usd"]["model"] < 0.009


def test_what_replies_cost_is_learnt_from_the_first(tmp_path: Path) -> None:
    """Two calls fit the budget at the expected 500 tokens, and all sessions at the 100 that replies have."""
    prices = "model.prices={input: 0, output: 20, tiers: {batch: {input: 0, output: 10}}}"
    with BatchServer(solve) as server:
        outcome = run(compose(command(server, tmp_path / "runs", prices, "budget_usd=0.012")))
        assert outcome.status == 0
        assert next(len(each.requests) for each in server.batches.values()) == 2
        again = run(compose(command(server, tmp_path / "runs", prices, "budget_usd=10")))
        assert again.status == 0 and server.done.total() == ALL and set(server.done.values()) == {1}


def test_an_endpoint_without_batches_is_the_users_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(solve) as server:
        assert main(command(server, tmp_path / "runs")) == 2
    assert "404" in capsys.readouterr().err


def test_a_refused_key_is_the_users_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Locked(BatchServer):
        def serves(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault | None:
            assert headers["authorization"] == "Bearer k"
            return error(401, "wrong") if "files" in path else None

    with Locked(solve) as server:
        assert main(command(server, tmp_path / "runs")) == 2
    assert "SOME_KEY" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "more"), OTHERS, ids=["openai", "anthropic"])
def test_the_query_of_an_address_goes_with_every_request_about_a_batch(
    kind: type[BatchServer], more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()
    with kind(solve) as server:
        serves = server.serves
        monkeypatch.setattr(
            server, "serves", lambda method, path, *rest: asked.append(path) or serves(method, path, *rest)
        )
        address = f"model.base_url='{server.base_url}?api-version=7'"
        assert run(compose([*command(server, tmp_path / "runs", *more), "dataset.limit=1", address])).status == 0
    assert any("batches" in path for path in asked)
    assert all("api-version=7" in path.partition("?")[2].split("&") for path in asked if path != "/metrics")


@pytest.mark.parametrize(("kind", "more"), OTHERS, ids=["openai", "anthropic"])
def test_an_answer_that_the_endpoint_ended_is_asked_for_in_another_batch(
    kind: type[BatchServer], more: list[str], tmp_path: Path
) -> None:
    seen = set[str]()

    def once(call: Call) -> Result:
        text = json.dumps(call.messages)
        if text in seen:
            return solve(call)
        seen.add(text)
        return Answer("def ", "error")

    with kind(once) as server:
        assert run(compose([*command(server, tmp_path / "runs", *more), "dataset.limit=1"])).status == 0
    (session,) = records(tmp_path / "runs")
    assert {turn["finish_reason"] for turn in session["turns"]} == {"stop"}
    assert len(server.calls) == 2 * len(seen)


def test_a_batch_that_the_list_shows_late_is_paid_once(
    tmp_path: Path, expected: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codechat.models.calls.batch_queue.LOOK_S", 0.0)
    makes = iter([True, False, True])
    with BatchServer(
        solve, late=4, loses=lambda _, event: event == "POST /v1/batches" and next(makes, False)
    ) as server:
        assert run(compose(command(server, tmp_path / "runs"))).status == 0
        assert set(server.done.values()) == {1} and server.done.total() == ALL
    assert records(tmp_path / "runs") == expected["OpenAIServer"]


def test_what_is_paid_twice_is_in_the_sum(tmp_path: Path, expected: dict[str, list[Any]]) -> None:
    """Each result file repeats its first answer, after an error for the second request."""

    def doubles(lines: list[str]) -> list[str]:
        failed = {**json.loads(lines[-1]), "response": None, "error": {"message": "internal"}}
        return [*lines, lines[0], json.dumps(failed)]

    with BatchServer(solve, doubles=doubles) as server:
        outcome = run(compose(command(server, tmp_path / "runs")))
        assert outcome.status == 0 and server.done.total() == ALL
    assert records(tmp_path / "runs") == expected["OpenAIServer"]
    with contextlib.closing(Journal(outcome.folder / "journal.db")) as journal:
        spent, used = journal.ledger.spent["model"], journal.used()["model"]
    assert used.output_tokens < spent.output_tokens < 2 * used.output_tokens
