"""MultiCodeIF's file: what is read, chosen and told."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Dataset
from codechat.studies.multicodeif.rows import ConstrainedTask
from support.mistakes import mistake
from support.multicodeif import chain, constrained

PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "multicodeif_tasks.jsonl.gz"
ROWS = [
    constrained(),
    constrained(task_id="b", language="Cpp", answer="C++;std::pow"),
    constrained(task_id="c", category="algorithm", constraint_type="type", language=None, answer="greedy"),
    constrained(task_id="d", category="data_structure", constraint_type="type", language="c#", answer="java;HashMap"),
    *chain(),
]


def load(path: Path, **options: Any) -> Dataset:
    return DATASETS.build(DATASETS.validate({"kind": "multicodeif", "path": str(path), **options}))


def write(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
def test_the_published_file() -> None:
    single, levels = load(PUBLISHED), load(PUBLISHED, part="levels")
    assert len(single.tasks) == 1526 and single.tasks[0].task_id == "algorithm_space_complexity/1"
    kinds = [task.levels[0].constraints[0].type for task in single.tasks if isinstance(task, ConstrainedTask)]
    assert len(kinds) == 1526 and len(set(kinds)) == 27
    assert [kinds.count(kind) for kind in ("naming", "code_quality", "return_range")] == [54, 100, 38]
    assert sum(task.target.language == "" for task in single.tasks) == 41
    assert len(levels.tasks) == 165 and levels.tasks[7].task_id == "chain/7"
    for task in levels.tasks:
        assert isinstance(task, ConstrainedTask)
        assert [len(level.constraints) for level in task.levels] == [1, 2, 3, 4]
    sizes = {name: len(load(PUBLISHED, categories=[name]).tasks) for name in ("coding_style", "code_convention")}
    assert sizes == {"coding_style": 274, "code_convention": 274}
    assert len({task.target.language for task in load(PUBLISHED, languages=["C++", "c#", "js"]).tasks}) == 3


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, ["syntax_function/1", "b", "c", "d"]),
        ({"categories": ["environment"]}, ["syntax_function/1", "b"]),
        ({"categories": ["syntax"], "languages": ["CPP"]}, ["b"]),
        ({"types": ["type"]}, ["c", "d"]),
        ({"types": ["data_structure_type", "invocation"]}, ["syntax_function/1", "b", "d"]),
        ({"languages": ["none"]}, ["c"]),
        ({"languages": ["csharp", "RS"]}, ["syntax_function/1", "d"]),
        ({"part": "levels"}, ["chain/0"]),
    ],
)
def test_choosing(tmp_path: Path, options: dict[str, Any], ids: list[str]) -> None:
    assert [task.task_id for task in load(write(tmp_path, *ROWS), **options).tasks] == ids


def test_a_chain_is_one_task(tmp_path: Path) -> None:
    (task,) = load(write(tmp_path, *ROWS), part="levels").tasks
    assert isinstance(task, ConstrainedTask)
    assert task.target.language == "java" and task.prompt == "Keep a phone book, level 1."
    assert [level.prompt[-2:] for level in task.levels] == ["1.", "2.", "3.", "4."]
    last = [constraint.type for constraint in task.levels[3].constraints]
    assert last == ["data_structure_type", "data_structure_operation", "data_structure_size", "data_structure_type"]


def test_the_hash_is_of_the_part_and_not_of_the_choice(tmp_path: Path) -> None:
    path = write(tmp_path, *ROWS)
    assert load(path).content_hash == load(path, languages=["rust"]).content_hash
    assert load(path).content_hash != load(path, part="levels").content_hash


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (constrained(answer="push_str"), "syntax_function/1: .*'push_str'"),
        (constrained(answer="cobol;ADD"), "syntax_function/1: .*'cobol'"),
        (constrained(constraint_type="colour"), "syntax/colour"),
        (constrained(category="colours"), "colours/function"),
        (constrained(level="L0"), "level: "),
        (constrained(prompt=""), "prompt: "),
    ],
)
def test_a_wrong_row_is_told_with_its_place(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, constrained(task_id="first"), row))
    assert "tasks.jsonl:2: " in str(caught.value) and re.search(told, str(caught.value))


def test_a_chain_with_a_gap_is_told(tmp_path: Path) -> None:
    rows = chain()
    with mistake("L3", "chain/0"):
        load(write(tmp_path, rows[0], rows[2]), part="levels")
    rows[1]["answers_cumulative"] = []
    with pytest.raises(UserError, match="answers_cumulative"):
        load(write(tmp_path, *rows), part="levels")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"categories": ["enviroment"]}, "'enviroment'"),
        ({"types": ["nameing"]}, "naming"),
        ({"languages": ["haskell"]}, "no task of these"),
        ({"part": "chains"}, "dataset.part"),
    ],
)
def test_a_wrong_choice_is_told(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(write(tmp_path, *ROWS), **options)
    assert told in str(caught.value)


def test_chains_at_one_level(tmp_path: Path) -> None:
    path = write(tmp_path, *chain(0), *chain(3))
    third = load(path, part="levels", level="L3")
    assert [task.task_id for task in third.tasks] == ["chain/0/L3", "chain/3/L3"]
    (task, _), chains = third.tasks, load(path, part="levels")
    assert isinstance(task, ConstrainedTask)
    assert task.prompt == "Keep a phone book, level 3." and task.level == "L3" and task.target.language == "java"
    assert [(level.name, level.prompt, len(level.constraints)) for level in task.levels] == [("L3", task.prompt, 3)]
    assert third.places["chain/3/L3"] == f"{path}:7"
    hashes = {load(path, part="levels", level=level).content_hash for level in ("L1", "L2", "L3", "L4")}
    assert len(hashes | {chains.content_hash}) == 5, "their cells are different cells"
    assert len(load(path, part="levels", level="L4", types=["data_structure_size"]).tasks) == 2
    with mistake("no task"):
        load(path, part="levels", level="L1", types=["data_structure_size"])


def test_a_level_is_one_of_chains(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"add dataset\.part=levels"):
        load(write(tmp_path, *ROWS), level="L2")
    with pytest.raises(UserError, match="level"):
        load(write(tmp_path, *ROWS), part="levels", level="L5")
