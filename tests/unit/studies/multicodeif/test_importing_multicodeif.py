"""`import format=multicodeif`: published replies and verdicts as sessions, nothing invented, the first bad line named."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.cli.app import main
from codechat.datasets.importing import FORMATS, Imported
from support.codeif import write_rows
from support.mistakes import mistake
from support.multicodeif import chain, constrained

TASK = "syntax_function/1"
MODEL = "gpt-9"


def reply(number: int, met: bool | None, **fields: Any) -> dict[str, Any]:
    """A reply of the first or a later round."""
    row: dict[str, Any] = {"task_id": TASK, "model": MODEL, "round": f"R{number}", "response_raw": f"reply {number}"}
    row |= {"official_verdict": met, "reference_verdict": None}
    row |= (
        {} if number == 0 else {"feedback_prompt": f"mend it, {number}", "previous_round_verdict": False, "code": "c"}
    )
    return {**row, **fields}


def carried(number: int, met: bool | None) -> dict[str, Any]:
    bare = f"reply {number - 1}"
    return reply(number, met, feedback_prompt=None, previous_round_verdict=True, response_raw=bare, code=bare)


def on_level(level: int, *verdicts: bool, **fields: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"task_id": f"multi/0/{level}", "model": MODEL, "level": f"L{level}", "chain": 0}
    return {**row, "response_raw": f"reply at {level}", "reference_verdicts": list(verdicts), **fields}


LEVELS = [on_level(1, True), on_level(2, True, False), on_level(3, True, True, True), on_level(4, *[False] * 4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a task file of its published name: a single task, a chain, and the single task of its first level."""
    first = {"category": "data_structure", "constraint_type": "type", "language": "java", "answer": "Java;HashMap"}
    same = constrained(task_id="data_structure_type/1", **first, prompt="Keep a phone book, level 1.")
    write_rows(tmp_path / "multicodeif_tasks.jsonl", constrained(), same, *chain())
    return tmp_path


def run(path: Path, *rows: dict[str, Any] | str, **options: str) -> Imported:
    write_rows(path, *rows)
    return FORMATS.build(FORMATS.validate({"format": "multicodeif", "source": str(path), **options}))


def only(imported: Imported) -> SessionRecord:
    (session,) = imported.sessions
    return session


def own(turn: TurnRecord) -> dict[str, Any]:
    assert turn.model_extra is not None
    return turn.model_extra


def test_a_first_reply_becomes_a_session_of_one_turn(folder: Path) -> None:
    session = only(run(folder / "x.jsonl", reply(0, True)))
    assert (session.task_id, session.dataset, session.protocol) == (TASK, "multicodeif", "repair")
    assert (session.model, session.language, session.status) == (MODEL, "rust", "completed")
    (turn,) = session.turns
    assert (turn.response, turn.request, turn.code, turn.outcome, turn.passed) == ("reply 0", [], None, "pass", True)
    assert own(turn) == {
        "level": "single",
        "round": 0,
        "carried": False,
        "constraints": [
            {
                "type": "invocation",
                "category": "environment",
                "by": "rule",
                "met": True,
                "reason": "published: met",
                "guarded": None,
                "official": True,
            }
        ],
        "parses": None,
        "grammar": None,
        "official": {"passed": True, "outcome": "pass", "reason": None},
    }


@pytest.mark.parametrize(
    ("official", "reference", "found"), [(None, True, True), (None, False, False), (False, None, False)]
)
def test_the_official_verdict_counts_or_else_that_of_the_validators(
    folder: Path, official: bool | None, reference: bool | None, found: bool
) -> None:
    session = only(run(folder / "x.jsonl", reply(0, official, reference_verdict=reference)))
    assert session.turns[0].passed is found


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (reply(0, False, reference_verdict=True), "official_verdict"),
        (reply(0, True, reference_verdict=False), "reference_verdict"),
        (on_level(2, True, False, reference_all=True), "reference_all"),
        (on_level(1, True, reference_all=False), "reference_all"),
    ],
)
def test_verdicts_that_contradict_each_other_are_refused(folder: Path, row: dict[str, Any], said: str) -> None:
    with mistake("x.jsonl:1", said):
        run(folder / "x.jsonl", row)


def test_a_reply_without_a_verdict_is_undecided_and_told(folder: Path) -> None:
    imported = run(folder / "x.jsonl", reply(0, None))
    turn = only(imported).turns[0]
    assert (turn.outcome, turn.passed, turn.failure, own(turn)["official"]) == (None, None, None, None)
    assert own(turn)["constraints"][0]["met"] is None
    (remark,) = imported.remarks
    assert remark.startswith("1 of 1 ") and "no published verdict" in remark


def test_rounds_become_turns_with_what_was_sent_and_a_carried_reply_is_the_one_before(folder: Path) -> None:
    turns = only(run(folder / "x.jsonl", reply(0, False), reply(1, True), carried(2, False))).turns
    assert [turn.response for turn in turns] == ["reply 0", "reply 1", "reply 1"]
    assert [[message.content for message in turn.request] for turn in turns] == [[], ["mend it, 1"], []]
    assert [(own(turn)["round"], own(turn)["carried"]) for turn in turns] == [(0, False), (1, False), (2, True)]
    assert [turn.passed for turn in turns] == [False, True, False]
    assert [turn.failure and turn.failure.reason for turn in turns] == [
        "published: invocation not met",
        None,
        "published: invocation not met",
    ]


def test_a_reply_without_a_prompt_whose_code_is_another_is_its_own_and_that_is_said(folder: Path) -> None:
    imported = run(folder / "x.jsonl", reply(0, True), carried(1, True), carried(2, False) | {"code": "other"})
    turns = only(imported).turns
    assert [own(turn)["carried"] for turn in turns] == [False, True, False]
    assert turns[2].response == "reply 1"
    (remark,) = [each for each in imported.remarks if "other code than the round before" in each]
    assert "x.jsonl:3" in remark


def test_the_first_replies_are_found_beside_a_published_file(folder: Path) -> None:
    other = reply(0, True, task_id="data_structure_type/1")
    write_rows(folder / f"multicodeif_single_{MODEL}.jsonl", reply(0, False), other)
    imported = run(folder / f"multicodeif_selfrepair_{MODEL}.jsonl", reply(1, True))
    assert [turn.response for turn in only(imported).turns] == ["reply 0", "reply 1"], "only tasks that were repaired"
    assert [path.name for path in imported.companions] == [
        f"multicodeif_single_{MODEL}.jsonl",
        "multicodeif_tasks.jsonl",
    ]


def test_a_round_that_was_left_out_as_a_repetition_is_filled_and_told(folder: Path) -> None:
    imported = run(folder / "x.jsonl", reply(0, False), reply(1, False), reply(3, True))
    turns = only(imported).turns
    assert [turn.response for turn in turns] == ["reply 0", "reply 1", "reply 1", "reply 3"]
    assert [own(turn)["carried"] for turn in turns] == [False] * 4
    assert imported.remarks[0].startswith("round 2 ")


def test_a_round_is_not_filled_if_the_verdicts_say_that_it_differed(folder: Path) -> None:
    rows = [reply(0, False), reply(1, False), reply(3, True, previous_round_verdict=True)]
    imported = run(folder / "x.jsonl", *rows)
    assert only(imported).error.endswith("turn 2") and imported.remarks == []


def test_a_chain_becomes_a_session_with_a_turn_a_level(folder: Path) -> None:
    session = only(run(folder / "x.jsonl", *LEVELS))
    assert (session.task_id, session.protocol, session.language) == ("chain/0", "levels", "java")
    assert [turn.passed for turn in session.turns] == [True, False, True, False]
    assert [(own(turn)["level"], own(turn)["round"]) for turn in session.turns] == [(f"L{n}", 0) for n in range(1, 5)]
    assert [[each["met"] for each in own(turn)["constraints"]] for turn in session.turns] == [
        row["reference_verdicts"] for row in LEVELS
    ]


def test_a_first_level_that_the_file_lacks_is_the_single_reply_to_the_same_prompt(folder: Path) -> None:
    single = [reply(0, False), reply(0, True, task_id="data_structure_type/1", response_raw="a map")]
    write_rows(folder / f"multicodeif_single_{MODEL}.jsonl", *single)
    session = only(run(folder / f"multicodeif_multi_{MODEL}.jsonl", *LEVELS[1:]))
    assert [turn.response for turn in session.turns] == ["a map", "reply at 2", "reply at 3", "reply at 4"]
    assert session.turns[0].passed is True


def test_a_first_level_in_the_file_stays(folder: Path) -> None:
    write_rows(folder / f"multicodeif_single_{MODEL}.jsonl", reply(0, True, task_id="data_structure_type/1"))
    session = only(run(folder / f"multicodeif_multi_{MODEL}.jsonl", *LEVELS))
    assert session.turns[0].response == "reply at 1"


def test_a_session_with_a_hole_is_errored_and_names_it(folder: Path) -> None:
    session = only(run(folder / "x.jsonl", *LEVELS[1:]))
    assert session.status == "errored" and session.error.endswith("turn 0")
    assert [turn.turn for turn in session.turns] == [1, 2, 3]


def test_a_hole_counts_as_an_empty_reply_if_asked_and_others_have_the_turn(folder: Path) -> None:
    write_rows(folder / "multicodeif_tasks.jsonl", *chain(0), *chain(1))
    other = [{**row, "chain": 1} for row in LEVELS[1:]]
    rows = [LEVELS[1], LEVELS[3], *other]  # the first chain has no third level, and none has a first
    errors = [session.error for session in run(folder / "x.jsonl", *rows).sessions]
    assert "turn 0, 2" in errors[0] and "missing=empty" in errors[0]
    assert errors[1].endswith("turn 0"), "no remedy where it would not help"
    first, second = run(folder / "x.jsonl", *rows, missing="empty").sessions
    assert [turn.response for turn in first.turns] == ["reply at 2", "", "reply at 4"]
    empty = first.turns[1]
    assert (empty.outcome, empty.passed, own(empty)["constraints"][2]["met"]) == ("no_code", False, False)
    assert first.error == second.error and first.error.endswith("turn 0"), "no chain has that level"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (["{"], "x.jsonl:1: not JSON"),
        ([reply(0, True), "[1]"], "x.jsonl:2: .*JSON object"),
        ([{**reply(0, True), "response_raw": None}], "x.jsonl:1: response_raw: "),
        ([reply(0, True, round="R9")], "x.jsonl:1: round: "),
        ([reply(0, True, round=None)], "x.jsonl:1: .*either a round"),
        ([on_level(1, True, chain=None)], "x.jsonl:1: .*either a round"),
        ([reply(0, True), LEVELS[0]], "x.jsonl:2: .*levels.*tasks"),
        ([reply(0, True), reply(1, True, model="gpt-8")], "x.jsonl:2: .*gpt-8.*gpt-9"),
        ([reply(0, True), reply(0, True)], "x.jsonl:2: .*second.*turn 0 .*syntax_function/1"),
        ([reply(0, True, task_id="syntax_function/2")], "x.jsonl:1: .*syntax_function/2"),
        ([on_level(1, True, chain=7)], "x.jsonl:1: .*chain/7"),
        ([on_level(2, True)], "x.jsonl:1: 1 verdict .*2 constraints.*chain/0"),
        ([""], "holds no reply"),
    ],
)
def test_the_first_bad_line_is_named(folder: Path, rows: list[Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        run(folder / "x.jsonl", *rows)


def test_a_file_beside_that_is_of_another_model_is_refused(folder: Path) -> None:
    write_rows(folder / f"multicodeif_single_{MODEL}.jsonl", reply(0, False, model="gpt-8"))
    with mistake("single_gpt-9.jsonl:1: ", "gpt-8"):
        run(folder / f"multicodeif_selfrepair_{MODEL}.jsonl", reply(1, True))


def test_without_a_task_file_beside_it_must_be_named(tmp_path: Path, folder: Path) -> None:
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    with mistake("multicodeif_tasks.jsonl", "tasks=FILE"):
        run(lonely / "x.jsonl", reply(0, True))
    assert only(run(lonely / "x.jsonl", reply(0, True), tasks=str(folder / "multicodeif_tasks.jsonl")))


def test_the_command_writes_what_a_replay_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = write_rows(folder / "x.jsonl", *LEVELS[1:]), folder / "out" / "sessions.jsonl"
    words = ["import", "format=multicodeif", f"source={source}", f"out={target}", "model=gpt-10"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "1 session, 3 replies" in told
    assert any("chain/0: " in line and line.endswith("turn 0") for line in told.splitlines())
    (session,) = read_sessions(target)
    assert session.model == "gpt-10"


def test_each_format_has_settings_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "format=codeif", "source=a", "out=b", "missing=empty"]) == 2
    assert "'missing'" in capsys.readouterr().err
    assert main(["import", "format=multicodeif", "source=a", "out=b", "missing=full"]) == 2
    told = capsys.readouterr().err
    assert "missing: " in told and "'error' or 'empty'" in told
