"""Suites of assertions, exit statuses and repositories, in every kind of sandbox."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Outcome, Program, Target
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from codechat.sandbox.suites.checker import Checker
from codechat.sandbox.suites.exit_status import ExitStatus
from codechat.sandbox.suites.repository import Repository
from support.machine import sandbox_here

PROGRAM = "def total(numbers: list) -> int:\n    return sum(numbers)\n"
TOTAL = Target(entry_point="total")
ASSERTIONS = Assertions(("assert total([1, 2]) == 3", "assert total([]) == 0"))


@pytest.fixture(scope="module", params=[component.name for component in SANDBOXES if component.name != "auto"])
def sandbox(request: pytest.FixtureRequest, of_kind: Callable[[str], dict[str, str]]) -> Iterator[Any]:
    room = sandbox_here(**of_kind(request.param), idle_s=1.5, load_cpu_s=2.0)
    yield room
    asyncio.run(room.aclose())


@pytest.fixture
def checker(sandbox: Any) -> Checker:
    return Checker(sandbox)


FILE = """
import inspect
assert inspect.getsource(total) == open(__file__).read()
assert inspect.getsourcefile(total) == __file__ and __file__.endswith(".py")
"""
CHECKERS = """
import inspect, mccabe, pycodestyle, radon.complexity
with open("temp.py", "w") as stream: stream.write(inspect.getsource(total))
assert pycodestyle.StyleGuide().check_files(["temp.py"]).total_errors == 0
assert [block.complexity for block in radon.complexity.cc_visit(inspect.getsource(total))] == [1]
"""
SNIPPETS: dict[str, tuple[tuple[str, ...], Outcome]] = {
    "holds": (("assert total([1, 2]) == 3",), "pass"),
    "does not hold": (("assert total([1, 2]) == 3", "assert total([1]) == 2"), "fail"),
    "does not parse": (("assert total([1, 2]) == 3", "assert total(["), "fail"),
    "a file with this text and nothing else": ((FILE,), "pass"),
    "checkers, and a file of their own": ((CHECKERS,), "pass"),
    "that file is gone": (("import os\nassert os.listdir() == ['program.py']",), "pass"),
    "names of one are there for the next": (
        ("import math\nten = 10", "assert total([ten]) == math.floor(10.5)"),
        "pass",
    ),
    "test cases": (
        ("import unittest\nclass Sums(unittest.TestCase):\n    def test_it(self): self.assertEqual(total([1]), 1)",),
        "pass",
    ),
    "failing test cases": (
        ("import unittest\nclass Sums(unittest.TestCase):\n    def test_it(self): self.assertEqual(total([1]), 2)",),
        "fail",
    ),
    "test cases with a main": (
        (
            "import unittest\nclass Sums(unittest.TestCase):\n    def test_it(self): self.assertEqual(total([1]), 2)\n"
            "unittest.main()",
        ),
        "fail",
    ),
    "a test function": (("def test_it():\n    assert total([1]) == 1",), "pass"),
    "a failing test function": (("def test_it():\n    assert total([1]) == 2",), "fail"),
    "a helper that is called": (("def test_with(n):\n    assert total([n]) == n\ntest_with(5)",), "pass"),
    "an exception that is wanted": (("try: total(5)\nexcept TypeError: pass\nelse: assert False",), "pass"),
    "ends its iteration": (("next(iter(()))",), "fail"),
    "prints, and holds": (("print('so far')\nassert total([1]) == 1",), "pass"),
    "prints, and does not hold": (("print('so far')\nassert total([1]) == 2",), "fail"),
}


@pytest.mark.parametrize("name", SNIPPETS)
async def test_assertions(checker: Checker, name: str) -> None:
    snippets, outcome = SNIPPETS[name]
    verdict = await checker.check(Program(PROGRAM, TOTAL), Assertions(snippets))
    assert (verdict.outcome, verdict.passed_base) == (outcome, outcome == "pass"), verdict.failure
    assert (verdict.failure is None) == (outcome == "pass")


async def test_a_failure_names_the_assertion_and_what_was_printed(checker: Checker) -> None:
    program = "def total(numbers):\n    print('adding')\n    return numbers[0] + 1\n"
    tests = Assertions(("assert total([1]) == 2", "got = total([2])\nassert got == 2, got"))
    failure = (await checker.check(Program(program), tests)).failure
    assert failure is not None
    assert (failure.reason, failure.index, failure.input) == ("an assertion does not hold", 1, tests.snippets[1])
    assert failure.exception == "assertion 2, line 2, in <module>: assert got == 2, got\nAssertionError: 3"
    assert failure.stdout == "adding\nadding\n"


CASES = """import unittest

class Sums(unittest.TestCase):
    def test_few(self):
        self.assertEqual(total([1]), 1)

    def test_many(self):
        wanted = 4
        self.assertEqual(total([1, 2]), wanted)
"""


async def test_a_failed_unittest_names_itself_and_its_line(checker: Checker) -> None:
    verdict = await checker.check(Program(PROGRAM), Assertions((CASES,)))
    assert not verdict.passed
    assert verdict.failure is not None and verdict.failure.exception is not None
    assert "Sums.test_many: AssertionError: 3 != 4" in verdict.failure.exception
    assert "line 9, in test_many: self.assertEqual(total([1, 2]), wanted)" in verdict.failure.exception


async def test_an_exception_is_told_with_the_programs_own_lines(checker: Checker) -> None:
    verdict = await checker.check(Program("def total(n):\n    return n[7]\n"), Assertions(("total([])",)))
    failure = verdict.failure
    assert failure is not None and failure.exception is not None
    assert failure.reason == "an exception"
    assert failure.exception.splitlines()[1:] == [
        "line 2, in total: return n[7]",
        "IndexError: list index out of range",
    ]


async def test_a_file_ends_with_a_newline_and_keeps_its_own_ends_of_lines(checker: Checker) -> None:
    read = "import inspect\nassert inspect.getsource(total).endswith('return 1\\n')"
    assert (await checker.check(Program("def total(n):\n    return 1"), Assertions((read,)))).passed


async def test_the_entry_point_of_the_target_must_be_there(checker: Checker) -> None:
    async def verdict(source: str) -> Any:
        return await checker.check(Program(source, TOTAL), ASSERTIONS)

    assert (await verdict(PROGRAM)).passed
    assert (await verdict("def total(numbers): return 3")).outcome == "fail"
    assert (await verdict("def sum_up(numbers): return sum(numbers)")).failure.reason.endswith("total")
    assert (await verdict("def total(numbers) return 3")).outcome == "syntax_error"


async def test_nothing_passes_for_want_of_tests(checker: Checker) -> None:
    with pytest.raises(UserError, match="has no tests"):
        await checker.check(Program(PROGRAM), Calls("total", PROGRAM, base=()))
    with pytest.raises(UserError, match="no assertions"):
        await checker.check(Program(PROGRAM), Assertions(()))


async def test_the_same_assessment_is_run_once(checker: Checker) -> None:
    tests, program = Assertions(("assert total([7]) == 7",)), Program(PROGRAM)
    first, second = await asyncio.gather(checker.check(program, tests), checker.check(program, tests))
    assert first is second is await checker.check(program, Assertions(tests.snippets))
    assert first is not await checker.check(program, Assertions(("assert total([7]) == 8",)))
    assert first is not await checker.check(Program(PROGRAM, TOTAL), tests)


async def test_a_program_may_be_named_as_a_builtin(checker: Checker) -> None:
    source = "def sum(a, b):\n    return a + b\ndef sorted(x):\n    return 1\n"
    for entry in ("sum", ""):
        program = Program(source, Target(entry_point=entry))
        assert (await checker.check(program, Assertions(("assert sum(1, 2) == 3",)))).passed
        assert (await checker.check(program, Assertions(("assert sorted([2, 1]) == 1",)))).passed
        assert not (await checker.check(program, Assertions(("assert sorted([2, 1]) == [1, 2]",)))).passed


SCRIPTS: dict[str, tuple[str, Outcome]] = {
    "nothing": ("", "pass"),
    "its own file": ("import inspect\ndef f(): pass\nassert 'def f' in inspect.getsource(f)", "pass"),
    "checkers": ("import radon.complexity, mccabe, pycodestyle, numpy, scipy", "pass"),
    "writes beside it": ("open('temp.py', 'w').close()", "pass"),
    "what it wrote is gone": ("import os\nassert os.listdir() == ['script.py'], os.listdir()", "pass"),
    "its main guard": ("if __name__ == '__main__': raise SystemExit(2)", "fail"),
    "exits well": ("exit()", "pass"),
    "does not hold": ("assert 1 == 2", "fail"),
    "does not parse": ("assert (", "fail"),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\nassert False", "fail"),
    "spins": ("while True: pass", "timeout"),
    "sleeps": ("import time\ntime.sleep(60)", "timeout"),
}


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_passes_by_its_exit_status(checker: Checker, name: str) -> None:
    source, outcome = SCRIPTS[name]
    verdict = await checker.check(Program(source), ExitStatus(wall_s=1.0 if outcome == "timeout" else 60.0))
    assert verdict.outcome in {outcome, "crash" if name == "killed" else outcome}, verdict.failure


async def test_a_scripts_failure_holds_the_end_of_what_it_said(checker: Checker) -> None:
    verdict = await checker.check(Program("print('out')\nraise ValueError('odd')"), ExitStatus(wall_s=60.0))
    failure = verdict.failure
    assert failure is not None and failure.exception is not None
    assert failure.reason == "it ends with status 1"
    assert failure.exception.endswith("ValueError: odd")


async def test_a_script_is_the_program_and_what_follows_it(checker: Checker) -> None:
    for snippet, passed in (("assert total([1]) == 1", True), ("assert total([1]) == 2", False)):
        assert (await checker.check(Program(PROGRAM), ExitStatus((snippet,)))).passed == passed


# A repository made up for this test: none of the published ones is at hand.
FILES = {
    "words/__init__.py": "",
    "words/marks.py": 'SEPARATOR = ","\n',
    "words/count.py": """from words.marks import SEPARATOR


class Counter:
    def count(self, text):
        return len(text.split(SEPARATOR))

    def twice(self, text):
        return 2 * self.count(text)
""",
    "tests/test_count.py": """import unittest
from words.count import Counter


class CountTest(unittest.TestCase):
    def test_count(self):
        self.assertEqual(Counter().count("a,b"), 2)

    def test_twice(self):
        self.assertEqual(Counter().twice("a,b,c"), 6)
""",
    "setup.cfg": "[tool:pytest]\naddopts = --not-an-option\n",
}
METHODS: dict[str, tuple[str, Outcome]] = {
    "another way": ("def count(self, text):\n    return text.count(SEPARATOR) + 1\n", "pass"),
    "indented as it was": ("    def count(self, text):\n        return text.count(SEPARATOR) + 1\n", "pass"),
    "wrong": ("def count(self, text):\n    return 2\n", "fail"),
    "does not parse": ("def count(self, text)\n    return 2\n", "fail"),
    "exits": ("def count(self, text):\n    __import__('os')._exit(0)\n", "crash"),
    "exits in order": ("def count(self, text):\n    raise SystemExit(0)\n", "fail"),
    "at import": ("__import__('os')._exit(0)\n", "crash"),
}


@pytest.fixture
def tests_in_repository(tmp_path: Path) -> Repository:
    for name, text in FILES.items():
        path = tmp_path / "Text" / "words" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    nodes = ("tests/test_count.py::CountTest::test_count", "tests/test_count.py::CountTest::test_twice")
    return Repository("Text/words", str(tmp_path / "Text" / "words"), "words/count.py", (5, 6), 4, nodes)


def contents(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


async def test_a_repositorys_tests_run_in_a_copy(checker: Checker, tests_in_repository: Repository) -> None:
    root = Path(str(tests_in_repository.folder))
    for name, (program, outcome) in METHODS.items():
        verdict = await checker.check(Program(program), tests_in_repository)
        assert verdict.outcome == outcome, (name, verdict.failure)
    assert contents(root) == FILES


async def test_a_failure_in_a_repository_shows_what_pytest_said(
    checker: Checker, tests_in_repository: Repository
) -> None:
    failure = (await checker.check(Program(METHODS["wrong"][0], TOTAL), tests_in_repository)).failure
    assert failure is not None
    assert "AssertionError: 4 != 6" in str(failure.exception)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"folder": None}, "dataset.repos"),
        ({"folder": "/nowhere"}, "no repository"),
        ({"file": "words/none.py"}, "cannot read"),
        ({"lines": (5, 60)}, "no lines 5 to 60"),
        ({"nodes": ("tests/test_count.py::CountTest::test_none",)}, "has no test tests/test_count.py"),
    ],
)
async def test_a_repository_that_is_not_as_the_task_says_is_the_users_to_mend(
    checker: Checker, tests_in_repository: Repository, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        await checker.check(Program(METHODS["wrong"][0]), replace(tests_in_repository, **change))
