"""Replies of a real model of 135 million parameters: to a judge's questions, and to tasks with constraints.

Each row was read by eye. No reply to a judge ends with a line of a label and a word alone, so that all are unreadable:
three quote the question's own `VERDICT: …` within its sentence. The decisions on constraints are right by the rules as
written (the program's own class of a structure's name is a use of it).
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Target
from codechat.judging.deciding import VERDICT, read_answer
from codechat.judging.llm import WORDS
from codechat.sandbox.languages import extract
from codechat.studies.multicodeif.constraints import Constraint

CASES = Path(os.environ.get("CODECHAT_TEST_DATA") or "absent").parent / "cases/real-model"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason="beside CODECHAT_TEST_DATA there is no cases/real-model")
OPERATIONS = {
    "chain/0": "rust;BinaryHeap;['push', 'pop']",
    "chain/1": "java;Queue;['offer', 'poll']",
    "data_structure_operation/5": "python;list;['append', 'remove']",
    "data_structure_operation/15": "python;list;['extend', 'insert']",
    "data_structure_operation/19": "python;OrderedDict;['move_to_end', 'popitem']",
}
"""The first constraint of each task."""


def rows(name: str) -> list[Any]:
    path = CASES / f"{name}.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else ["{}"]
    return [pytest.param(json.loads(line), id=str(number)) for number, line in enumerate(lines)]


@pytest.mark.parametrize("row", rows("judges"))
def test_a_reply_to_a_judges_question_is_read_as_it_says(row: dict[str, Any]) -> None:
    found = read_answer(row["reply"], {VERDICT: WORDS[row["judge"]]})
    assert (found and found.answers[VERDICT]) == row["right"]


@pytest.mark.parametrize("row", rows("constraints"))
def test_a_constraint_is_decided_by_the_rule_as_written(row: dict[str, Any]) -> None:
    constraint, recorded = Constraint.of("data_structure_operation", OPERATIONS[row["task_id"]]), row["codechat"]
    code = extract(row["reply"], Target(constraint.answer.language)).code
    assert code == recorded["code"]
    found, right = constraint.check(code), recorded["constraints"][0]
    assert (found.met, found.reason) == (right["met"], right["reason"])
