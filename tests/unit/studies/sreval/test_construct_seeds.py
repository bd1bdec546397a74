"""Seeds of the recipe `steps`: their four forms, what is refused, and the filters of repositories."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.run.construct import Item
from codechat.studies.sreval.construct.seeds import filtered, lines_of_code, place_of, read_seeds

OWN = {"id": "own/1", "instruction": "Write f.", "solution": "def f(x):\n    return x\n", "language": "python"}
JAVA = {
    "id": "own/2",
    "instruction": "Write Shop.",
    "solution": "class Shop { }",
    "language": "java",
    "tests": "class T { }",
}
BIG = {
    "task_id": "BigCodeBench/13",
    "complete_prompt": 'import os\ndef task_func(x):\n    """Return x."""\n',
    "instruct_prompt": "Return x.",
    "code_prompt": "import os\ndef task_func(x):\n",
    "canonical_solution": "    return x\n",
    "test": "import unittest\nclass TestCases(unittest.TestCase):\n    def test(self): pass\n",
    "entry_point": "task_func",
    "libs": "['os']",
}
HUMAN = {
    "task_id": "HumanEval/0",
    "prompt": 'def f(x):\n    """Return x."""\n',
    "canonical_solution": "    return x\n",
    "entry_point": "f",
    "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    "base_input": [[1]],
}
SHOP = '''"""A shop."""

from shop import prices
import math

RATE = 2


def cost(x):
    return helper(x) * RATE


def helper(x):
    return x


class Till:
    def total(self, items):
        return self.tax(sum(items))

    def tax(self, x):
        return math.floor(x)

    def priced(self, x):
        return prices.of(x)
'''


def seeds_of(tmp_path: Path, *rows: dict[str, Any]) -> list[Item]:
    path = tmp_path / "seeds.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(read_seeds(path))


def function(root: Path, name: str, line: int, body: str = "return 1", **more: Any) -> dict[str, Any]:
    (root / "shop").mkdir(exist_ok=True)
    (root / "shop" / "till.py").write_text(SHOP)
    (root / "shop" / "prices.py").write_text("def of(x): return x\n")
    where = {"project": "shop", "folder": str(root), "file": "shop/till.py", "beside": "tests/test_till.py::test_a"}
    place = {"kind": "inserted", **where, "function": name, "lines": [line, line + 1]}
    tests = "def test_it():\n    assert True\n"
    return {"id": f"repo/{name}", "signature": f"def {name}(x)", "body": body, "tests": tests, "place": place, **more}


def test_every_form_becomes_one_kind_of_item(tmp_path: Path) -> None:
    own, java, big, human, repo = seeds_of(tmp_path, OWN, JAVA, BIG, HUMAN, function(tmp_path, "cost", 9))
    assert own.data["entry_point"] == "f" and own.data["tests"] == [] and own.id == "own/1"
    assert java.data["language"] == "java" and java.data["tests"] == ["class T { }"] and not java.data["entry_point"]
    assert big.id == "BigCodeBench/13" and big.data["solution"] == "import os\ndef task_func(x):\n    return x\n"
    assert big.data["instruction"] == "Return x." and big.data["tests"][0].startswith("import unittest")
    assert human.data["solution"].endswith("    return x\n") and human.data["tests"] == [HUMAN["test"]]
    assert repo.data["solution"] == "def cost(x):\n    return 1\n" and repo.data["instruction"] == ""
    assert place_of(repo.data).suite_fields("new", "")["tests"] == "new"
    packed = tmp_path / "seeds.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "seeds.jsonl").read_bytes()))
    assert [item.id for item in read_seeds(packed)] == [item.id for item in (own, java, big, human, repo)]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({**OWN, "solution": "x = 1\n"}, "has no function"),
        ({**OWN, "solution": "def f(:\n"}, "not valid Python"),
        ({**OWN, "entry_point": "g"}, "has no function g"),
        ({**JAVA, "solution": "int f() { return 1; }"}, "declares no class"),
        ({**OWN, "language": "perl"}, "language"),
        ({key: OWN[key] for key in ("id", "solution", "language")}, "instruction"),
        ({**HUMAN, "canonical_solution": "return return"}, "canonical_solution"),
        ({"id": "r", "signature": "def f()", "body": "pass", "tests": "def test_a(): pass", "place": {}}, "inserted"),
    ],
)
def test_what_is_no_seed_is_refused_by_file_and_line(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refused:
        seeds_of(tmp_path, {**OWN, "id": "first"}, row)
    assert words in str(refused.value) and "seeds.jsonl" in str(refused.value) and "2" in str(refused.value)


def test_an_id_twice_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="own/1 is there twice"):
        seeds_of(tmp_path, OWN, OWN)
    with pytest.raises(UserError, match="holds no seed"):
        seeds_of(tmp_path)


@pytest.mark.parametrize(
    ("body", "language", "lines"),
    [
        ('"""Two\nlines."""\n# none\n\nx = 1\nreturn x', "python", 2),
        ("x = 1  # one\nreturn (x,\n        2)", "python", 3),
        ("// none\n{\n    int x = 1;\n    /* none */\n    return x;\n}", "java", 2),
    ],
)
def test_only_lines_of_code_count(body: str, language: str, lines: int) -> None:
    assert lines_of_code(body, language) == lines


@pytest.mark.parametrize(
    ("lines", "given", "reason"),
    [
        (10, None, None),
        (9, None, "short body"),
        (10, {"intra_class": ["a"]}, None),
        (10, {}, "stands alone"),
        (10, {"intra_file": ["a"], "cross_file": ["b"]}, "needs other files"),
    ],
)
def test_the_filters_of_repositories(
    tmp_path: Path, lines: int, given: dict[str, list[str]] | None, reason: str | None
) -> None:
    known = {} if given is None else {"dependencies": given}
    (item,) = seeds_of(tmp_path, function(tmp_path, "cost", 9, "\n".join(["x += 1"] * lines), **known))
    dropped = filtered(item.data)
    assert (dropped and dropped.reason) == reason


def test_given_dependencies_are_believed(tmp_path: Path) -> None:
    given = {"intra_class": [], "intra_file": ["a"], "cross_file": ["b"]}
    (item,) = seeds_of(tmp_path, function(tmp_path, "cost", 9, "x += 1\n" * 10, dependencies=given))
    dropped = filtered(item.data)
    assert dropped is not None and dropped.reason == "needs other files" and dropped.detail == "b"
