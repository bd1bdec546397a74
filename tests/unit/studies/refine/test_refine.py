"""Algorithm 1 and its edges, with a scripted model and judges whose decisions are given."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from codechat.base.domain import Adherence, Applicability, Instruction, Message, Usage
from codechat.base.errors import ContextOverflow, InfrastructureError, UserError
from codechat.base.records import TurnRecord
from codechat.datasets.tasks import Task
from codechat.judging import JudgeConfig
from codechat.models import Request
from codechat.run.protocols import Kit, Parts
from codechat.sandbox.languages import parses
from codechat.studies.refine.agendas import AgendaConfig
from codechat.studies.refine.instructions import Pool
from codechat.studies.refine.protocol import RefineConfig, RefinePrompts, refine
from support import benches
from support.benches import Answer, Judging, Script, fenced, shape, task_of

ADD = "def add(a, b):"
TASK = task_of("t/1", ADD, "def add(a, b):\n    return a + b\n", prompt="Add two numbers.", base=((1, 2),))
SCOPES = ("cosmetic", "structural", "semantic")
POOL = tuple(Instruction(f"{scope}-{n}", f"Add {scope} {n}.", scope, "add") for scope in SCOPES for n in range(6))  # type: ignore[arg-type]
PROMPTS = RefinePrompts(initial="Do: {{prompt}} {{signature}}", followup="Change: {{instruction}}")


def code(number: int) -> str:
    return f"def add(a, b):\n    return a + b  # {number}\n"


def reply(number: int) -> str:
    return fenced(code(number))


async def converse(
    tmp_path: Path,
    answer: Answer = lambda request: reply(request.turn),
    *,
    judge: Judging | None = None,
    turns: int = 10,
    lookahead: int = 1,
    baseline: bool = False,
    task: Task = TASK,
    journal_name: str = "journal.db",
    seen: list[TurnRecord] | None = None,
    prompts: RefinePrompts = PROMPTS,
) -> tuple[Kit, Script, Judging]:
    """One session of refine over `POOL`."""
    judging = judge or Judging()
    protocol = refine(
        RefineConfig(prompts=prompts),
        Parts(
            JudgeConfig(kind="test", lookahead=lookahead),
            {"agenda": AgendaConfig(turns=turns), "pool": Pool(POOL, "hash")},
        ),
    )
    kit, model, _ = await benches.converse(
        protocol, task, tmp_path, answer, judge=judging, baseline=baseline, journal_name=journal_name, seen=seen
    )
    return kit, model, judging


def test_an_estimate_has_the_questions_about_every_instruction() -> None:
    class Asking(JudgeConfig):
        def asks(self, instruction: Instruction) -> bool:
            return True

    def calls(several: int) -> Counter[str]:
        groups = {"agenda": AgendaConfig(turns=3, composite=several), "pool": Pool(POOL, "hash")}
        protocol = refine(RefineConfig(prompts=PROMPTS), Parts(Asking(kind="test"), groups))
        found = Counter[str]()
        for ask in protocol.asks(TASK):
            found[ask.role] += ask.times  # type: ignore[assignment]
        return found

    one, three = calls(1), calls(3)
    assert (one["adherence"], three["adherence"], one["model"], three["model"]) == (2, 6, 3, 3)
    assert three["applicability"] == 3 * one["applicability"] + 2 * 3, "and about three pairs without a rule"


async def test_ten_turns_follow_the_agenda_and_never_repeat_an_instruction(tmp_path: Path) -> None:
    kit, _, _ = await converse(tmp_path)
    turns = kit.log.turns
    assert [turn.turn for turn in turns] == list(range(10))
    assert turns[0].instruction is None
    assert turns[0].adherence is None
    assert [turn.instruction.scope for turn in turns[1:] if turn.instruction] == kit.log.agenda
    ids = [turn.instruction.id for turn in turns[1:] if turn.instruction]
    assert len(set(ids)) == 9
    assert all(turn.passed and turn.passed_base and turn.failure is None for turn in turns)
    assert all(turn.adherence and turn.adherence.verdict == "adhered" for turn in turns[1:])
    assert turns[3].usage == Usage(10, 5, 1)


async def test_a_system_prompt_stands_before_every_request(tmp_path: Path) -> None:
    prompts = RefinePrompts(initial="{{prompt}}", followup="{{instruction}}", system="Code alone.\n")
    kit, model, _ = await converse(tmp_path, turns=3, prompts=prompts)
    system = Message("system", "Code alone.")
    assert model.requests[0].messages == (system, Message("user", "Add two numbers."))
    for request, turn in zip(model.requests[1:], kit.log.turns[1:], strict=True):
        assert request.messages[0] == system and [each.role for each in request.messages].count("system") == 1
        assert turn.instruction and request.messages[-1] == Message("user", turn.instruction.text)


async def test_the_whole_conversation_is_sent_without_thinking(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        return f"<think>secret plan {request.turn}</think>" + reply(request.turn)

    kit, model, _ = await converse(tmp_path, answer, turns=3)
    assert model.requests[0].messages == (Message("user", "Do: Add two numbers. def add(a, b):"),)
    last = model.requests[2].messages
    assert [message.role for message in last] == ["user", "assistant", "user", "assistant", "user"]
    assert "secret" not in "".join(message.content for message in last)
    assert last[1].content == reply(0)
    assert kit.log.turns[1].instruction is not None
    assert last[2].content == f"Change: {kit.log.turns[1].instruction.text}"
    assert [asdict(message) for message in kit.log.turns[2].request] == [
        {"role": message.role, "content": message.content} for message in last
    ]
    assert kit.log.turns[2].response is not None
    assert "secret plan 2" in kit.log.turns[2].response, "the record keeps the whole reply"


async def test_the_first_applicable_candidate_is_taken_and_the_tried_are_recorded(tmp_path: Path) -> None:
    kit, _, judge = await converse(tmp_path, judge=Judging(lambda each: each.id.endswith(("-4", "-5"))), turns=3)
    for turn in kit.log.turns[1:]:
        assert turn.instruction is not None
        assert turn.candidates[-1].id == turn.instruction.id
        assert [candidate.applicable for candidate in turn.candidates] == [False] * (len(turn.candidates) - 1) + [True]
    assert judge.asked == [candidate.id for turn in kit.log.turns for candidate in turn.candidates]


async def test_undecided_counts_as_not_applicable(tmp_path: Path) -> None:
    kit, _, _ = await converse(tmp_path, judge=Judging(lambda _: None), turns=2)
    turn = kit.log.turns[1]
    assert turn.skipped
    assert len(turn.candidates) == 6
    assert {candidate.applicable for candidate in turn.candidates} == {None}


async def test_skip_keeps_the_code_and_leaves_no_trace_in_the_conversation(tmp_path: Path) -> None:
    judge = Judging(lambda each: each.scope != "structural")
    kit, model, _ = await converse(tmp_path, lambda r: fenced("def add(a, b):\n    return 'broken'\n"), judge=judge)
    skipped = [turn for turn in kit.log.turns if turn.skipped]
    assert [turn.turn for turn in skipped] == [t for t, scope in enumerate(kit.log.agenda, 1) if scope == "structural"]
    assert len(model.requests) == 7
    for turn in skipped:
        before = kit.log.turns[turn.turn - 1]
        assert (
            (turn.code, turn.outcome, turn.passed)
            == (before.code, before.outcome, before.passed)
            == (turn.code, "fail", False)
        )
        assert turn.instruction is turn.response is turn.adherence is None
        assert turn.request == []
        assert turn.usage.input_tokens == 0
        assert turn.judge_usage.input_tokens == 18, "the judge was asked six times"
    assert len(model.requests[-1].messages) == 13


@pytest.mark.parametrize("lookahead", [2, 3, 7, 100])
async def test_lookahead_changes_nothing_but_the_number_of_questions(tmp_path: Path, lookahead: int) -> None:
    def applies(each: Instruction) -> bool:
        return hash_of(each) % 3 == 0

    one, _, asked_one = await converse(tmp_path, judge=Judging(applies), journal_name="one.db")
    many, _, asked_many = await converse(tmp_path, judge=Judging(applies), lookahead=lookahead, journal_name="many.db")
    assert shape(one.log.turns) == shape(many.log.turns)
    assert len(asked_many.asked) >= len(asked_one.asked)


def hash_of(instruction: Instruction) -> int:
    return sum(map(ord, instruction.id))


async def test_a_failure_behind_the_chosen_candidate_is_not_met(tmp_path: Path) -> None:
    first: list[str] = []

    def applies(each: Instruction) -> bool | Exception:
        first.append(each.id)
        return True if len(first) == 1 else InfrastructureError("judge down")

    kit, _, _ = await converse(tmp_path, judge=Judging(applies), turns=2, lookahead=4)
    assert kit.log.turns[1].instruction is not None
    with pytest.raises(ExceptionGroup) as caught:
        await converse(
            tmp_path, judge=Judging(lambda _: InfrastructureError("judge down")), turns=2, journal_name="b.db"
        )
    assert caught.group_contains(InfrastructureError)


async def test_a_followup_without_code_is_violated_and_the_session_goes_on(tmp_path: Path) -> None:
    kit, _, _ = await converse(tmp_path, lambda r: "I would rather not." if r.turn == 2 else reply(r.turn), turns=4)
    lost = kit.log.turns[2]
    assert (lost.outcome, lost.passed, lost.code) == ("no_code", False, None)
    assert lost.adherence is not None
    assert (lost.adherence.verdict, lost.adherence.by) == ("violated", "rules")
    assert lost.failure is not None
    after = kit.log.turns[3]
    assert after.passed
    assert after.adherence is not None
    assert after.adherence.verdict == "adhered"


async def test_code_that_does_not_parse_is_a_syntax_error_and_is_still_judged(tmp_path: Path) -> None:
    kit, _, _ = await converse(
        tmp_path, lambda r: fenced("def add(a, b:\n    return\n") if r.turn == 1 else reply(0), turns=3
    )
    turn = kit.log.turns[1]
    assert turn.outcome == "syntax_error"
    assert turn.code is not None
    assert turn.adherence is not None
    assert turn.adherence.by == "test"


class Parsing(Judging):
    """Reads only code that parses, as rules do; `seen` has the code of every question."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.compared: list[str] = []

    def reads(self, code: str, language: str) -> bool:
        return parses(language, code) is True

    async def applicable(self, code: str, instruction: Instruction) -> Applicability:
        self.seen.append(code.strip())
        fits = self.reads(code, "python")
        return Applicability(fits, "test", "read" if fits else "the code does not parse")

    async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
        self.compared.append(before.strip())
        return await super().adherence(before, after, instruction)


BROKEN = "def add(a, b:\n    return a + b\n"


def breaking(*broken: int) -> Answer:
    """Code that does not parse at some turns, and no code at turn 4."""
    return lambda r: "no" if r.turn == 4 else fenced(BROKEN) if r.turn in broken else reply(r.turn)


async def test_a_judge_that_reads_parsed_code_alone_is_asked_about_the_last_that_parses(tmp_path: Path) -> None:
    judge = Parsing()
    kit, model, _ = await converse(tmp_path, breaking(2, 3), judge=judge, turns=7)
    last = [code(n).strip() for n in (0, 1, 1, 1, 1, 5)]
    assert judge.seen == last, "turns 3 to 5 are asked about the code of turn 1"
    assert [turn.read_turn for turn in kit.log.turns] == [None, None, None, 1, 1, 1, None]
    assert judge.compared == [*last[:3], *last[4:]], "what the instruction applied to; turn 4 has no code to compare"
    assert len(model.requests) == 7, "the model is asked, and mends its code"
    again = Parsing()
    resumed, _, _ = await converse(tmp_path, breaking(2, 3), judge=again, turns=7)
    assert resumed.log.turns == kit.log.turns and again.seen == []


async def test_a_judge_of_any_text_is_asked_about_the_last_code(tmp_path: Path) -> None:
    class Texts(Judging):
        async def adherence(self, before: str, after: str, instruction: Instruction) -> Adherence:
            compared.append(before.strip())
            return await super().adherence(before, after, instruction)

    compared: list[str] = []
    kit, _, _ = await converse(tmp_path, breaking(2, 3), judge=Texts(), turns=6)
    assert [turn.read_turn for turn in kit.log.turns] == [None] * 6
    assert compared == [code(0).strip(), code(1).strip(), BROKEN.strip(), BROKEN.strip()]


async def test_without_any_code_that_parses_turns_are_skipped_and_counted_apart(tmp_path: Path) -> None:
    kit, model, _ = await converse(tmp_path, breaking(*range(10)), judge=Parsing(), turns=3)
    assert [turn.skipped for turn in kit.log.turns] == [False, True, True]
    assert [turn.read_turn for turn in kit.log.turns] == [None] * 3 and len(model.requests) == 1


async def test_without_any_code_yet_nothing_applies(tmp_path: Path) -> None:
    kit, model, judge = await converse(tmp_path, lambda _: "no", turns=3)
    assert [turn.outcome for turn in kit.log.turns] == ["no_code"] * 3
    assert [turn.skipped for turn in kit.log.turns] == [False, True, True]
    assert judge.asked == []
    assert len(model.requests) == 1


@pytest.mark.parametrize("at", [0, 1, 4, 9])
async def test_a_context_overflow_completes_the_session_with_failures(tmp_path: Path, at: int) -> None:
    kit, model, _ = await converse(
        tmp_path, lambda r: ContextOverflow("8192 tokens") if r.turn == at else reply(r.turn)
    )
    assert kit.log.ended == "context_overflow"
    assert len(kit.log.turns) == 10
    assert len(model.requests) == at + 1
    for turn in kit.log.turns[at:]:
        assert (turn.outcome, turn.passed, turn.code, turn.response) == ("no_code", False, None, None)
        assert turn.instruction is turn.adherence is None
        assert not turn.skipped
    assert kit.log.turns[at].request
    assert all(turn.passed for turn in kit.log.turns[:at])
    again, unasked, _ = await converse(tmp_path, lambda _: "never asked")
    assert again.log.ended == "context_overflow"
    assert unasked.requests == [], "the journal remembers the overflow"


@pytest.mark.parametrize("failing", ["sandbox", "model"])
async def test_a_failure_keeps_the_turns_before_it_however_slowly_they_are_tested(tmp_path: Path, failing: str) -> None:
    def answer(request: Request) -> str | Exception:
        if request.turn == 2 and failing == "model":
            return InfrastructureError("down")
        return fenced(f"def add(a, b):\n    return {('quick', 'slow', 'unlucky', 'late')[min(request.turn, 3)]!r}\n")

    seen: list[TurnRecord] = []
    with pytest.raises(ExceptionGroup) as caught:
        await converse(tmp_path, answer, turns=6, seen=seen)
    assert caught.group_contains(InfrastructureError)
    assert [turn.turn for turn in seen] == [0, 1]


async def test_a_resumed_session_asks_only_what_is_missing(tmp_path: Path) -> None:
    def dies(request: Request) -> str | Exception:
        return InfrastructureError("down") if request.turn == 4 else reply(request.turn)

    with pytest.raises(ExceptionGroup):
        await converse(tmp_path, dies)
    kit, model, judge = await converse(tmp_path)
    undisturbed, _, _ = await converse(tmp_path, journal_name="other.db")
    assert [request.turn for request in model.requests] == [4, 5, 6, 7, 8, 9]
    assert shape(kit.log.turns) == shape(undisturbed.log.turns)
    assert len(judge.asked) == 5, "applicability of turns 1 to 4 was in the journal"


async def test_only_a_baseline_sees_the_reference(tmp_path: Path) -> None:
    _, model, _ = await converse(tmp_path, turns=2)
    assert all(request.view is None for request in model.requests)
    _, baseline, _ = await converse(tmp_path, turns=2, baseline=True, journal_name="b.db")
    view = baseline.requests[1].view
    assert view is not None
    assert (view.task.reference, view.code) == (TASK.reference, code(0).rstrip("\n"))
    assert view.instruction is not None


async def test_a_lone_surrogate_in_a_reply_reaches_the_record_as_text(tmp_path: Path) -> None:
    kit, _, _ = await converse(tmp_path, lambda r: "\ud800" + reply(r.turn), turns=2)
    assert kit.log.turns[0].model_dump_json()


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"initial": "no field", "followup": "{{instruction}}"}, "must contain {{prompt}}"),
        ({"initial": "{{prompt}}", "followup": "{{instrution}}"}, "must contain {{instruction}}"),
        ({"initial": "{{prompt}} {{reference}}", "followup": "{{instruction}}"}, "unknown field {{reference}}"),
    ],
)
def test_a_prompt_without_its_field_is_a_mistake(prompts: dict[str, str], message: str) -> None:
    from codechat.base.config import validate

    with pytest.raises(UserError, match=message.replace("{", r"\{")):
        validate(RefineConfig, {"prompts": prompts}, "protocol")
