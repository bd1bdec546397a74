"""Verdicts on EvalPlus's real data that hang on how numbers are compared."""

import os
from pathlib import Path

import pytest

from codechat.base.domain import Program
from codechat.sandbox import SANDBOXES
from codechat.testing import dataset_tasks

DATA = os.environ.get("CODECHAT_TEST_DATA")
pytestmark = pytest.mark.skipif(DATA is None, reason="CODECHAT_TEST_DATA is not set")
LARGER = """
def compare_one(a, b):
    one, other = (float(str(each).replace(",", ".")) for each in (a, b))
    if one == other:
        return None
    larger = a if one > other else b
    return {made} if isinstance(larger, int) else larger
"""


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        ("larger", "pass"),
        ("int(float(larger))", "pass"),  # 10**98 comes as the nearest float, a part in 10**16 away: EvalPlus passes it
        ("larger + larger // 10**6", "fail"),
        ("float(larger)", "fail"),  # where the values differ, the types must not
    ],
)
async def test_a_large_integer_after_a_float_has_the_tolerance(made: str, outcome: str) -> None:
    tasks = dataset_tasks("humaneval", str(Path(DATA or "") / "HumanEvalPlus.jsonl.gz"))
    (task,) = (each for each in tasks if each.task_id == "HumanEval/137")
    assert task.suite is not None
    sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=1)
    try:
        verdict = await task.suite.check(Program(LARGER.format(made=made), task.target), sandbox)
    finally:
        await sandbox.aclose()
    assert (verdict.outcome, verdict.passed_base) == (outcome, True)
