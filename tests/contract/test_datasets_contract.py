"""What every registered dataset must be, whoever wrote it."""

import ast
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import is_identity
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.languages.python.syntax import parse
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.calls.oracle import ORACLES, Comparison
from codechat.sandbox.suites.junit import JUnit
from codechat.studies.cab.tasks import AssistTask
from codechat.studies.multicodeif.rows import ConstrainedTask
from codechat.studies.sreval.rows import StepTask
from support import repositories
from support.cab import issue
from support.codeif import FUNCTION, write_rows
from support.multicodeif import CONSTRAINED
from support.sreval import GROWING, GROWING_JAVA

ROW = {
    "task_id": "mine/0",
    "prompt": "",
    "entry_point": "f",
    "canonical_solution": "def f(x): return x",
    "base_input": [[1]],
}
SAID = {"task_name": "mbpp", "task_id": 2, "prompt": "Write double.", "reference": "assert double(2) == 4"}
ROWS = {
    "jsonl": ROW, "mint": SAID, "sreval_python": GROWING, "sreval_java": GROWING_JAVA, "multicodeif": CONSTRAINED,
    "cab": issue(),
}  # fmt: skip
BENCHMARKS = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}
needs_data = pytest.mark.skipif("CODECHAT_TEST_DATA" not in os.environ, reason="needs CODECHAT_TEST_DATA")
KINDS = [component.name for component in DATASETS]


@pytest.fixture(scope="module", params=KINDS)
def any_kind(request: pytest.FixtureRequest) -> str:
    """Every kind, also where its files are not."""
    return str(request.param)


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=needs_data) if name in BENCHMARKS else name for name in KINDS]
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def options(kind: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Options with which the kind can be built here. A new kind that needs some adds its own."""
    if kind == "codeif_bench":
        path = write_rows(tmp_path_factory.mktemp("codeif") / "tasks.jsonl", FUNCTION)
        return {"kind": kind, "path": str(path)}
    if kind in ROWS:
        path = tmp_path_factory.mktemp(kind) / "tasks.jsonl"
        path.write_text(json.dumps(ROWS[kind]) + "\n")
        return {DATASETS[kind].key: kind, "path": str(path)}
    if kind in ("sreval_python_repository", "sreval_java_repository", "humaneval_x"):
        return {"kind": kind, **of_several_files(kind, tmp_path_factory.mktemp("files"))}
    if kind in BENCHMARKS:
        return {"kind": kind, "path": str(Path(os.environ["CODECHAT_TEST_DATA"]) / BENCHMARKS[kind])}
    return {"kind": kind}


def humaneval_x(root: Path) -> dict[str, str]:
    """The paths of a task in Python, and of the same in JavaScript."""
    half = {"task_id": "HumanEval/0", "prompt": "def half(x):\n", "canonical_solution": "    return x / 2\n"}
    other = {"prompt": "const half = (x) => {\n", "canonical_solution": "  return x / 2\n}\n"}
    (root / "plus.jsonl").write_text(json.dumps({**half, "entry_point": "half", "base_input": [[1], [2]]}) + "\n")
    (root / "tasks.jsonl").write_text(json.dumps({"task_id": "JavaScript/0", **other}) + "\n")
    return {"path": f"{root}/tasks.jsonl", "plus": f"{root}/plus.jsonl"}


def of_several_files(kind: str, root: Path) -> dict[str, str]:
    """The paths of a task in a small repository, or in two languages."""
    if kind == "humaneval_x":
        return {"language": "javascript", **humaneval_x(root)}
    if kind == "sreval_python_repository":
        repositories.write_shop(root)
        return {"path": f"{root}/tasks.jsonl", "places": f"{root}/places.jsonl", "repos": f"{root}/repos"}
    repositories.write_files(root / "repos" / "shop", repositories.JAVA_FILES)
    repositories.write_lines(root / "tasks.jsonl", repositories.TWICE)
    return {"path": f"{root}/tasks.jsonl", "repos": f"{root}/repos"}


@pytest.fixture(scope="module")
def dataset(kind: str, options: dict[str, Any]) -> Dataset:
    return build(kind, options)


def build(kind: str, options: dict[str, Any]) -> Dataset:
    made = DATASETS.build(DATASETS.validate(options))
    assert DATASETS.of(DATASETS.validate(options)).name == kind
    return made


def test_options(any_kind: str) -> None:
    config = DATASETS[any_kind].config
    assert issubclass(config, DatasetConfig) and DATASETS[any_kind].summary
    for name, field in config.model_fields.items():
        assert field.description, name
    of_id = {name for name, field in config.model_fields.items() if is_identity(field)}
    assert of_id == {DATASETS[any_kind].key, "twin", "twin_seed"}


def test_ids_are_unique(dataset: Dataset, kind: str) -> None:
    # after the file of own tasks, after the part of MINT, after the language
    called = {"jsonl": "tasks", "mint": "mint_mbpp", "humaneval_x": "humaneval_x_javascript"}
    assert dataset.name == called.get(kind, kind) and dataset.tasks
    assert len({task.task_id for task in dataset.tasks}) == len(dataset.tasks)


def test_tasks_are_whole(dataset: Dataset) -> None:
    for task in dataset.tasks:
        if isinstance(task, ConstrainedTask):
            assert task.prompt and all(level.constraints for level in task.levels)
            continue
        if isinstance(task, AssistTask):
            assert task.prompt.startswith(task.title) and task.url and all(task.conditions) and task.conditions
            assert any(comment.user != task.author for comment in task.thread), "a maintainer answers"
            assert {reply.url for reply in task.replies} <= {
                each.url for each in dataset.tasks if isinstance(each, AssistTask)
            }
            continue
        if task.target.language == "python" and task.target.entry_point:
            assert task.target.signature.startswith("def ") and task.target.entry_point in task.target.signature
        assert len({each.id for each in task.requirements} | {"task"}) == len(task.requirements) + 1
        assert all(len(suite.key) == 64 for suite in task.suites)
        if isinstance(task.suite, Calls):
            assert task.suite.base and task.suite.oracle in ORACLES and task.suite.name == task.task_id
            assert all(isinstance(call, tuple) for call in task.suite.inputs)
            assert (task.suite.reference, task.suite.entry_point) == (task.reference, task.target.entry_point)
        elif isinstance(task, StepTask):
            assert task.suite is None and task.steps and task.reference == task.steps[-1].reference
            for suite in task.suites:
                assert suite.snippets if isinstance(suite, Assertions) else isinstance(suite, JUnit) or task.above
        else:
            assert isinstance(task.suite, Assertions) and task.suite.snippets
        if task.reference is None:
            assert isinstance(task.suite, Assertions) or task.suite.expected_base is not None
            continue
        if task.target.language != "python":
            continue
        tree = parse(task.reference)
        assert tree is not None, task.task_id
        assert task.target.entry_point in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]


def test_loading_again_gives_the_same(dataset: Dataset, kind: str, options: dict[str, Any]) -> None:
    again = build(kind, options)
    assert again.content_hash == dataset.content_hash and len(again.content_hash) == 64
    # two loads make sets and re-made objects that only repr compares part by part
    assert [shown(task) for task in again.tasks[:20]] == [shown(task) for task in dataset.tasks[:20]]


def shown(task: Task) -> str:
    """The task without the path of its repository, which is in the cache, and every test has one of its own."""
    if isinstance(task, AssistTask) and task.workspace is not None:
        task = replace(task, workspace=replace(task.workspace, repository=""))
    return repr(task)


def test_comparisons_exist() -> None:
    """Every comparison that a row may name."""
    for oracle in ORACLES:
        Comparison(oracle, 0.0)  # a KeyError if it has no rule
