"""What a turn asked for: one instruction in either form, several only in the list."""

from typing import Any

import pytest

from codechat.base.records import SessionRecord, TurnRecord

ONE = {"id": "i", "text": "Do it.", "scope": "cosmetic", "change": "add"}
TWO = {**ONE, "id": "j"}
FOLLOWED = {"verdict": "adhered", "by": "rules", "reason": "done"}
SESSION = {
    "cell_id": "c", "session_id": "s", "task_id": "t", "dataset": "d", "model": "m", "protocol": "p", "agenda": [],
    "seed": 0, "status": "completed",
}  # fmt: skip


def dumped(turn: TurnRecord, *names: str) -> dict[str, Any]:
    return turn.model_dump(include={*names})


@pytest.mark.parametrize("adherence", [FOLLOWED, None])
def test_an_older_record_of_one_instruction_is_read_into_the_list(adherence: Any) -> None:
    turn = TurnRecord.model_validate({"turn": 1, "instruction": ONE, "adherence": adherence})
    assert dumped(turn, "asked")["asked"] == [{**ONE, "adherence": adherence}]


def test_a_list_of_one_is_readable_as_before() -> None:
    turn = TurnRecord.model_validate({"turn": 1, "asked": [{**ONE, "adherence": FOLLOWED}]})
    assert dumped(turn, "instruction", "adherence") == {"instruction": ONE, "adherence": FOLLOWED}


def test_several_instructions_have_no_single_form() -> None:
    asked = [{**ONE, "adherence": FOLLOWED}, {**TWO, "adherence": None}]
    turn = TurnRecord.model_validate({"turn": 1, "asked": asked})
    assert (turn.instruction, turn.adherence) == (None, None) and dumped(turn, "asked")["asked"] == asked


def test_lines_have_the_list_where_something_was_asked() -> None:
    turns = [{"turn": 0}, {"turn": 1, "instruction": ONE, "adherence": FOLLOWED}]
    record = SessionRecord.model_validate({**SESSION, "turns": turns})
    again = SessionRecord.model_validate_json(record.line())
    assert again == record and record.line().count('"asked"') == 1
