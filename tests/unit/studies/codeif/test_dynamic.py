"""The dynamic conversation: which round follows which (CodeIF-Bench, paper 3.1 and 4.2)."""

from pathlib import Path

import pytest

from codechat.base.errors import ContextOverflow, InfrastructureError, UserError
from codechat.base.records import TurnRecord
from codechat.datasets.tasks import Requirement
from codechat.judging import JudgeConfig
from codechat.models import Request
from codechat.run.protocols import Parts
from codechat.studies.codeif.metrics import Exchange
from codechat.studies.codeif.protocol_dynamic import Dynamic, DynamicConfig, DynamicPrompts, dynamic
from support.benches import asking, code, conversation_task, converse, shape

PROMPTS = DynamicPrompts(
    initial="Do: {{prompt}}", requirement="Also: {{requirement}}", feedback="Not yet: {{requirement}} // {{feedback}}"
)
ABC = (asking("A"), asking("B"), asking("C"))
FEEDBACK = "Not yet: Have {0}. // an assertion does not hold\nexception: no {0}"


def protocol() -> Dynamic:
    return dynamic(DynamicConfig(prompts=PROMPTS), Parts(JudgeConfig(kind="none"), {}))


def path(turns: list[TurnRecord]) -> list[str]:
    """`initial`, `A` for an instruction round, `A?` for a feedback round, `A!` for one after which A is given up."""
    found: list[str] = []
    for turn in turns:
        exchange = Exchange.of(turn)
        name = exchange.requirement.id if exchange.requirement else "task"
        mark = "!" if exchange.discarded else "?" if exchange.round == "feedback" else ""
        found.append("initial" if exchange.round == "initial" else name + mark)
    return found


async def rounds(
    tmp_path: Path, *replies: str, requirements: tuple[Requirement, ...] = ABC
) -> tuple[list[str], list[TurnRecord]]:
    kit, model, _ = await converse(protocol(), conversation_task(*requirements), tmp_path, list(replies))
    assert len(model.requests) == len(replies), "every scripted reply was asked for, and no other"
    return path(kit.log.turns), kit.log.turns


async def test_all_is_met_at_once(tmp_path: Path) -> None:
    found, turns = await rounds(tmp_path, code("base", "A", "B", "C"))
    assert found == ["initial"]
    assert turns[0].passed
    assert [(check.id, check.asked) for check in Exchange.of(turns[0]).checks] == [
        ("task", True),
        ("A", False),
        ("B", False),
        ("C", False),
    ]


async def test_one_instruction_after_the_other(tmp_path: Path) -> None:
    found, turns = await rounds(
        tmp_path, code("base"), code("base", "A"), code("base", "A", "B"), code("base", "A", "B", "C")
    )
    assert found == ["initial", "A", "B", "C"]
    assert all(turn.passed for turn in turns)


async def test_what_is_met_already_is_never_asked(tmp_path: Path) -> None:
    found, _ = await rounds(tmp_path, code("base", "B"), code("base", "A", "B", "C"))
    assert found == ["initial", "A"]


async def test_a_failed_instruction_is_repaired_by_feedback(tmp_path: Path) -> None:
    found, turns = await rounds(tmp_path, code("base", "B", "C"), code("base", "B", "C"), code("base", "A", "B", "C"))
    assert found == ["initial", "A", "A?"]
    assert turns[2].request[-1].content == FEEDBACK.format("A")
    assert [turn.passed for turn in turns] == [True, False, True]


async def test_two_failures_discard_an_instruction_for_good(tmp_path: Path) -> None:
    found, turns = await rounds(
        tmp_path, code("base"), code("base"), code("base"), code("base", "B"), code("base", "B", "C")
    )
    assert found == ["initial", "A", "A!", "B", "C"]
    assert not turns[-1].passed, "what was discarded had been asked for"
    assert Exchange.of(turns[-1]).own.passed


async def test_the_task_itself_gets_one_round_of_feedback(tmp_path: Path) -> None:
    found, turns = await rounds(tmp_path, code("C"), code("base", "A", "B", "C"))
    assert found == ["initial", "task?"]
    assert turns[1].request[-1].content == ("Not yet: Write f. // an assertion does not hold\nexception: no base")


async def test_a_task_that_fails_twice_is_discarded_and_the_dialogue_goes_on(tmp_path: Path) -> None:
    found, turns = await rounds(tmp_path, code(), code(), code("A"), code("A", "B"), code("A", "B", "C"))
    assert found == ["initial", "task!", "A", "B", "C"]
    assert not any(turn.passed for turn in turns)


async def test_what_is_forgotten_is_asked_again(tmp_path: Path) -> None:
    found, turns = await rounds(
        tmp_path,
        code("base"),
        code("base", "A"),
        code("base", "B"),
        code("base", "A", "B"),
        code("A", "B", "C"),
        code("base", "A", "B", "C"),
    )
    assert found == ["initial", "A", "B", "A", "C", "task"]
    assert turns[5].request[-1].content == "Do: Write f.", "the task is asked for in its own words"
    assert [turn.passed for turn in turns] == [True, True, False, True, False, True]


async def test_there_are_twice_as_many_rounds_as_instructions(tmp_path: Path) -> None:
    task = conversation_task(*ABC)
    assert protocol().turns(task) == 8
    replies = [code("base", *("A" if turn % 2 else "B")) for turn in range(8)]
    found, _ = await rounds(tmp_path, *replies)
    assert found == ["initial", "A", "B", "A", "B", "A", "B", "A"], "A and B drive each other out"


async def test_the_worst_case_fits_exactly(tmp_path: Path) -> None:
    found, _ = await rounds(tmp_path, *[code()] * 8)
    assert found == ["initial", "task!", "A", "A!", "B", "B!", "C", "C!"]


async def test_an_extension_is_done_once_it_was_met(tmp_path: Path) -> None:
    requirements = (asking("A"), asking("F", accumulates=False))
    found, turns = await rounds(
        tmp_path, code("base", "A"), code("base", "F"), code("base", "A"), requirements=requirements
    )
    assert found == ["initial", "F", "A"], "what it broke is asked for again, it is not"
    assert [turn.passed for turn in turns] == [True, True, True]


async def test_extensions_can_be_left_out_as_in_the_paper(tmp_path: Path) -> None:
    task = conversation_task(asking("A"), asking("F", accumulates=False), asking("B"))
    without = dynamic(DynamicConfig(prompts=PROMPTS, extensions=False), Parts(JudgeConfig(kind="none"), {}))
    assert (without.turns(task), protocol().turns(task)) == (6, 8)
    kit, _, _ = await converse(without, task, tmp_path, [code("base"), code("base", "A"), code("base", "A", "B")])
    assert path(kit.log.turns) == ["initial", "A", "B"]
    assert {check.id for turn in kit.log.turns for check in Exchange.of(turn).checks} == {"task", "A", "B"}


def test_asking_for_extensions_changes_no_id_by_default() -> None:
    default, paper = DynamicConfig(prompts=PROMPTS), DynamicConfig(prompts=PROMPTS, extensions=False)
    assert "extensions" not in default.identity()
    assert paper.identity() != default.identity()


async def test_what_the_data_leaves_out_is_never_asked(tmp_path: Path) -> None:
    found, turns = await rounds(
        tmp_path, code("base"), code("base", "A"), requirements=(asking("A"), asking("L", asked=False))
    )
    assert found == ["initial", "A"]
    assert [check.id for check in Exchange.of(turns[0]).checks] == ["task", "A"]


async def test_a_reply_without_code_fails_and_leaves_the_code_before(tmp_path: Path) -> None:
    found, turns = await rounds(tmp_path, code("base", "B", "C"), "no", "never", requirements=ABC)
    assert found == ["initial", "A", "A!"], "B and C hold in the last code there was"
    assert [turn.outcome for turn in turns] == ["pass", "no_code", "no_code"]
    assert not any(check.passed for check in Exchange.of(turns[1]).checks)
    assert turns[1].failure is not None
    assert turns[1].failure.reason in turns[2].request[-1].content, "the feedback says that there was no code"


async def test_without_any_code_everything_is_asked(tmp_path: Path) -> None:
    found, _ = await rounds(tmp_path, *["no"] * 4, requirements=(asking("A"),))
    assert found == ["initial", "task!", "A", "A!"]


async def test_the_whole_dialogue_is_sent_without_thinking(tmp_path: Path) -> None:
    kit, model, _ = await converse(
        protocol(),
        conversation_task(*ABC[:1]),
        tmp_path,
        lambda r: f"<think>plan {r.turn}</think>" + code("base", *("A" if r.turn == 2 else "")),
    )
    last = model.requests[-1].messages
    assert [message.role for message in last] == ["user", "assistant", "user", "assistant", "user"]
    assert [last[at].content for at in (0, 2, 4)] == ["Do: Write f.", "Also: Have A.", FEEDBACK.format("A")]
    assert "plan" not in "".join(message.content for message in last)
    assert "plan 2" in (kit.log.turns[2].response or "")


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_context_overflow_ends_the_dialogue(tmp_path: Path, at: int) -> None:
    def answer(request: Request) -> str | Exception:
        return ContextOverflow("too long") if request.turn == at else code("base")

    kit, model, _ = await converse(protocol(), conversation_task(*ABC), tmp_path, answer)
    assert kit.log.ended == "context_overflow"
    assert len(kit.log.turns) == len(model.requests) == at + 1, "what would have been asked later, nobody knows"
    last = kit.log.turns[-1]
    assert (last.outcome, last.passed, last.response) == ("no_code", False, None)
    assert not any(check.passed for check in Exchange.of(last).checks)


async def test_a_resumed_session_asks_and_tests_only_what_is_missing(tmp_path: Path) -> None:
    replies = [code("base"), code("base"), code("base", "A"), code("base", "A", "B"), code("base", "A", "B", "C")]

    def dies(request: Request) -> str | Exception:
        return InfrastructureError("down") if request.turn == 3 else replies[request.turn]

    seen: list[TurnRecord] = []
    with pytest.raises(InfrastructureError):
        await converse(protocol(), conversation_task(*ABC), tmp_path, dies, seen=seen)
    assert path(seen) == ["initial", "A", "A?"]
    kit, model, words = await converse(protocol(), conversation_task(*ABC), tmp_path, replies)
    undisturbed, _, _ = await converse(protocol(), conversation_task(*ABC), tmp_path, replies, journal_name="other.db")
    assert [request.turn for request in model.requests] == [3, 4]
    assert len(words.assessed) == 8
    assert shape(kit.log.turns) == shape(undisturbed.log.turns)


async def test_a_sandbox_that_fails_errors_the_session(tmp_path: Path) -> None:
    seen: list[TurnRecord] = []
    with pytest.raises(ExceptionGroup) as caught:
        await converse(protocol(), conversation_task(*ABC), tmp_path, [code("base"), code("unlucky")], seen=seen)
    assert caught.group_contains(InfrastructureError)
    assert path(seen) == ["initial"]


def test_a_task_without_instructions_is_told_at_the_start() -> None:
    with pytest.raises(UserError, match="has no verifiable instructions"):
        protocol().turns(conversation_task())


def test_a_prompt_without_its_fields_is_refused() -> None:
    for change in ({"initial": "x"}, {"requirement": "x"}, {"feedback": "{{feedback}}"}):
        with pytest.raises(ValueError, match="must contain"):
            DynamicPrompts(**{**PROMPTS.model_dump(), **change})
