"""Self-repair: what is asked after which verdicts, and what is recorded of it."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Message
from codechat.base.errors import ContextOverflow, UserError
from codechat.base.records import SessionRecord
from codechat.run.cell import fitting
from codechat.run.protocols import Kit
from codechat.run.settings.compose import compose
from codechat.studies.multicodeif.constraints import solved_types
from codechat.studies.multicodeif.metrics import ConstrainedTurn
from codechat.studies.multicodeif.protocol_repair import Repair, RepairConfig
from codechat.studies.multicodeif.rows import ConstrainedTask
from support.benches import Answer, Judging, Script, converse, fenced, shape
from support.mistakes import mistake
from support.multicodeif import SNAKE, SOLUTION, SPACES, Quoting, constrained_task, level

BAD, GOOD = fenced("badName = 1\n"), fenced("good_name = 1\n")
SCENARIO = ("scenario", SOLUTION)
SHIPPED = compose(["protocol=repair", "judge=llm"]).config


def repair(**options: Any) -> Repair:
    return Repair(RepairConfig.model_validate({**SHIPPED.protocol.model_dump(), **options}), SHIPPED.judge)


def held(
    folder: Path, task: ConstrainedTask, replies: Answer | list[str], judge: Judging | None = None, **options: Any
) -> tuple[Kit, Script]:
    """A session, and the model that was asked in it."""
    kit, model, _ = asyncio.run(converse(repair(**options), task, folder, replies, judge=judge))
    return kit, model


def own(kit: Kit) -> list[ConstrainedTurn]:
    return [ConstrainedTurn.of(turn) for turn in kit.log.turns]


def sent(model: Script) -> list[str]:
    """The last message of every request."""
    return [request.messages[-1].content for request in model.requests]


def test_a_met_task_is_done(tmp_path: Path) -> None:
    kit, model = held(tmp_path, constrained_task(SNAKE), [GOOD])
    assert sent(model) == ["Write it."]
    (turn,) = kit.log.turns
    assert (turn.outcome, turn.passed, turn.passed_base, turn.decided) == ("pass", True, True, "outside")
    (found,) = own(kit)
    assert (found.level, found.round, found.carried, found.parses) == ("single", 0, False, True)
    assert found.official is not None and found.official.passed is True
    (each,) = found.constraints
    assert (each.type, each.category, each.by, each.met) == ("naming", "coding_style", "rule", True)


@pytest.mark.parametrize(
    ("feedback", "told"),
    [
        ("named", "- {words}"),
        ("diagnosis", "- {words} ({reason})"),
        ("paper", "- naming_convention: python;variable:snake_case"),
    ],
)
def test_a_repair_in_one_message(tmp_path: Path, feedback: str, told: str) -> None:
    task = constrained_task(SNAKE)
    kit, model = held(tmp_path, task, [BAD, GOOD], feedback=feedback)
    words, reason = task.levels[0].constraints[0].words, own(kit)[0].constraints[0].reason
    assert "badName" in reason
    (request,) = [request.messages for request in model.requests[1:]]
    assert request == (
        Message(
            "user",
            "Code was written for the task below, and does not keep all that the task demands. It still has to meet:\n"
            + told.format(words=words, reason=reason)
            + "\n\nThe code:\n```python\nbadName = 1\n```\n\nThe task:\nWrite it.\n\n"
            "Write the whole code again so that it meets this too. Answer with the code only.",
        ),
    )
    assert [(turn.outcome, turn.passed) for turn in kit.log.turns] == [("fail", False), ("pass", True)]
    assert [turn.round for turn in own(kit)] == [0, 1]
    failure = kit.log.turns[0].failure
    assert failure is not None and failure.reason.startswith("naming: ")


def test_a_repair_in_one_dialogue(tmp_path: Path) -> None:
    kit, model = held(tmp_path, constrained_task(SNAKE), [BAD, "No.", GOOD], context="full")
    roles = [[message.role for message in request.messages] for request in model.requests]
    assert roles == [["user"], ["user", "assistant", "user"], ["user", "assistant", "user", "assistant", "user"]]
    last = model.requests[2].messages
    assert [message.content for message in last[:2]] == ["Write it.", BAD]
    assert last[3].content == "No."
    assert last[4].content.startswith("Your code does not keep") and "snake_case" in last[4].content
    assert [turn.outcome for turn in kit.log.turns] == ["fail", "no_code", "pass"]


def test_rounds_end(tmp_path: Path) -> None:
    kit, _ = held(tmp_path, constrained_task(SNAKE), [BAD] * 3, rounds=2)
    assert [turn.passed for turn in kit.log.turns] == [False] * 3
    kit, _ = held(tmp_path / "none", constrained_task(SNAKE), [BAD], rounds=0)
    assert len(kit.log.turns) == 1


def test_only_the_unmet_constraints_are_named(tmp_path: Path) -> None:
    two_spaces = fenced("def f():\n  good_name = 1\n  return good_name\n")
    task = constrained_task(SNAKE, SPACES)
    kit, model = held(tmp_path, task, [two_spaces, GOOD], rounds=1)
    naming, spaces = task.levels[0].constraints
    assert spaces.words in sent(model)[1] and naming.words not in sent(model)[1]
    assert [each.met for each in own(kit)[0].constraints] == [True, False]


def test_a_reply_without_code_keeps_nothing_and_is_repaired(tmp_path: Path) -> None:
    kit, model = held(tmp_path, constrained_task(SNAKE, SCENARIO), ["I am sorry, I can not do that."] * 2,
                      Quoting(), rounds=1, context="full")  # fmt: skip
    assert [turn.outcome for turn in kit.log.turns] == ["no_code", "no_code"]
    assert [each.met for each in own(kit)[0].constraints] == [False, False]
    assert own(kit)[0].parses is None
    assert len(model.requests) == 2


def test_the_judge_decides_what_no_rule_can(tmp_path: Path) -> None:
    judge = Quoting()
    kit, _ = held(tmp_path, constrained_task(SNAKE, SCENARIO), [fenced("bad_name = 1\n"), GOOD], judge)
    assert [turn.passed for turn in kit.log.turns] == [False, True]
    assert [each.by for each in own(kit)[0].constraints] == ["rule", "judge"]
    assert [(each.met, each.guarded, each.official) for each in own(kit)[0].constraints] == [
        (True, True, True),
        (False, False, False),
    ]
    first = judge.questions[0]
    assert (first.task_id, first.turn, first.index, first.prompt) == ("t/1", 0, 1, "Write it.")
    assert (first.code, first.reference) == ("bad_name = 1", SOLUTION)
    assert [turn.judge_usage.input_tokens for turn in kit.log.turns] == [11, 11]
    assert SOLUTION.strip() in own(kit)[0].constraints[1].reason, "it is recorded"


@pytest.mark.parametrize("harness", ["official", "guarded"])
def test_the_published_judge_compares_with_a_published_solution(tmp_path: Path, harness: str) -> None:
    """For the four categories whose answer is a whole solution, not where it is stated in words."""
    judge, stated = Quoting(), ("algorithm_type", "insertion sort")
    held(tmp_path, constrained_task(SCENARIO, stated), [GOOD], judge, harness=harness)
    assert [each.like_reference for each in judge.questions] == [harness == "official", False]
    assert solved_types() == {"code_quality", "scenario", "code_context", "exemplar"}


@pytest.mark.parametrize("feedback", ["named", "diagnosis"])
@pytest.mark.parametrize("context", ["single", "full"])
def test_no_word_of_a_solution_is_told(tmp_path: Path, feedback: str, context: str) -> None:
    _, model = held(
        tmp_path, constrained_task(SCENARIO), [BAD] * 3, Quoting(), feedback=feedback, context=context, rounds=2
    )
    assert len(model.requests) == 3
    assert "secret_helper" not in "".join(message.content for each in model.requests for message in each.messages)


def test_the_papers_feedback_tells_the_solution(tmp_path: Path) -> None:
    _, model = held(tmp_path, constrained_task(SCENARIO), [BAD] * 2, Quoting(), feedback="paper", rounds=1)
    assert "secret_helper" in sent(model)[1], "as published: which is why it is not the default"


def test_what_is_undecided_is_not_scored_and_not_repaired(tmp_path: Path) -> None:
    kit, model = held(tmp_path, constrained_task(SNAKE, SCENARIO), [GOOD], Judging())
    (turn,) = kit.log.turns
    assert (turn.outcome, turn.passed, turn.failure) == (None, None, None)
    assert own(kit)[0].constraints[1].met is None
    assert "judge=llm" in own(kit)[0].constraints[1].reason
    assert own(kit)[0].official is not None and own(kit)[0].official.outcome is None
    assert len(model.requests) == 1


def test_what_is_undecided_beside_an_unmet_constraint_is_unmet(tmp_path: Path) -> None:
    kit, model = held(tmp_path, constrained_task(SNAKE, SCENARIO), [BAD, GOOD], Judging())
    assert [turn.passed for turn in kit.log.turns] == [False, None]
    assert "scenario" not in sent(model)[1].partition("The code:")[0]


def test_a_met_reply_is_judged_again_in_the_papers_way(tmp_path: Path) -> None:
    judge = Quoting(lambda question: question.turn != 1)
    kit, model = held(tmp_path, constrained_task(SCENARIO), lambda request: fenced(f"turn = {request.turn}\n"), judge,
                      rejudge="true", rounds=3)  # fmt: skip
    turns = kit.log.turns
    assert [turn.passed for turn in turns] == [True, False, True, True]
    assert [turn.carried for turn in own(kit)] == [False, True, False, True]
    assert [request.turn for request in model.requests] == [0, 2]
    assert [turn.code for turn in turns] == ["turn = 0", "turn = 0", "turn = 2", "turn = 2"]
    assert [bool(turn.request) for turn in turns] == [True, False, True, False]
    assert [turn.usage.input_tokens for turn in turns] == [10, 0, 10, 0], "what is carried over cost nothing again"


@pytest.mark.parametrize("harness", ["guarded", "official"])
def test_both_harnesses_are_recorded_and_one_counts(tmp_path: Path, harness: str) -> None:
    task = constrained_task(("data_structure_type", "python;list"))
    literal = fenced("numbers = []\n")
    kit, _ = held(tmp_path, task, [literal] * 2, harness=harness, rounds=1)
    (each,) = own(kit)[0].constraints
    assert (each.guarded, each.official) == (True, False), "the published harness does not count literals"
    assert each.met is (harness == "guarded")
    assert kit.log.turns[0].passed is (harness == "guarded")
    assert len(kit.log.turns) == (1 if harness == "guarded" else 2)


def test_a_context_overflow_ends_the_session(tmp_path: Path) -> None:
    def answer(request: Any) -> str | Exception:
        return BAD if request.turn == 0 else ContextOverflow("too long")

    kit, _ = held(tmp_path, constrained_task(SNAKE), answer)
    assert [turn.outcome for turn in kit.log.turns] == ["fail", "no_code"]
    assert kit.log.ended == "context_overflow"
    assert kit.log.turns[1].response is None and kit.log.turns[1].request


def test_a_chain_is_refused() -> None:
    levels = tuple(level(name, "Write it.", SNAKE) for name in ("L1", "L2"))
    with pytest.raises(UserError, match="a chain of 2 levels") as raised:
        repair().turns(ConstrainedTask("chain/0", "Write it.", levels=levels))
    assert "dataset.level" in raised.value.remedy


@pytest.mark.parametrize("rejudge", ["false", "true"])
def test_a_session_that_is_continued_or_scored_again_is_the_same(tmp_path: Path, rejudge: str) -> None:
    task, replies = constrained_task(SNAKE, SCENARIO), [BAD, fenced("bad_name = 1\n"), GOOD, GOOD]
    options: dict[str, Any] = {"rejudge": rejudge, "rounds": 3}
    first, _ = held(tmp_path, task, replies, Quoting(), **options)
    again, model = held(tmp_path, task, replies, Quoting(), **options)
    assert model.requests == [], "everything was in the journal"
    assert shape(again.log.turns) == shape(first.log.turns)
    protocol = repair(**options)
    recorded = SessionRecord(
        cell_id="c", session_id="s", task_id="t/1", dataset="d", model="m", protocol="repair", agenda=[], seed=0,
        status="completed", turns=first.log.turns,
    )  # fmt: skip

    class Scored:
        measures = protocol.measures
        agenda = protocol.agenda

        async def run(self, task: ConstrainedTask, kit: Kit) -> None:
            kit.recording = recorded
            await protocol.run(task, kit)

    scored, model, _ = asyncio.run(
        converse(Scored(), task, tmp_path, replies, judge=Quoting(), journal_name="scored.db")  # type: ignore[arg-type]
    )
    assert model.requests == []
    assert shape(scored.log.turns) == shape(first.log.turns)


def test_what_is_not_installed_is_told_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "tree_sitter_zig" else found(name))
    with mistake("tree_sitter_zig") as raised:
        repair().turns(constrained_task(("naming", "zig;variable:snake_case"), language="zig"))
    assert "codechat[constraints]" in raised.value.remedy
    assert repair().turns(constrained_task(("naming", "c;variable:snake_case"), language="c")) == 5


@pytest.mark.parametrize(("judge", "said"), [("rules", True), ("llm", False)])
def test_what_no_judge_will_decide_is_told_at_the_start(judge: str, said: bool) -> None:
    config = compose(["protocol=repair", f"judge={judge}"]).config
    remark = "".join(fitting.undecidable(config, (constrained_task(SNAKE), constrained_task(SNAKE, SCENARIO))))
    assert ("1 of 2 tasks" in remark and "judge=rules" in remark) == said
    assert not [*fitting.undecidable(config, (constrained_task(SNAKE),))]
    assert not [*fitting.undecidable(compose(["judge=rules"]).config, (constrained_task(SCENARIO),))]


def test_a_version_is_decided_by_a_compiler_under_each_harness(tmp_path: Path) -> None:
    """The bench's tests stand for the compiler: they accept every program that does not say `broken`."""
    kit, model = held(tmp_path, constrained_task(("language_version", "java;17"), language="java"),
                      ["```java\nclass A { int broken; }\n```", "```java\nclass A {}\n```"])  # fmt: skip
    assert [turn.passed for turn in kit.log.turns] == [False, True]
    assert [each.by for each in own(kit)[0].constraints] == ["compiler"]
    assert "version 17" in sent(model)[1]
