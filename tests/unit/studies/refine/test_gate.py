"""The gate between turns, with a scripted model: what is asked again, what stands, what the record says."""

from pathlib import Path
from typing import Any

import pytest
from test_refine import POOL, TASK

from codechat.base.domain import Message
from codechat.base.errors import ContextOverflow, InfrastructureError
from codechat.base.records import TurnRecord
from codechat.judging import JudgeConfig
from codechat.models import Request
from codechat.run.protocols import Kit, Parts
from codechat.run.settings.compose import compose
from codechat.studies.refine.agendas import AgendaConfig
from codechat.studies.refine.instructions import Pool
from codechat.studies.refine.protocol import Refine, RefineConfig, RefinePrompts
from support import benches
from support.benches import Answer, Judging, Script, fenced, shape, task_of

PROMPTS = RefinePrompts(initial="Do: {{prompt}}", followup="Change: {{instruction}}")
TOLD = PROMPTS.model_copy(update={"gate": "Mend: {{failure}}"})
GOOD, BAD = "def add(a, b):\n    return a + b  # {}\n", "def add(a, b):\n    return 'broken'  # {}\n"


def config(**options: Any) -> RefineConfig:
    return RefineConfig(prompts=TOLD if options.get("gate") == "tests" else PROMPTS, **options)


def protocol(turns: int = 4, **options: Any) -> Refine:
    groups = {"agenda": AgendaConfig(turns=turns), "pool": Pool(POOL, "hash")}
    return Refine(config(**options), Parts(JudgeConfig(kind="test"), groups))


def breaking(*breaks: tuple[int, int]) -> Answer:
    """The code of (turn, number of the reply), broken where it is said."""
    return lambda request: fenced(
        (BAD if (request.turn, request.number) in breaks else GOOD).format(f"{request.turn}.{request.number}")
    )


async def converse(
    folder: Path, answer: Answer, *, turns: int = 4, judge: Judging | None = None,
    seen: list[TurnRecord] | None = None, **options: Any,
) -> tuple[Kit, Script]:  # fmt: skip
    made = protocol(turns, **options)
    kit, model, _ = await benches.converse(made, TASK, folder, answer, judge=judge or Judging(), seen=seen)
    return kit, model


def extra(turn: TurnRecord) -> dict[str, Any]:
    return turn.model_extra or {}


def test_an_option_that_is_not_used_splits_no_id() -> None:
    plain, tests = config().identity(), config(gate="tests").identity()
    assert set(plain) == {"kind", "prompts"} and set(plain["prompts"]) == {"initial", "followup"}
    assert config(gate="silent").identity() == plain | {"gate": "silent"}
    assert tests == plain | {"gate": "tests", "prompts": plain["prompts"] | {"gate": "Mend: {{failure}}"}}
    assert config(gate="silent", gate_tries=3).identity() == plain | {"gate": "silent", "gate_tries": 3}
    unused = ["protocol.gate_tries=3", "protocol.gate_tests=all", "protocol.prompts.gate='Mend: {{failure}}'"]
    assert compose(unused).config.identity() == compose([]).config.identity()
    silent = compose(["protocol.gate=silent", *unused]).config.identity()["protocol"]
    assert (silent["gate_tries"], silent["gate_tests"], "gate" in silent["prompts"]) == (3, "all", False)


@pytest.mark.parametrize("gate", ["silent", "tests"])
async def test_code_that_passes_is_not_asked_again_and_leaves_the_record_of_today(tmp_path: Path, gate: str) -> None:
    without, asked = await converse(tmp_path / "none", breaking())
    within, model = await converse(tmp_path / "gate", breaking(), gate=gate)
    assert shape(within.log.turns) == shape(without.log.turns)
    assert [each.messages for each in model.requests] == [each.messages for each in asked.requests]


async def test_the_same_request_is_asked_again_and_the_accepted_reply_continues(tmp_path: Path) -> None:
    kit, model = await converse(tmp_path, breaking((1, 0)), gate="silent")
    asked = [(each.turn, each.number, each.again) for each in model.requests]
    assert asked == [(0, 0, 0), (1, 0, 0), (1, 1, 1), (2, 0, 0), (3, 0, 0)]
    assert model.requests[1].messages == model.requests[2].messages
    assert [each.final for each in model.requests] == [False] * 5, "a further try may follow the last request"
    texts = [message.content for message in model.requests[3].messages]
    assert fenced(GOOD.format("1.1")) in texts and not any("broken" in text for text in texts)
    turn = kit.log.turns[1]
    assert (
        turn.passed
        and turn.code == GOOD.format("1.1").strip()
        and turn.adherence
        and turn.adherence.verdict == "adhered"
    )
    assert turn.request == [*model.requests[1].messages]
    assert (turn.usage.input_tokens, extra(turn)["usage_by_role"]["gate"]["input_tokens"]) == (10, 10)
    assert extra(turn)["gate"] == {
        "tries": [
            {"outcome": "fail", "passed": False, "passed_base": False},
            {"outcome": "pass", "passed": True, "passed_base": True},
        ],
        "accepted": True, "rolled_back": False,
    }  # fmt: skip
    assert [call.response for call in turn.calls()] == [fenced(BAD.format("1.0")), fenced(GOOD.format("1.1"))]
    assert all("gate" not in extra(each) for each in kit.log.turns if each is not turn)


async def test_a_failing_test_is_told_after_the_refused_reply(tmp_path: Path) -> None:
    kit, model = await converse(tmp_path, breaking((2, 0), (2, 1)), gate="tests")
    first, second, third = (each.messages for each in model.requests[2:5])
    refused = [Message("assistant", fenced(BAD.format(f"2.{number}"))) for number in range(2)]
    told = Message("user", "Mend: fail")
    assert second == (*first, refused[0], told)
    assert third == (*second, refused[1], told)
    assert [message.role for message in model.requests[5].messages] == ["user", "assistant"] * 3 + ["user"]
    assert model.requests[5].messages[:5] == first
    calls = list(kit.log.turns[2].calls())
    assert [(call.earlier, len(call.request)) for call in calls] == [(0, 5), (5, 2), (7, 2)]


async def test_after_the_last_try_the_code_before_stands(tmp_path: Path) -> None:
    breaks = [(1, number) for number in range(3)]
    kit, model = await converse(tmp_path, breaking(*breaks), gate="silent")
    first, second = kit.log.turns[1:3]
    assert first.rolled_back and not first.passed and first.code == BAD.format("1.2").strip()
    assert extra(first)["gate"]["rolled_back"] and not extra(first)["gate"]["accepted"]
    later = next(each for each in model.requests if each.turn == 2)
    assert [message.role for message in later.messages] == ["user", "assistant", "user"]
    assert first.instruction and first.instruction.text not in later.messages[-1].content
    assert later.messages[1].content == fenced(GOOD.format("0.0"))
    assert second.passed
    ids = [turn.instruction.id for turn in kit.log.turns if turn.instruction]
    assert len(ids) == len(set(ids)) == 3


async def test_a_skipped_turn_keeps_the_code_that_stands(tmp_path: Path) -> None:
    given: list[str] = []

    def applies(instruction: Any) -> bool:
        given.append(instruction.id)
        return len(given) == 1

    kit, _ = await converse(tmp_path, breaking((1, 0), (1, 1)), gate="silent", gate_tries=1, judge=Judging(applies))
    opening, rolled, skipped = kit.log.turns[:3]
    assert rolled.rolled_back and skipped.skipped
    assert (skipped.code, skipped.passed, skipped.outcome) == (opening.code, True, "pass")


async def test_nothing_precedes_turn_0(tmp_path: Path) -> None:
    breaks = [(0, number) for number in range(3)]
    kit, model = await converse(tmp_path, breaking(*breaks), gate="silent")
    opening = kit.log.turns[0]
    assert not opening.rolled_back and not extra(opening)["gate"]["accepted"] and not opening.passed
    assert model.requests[3].messages[1].content == fenced(BAD.format("0.2"))
    assert kit.log.turns[1].passed


async def test_a_reply_without_code_is_asked_again(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        return breaking()(request) if request.number or request.turn != 1 else "I would rather not."  # type: ignore[return-value]

    kit, model = await converse(tmp_path, answer, gate="tests")
    assert extra(kit.log.turns[1])["gate"]["tries"][0]["outcome"] == "no_code"
    assert model.requests[2].messages[-1].content.startswith("Mend: no")
    assert kit.log.turns[1].passed


async def test_a_further_try_that_does_not_fit_is_the_last(tmp_path: Path) -> None:
    def answer(request: Request) -> str | Exception:
        return ContextOverflow("too long") if request.number == 1 else breaking((1, 0))(request)

    kit, model = await converse(tmp_path, answer, gate="tests")
    assert [len(turn.request) for turn in kit.log.turns] == [1, 3, 3, 5]
    assert kit.log.turns[1].rolled_back and kit.log.ended is None
    assert [call.response is None for call in kit.log.turns[1].calls()] == [False, True]
    assert [turn.passed for turn in kit.log.turns] == [True, False, True, True]
    assert len(model.requests) == 5


async def test_a_request_that_does_not_fit_ends_the_session_as_without_a_gate(tmp_path: Path) -> None:
    def answer(request: Request) -> str | Exception:
        return ContextOverflow("too long") if request.turn == 2 else breaking((1, 0))(request)

    kit, _ = await converse(tmp_path, answer, gate="silent")
    assert kit.log.ended == "context_overflow"
    assert [turn.passed for turn in kit.log.turns] == [True, True, False, False]


async def test_an_endpoint_that_fails_in_a_try_errors_the_session_after_its_finished_turns(tmp_path: Path) -> None:
    def answer(request: Request) -> str | Exception:
        return InfrastructureError("down") if request.number == 1 else breaking((2, 0))(request)

    seen: list[TurnRecord] = []
    with pytest.raises(ExceptionGroup) as failed:
        await converse(tmp_path, answer, gate="silent", seen=seen)
    assert isinstance(failed.value.exceptions[0], InfrastructureError)
    assert [turn.turn for turn in seen] == [0, 1]


async def test_a_session_resumes_in_a_try_and_pays_nothing_twice(tmp_path: Path) -> None:
    broken = breaking((1, 0), (1, 1), (2, 0))

    def dying(request: Request) -> str | Exception:
        return InfrastructureError("killed") if (request.turn, request.number) == (1, 2) else broken(request)

    whole, _ = await converse(tmp_path / "whole", broken, gate="tests")
    with pytest.raises(ExceptionGroup):
        await converse(tmp_path, dying, gate="tests")
    resumed, model = await converse(tmp_path, broken, gate="tests")
    assert [(each.turn, each.number) for each in model.requests] == [(1, 2), (2, 0), (2, 1), (3, 0)]
    assert shape(resumed.log.turns) == shape(whole.log.turns)


async def test_the_gate_may_see_more_than_the_base_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = benches.Words.check

    async def plus_alone(self: Any, program: Any, suite: Any) -> Any:
        verdict = await real(self, program, suite)
        return verdict.__class__(verdict.outcome, True)  # what fails, fails a plus test

    monkeypatch.setattr(benches.Words, "check", plus_alone)
    kit, model = await converse(tmp_path / "base", breaking((1, 0)), gate="silent")
    assert len(model.requests) == 4 and not kit.log.turns[1].passed and not kit.log.turns[1].rolled_back
    assert model.requests[2].messages[3].content == fenced(BAD.format("1.0")), "the code that fails stays"
    kit, model = await converse(tmp_path / "all", breaking((1, 0)), gate="silent", gate_tests="all")
    assert len(model.requests) == 5 and kit.log.turns[1].passed


async def test_equal_programs_are_those_of_last_replies(tmp_path: Path) -> None:
    program = {(0, 0): GOOD.format("a"), (1, 0): BAD.format("b"), (1, 1): GOOD.format("c"), (2, 0): BAD.format("b")}

    def answer(request: Request) -> str:
        return fenced(program.get((request.turn, request.number), GOOD.format("a")))

    kit, _ = await converse(tmp_path, answer, gate="silent")
    assert [turn.tested_as for turn in kit.log.turns] == [None, None, 0, 0]


def test_further_tries_are_expected_and_grow_with_the_messages_about_them() -> None:
    task = task_of("t/1", "def add(a, b):", "def add(a, b):\n    return a + b\n", base=((1, 2),))
    of = {gate: [ask for ask in protocol(gate=gate).asks(task) if ask.role == "model"] for gate in ("none", "silent")}
    assert [ask.times for ask in of["silent"][:3]] == [1.0, 0.15, 0.15**2]
    assert of["silent"][::3] == of["none"]
    tests = [ask for ask in protocol(gate="tests", gate_tries=1).asks(task) if ask.role == "model"]
    assert tests[1].characters > tests[0].characters and tests[1].replies == tests[0].replies + 1
