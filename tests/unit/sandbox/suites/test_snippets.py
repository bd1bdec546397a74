"""What a snippet only defines is run as its framework runs it, or refused: no test, no pass."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program, Target
from codechat.base.errors import BrokenTask
from codechat.datasets.reading.rows import load_rows
from codechat.sandbox import SANDBOXES, Ended, SandboxConfig
from codechat.sandbox.inside import snippets
from codechat.sandbox.inside.snippets import (
    RUNNERS,
    NotRun,
    class_level_names,
    compile_snippet,
    imports_of,
    names_read,
    refuse_unrun,
    shares_names,
    uses_of,
)
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.assertions.constructs import find_constructs
from support.mistakes import mistake

RUN: dict[str, str] = {
    "a test case": "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): ran()",
    "a test case of a base class": (
        "import unittest\nclass Base(unittest.TestCase):\n    def setUp(self): self.n = 1\n"
        "class T(Base):\n    def test_it(self): ran()"
    ),
    "an async test case": (
        "import unittest\nclass T(unittest.IsolatedAsyncioTestCase):\n    async def test_it(self): ran()"
    ),
    "a test function": "def test_it():\n    ran()",
    "an async test function": "async def test_it():\n    ran()",
    "an async test function with pytest's mark": (
        "class pytest:\n    class mark:\n        asyncio = staticmethod(lambda f: f)\n"
        "@pytest.mark.asyncio\nasync def test_it():\n    ran()"
    ),
    "a class of pytest": "class TestIt:\n    def test_it(self):\n        ran()",
    "a class of pytest with a setup": (
        "class TestIt:\n    def setup_method(self): self.run = ran\n    def test_it(self): self.run()"
    ),
    "a class of pytest with a helper": (
        "class TestIt:\n    def helper(self, n): ran()\n    def test_it(self): self.helper(1)"
    ),
    "an async method of such a class": "class TestIt:\n    async def test_it(self):\n        ran()",
    "a check of the candidate": "METADATA = {}\ndef check(candidate):\n    candidate()\n    ran()",
    "under a main guard": 'def go():\n    ran()\nif __name__ == "__main__":\n    go()',
    "a test case with a main guard": (
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): ran()\n"
        'if __name__ == "__main__":\n    unittest.main()'
    ),
    "a plain assertion": "assert solve() is None\nran()",
    "a helper that is called": "def test_with(n):\n    ran()\ntest_with(1)",
}


def run(snippet: str) -> int:
    """How often a snippet calls `ran`."""
    calls: list[int] = []
    used = refuse_unrun([snippet], "solve")
    space: dict[str, Any] = {"ran": lambda: calls.append(1), "solve": lambda: None, "__name__": "candidate"}
    space |= RUNNERS
    exec(compile_snippet(snippet, "<assertion 1>", "solve", used), space)
    return len(calls)


@pytest.mark.parametrize("name", RUN)
def test_what_is_defined_is_run_once(name: str) -> None:
    assert run(RUN[name]) == 1


@pytest.mark.parametrize("name", [name for name in RUN if "ran()" in RUN[name]])
def test_a_test_that_fails_is_noticed(name: str) -> None:
    with pytest.raises(AssertionError, match="it fails"):
        run(RUN[name].replace("ran()", "raise AssertionError('it fails')"))


REFUSED: dict[str, tuple[str, str]] = {
    "a fixture": ("def test_it(tmp_path):\n    assert solve()", r"test_it\(\) needs arguments"),
    "a parameter": (
        "import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_it(n):\n    assert solve()",
        r"test_it\(\) needs arguments",
    ),
    "a mark": ("import pytest\n@pytest.mark.skip\ndef test_it():\n    assert solve()", "@pytest.mark.skip"),
    "a class with fixtures": ("class TestIt:\n    def test_it(self, db): pass", r"TestIt\.test_it\(\) needs"),
    "a class with a mark": (
        "import pytest\n@pytest.mark.slow\nclass TestIt:\n    def test_it(self): pass",
        "TestIt has",
    ),
    "async tests that unittest never awaits": (
        "import unittest\nclass T(unittest.TestCase):\n    async def test_it(self): assert solve()",
        "T has async tests",
    ),
    "test cases without a test": ("import unittest\nclass T(unittest.TestCase): pass", "T has no test"),
    "nothing but a helper": ("def verify(f):\n    assert f() == 1", "it only defines verify"),
    "nothing but a class": ("class Tests:\n    def verify(self): assert solve()", "it only defines Tests"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_nothing_would_run_is_refused(name: str) -> None:
    snippet, reason = REFUSED[name]
    with pytest.raises(NotRun, match=reason):
        refuse_unrun([snippet], "solve")


def test_a_check_needs_an_entry_point() -> None:
    with pytest.raises(NotRun, match="no entry point"):
        refuse_unrun(["def check(candidate): assert candidate()"], "")


async def test_a_test_that_would_never_run_is_broken_and_fails_no_program() -> None:
    no_sandbox: Any = None
    suite = Assertions(("def test_it(tmp_path): assert solve()",))
    with pytest.raises(BrokenTask, match="solve"):
        await suite.check(Program("def solve(): ...", Target(entry_point="solve")), no_sandbox)


def test_no_more_output_is_read_than_the_sandbox_allows() -> None:
    config = SANDBOXES.validate({"kind": "process", "output_mb": 1})
    assert isinstance(config, SandboxConfig)
    for size, more in ((1 << 20, False), ((1 << 20) + 1, True)):
        reader = Assertions(("assert solve()",))._start(Program("", Target(entry_point="solve")), config).reader
        reader.read(b"?" * size)
        failure = reader.conclude(Ended(0, 0.0, 0), 1).failure
        assert failure is not None and ("more output" in failure.reason) is more


def test_what_one_snippet_defines_another_may_use() -> None:
    assert "verify" in refuse_unrun(["def verify(f): assert f()", "verify(solve)"], "solve")


def test_a_snippet_that_does_not_parse_fails_every_program_and_is_not_refused() -> None:
    refuse_unrun(["assert (", "assert solve()"], "solve")
    assert compile_snippet("assert (", "<assertion 1>", "solve", set()) == "assert ("


@pytest.mark.parametrize("where", ["tests", "suite", "requirements"])
def test_a_dataset_with_such_a_test_is_refused_by_its_line(tmp_path: Path, where: str) -> None:
    bad = ["def test_it(tmp_path): assert solve()"]
    row: dict[str, Any] = {"task_id": "own/1", "prompt": "def solve():\n    ...", "entry_point": "solve"}
    row |= {
        "tests": {"tests": bad},
        "suite": {"suite": {"kind": "assertions", "tests": bad}},
        "requirements": {
            "tests": ["assert solve()"],
            "requirements": [{"type": "Edge", "text": "more", "tests": bad}],
        },
    }[where]
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with mistake("own.jsonl:1: ", "test_it()"):
        load_rows("own", path)


CONSTRUCTS: dict[str, tuple[str | None, str]] = {
    "assert solve(1) == 2": (None, ""),
    "from unittest.mock import patch": ("mocks and patches (mock)", ""),
    "eval('1')": ("code that is made at run time (eval)", ""),
    "assert solve(1) is solve(1)": ("the identity of objects (is)", ""),
    "assert solve(1) is None": (None, ""),
    "assert solve.__code__": ("the function as an object (__code__)", ""),
    "import os\nassert solve(1)": (None, "os"),
    "import sys\nassert sys.maxsize": (None, ""),
    "import sys\nsys.stdout": (None, "sys.stdout"),
    "from random import seed": ("settings of the interpreter (seed)", "random"),
    "from random import choice": (None, "random"),
    "open('x')": (None, "open"),
    "import numpy as np": (None, ""),
    "assert (": (None, ""),
}


@pytest.mark.parametrize("snippet", CONSTRUCTS)
def test_constructs_are_found_in_the_text(snippet: str) -> None:
    found = find_constructs(snippet)
    assert (found.inside, found.world) == CONSTRUCTS[snippet]


@pytest.mark.parametrize(
    ("snippet", "reads"),
    [
        ("assert solve.__doc__", {"doc"}), ("import inspect\nassert inspect.getdoc(solve)", {"doc", "source"}),
        ("assert solve.__name__ == 'solve'", {"definition"}), ("assert solve.__annotations__", {"annotations"}),
        ("from inspect import signature\nsignature(solve)", {"annotations", "signature"}), ("assert solve(1)", set()),
    ],
)  # fmt: skip
def test_what_is_read_of_the_programs_text_is_known(snippet: str, reads: set[str]) -> None:
    assert reads <= find_constructs(snippet).reads and ("doc" in reads) is ("doc" in find_constructs(snippet).reads)


def test_names_come_from_the_program_unless_a_snippet_before_binds_them() -> None:
    first = "import math, a.b\nten: int = 10\ndef test_it(f):\n    global kept\n    kept = g(ten, f)\nassert late"
    second = "assert total(ten) == math.pi\nclass T:\n    n = one\nlate = kept"
    read, free = names_read([first, "assert (", second])
    assert free == ["g", "int", "late", "one", "total"]
    assert read == {"ten", "int", "g", "late", "total", "math", "one", "kept"}


def test_which_snippets_use_a_name() -> None:
    snippets = ["assert f(1)", "x = 1", "assert (", "def check(candidate): assert candidate(1)", "g = lambda f: 1"]
    assert uses_of(snippets, "f", {"x"}) == [True, False, False, True, False]
    assert uses_of(snippets, "x", {"check"}) == [False, True, False, False, False]


def test_imports_of_all_snippets_are_lines_of_which_each_comes_once() -> None:
    first = "from __future__ import annotations\nimport os, re\nfrom math import pi as p\ndef f():\n    import inner"
    assert imports_of([first, "assert (", "import os, re\nimport json"]) == (
        "import os, re\nfrom math import pi as p\nimport json\n"
    )


@pytest.mark.parametrize(
    ("snippet", "shared"),
    [
        ("assert f(1)", False), ("def t():\n    global n\n    n = 1", True), ("globals()['n']", True), ("(", False),
        ("x = 'globals'", False), ("def globals(): pass", False),
    ],
)  # fmt: skip
def test_variables_of_the_file_are_asked_for_as_such(snippet: str, shared: bool) -> None:
    assert shares_names(["x = 1", snippet]) is shared


@pytest.mark.parametrize(
    ("snippet", "names"),
    [
        ("class T(Base):\n    n = one\n    def t(self, p): return p + other(n)", ["Base", "one", "other"]),
        ("import a.b, c as d\nx = 1\nclass T:\n    y = x + a + d\ndef f(): pass\nclass U(T): z = f", []),
        ("assert total(1)", []), ("class (", []),
    ],
)  # fmt: skip
def test_names_that_classes_use_as_they_are_made(snippet: str, names: list[str]) -> None:
    assert sorted(class_level_names(snippet)) == names


def test_a_suite_of_snippets_says_which_names_it_uses() -> None:
    assert Assertions(("assert solve(x) == y",)).names_used("solve") == {"solve", "x", "y"}


@pytest.mark.parametrize(
    ("cpu_s", "needs", "idle_s"), [(None, (), 5.0), (80.0, (), 10.0), (4.0, (), 5.0), (80.0, ("threads",), 40.0)]
)
def test_who_may_compute_for_long_may_wait_for_a_part_of_it(
    cpu_s: float | None, needs: tuple[Any, ...], idle_s: float
) -> None:
    config = SANDBOXES.validate({"kind": "process", "idle_s": 5.0})
    run = Assertions(("assert f()",), frozenset(needs), cpu_s)._start(Program("f = 1", Target(entry_point="f")), config)
    assert run.idle_s == idle_s and run.job["cpu"] == (161 if cpu_s == 80 else 71)


def test_what_would_leave_tests_unrun_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tree: ast.Module, entry_point: str, used: set[str]) -> list[ast.stmt]:
        raise ValueError("a fault of this code, not of the snippet")

    monkeypatch.setattr(snippets, "find_calls", broken)
    with pytest.raises(ValueError, match="a fault of this code"):
        compile_snippet("def test_it(): assert solve()", "<assertion 1>", "solve", set())
    assert compile_snippet("assert (", "<assertion 1>", "solve", set()) == "assert ("
