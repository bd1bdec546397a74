"""`judge=recorded`: a recording's verdicts on constraints, only where they belong."""

from pathlib import Path

import pytest

from codechat.base.domain import Instruction
from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, write_sessions
from codechat.cli.app import main
from codechat.judging import JUDGES, ConstraintQuestion, DecidesConstraints
from support.mistakes import mistake
from support.multicodeif import session, turn

REPLY = "Here it is:\n\n```python\ndef f():\n    return 1\n```\n"
CODE = "def f():\n    return 1\n"


def recording(folder: Path, *sessions: SessionRecord) -> Path:
    write_sessions(folder / "s.jsonl", sessions)
    return folder / "s.jsonl"


def build(path: Path) -> DecidesConstraints:
    judge = JUDGES.build(JUDGES.validate({"kind": "recorded", "path": str(path)}))
    assert isinstance(judge, DecidesConstraints)
    return judge


def ask(turn: int = 0, index: int = 0, task: str = "T/0", code: str = CODE) -> ConstraintQuestion:
    return ConstraintQuestion(task, turn, index, "Write f.", "Keep it short.", code)


def three(folder: Path) -> Path:
    """A recording of three turns; the verdict on the last is open."""
    turns = [turn(number, text, response=REPLY) for number, text in enumerate(["q- x+", "q+ x-", "q? x+"])]
    return recording(folder, session("T/0", *turns))


@pytest.mark.parametrize(
    ("place", "met"), [((0, 0), False), ((0, 1), True), ((1, 0), True), ((1, 1), False), ((2, 0), None), ((2, 1), True)]
)
async def test_it_decides_by_task_turn_and_place(tmp_path: Path, place: tuple[int, int], met: bool | None) -> None:
    said = await build(three(tmp_path)).constraint(ask(*place))
    assert (said.met, said.by) == (met, "recorded")
    assert said.reason.startswith("made up: ")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (ask(turn=3), "no verdict on this turn is recorded"),
        (ask(index=2), "no verdict on this turn is recorded"),
        (ask(code="def f():\n    return 2\n"), "the recorded verdict is on another reply"),
    ],
)
async def test_it_never_guesses(tmp_path: Path, question: ConstraintQuestion, why: str) -> None:
    said = await build(three(tmp_path)).constraint(question)
    assert (said.met, said.reason) == (None, why)


async def test_code_whose_lines_are_put_together_from_the_reply_is_the_replys(tmp_path: Path) -> None:
    said = await build(three(tmp_path)).constraint(ask(code="def f():\n  return 1"))
    assert said.met is False


async def test_a_task_that_is_not_in_the_recording_is_a_mistake(tmp_path: Path) -> None:
    with mistake("s.jsonl", "T/9", "judge.path"):
        await build(three(tmp_path)).constraint(ask(task="T/9"))


async def test_a_recording_of_two_cells_is_a_mistake(tmp_path: Path) -> None:
    path = recording(tmp_path, session("T/0", "q+"), session("T/0", "q-"))
    with mistake("T/0"):
        await build(path).constraint(ask())


async def test_a_recording_of_another_protocol_is_a_mistake(tmp_path: Path) -> None:
    plain = session("T/0", turn(0, "q+")).model_copy(update={"protocol": "refine"})
    bare = plain.turns[0].model_copy()
    bare.__pydantic_extra__ = {}
    path = recording(tmp_path, plain.model_copy(update={"turns": [bare]}))
    with mistake("s.jsonl", "turn 0", "T/0"):
        await build(path).constraint(ask())


async def test_it_decides_nothing_about_instructions(tmp_path: Path) -> None:
    judge = JUDGES.build(JUDGES.validate({"kind": "recorded", "path": str(three(tmp_path))}))
    instruction = Instruction("i", "Rename f.", "cosmetic", "modify")
    assert (await judge.applicable(CODE, instruction)).applicable is None
    assert (await judge.adherence(CODE, CODE, instruction)).verdict == "undecided"


def test_a_protocol_that_asks_about_instructions_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["judge=recorded", f"judge.path={three(tmp_path)}", "tracking=none", f"runs_dir={tmp_path}"]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert all(named in told for named in ("judge=recorded", "constraint", "protocol=refine", "applicability"))
    assert main(["tracking=none", f"runs_dir={tmp_path}", "dataset.limit=1", "agenda.turns=2"]) == 0
    run = next(tmp_path.glob("*/sessions.jsonl")).parent
    capsys.readouterr()
    assert main(["rescore", f"run={run}", "judge=recorded", f"judge.path={tmp_path}/s.jsonl", f"out={tmp_path}/o"]) == 2
    told = capsys.readouterr().err
    assert "judge=recorded" in told and "constraint" in told


def test_the_identity_is_the_content_not_the_place(tmp_path: Path) -> None:
    def identity(name: str, text: str) -> dict[str, object]:
        (tmp_path / name).mkdir()
        path = recording(tmp_path / name, session("T/0", text))
        return JUDGES.validate({"kind": "recorded", "path": str(path)}).identity()

    assert identity("a", "q+") == identity("b", "q+") != identity("c", "q-")
    assert "path" not in identity("d", "q+")
    with pytest.raises(UserError, match=r"cannot read .*none\.jsonl"):
        JUDGES.validate({"kind": "recorded", "path": str(tmp_path / "none.jsonl")}).identity()
