"""What a constraint demands in words, how two constraints of a chain are related, and lists of excluded tasks."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS, select
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.construct.task import relation, says, unsaid
from support.multicodeif import constrained


def made(kind: str, answer: str) -> Constraint:
    return Constraint(kind, constraint_type(kind).read(answer))


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("line", ['{"name": "a"}', '{"id": 3}', '{"id": '])
def test_a_list_that_names_no_task_is_told(tmp_path: Path, line: str) -> None:
    (tmp_path / "list").write_text(f"syntax_function/1\n{line}\n")
    path = write(tmp_path / "tasks.jsonl", constrained())
    config = DATASETS.validate({"kind": "multicodeif", "path": str(path), "exclude": str(tmp_path / "list")})
    with pytest.raises(UserError, match="list:2"):
        select(DATASETS.build(config), config)


@pytest.mark.parametrize(
    ("kind", "new", "old", "expected"),
    [
        ("data_structure_type", "java;HashMap", ("data_structure_operation", "java;HashMap;['put']"), "repeated"),
        ("data_structure_type", "java;TreeMap", ("data_structure_operation", "java;HashMap;['put']"), None),
        ("data_structure_size", "java;HashMap;7", ("data_structure_size", "java;HashMap;8"), "contradictory"),
        ("data_structure_size", "java;HashMap;7", ("data_structure_size", "Java;hashmap;7"), "repeated"),
        ("data_structure_size", "java;HashMap;7", ("data_structure_type", "java;HashMap"), None),
        ("data_structure_operation", "java;List;['add']", ("data_structure_operation", "java;List;['add','get']"), "repeated"),
        ("data_structure_operation", "java;List;['add','get']", ("data_structure_operation", "java;List;['add']"), None),
        ("data_structure_type", "go;map", ("data_structure_type", "rust;Vec"), "contradictory"),
        ("return_type", "go;load;Map", ("return_type", "go;load;List"), "contradictory"),
        ("return_type", "go;load;Map", ("return_type", "go;save;List"), None),
        ("parameter_type", "go;load;Map", ("parameter_type", "go;load;List"), None),
        ("naming", "go;function:camelCase", ("naming", "go;function:snake_case"), "contradictory"),
        ("naming", "go;function:camelCase", ("naming", "go;class:PascalCase,function:camelCase"), "repeated"),
        ("brace", "c;Allman", ("brace", "c;K&R"), "contradictory"),
        ("algorithm_type", "merge sort", ("algorithm_type", "Merge  sort"), "repeated"),
        ("algorithm_type", "merge sort", ("algorithm_type", "binary search"), None),
    ],
)  # fmt: skip
def test_how_a_constraint_stands_to_an_earlier_one(
    kind: str, new: str, old: tuple[str, str], expected: str | None
) -> None:
    found = relation(made(kind, new), [made("time_complexity", "O(n)"), made(*old)])
    assert (found and found[0]) == expected
    assert found is None or found[1] == made(*old)


@pytest.mark.parametrize(
    ("kind", "answer", "prompt", "lacking"),
    [
        ("data_structure_size", "java;ArrayDeque;1000", "Keep at most 1,000 visits in an array deque.", []),
        (
            "data_structure_size",
            "java;ArrayDeque;1000",
            "Keep at most 10000 visits in a queue.",
            ["ArrayDeque", "1000"],
        ),
        ("data_structure_type", "go;map", "Write a Go mapping of a heap.", ["map"]),
        ("data_structure_type", "python;collections.Counter", "Count by a Counter.", []),
        ("naming", "java;class:PascalCase", "Names of structs in pascal case.", []),
        ("naming", "java;class:PascalCase", "Use camelCase for classes.", ["PascalCase"]),
        ("indentation", "go;tabs;spacing", "Indent by tabs, with spaces around operators.", []),
        ("indentation", "c;spaces:4;spacing", "Indent by spaces, spacing as usual.", ["4"]),
        ("brace", "c;K&R", "Use Kernighan and Ritchie braces.", []),
        ("comment", "python;Python docstring", "Python code with a docstring for all.", []),
        ("language_version", "java;17", "Write it for Java 17.", []),
        ("language_version", "java;17", "Write it for Java 1.7.", ["17"]),
        ("parameter_type", "go;load;Map", "`load` gets a dictionary.", []),
        ("time_complexity", "O(n log n)", "In o( n log n ) time.", []),
        ("time_complexity", "O(n log n)", "In linear time, or O(n).", ["O(n log n)"]),
        ("algorithm_type", "dynamic programming", "Solve it by Dynamic-Programming.", []),
    ],
)
def test_what_a_prompt_does_not_say(kind: str, answer: str, prompt: str, lacking: list[str]) -> None:
    assert unsaid(made(kind, answer), prompt) == lacking


def test_names_of_languages_are_whole_words() -> None:
    assert says("Write C++ code.", "c++") and says("in C#.", "C#") and not says("Write C++ code.", "c")
    assert not says("an algorithm", "go") and says("Go's maps", "go") and not says("JavaScript", "java")
