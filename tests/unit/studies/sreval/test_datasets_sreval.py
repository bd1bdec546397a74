"""SR-Eval's files, and tasks of one's own in the same form: what is read, and what is told."""

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset
from codechat.sandbox.suites.assertions import Assertions
from codechat.studies.sreval.dataset import needs_of
from codechat.studies.sreval.rows import StepTask
from support.sreval import GROWING, growing

PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "sreval_python_function.jsonl.gz"
OWN = {
    "task_id": "mine/0",
    "entry_point": "f",
    "turns": [
        {"instruction": "Write f(x).", "solution": "def f(x):\n    return x\n", "tests": "assert f(1) == 1"},
        {"instruction": "Negate.", "solution": "def f(x):\n    return -x\n", "tests": ["assert f(1) == -1"]},
    ],
}


def load(tmp_path: Path, *rows: dict[str, Any], kind: str = "sreval_python") -> Dataset:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DATASETS.build(DATASETS.validate({"kind": kind, "path": str(path)}))


def changed(**fields: Any) -> dict[str, Any]:
    return {**GROWING, **fields}


def turn(**fields: Any) -> dict[str, Any]:
    return changed(turn_datas=[{**GROWING["turn_datas"][0], **fields}, *GROWING["turn_datas"][1:]])


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
def test_the_published_file() -> None:
    dataset = DATASETS.build(DATASETS.validate({"kind": "sreval_python", "path": str(PUBLISHED)}))
    tasks = [task for task in dataset.tasks if isinstance(task, StepTask)]
    assert len(tasks) == 142 and sum(len(task.steps) for task in tasks) == 560
    assert {len(task.steps) for task in tasks} == {3, 4, 5}
    with gzip.open(PUBLISHED, "rt") as stream:
        first = json.loads(stream.readline())
    assert tasks[0].task_id == first["hash_id"]
    assert [step.reference for step in tasks[0].steps] == [turn["solution"] for turn in first["turn_datas"]]
    assert tasks[0].target.entry_point == "task_func"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (changed(total_turn=4), "total_turn is 4"),
        (turn(turn_num=2), "[2, 2, 3]"),
        (turn(test=""), "turn_datas.0.test: "),
        (turn(solution="def task_func(:"), "a solution does not parse"),
        (turn(test="def test_it(values):\n    assert task_func(values)\n"), "test_it"),
        ({"hash_id": "x"}, "total_turn: Field required"),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, growing("b" * 24), row)
    assert str(caught.value).startswith(f"{tmp_path}/tasks.jsonl:2: ") and told in str(caught.value)


def test_the_same_task_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is there twice"):
        load(tmp_path, GROWING, GROWING)


def test_tasks_of_ones_own_have_turns(tmp_path: Path) -> None:
    (task,) = load(tmp_path, OWN, kind="jsonl").tasks
    assert isinstance(task, StepTask) and task.prompt == "Write f(x)."
    assert [step.instruction for step in task.steps] == ["Write f(x).", "Negate."]
    assert task.target.signature == "def f(x):" and task.reference == "def f(x):\n    return -x\n"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({**OWN, "tests": ["assert f(1)"]}, "leave out tests"),
        ({**OWN, "turns": [{"instruction": "Write f(x)."}]}, "give tests or suite"),
        ({**OWN, "turns": [{**OWN["turns"][0], "test": "x"}]}, "turns.0.test"),  # type: ignore[index,dict-item]
        ({"task_id": "m", "entry_point": "f"}, "prompt: Field required"),
    ],
)
def test_mistakes_in_ones_own_turns(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, row, kind="jsonl")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("language", "tests", "told"),
    [
        ("klingon", {"tests": "assert f(1) == 1"}, "assertions .*python.*suite for klingon"),
        (
            "python",
            {"suite": {"kind": "junit", "tests": "class A { }"}},
            "junit .*java.*suite for python",
        ),
    ],
)
def test_tests_in_another_language_than_the_task_are_refused(
    tmp_path: Path, language: str, tests: dict[str, Any], told: str
) -> None:
    row = {"task_id": "mine/0", "language": language, "turns": [{"instruction": "Do.", "solution": "x = 1", **tests}]}
    with pytest.raises(UserError) as caught:
        load(tmp_path, row, kind="jsonl")
    assert str(caught.value).startswith(f"{tmp_path}/tasks.jsonl:1: ") and re.search(told, str(caught.value))


@pytest.mark.parametrize(
    ("source", "needs"),
    [
        ("import os.path, json", set()),
        ("from http.server import HTTPServer", {"network", "threads"}),
        ("from http import HTTPStatus", set()),
        ("import subprocess as s", {"commands"}),
        ("import sklearn.cluster", {"native"}),
        ("import sklearnex, sslx", set()),
        ("def f():\n    from concurrent import futures\n", {"threads"}),
        ("import keras", {"code", "native", "processes", "threads"}),
    ],
)
def test_what_tests_need_by_what_they_import(source: str, needs: set[str]) -> None:
    assert needs_of("import math", source) == needs


def test_a_row_may_say_what_its_tests_need(tmp_path: Path) -> None:
    suite = {"kind": "assertions", "tests": ["assert f(1)"]}
    own = {"task_id": "m/0", "prompt": "def f(x):", "entry_point": "f", "canonical_solution": "def f(x): return 1"}
    plain = load(tmp_path, {**own, "suite": suite}, kind="jsonl")
    asking = load(tmp_path, {**own, "suite": {**suite, "needs": ["network"], "cpu_s": 30.0}}, kind="jsonl")
    found = asking.tasks[0].suite
    assert isinstance(found, Assertions) and (found.needs, found.cpu_s) == ({"network"}, 30.0)
    assert asking.content_hash != plain.content_hash
    with pytest.raises(UserError, match="needs"):
        load(tmp_path, {**own, "suite": {**suite, "needs": ["rights"]}}, kind="jsonl")
