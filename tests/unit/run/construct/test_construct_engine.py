"""Items through stages: in any order the same bytes, one stops no other, nothing is paid twice."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program, Target
from codechat.base.errors import BrokenTask, ContextOverflow, InfrastructureError, UserError
from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome, Spread, Stage, Waits
from codechat.run.protocols import Ask
from codechat.sandbox.suites import SUITES
from codechat.testing import Call, OpenAIServer
from support.construction import Quiet, run, seeds, written
from support.mistakes import mistake


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def ask(item: Item, kit: Kit) -> Outcome:
    reply = await kit.ask("poet", f"first {item.data['number']}")
    again = await kit.ask("poet", f"second {reply.text}")
    return Kept(item.having(said=again.text, lot=kit.generator("lot").random()))


async def every_third(item: Item, kit: Kit) -> Outcome:
    await kit.ask("poet", f"third {item.data['said']}")
    return Dropped("a third", f"the number {item.data['number']}") if item.data["number"] % 3 == 0 else Kept(item)


STAGES = (Stage("ask", ask), Stage("sieve", every_third))


def slowly(seed: int) -> Any:
    luck = random.Random(seed)

    async def answer(call: Call) -> str:
        await asyncio.sleep(luck.uniform(0, 0.02))
        return f"reply to {call.messages[-1]['content']}"

    return answer


def test_the_order_of_replies_changes_no_byte(tmp_path: Path) -> None:
    found = []
    for number, slots in enumerate((1, 16)):
        with OpenAIServer(slowly(number)) as server:
            outcome = run(tmp_path / str(number), STAGES, seeds(9), server, poet={"max_concurrency": slots})
            assert outcome.status == 0
            assert len(server.calls) == 27
        found.append(written(tmp_path / str(number)))
    assert found[0] == found[1]
    kept = rows(tmp_path / "0" / "items.jsonl")
    assert [row["id"] for row in kept] == ["s1", "s2", "s4", "s5", "s7", "s8"]
    assert kept[0]["provenance"] == {
        "recipe": "trial", "seed": "s1", "random_seed": 0, "roles": {"poet": "x"}, "prompts": {}
    }  # fmt: skip
    dropped = rows(tmp_path / "0" / "dropped.jsonl")
    assert [(row["id"], row["stage"], row["reason"]) for row in dropped] == [
        ("s0", "sieve", "a third"), ("s3", "sieve", "a third"), ("s6", "sieve", "a third")
    ]  # fmt: skip


def test_yields_count_calls_tokens_and_dollars_by_stage(tmp_path: Path) -> None:
    prices = {"input": 1.0, "output": 2.0}
    from codechat.models import Prices

    with OpenAIServer(lambda call: "two words") as server:
        outcome = run(tmp_path / "o", STAGES, seeds(3), server, poet={"prices": Prices(**prices)})
    assert outcome.yields is not None
    ask, sieve, whole = outcome.yields["stages"]["ask"], outcome.yields["stages"]["sieve"], outcome.yields["all"]
    assert (ask["reached"], ask["passed"], ask["calls"]) == (3, 3, 6)
    assert (sieve["reached"], sieve["passed"], sieve["dropped"], sieve["calls"]) == (3, 2, {"a third": 1}, 3)
    assert whole["calls"] == 9 and whole["output_tokens"] == 18
    assert whole["usd"] == pytest.approx((whole["input_tokens"] + 2 * 18) / 1e6)
    assert outcome.yields["per_kept"]["calls"] == 4.5


@pytest.mark.parametrize("error", [InfrastructureError("no line"), ContextOverflow("too long"), BrokenTask("no test")])
def test_one_item_stops_no_other(tmp_path: Path, error: Exception) -> None:
    async def stumble(item: Item, kit: Kit) -> Outcome:
        if item.data["number"] == 1:
            raise error
        return Kept(item)

    outcome = run(tmp_path / "o", [Stage("stumble", stumble)], seeds(4))
    errored = isinstance(error, InfrastructureError)
    assert outcome.status == (3 if errored else 0)
    assert [row["id"] for row in rows(tmp_path / "o" / "items.jsonl")] == ["s0", "s2", "s3"]
    assert [row["detail"] for row in rows(tmp_path / "o" / "dropped.jsonl")] == ([] if errored else [str(error)])


def test_a_bug_is_raised_when_the_others_have_ended(tmp_path: Path) -> None:
    async def stumble(item: Item, kit: Kit) -> Outcome:
        return Kept(item.having(half=4 / (item.data["number"] - 1)))

    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "o", [Stage("stumble", stumble)], seeds(3))
    assert [row["id"] for row in rows(tmp_path / "o" / "items.jsonl")] == ["s0", "s2"]


def test_a_small_budget_finishes_some_items(tmp_path: Path) -> None:
    """An item costs 6 tokens a call, in two calls: of nine at once none would be finished."""

    async def answer(call: Call) -> str:
        await asyncio.sleep(0.01)
        return "three words here"

    recipe = {"asks": lambda item: [Ask("poet", 0, 12, 12, times=2)]}
    stages = [Stage("ask", ask)]
    with OpenAIServer(answer) as server:
        few = run(
            tmp_path / "o",
            stages,
            seeds(9),
            server,
            recipe=recipe,
            top={"budget_tokens": 40},
            poet={"max_concurrency": 9},
        )
        assert few.status == 3 and few.yields is not None
        assert 2 <= few.yields["kept"] < 9


def test_a_budget_ends_it_and_the_next_run_goes_on(tmp_path: Path) -> None:
    def answer(call: Call) -> str:
        return f"reply to {call.messages[-1]['content']}"

    with OpenAIServer(answer) as server:
        run(tmp_path / "whole", STAGES, seeds(9), server)
        asked = Counter(call.messages[-1]["content"] for call in server.calls)
        server.calls.clear()
        few = run(tmp_path / "o", STAGES, seeds(9), server, top={"budget_tokens": 40})
        assert few.status == 3
        assert "budget_tokens" in few.unfinished
        assert 0 < len(server.calls) < 27
        assert run(tmp_path / "o", STAGES, seeds(9), server).status == 0
        assert Counter(call.messages[-1]["content"] for call in server.calls) == asked, "nothing is paid twice"
        server.calls.clear()
        assert run(tmp_path / "o", STAGES, seeds(9), server).status == 0
        assert not server.calls
    assert written(tmp_path / "o") == written(tmp_path / "whole")


def test_an_interruption_keeps_what_was_replied(tmp_path: Path) -> None:
    watcher = Quiet()

    def answer(call: Call) -> str:
        if len(server.calls) > 6 and watcher.brake is not None:
            watcher.brake.pull("interrupted", interrupted=True)
        return f"reply to {call.messages[-1]['content']}"

    with OpenAIServer(answer) as server:
        assert run(tmp_path / "o", STAGES, seeds(9), server, watcher=watcher).status == 130
        watcher.brake = None
        assert run(tmp_path / "o", STAGES, seeds(9), server).status == 0
        assert len(server.calls) == 27


def test_a_dead_endpoint_is_not_asked_for_every_item(tmp_path: Path) -> None:
    async def fail(item: Item, kit: Kit) -> Outcome:
        tried.append(item.id)
        raise InfrastructureError("it is down")

    tried: list[str] = []
    outcome = run(tmp_path / "o", [Stage("fail", fail)], seeds(200))
    assert outcome.status == 3
    assert len(tried) == 5
    assert "it is down" in outcome.first_error


async def spread(item: Item, kit: Kit) -> Outcome:
    return Spread([Item(f"{item.id}.{part}", {**item.data, "part": part}) for part in range(3)])


async def first_of_each(items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
    seen: set[int] = set()
    outcomes: list[Outcome] = []
    for item in items:
        new = (item.data["number"] + item.data["part"]) not in seen
        seen.add(item.data["number"] + item.data["part"])
        outcomes.append(Kept(item.having(first=len(outcomes))) if new else Dropped("seen before", item.id))
    return outcomes


async def ask_last(item: Item, kit: Kit) -> Outcome:
    await kit.ask("poet", f"last {item.id}")
    return Kept(item)


def test_items_become_several_and_are_compared_in_the_order_of_the_seeds(tmp_path: Path) -> None:
    stages = (Stage("spread", spread), Stage("compare", together=first_of_each), Stage("ask", ask_last))
    for name in ("a", "b"):
        with OpenAIServer(slowly(ord(name))) as server:
            assert run(tmp_path / name, stages, seeds(4), server).status == 0
            assert run(tmp_path / name, stages, seeds(4), server).status == 0
            assert len(server.calls) == 6, "once for every item that came through"
    assert written(tmp_path / "a") == written(tmp_path / "b")
    kept = rows(tmp_path / "a" / "items.jsonl")
    assert [row["id"] for row in kept] == ["s0.0", "s0.1", "s0.2", "s1.2", "s2.2", "s3.2"]
    assert {row["provenance"]["seed"] for row in kept} == {"s0", "s1", "s2", "s3"}
    assert len(rows(tmp_path / "a" / "dropped.jsonl")) == 6


def test_what_compares_all_items_waits_for_people(tmp_path: Path) -> None:
    async def doubt(item: Item, kit: Kit) -> Outcome:
        return Waits("Is it one?", "yes") if item.id == "s1.0" else Kept(item)

    stages = (Stage("spread", spread), Stage("doubt", doubt), Stage("compare", together=first_of_each))
    outcome = run(tmp_path / "o", stages, seeds(2))
    assert outcome.yields is not None
    assert (outcome.yields["kept"], outcome.yields["held"], outcome.yields["waiting"]) == (0, 5, 1)
    outcome = run(tmp_path / "o", stages, seeds(2), on_question="drop")
    assert outcome.yields is not None and outcome.yields["kept"] == 4
    outcome = run(tmp_path / "o", stages, seeds(2), on_question="suggestion")
    assert outcome.yields is not None and outcome.yields["kept"] == 4
    assert outcome.yields["dropped"] == 2


def test_what_a_stage_does_not_take_ends_there_with_its_reason(tmp_path: Path) -> None:
    async def choose(item: Item, kit: Kit) -> Outcome:
        parts = [Item(f"{item.id}.{part}", {"part": part}) for part in range(3)]
        return Spread(parts[1:], [(parts[0], Dropped("too early", "it is the first"))])

    async def go_on(item: Item, kit: Kit) -> Outcome:
        return Dropped("the last") if item.data["part"] == 2 else Kept(item)

    for _ in range(2):
        outcome = run(tmp_path / "o", (Stage("choose", choose), Stage("go on", go_on)), seeds(2))
        assert outcome.yields is not None
        stages = outcome.yields["stages"]
        assert (stages["choose"]["reached"], stages["choose"]["passed"]) == (6, 4)
        assert stages["choose"]["dropped"] == {"too early": 2}
        assert (stages["go on"]["reached"], stages["go on"]["passed"]) == (4, 2)
        dropped = [(row["id"], row["stage"], row["detail"]) for row in rows(tmp_path / "o" / "dropped.jsonl")]
        assert dropped == [
            ("s0.2", "go on", ""), ("s0.0", "choose", "it is the first"),
            ("s1.2", "go on", ""), ("s1.0", "choose", "it is the first"),
        ]  # fmt: skip


def test_two_items_of_one_id_are_refused(tmp_path: Path) -> None:
    async def twice(item: Item, kit: Kit) -> Outcome:
        return Spread([item, item])

    with mistake("'s0'"):
        run(tmp_path / "o", [Stage("twice", twice)], seeds(1))


def test_until_and_from_go_the_same_way_in_two_folders(tmp_path: Path) -> None:
    with OpenAIServer(lambda call: f"reply to {call.messages[-1]['content']}") as server:
        run(tmp_path / "whole", STAGES, seeds(5), server)
        half = run(tmp_path / "half", STAGES, seeds(5), server, until="ask")
        assert half.yields is not None and half.yields["kept"] == 5
        calls = len(server.calls)
        source = str(tmp_path / "half" / "items.jsonl")
        assert run(tmp_path / "rest", STAGES, seeds(5), server, rows=source).status == 0
        assert len(server.calls) == calls + 5, "only the second stage"
        assert run(tmp_path / "half", STAGES, seeds(5), server).status == 0, "without until it goes on where it was"
        assert len(server.calls) == calls + 10
    assert written(tmp_path / "half") == written(tmp_path / "whole")
    kept = [{k: row[k] for k in ("id", "said", "lot")} for row in rows(tmp_path / "rest" / "items.jsonl")]
    assert kept == [{k: row[k] for k in ("id", "said", "lot")} for row in rows(tmp_path / "whole" / "items.jsonl")]


def test_a_torn_file_of_items_is_refused(tmp_path: Path) -> None:
    torn = tmp_path / "torn.jsonl"
    torn.write_text('{"id": "s0", "data": {"number": 1}, "provenance": {}}\n{"id": "s1", "da')
    with pytest.raises(UserError, match=r"torn.jsonl:2"):
        run(tmp_path / "o", STAGES, seeds(1), rows=str(torn), recipe={"roles": ()})
    assert not (tmp_path / "o").exists()


def test_programs_are_tested(tmp_path: Path) -> None:
    suite = SUITES.build(SUITES.validate({"kind": "assertions", "tests": ["assert f(1) == 2"]}))

    async def test(item: Item, kit: Kit) -> Outcome:
        program = Program("def f(x):\n    return 2 * x\n", Target(entry_point="f"))
        right = await kit.check(program, suite)
        wrong = await kit.check(Program("def f(x):\n    return x\n", Target(entry_point="f")), suite)
        return Kept(item.having(passed=[right.passed, wrong.passed]))

    assert run(tmp_path / "o", [Stage("test", test)], seeds(1), recipe={"sandbox": True}).status == 0
    assert rows(tmp_path / "o" / "items.jsonl")[0]["passed"] == [True, False]


def test_a_step_of_its_own_is_computed_once(tmp_path: Path) -> None:
    fetched: list[str] = []

    async def fetch(item: Item, kit: Kit) -> Outcome:
        async def page() -> dict[str, int]:
            fetched.append(item.id)
            return {"stars": item.data["number"]}

        found = await kit.step("page", item.id, dict[str, int], page)
        if fail and item.id == "s1":
            raise InfrastructureError("later")
        return Kept(item.having(**found))

    fail = True
    assert run(tmp_path / "o", [Stage("fetch", fetch)], seeds(3)).status == 3
    fail = False
    assert run(tmp_path / "o", [Stage("fetch", fetch)], seeds(3)).status == 0
    assert sorted(fetched) == ["s0", "s1", "s2"]
