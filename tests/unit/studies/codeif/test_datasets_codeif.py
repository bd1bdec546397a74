"""CodeIF-Bench's files: conversations in order, levels, repositories, and how a mistake is told."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.repository import Repository
from codechat.studies.codeif.dataset import Strategy
from support.codeif import FUNCTION, REPOSITORY, write_rows


def load(path: Path, **options: Any) -> Dataset:
    return DATASETS.build(DATASETS.validate({"kind": "codeif_bench", "path": str(path), **options}))


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        load(path, **options)
    assert len(str(caught.value).splitlines()) <= 5
    return str(caught.value).replace(str(path), "FILE")


def test_a_function_by_itself(tmp_path: Path) -> None:
    (task,) = load(write_rows(tmp_path / "t.jsonl", FUNCTION)).tasks
    assert (task.task_id, task.level, task.target.entry_point) == ("CodeIF/7", "L-1", "double")
    assert task.reference == "def double(x): \n    return 2 * x\n" and task.target.signature == "def double(x):"
    assert task.suite == Assertions(("assert double(2) == 4", "assert double(0) == 0"))
    order = [(each.id, each.accumulates, each.asked) for each in task.requirements]
    assert order == [
        ("Exception Handling", True, True),
        ("Code Standard", True, True),
        ("Functionality Extension", False, True),
        ("Edge Case Handling", True, False),
    ], "multi-turn first, then the extension, then what the conversation leaves out"
    assert task.requirements[1].suite == Assertions(("assert True",))


def test_an_extension_in_mid_dialogue_stays_there(tmp_path: Path) -> None:
    row = {**FUNCTION, "multi-turn": ["Functionality Extension", "Code Standard"]}
    (task,) = load(write_rows(tmp_path / "t.jsonl", row)).tasks
    assert [each.id for each in task.requirements if each.asked] == ["Functionality Extension", "Code Standard"]


def test_a_function_of_a_repository(tmp_path: Path) -> None:
    source = tmp_path / "repos" / "Shopping" / "shop" / "shop" / "basket.py"
    source.parent.mkdir(parents=True)
    source.write_text("class Basket: ...\n")
    path = write_rows(tmp_path / "t.jsonl", REPOSITORY)
    (task,) = load(path, repos=str(tmp_path / "repos")).tasks
    assert (task.task_id, task.level, task.target.entry_point) == ("shop.basket.Basket.total", "L-2", "total")
    assert task.prompt == "Write the method 'total'.\n\nThe code around it:\n\nclass Basket: ..."
    assert task.target.signature == "def total(self):"
    project = str(tmp_path / "repos" / "Shopping" / "shop")
    located = ("Shopping/shop", project, "shop/basket.py", (5, 6), 4)
    assert task.suite == Repository(*located, ("tests/test_basket.py::test_total",))
    (requirement,) = task.requirements
    assert requirement.strategy == Strategy.CONTEXT_CORRECT
    assert requirement.suite == Repository(*located, ("tests/test_basket.py::test_items",))


def test_the_content_of_a_repository_counts_not_its_place(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", REPOSITORY)

    def suites(name: str, text: str) -> tuple[Suite, ...]:
        source = tmp_path / name / "Shopping" / "shop" / "shop" / "basket.py"
        source.parent.mkdir(parents=True)
        source.write_text(text)
        return load(path, repos=str(tmp_path / name)).tasks[0].suites

    one, same, other = suites("one", "x = 1\n"), suites("same", "x = 1\n"), suites("other", "x = 2\n")
    assert [suite.key for suite in one] == [suite.key for suite in same]
    assert [suite.outside for suite in one] == [suite.outside for suite in same]
    assert set(one[0].outside) == {"Shopping/shop"}
    assert one[0].outside != other[0].outside and one[0].key != other[0].key != other[1].key


@pytest.mark.parametrize(
    ("dependency", "level"),
    [({"cross_file": ["a"], "intra_file": ["b"]}, "L-3"), ({"intra_file": ["b"]}, "L-2"), ({}, "L-1")],
)
def test_the_level_follows_from_the_dependencies(tmp_path: Path, dependency: dict[str, Any], level: str) -> None:
    path = write_rows(tmp_path / "t.jsonl", FUNCTION, {**REPOSITORY, "dependency": dependency})
    (tmp_path / "Shopping/shop/shop").mkdir(parents=True)
    (tmp_path / "Shopping/shop/shop/basket.py").touch()
    assert load(path, repos=str(tmp_path)).tasks[1].level == level


def test_missing_repositories_are_told_before_anything_runs(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", FUNCTION, REPOSITORY)
    told = refusal(path)
    assert told.startswith("1 of the chosen tasks") and "shop.basket.Basket.total" in told
    assert "dataset.repos=DIR" in told
    assert "shop/basket.py" in refusal(path, repos=str(tmp_path))
    assert len(load(path, tasks=["CodeIF/7"]).tasks) == 2, "what is not chosen needs nothing"
    assert len(load(path, limit=1).tasks) == 2


def test_the_place_of_the_repositories_is_no_content(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "t.jsonl", FUNCTION, REPOSITORY)
    for name in ("one", "two"):
        (tmp_path / name / "Shopping/shop/shop").mkdir(parents=True)
        (tmp_path / name / "Shopping/shop/shop/basket.py").touch()
    hashes = {load(path, repos=str(tmp_path / name)).content_hash for name in ("one", "two")}
    assert len(hashes) == 1
    changed = write_rows(tmp_path / "u.jsonl", {**FUNCTION, "multi-turn": ["Code Standard", "Exception Handling"]})
    assert load(changed).content_hash != load(write_rows(tmp_path / "v.jsonl", FUNCTION)).content_hash


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({**FUNCTION, "test": []}, "FILE:1: test: .*at least 1 item"),
        ({**FUNCTION, "code": "def triple(x): pass"}, "FILE:1: code: .*no function"),
        ({**FUNCTION, "multi-turn": ["Code Complexity"]}, "FILE:1: multi-turn .*'Code Complexity'"),
        ({**FUNCTION, "multi-turn": ["Code Standard"] * 2}, "FILE:1: multi-turn .*twice"),
        ({**FUNCTION, "multi-turn": ["Code Standards"]}, "FILE:1: multi-turn.0: "),
        ({**REPOSITORY, "completion_path": "Other/x.py"}, "FILE:1: completion_path: Other/x.py "),
        ({**REPOSITORY, "completion_path": "Shopping/shop/../x.py"}, "FILE:1: completion_path: .*must be a path"),
        ("[]", "FILE:1: .*JSON object"),
        ("", "FILE holds no task"),
    ],
)
def test_mistakes(tmp_path: Path, row: dict[str, Any] | str, told: str) -> None:
    assert re.match(told, refusal(write_rows(tmp_path / "t.jsonl", row)))


def test_a_task_twice(tmp_path: Path) -> None:
    told = refusal(write_rows(tmp_path / "t.jsonl", FUNCTION, FUNCTION))
    assert "CodeIF/7" in told and "twice" in told


@pytest.mark.skipif("CODECHAT_TEST_DATA" not in os.environ, reason="needs CODECHAT_TEST_DATA")
@pytest.mark.parametrize(
    ("version", "requirements", "asked", "extensions_last"),
    [("v0_93b17ef", 295, 293, 46), ("head_7f40ab8", 350, 348, 50)],
)
def test_published_versions(version: str, requirements: int, asked: int, extensions_last: int) -> None:
    path = Path(os.environ["CODECHAT_TEST_DATA"]) / f"codeif_l1_tasks_{version}.jsonl.gz"
    tasks = load(path).tasks
    assert len(tasks) == 50
    assert sum(len(task.requirements) for task in tasks) == requirements
    assert sum(each.asked for task in tasks for each in task.requirements) == asked
    assert {task.task_id for task in tasks if not all(each.asked for each in task.requirements)} == {
        "CodeIF/36",
        "CodeIF/51",
    }
    last = [[each for each in task.requirements if each.asked][-1] for task in tasks]
    assert sum(each.strategy == Strategy.EXTENSION for each in last) == extensions_last
    assert {each.strategy for task in tasks for each in task.requirements} == set(Strategy) - {
        Strategy.CONTEXT_USED,
        Strategy.CONTEXT_CORRECT,
    }
