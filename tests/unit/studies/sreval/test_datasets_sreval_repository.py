"""SR-Eval's functions of Python repositories: rows, places and repositories joined, and what is told before any call."""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset
from codechat.studies.sreval.rows import StepTask
from codechat.studies.sreval.suite_inserted import Inserted, environment_at
from support.mistakes import mistake
from support.repositories import FILES, PLACE, PROJECT, TOTAL, write_files, write_lines

DATA = Path(os.environ.get("CODECHAT_TEST_DATA", ""))
PUBLISHED = DATA / "sreval_python_repository.jsonl.gz"
PLACES = DATA / "sreval_python_repository_places.jsonl.gz"


def build(**options: Any) -> Dataset:
    return DATASETS.build(DATASETS.validate({"kind": "sreval_python_repository", **options}))


def load(tmp_path: Path, row: dict[str, Any] = TOTAL, place: dict[str, Any] = PLACE, **options: Any) -> Dataset:
    path, places = write_lines(tmp_path / "tasks.jsonl", row), write_lines(tmp_path / "places.jsonl", place)
    return build(path=str(path), places=str(places), **{"repos": str(tmp_path / "repos"), **options})


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> Path:
    return write_files(tmp_path / "repos" / PROJECT, FILES)


def test_a_task_has_its_places_and_the_code_above(tmp_path: Path, shop: Path) -> None:
    (task,) = load(tmp_path).tasks
    assert isinstance(task, StepTask)
    assert [step.instruction for step in task.steps] == [turn["instruction"] for turn in TOTAL["turn_datas"]]
    assert task.above.endswith("        self.prices = prices\n\n") and task.above.startswith('"""A basket."""')
    assert (task.target.entry_point, task.target.signature) == ("total", "def total(self, rate=RATE):")
    assert task.reference is not None and task.reference.startswith("def total"), "without its indentation"
    suite = task.steps[1].suite
    assert suite == Inserted(
        PROJECT, str(shop), "shop/basket.py", "total", (22, 24), PLACE["tests"][0], TOTAL["turn_datas"][1]["test"]
    )
    assert suite.outside.keys() == {PROJECT} and isinstance(suite, Inserted) and suite.test_counts == (2, 0)


@pytest.mark.parametrize(
    ("row", "place", "told"),
    [
        ({"hash_id": "other"}, {}, "no place of other"),
        ({"total_turn": 4}, {}, "total_turn is 4"),
        ({"turn_datas": [{**TOTAL["turn_datas"][0], "test": "x = 1"}], "total_turn": 1}, {}, "no function whose name"),
        ({"turn_datas": [{**TOTAL["turn_datas"][0], "solution": "def"}], "total_turn": 1}, {}, "turn 1 does not parse"),
        ({}, {"completion_path": "Text/other/shop/basket.py"}, "places.jsonl:1: completion_path: "),
        ({}, {"project_path": "../shop"}, "path inside the repositories"),
        ({}, {"tests": []}, "places.jsonl:1: tests"),
        ({}, {"signature_position": [21, 21]}, "lines 21 to 24"),
        ({}, {"body_position": [24, 27]}, "lines 22 to 27"),
        ({}, {"completion_path": f"{PROJECT}/shop/none.py"}, "cannot read"),
        ({}, {"tests": ["tests/test_basket.py::Other::test_total"]}, "no class Other"),
        ({}, {"project_path": "Text/mart", "completion_path": "Text/mart/a.py"}, "1 repository that is not"),
    ],
)  # fmt: skip
def test_mistakes_are_told(tmp_path: Path, row: dict[str, Any], place: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, {**TOTAL, **row}, {**PLACE, **place})
    assert told in str(caught.value)


def test_without_repositories_the_chosen_tasks_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, repos=None)
    needs, each = str(caught.value).splitlines()[:2]
    assert needs.startswith("1 chosen task ") and "1 repository" in needs and each == f"{PROJECT} (1)"


def test_a_place_that_is_there_twice_is_told(tmp_path: Path) -> None:
    path, places = write_lines(tmp_path / "t.jsonl", TOTAL), write_lines(tmp_path / "p.jsonl", PLACE, PLACE)
    with mistake("p.jsonl:2", "shop.basket.Basket.total"):
        build(path=str(path), places=str(places))


def test_environments_are_by_the_repositorys_name(tmp_path: Path) -> None:
    (task,) = load(tmp_path, environments={"shop": sys.executable}).tasks
    assert task.suites[0].outside.keys() == {PROJECT, f"{PROJECT}: packages"}
    plain = load(tmp_path)
    assert plain.tasks[0].suites[0].key != task.suites[0].key, "packages decide verdicts"
    for environments, told in (
        ({"shops": sys.executable}, "no task is of a repository 'shops'"),
        ({"shop": "/nowhere/python"}, "there is no interpreter /nowhere/python"),
        ({"shop": "/bin/false"}, "does not run as a Python interpreter"),
    ):
        with pytest.raises(UserError, match=told):
            load(tmp_path, environments=environments)


def test_an_environment_without_pytest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = environment_at(sys.executable)
    object.__setattr__(bare, "packages", frozenset())
    monkeypatch.setattr("codechat.studies.sreval.suite_inserted.environment_at", lambda python: bare)
    with mistake(PROJECT, "pytest"):
        load(tmp_path, environments={"shop": sys.executable})
    environment_at.cache_clear()


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
def test_the_published_file_loads_and_says_what_it_needs(tmp_path: Path) -> None:
    options = {"path": str(PUBLISHED), "places": str(PLACES)}
    with pytest.raises(UserError) as caught:
        build(**options, repos=str(tmp_path))
    shown = str(caught.value)
    assert shown.startswith("89 chosen tasks ") and "35 repositories" in shown and "…" not in shown
    with gzip.open(PLACES, "rt") as stream:
        projects = {json.loads(line)["project_path"] for line in stream}
    assert len(projects) == 35 and all(f"{project} (" in shown for project in projects)
