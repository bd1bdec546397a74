"""The static conversation: its four contexts message by message, what is tested at a turn, and its edges."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message
from codechat.base.errors import ContextOverflow, InfrastructureError, UserError
from codechat.base.records import TurnRecord
from codechat.judging import JudgeConfig
from codechat.models import Request
from codechat.run.protocols import PROTOCOLS, Parts
from codechat.studies.codeif.metrics import Exchange
from codechat.studies.codeif.protocol_static import Static, StaticConfig, StaticPrompts, layout, static
from support.benches import asking, code, conversation_task, converse, shape, task_of

PROMPTS = StaticPrompts(
    initial="Do: {{prompt}}", requirement="Also: {{requirement}}", together="Do: {{prompt}} With: {{requirement}}"
)
TASK = conversation_task(asking("A"), asking("F", accumulates=False), asking("B"), asking("L", asked=False))
REPLIES = [code("base"), code("base", "A"), code("base", "F"), code("base", "A", "B"), code("L")]


def protocol(**options: Any) -> Static:
    return static(StaticConfig(prompts=PROMPTS, **options), Parts(JudgeConfig(kind="none"), {}))


def said(request: Request) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in request.messages]


def checked(turn: TurnRecord) -> dict[str, bool]:
    return {check.id: check.passed for check in Exchange.of(turn).checks}


START = ("user", "Do: Write f.")
A, F, B, L = (("user", f"Also: Have {name}.") for name in "AFBL")
SAID = [("assistant", reply.strip()) for reply in REPLIES]
LAYOUTS = {
    "full": [
        [START],
        [START, SAID[0], A],
        [START, SAID[0], A, SAID[1], F],
        [START, SAID[0], A, SAID[1], F, SAID[2], B],
    ],
    "single": [[START], *([("user", f"Do: Write f. With: Have {name}.")] for name in "AFBL")],
    "multi": [[START], *([START, SAID[0], ask] for ask in (A, F, B, L))],
    "n_round": [
        [START],
        [START, SAID[0], A],
        [("user", "Do: Write f. With: Have A."), SAID[1], F],
        [("user", "Do: Write f. With: Have A.\nHave F."), SAID[2], B],
    ],
}


@pytest.mark.parametrize("context", sorted(LAYOUTS))
async def test_the_messages_of_every_turn(tmp_path: Path, context: str) -> None:
    kit, model, _ = await converse(
        protocol(context=context), TASK, tmp_path, lambda r: f"<think>hm {r.turn}</think>{REPLIES[r.turn]}"
    )
    sent = [[(role, text.strip()) for role, text in said(request)] for request in model.requests]
    assert sent == LAYOUTS[context]
    assert [request.turn for request in model.requests] == list(range(len(sent)))
    assert [[(m.role, m.content.strip()) for m in turn.request] for turn in kit.log.turns] == sent
    assert protocol(context=context).turns(TASK) == len(sent)


async def test_each_requirement_is_tested_by_itself_with_the_earlier_ones_that_last(tmp_path: Path) -> None:
    kit, _, words = await converse(protocol(), TASK, tmp_path, REPLIES)
    turns = kit.log.turns
    assert [checked(turn) for turn in turns] == [
        {"task": True},
        {"task": True, "A": True},
        {"task": True, "A": False, "F": True},
        {"task": True, "A": True, "B": True},
    ]
    assert len(words.assessed) == 1 + 2 + 3 + 3
    assert [turn.passed for turn in turns] == [True] * 4, "the extension's turn is held to the extension alone"
    third = Exchange.of(turns[2])
    assert third.requirement is not None
    assert third.requirement.model_dump() == {"id": "F", "strategy": "strategy F", "text": "Have F."}
    assert (third.round, third.level, third.discarded, third.official) == ("instruction", "L-1", False, None)
    assert [check.accumulates for check in third.checks] == [True, True, False]
    assert Exchange.of(turns[0]).round == "initial" and Exchange.of(turns[0]).requirement is None
    assert turns[3].cpu_s == 0.75


@pytest.mark.parametrize("context", ["single", "multi"])
async def test_by_itself_a_requirement_is_tested_with_the_task_alone(tmp_path: Path, context: str) -> None:
    kit, _, _ = await converse(protocol(context=context), TASK, tmp_path, REPLIES)
    assert [checked(turn) for turn in kit.log.turns] == [
        {"task": True},
        {"task": True, "A": True},
        {"task": True, "F": True},
        {"task": True, "B": True},
        {"task": False, "L": True},
    ]
    assert [turn.passed for turn in kit.log.turns] == [True, True, True, True, False]


async def test_a_turn_fails_by_the_first_thing_that_must_hold(tmp_path: Path) -> None:
    task = conversation_task(asking("A"), asking("B"))
    kit, _, _ = await converse(protocol(), task, tmp_path, [code("base"), code("base"), code("B")])
    first, second = kit.log.turns[1:]
    assert (first.outcome, first.passed, first.passed_base) == ("fail", False, True)
    assert first.failure is not None and first.failure.reason == "A: an assertion does not hold"
    assert Exchange.of(first).checks[1].reason == "an assertion does not hold: no A"
    assert (second.passed_base, checked(second)["B"]) == (False, True)
    assert second.failure is not None and second.failure.reason == "an assertion does not hold"


@pytest.mark.parametrize(
    ("reply", "outcome"), [("I would rather not.", "no_code"), ("```python\ndef f(x:\n```", "syntax_error")]
)
async def test_without_a_program_nothing_is_met_and_the_dialogue_goes_on(
    tmp_path: Path, reply: str, outcome: str
) -> None:
    task = conversation_task(asking("A"), asking("B"))
    kit, _, _ = await converse(protocol(), task, tmp_path, [code("base"), reply, code("base", "A", "B")])
    lost, after = kit.log.turns[1:]
    assert (lost.outcome, lost.passed, lost.passed_base) == (outcome, False, False)
    assert not any(checked(lost).values())
    assert after.passed


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_context_overflow_completes_the_session_with_failures(tmp_path: Path, at: int) -> None:
    task = conversation_task(asking("A"), asking("B"))

    def answer(request: Request) -> str | Exception:
        return ContextOverflow("too long") if request.turn == at else code("base", "A", "B")

    kit, model, _ = await converse(protocol(), task, tmp_path, answer)
    assert kit.log.ended == "context_overflow"
    assert len(model.requests) == at + 1
    assert len(kit.log.turns) == 3
    for turn in kit.log.turns[at:]:
        assert (turn.outcome, turn.passed, turn.response, turn.code) == ("no_code", False, None, None)
        assert not any(checked(turn).values())
        assert bool(turn.request) is (turn.turn == at)
    requirement = Exchange.of(kit.log.turns[2]).requirement
    assert requirement is not None and requirement.id == "B"


@pytest.mark.parametrize("context", sorted(LAYOUTS))
async def test_a_resumed_session_asks_and_tests_only_what_is_missing(tmp_path: Path, context: str) -> None:
    def dies(request: Request) -> str | Exception:
        return InfrastructureError("down") if request.turn == 2 else REPLIES[request.turn]

    seen: list[TurnRecord] = []
    with pytest.raises(ExceptionGroup):
        await converse(protocol(context=context), TASK, tmp_path, dies, seen=seen)
    assert [turn.turn for turn in seen] == [0, 1], "the turns before are finished first"
    kit, model, words = await converse(protocol(context=context), TASK, tmp_path, REPLIES)
    undisturbed, _, all_words = await converse(
        protocol(context=context), TASK, tmp_path, REPLIES, journal_name="other.db"
    )
    assert [request.turn for request in model.requests] == list(range(2, len(LAYOUTS[context])))
    assert len(words.assessed) == len(all_words.assessed) - 3
    assert shape(kit.log.turns) == shape(undisturbed.log.turns)


@pytest.mark.parametrize("unlucky", [0, 1, 2])
async def test_a_sandbox_that_fails_keeps_the_turns_before(tmp_path: Path, unlucky: int) -> None:
    task = conversation_task(asking("A"), asking("B"))
    replies = [code("base", "slow"), code("base", "A", "slow"), code("base", "A", "B")]
    replies[unlucky] = code("unlucky")
    seen: list[TurnRecord] = []
    with pytest.raises(ExceptionGroup) as caught:
        await converse(protocol(), task, tmp_path, replies, seen=seen)
    assert caught.group_contains(InfrastructureError)
    assert [turn.turn for turn in seen] == list(range(unlucky))


async def test_the_official_harness_is_run_beside_the_guarded_tests(tmp_path: Path) -> None:
    replies = [
        code("base"),
        '```python\ndef f(x):\n    """\n    Say.\n    """\n\n    return "nothing"\n```',
        *REPLIES[2:],
    ]
    kit, _, words = await converse(protocol(harness="official", context="n_round"), TASK, tmp_path, replies)
    sources = {source for source, _ in words.scripts}
    assert {wall for _, wall in words.scripts} == {3.0}
    assert sources == {
        "def f(x):\n    return 'base'\n\nbase",
        'def f(x):\n    return "nothing"\nbase\nA',
        "def f(x):\n    return 'base A B'\nbase\nA\nF\nB",
        "def f(x):\n    return 'base F'\nbase\nA\nF",
    }, "this F is no functionality extension by type, so the harness scores and keeps it"
    official = Exchange.of(kit.log.turns[1]).official
    assert official is not None and official.passed and not kit.log.turns[1].passed
    assert '"""' in (kit.log.turns[1].code or ""), "the record keeps the fence as it is"
    guarded, _, none = await converse(protocol(), TASK, tmp_path, replies, journal_name="g.db")
    assert none.scripts == [] and Exchange.of(guarded.log.turns[1]).official is None


async def test_the_official_harness_takes_the_first_fence_and_else_the_whole_reply(tmp_path: Path) -> None:
    task = conversation_task(asking("A"))
    replies = [code("A") + code("base"), "Plain words."]
    kit, _, words = await converse(protocol(harness="official"), task, tmp_path, replies)
    assert [turn.outcome for turn in kit.log.turns] == ["fail", "syntax_error"]
    assert kit.log.turns[1].code == "Plain words." and len(words.scripts) == 2
    guarded, _, _ = await converse(protocol(), task, tmp_path, replies, journal_name="g.db")
    assert [turn.outcome for turn in guarded.log.turns] == ["pass", "no_code"]


def test_a_task_without_what_the_protocol_needs_is_told_at_the_start() -> None:
    with pytest.raises(UserError, match="has no verifiable instructions"):
        protocol().turns(conversation_task())
    calls = task_of("t", "def f(x):", "def f(x): ...", base=((1,),), requirements=(asking("A"),))
    assert protocol().turns(calls) == 2
    with pytest.raises(UserError, match="no assertion tests"):
        protocol(harness="official").turns(calls)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"initial": "nothing"}, "must contain {{prompt}}"),
        ({"requirement": "{{instruction}}"}, "must contain {{requirement}}"),
        ({"together": "{{prompt}}"}, "must contain {{requirement}}"),
    ],
)
def test_prompts_without_their_fields_are_refused(prompts: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StaticPrompts(**{**PROMPTS.model_dump(), **prompts})


def test_neither_agenda_nor_pool_nor_judge_is_part_of_its_identity() -> None:
    for name in ("static", "dynamic"):
        assert PROTOCOLS[name].traits.uses == {"sandbox"}


def test_messages_carry_what_looks_like_a_template_as_it_is() -> None:
    odd = asking("{{prompt}}")
    messages = layout(StaticConfig(prompts=PROMPTS), conversation_task(odd), [odd], ["reply"])
    assert messages[-1] == Message("user", "Also: Have {{prompt}}.")


def test_a_prompt_can_name_the_language() -> None:
    prompts = PROMPTS.model_copy(update={"initial": "In {{language}}: {{prompt}}"})
    assert prompts.opening(TASK).content == "In python: Write f."
