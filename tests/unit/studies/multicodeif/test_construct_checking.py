"""Finished tasks held to the checks of made ones, without a call; what a constraint demands in words."""

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.datasets import DATASETS, select
from codechat.studies.multicodeif.constraints import Constraint, constraint_type
from codechat.studies.multicodeif.construct.task import relation, says, unsaid
from support.multicodeif_rows import chain, constrained

PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "multicodeif_tasks.jsonl.gz"


def made(kind: str, answer: str) -> Constraint:
    return Constraint(kind, constraint_type(kind).read(answer))


def check(path: Path, out: Path, *words: str) -> dict[str, dict[str, Any]]:
    """The list of faulty tasks."""
    assert main(["construct", "recipe=constraints", f"check={path}", f"out={out}", "tracking=none", *words]) == 0
    yields = json.loads((out / "yield.json").read_text())
    assert yields["all"]["calls"] == 0
    return {row["id"]: row for row in map(json.loads, (out / "dropped.jsonl").read_text().splitlines())}


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_each_fault_is_named_and_the_list_excludes_its_tasks(tmp_path: Path) -> None:
    structure = {"category": "data_structure", "constraint_type": "type"}
    rows = [
        constrained(task_id="good", prompt="Join words in Rust with push_str."),
        constrained(task_id="silent", prompt="Join words in Rust."),
        constrained(task_id="go", language="go", answer="go;sync.Map", prompt="In Go use a sync.Map.", **structure),
        constrained(
            task_id="brace", language="python", answer="python;Allman", category="code_convention",
            constraint_type="brace_block_formatting", prompt="In Python, with Allman braces.",
        ),
        *chain(),
    ]  # fmt: skip
    path = write(tmp_path / "tasks.jsonl", *rows)
    found = check(path, tmp_path / "out")
    assert {name: row["reason"] for name, row in found.items()} == {
        "silent": "not stated",
        "go": "unpassable, official",
        "brace": "unpassable; vacuous, official",
        "chain/0": "repeated; not stated",
        "chain/0/L1": "not stated",
        "chain/0/L2": "not stated",
        "chain/0/L3": "not stated",
        "chain/0/L4": "repeated; not stated",
    }
    counts = json.loads((tmp_path / "out" / "yield.json").read_text())["stages"]["check"]["dropped"]
    assert counts == {
        "not stated": 6, "repeated": 2, "unpassable": 1, "unpassable, official": 1, "vacuous, official": 1
    }, "each fault by itself"  # fmt: skip
    assert "L4 data_structure_type java;HashMap after Java;HashMap" in found["chain/0"]["detail"]
    fewer = check(path, tmp_path / "fewer", "faults=[repeated,unpassable]")
    assert set(fewer) == {"brace", "chain/0", "chain/0/L4"}
    for listed, part, level, left in (
        ("out/dropped.jsonl", "single", None, ["good"]),
        ("fewer/dropped.jsonl", "single", None, ["good", "silent", "go"]),
        ("fewer/dropped.jsonl", "levels", None, []),
        ("fewer/dropped.jsonl", "levels", "L3", ["chain/0/L3"]),
    ):
        values = {
            "kind": "multicodeif",
            "path": str(path),
            "part": part,
            "level": level,
            "exclude": str(tmp_path / listed),
        }
        config = DATASETS.validate(values)
        assert [task.task_id for task in select(DATASETS.build(config), config)] == left


@pytest.mark.parametrize("line", ['{"name": "a"}', '{"id": 3}', '{"id": '])
def test_a_list_that_names_no_task_is_told(tmp_path: Path, line: str) -> None:
    (tmp_path / "list").write_text(f"syntax_function/1\n{line}\n")
    path = write(tmp_path / "tasks.jsonl", constrained())
    config = DATASETS.validate({"kind": "multicodeif", "path": str(path), "exclude": str(tmp_path / "list")})
    with pytest.raises(UserError, match="list:2"):
        select(DATASETS.build(config), config)


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
@pytest.mark.long
def test_the_published_tasks(tmp_path: Path) -> None:
    """At least the 22, 88 and 37 that are known, each for its reason; guarded, those 22 can be passed."""
    found = {name: row["reason"].split("; ") for name, row in check(PUBLISHED, tmp_path / "out").items()}
    structures = {name: faults for name, faults in found.items() if name.startswith("data_structure")}
    assert sum("unpassable, official" in faults for faults in structures.values()) == 22
    assert not any("unpassable" in faults for faults in structures.values())
    chains = Counter(fault for name, faults in found.items() if re.fullmatch(r"chain/\d+", name) for fault in faults)
    assert chains["repeated"] >= 88 and chains["contradictory"] == 37
    single = Counter(fault for name, faults in found.items() if not name.startswith("chain/") for fault in faults)
    assert single["vacuous, official"] == 9 and not single["vacuous"], "braces in Python"
    values = {"kind": "multicodeif", "path": str(PUBLISHED), "exclude": str(tmp_path / "out" / "dropped.jsonl")}
    config = DATASETS.validate(values)
    assert len(select(DATASETS.build(config), config)) == 1526 - sum(not name.startswith("chain/") for name in found)


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
