"""Algorithm 2: programs against tests, in the sandbox, and what the verdict means for the making of a task."""

import ast
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import BrokenTask, UserError
from codechat.datasets.reading.rows import make_suite
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.python.syntax import parse
from codechat.sandbox.suites import SUITES, Suite
from codechat.studies.sreval.dataset import CPU_S, needs_of
from codechat.studies.sreval.placing import names_of_tests

Found = Literal["passes", "fails", "unfit", "not_run", "timeout", "crash", "broken"]
_JAVA_TEST = re.compile(r"@(?:org\.junit\.jupiter\.api\.)?Test\b(?!\s*\()")
_IN_JAVA = re.compile(r'"""(?:\\.|.)*?"""|"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
Check = Callable[[Program, Suite], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Draft:
    """A program and its tests, as the coder wrote them."""

    code: str
    test: str


@dataclass(frozen=True, slots=True)
class Place:
    """What a program stands in for: its language, the name it must define (empty if none), and where it stands.

    `suite` has the fields of a repository's kind of tests (`inserted` or `maven`) but for `tests`; None for a program
    that stands alone.
    """

    language: str
    entry_point: str = ""
    suite: Mapping[str, Any] | None = None

    @property
    def target(self) -> Target:
        """The demands on a program."""
        return Target(self.language, self.entry_point)

    @property
    def stub(self) -> str:
        """A program that has nothing yet: tests that pass with it check nothing."""
        if self.language == "python":
            head = f"def {self.entry_point}(*args, **kwargs):" if self.entry_point else "def nothing_yet():"
            return f"{head}\n    raise NotImplementedError\n"
        return "final class NothingYet { }\n" if self.suite is None else ""

    def suite_fields(self, tests: str, solution: str) -> dict[str, Any]:
        """The fields of the suite of some tests, as a row of `dataset=jsonl` has them."""
        if self.suite is not None:
            return {**self.suite, "tests": tests}
        if self.language == "java":
            return {"kind": "junit", "tests": tests, "declares": sorted(language_of("java").defines(solution) or ())}
        if self.language == "python":
            needs = sorted(needs_of(tests, solution))
            asked = {"needs": needs, "cpu_s": CPU_S} if needs else {}
            return {"kind": "assertions", "tests": [tests], "one_file": True, **asked}
        raise UserError(f"steps are made for Python and Java, not {self.language}", "leave these seeds out")

    def suite_of(self, tests: str, solution: str) -> Suite:
        """The suite of some tests. Raises `ValueError` or `UserError` if they are none."""
        return make_suite(SUITES.validate(self.suite_fields(tests, solution), "suite"), "a step")


@dataclass(frozen=True, slots=True)
class Checked:
    """The end of a run of tests on a program, and feedback on it in words.

    `unfit`: the tests do not compile with the program, which compiles by itself. `not_run`: there is no test, or not
    every one ran. `broken`: the program does not compile or parse. What is none of `passes`, `fails` and `unfit` says
    nothing of the tests' power to discriminate.
    """

    found: Found
    feedback: str = ""

    @property
    def correct(self) -> bool:
        """The check `correctness`: all tests pass."""
        return self.found == "passes"

    @property
    def discriminating(self) -> bool:
        """The check `distinctiveness` of a previous program: the tests fail it, or ask for what it does not declare."""
        return self.found in ("fails", "unfit")


async def unified_check(check: Check, place: Place, program: str, draft: Draft, order: int = 0) -> Checked:
    """The end of a draft's tests, in one of their orders, on a program.

    Raises `InfrastructureError` if the sandbox fails: that is no finding.
    """
    if place.language == "python" and parse(program) is None:
        return Checked("broken", "The program is not valid Python.")
    if place.language == "python" and (why := unusable(draft.test, place)):
        return Checked("not_run", why)
    try:
        suite = place.suite_of(shuffled(draft.test, place, order), draft.code)
    except (UserError, ValueError) as error:  # of the tests: they come from a model
        return Checked("not_run", str(error).splitlines()[0])
    try:
        verdict = await check(Program(program, place.target), suite)
    except BrokenTask as error:
        return Checked("not_run", str(error).splitlines()[0])
    return read_verdict(verdict)


def unusable(tests: str, place: Place) -> str:
    """The reason why tests in Python cannot be run as they are; empty if they can."""
    tree = parse(tests)
    if tree is None:
        return "The tests are not valid Python."
    names = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if place.suite is None and not any(name.startswith("test") for name in names):
        return "The tests define no method whose name begins with test."
    return ""


def read_verdict(verdict: Verdict) -> Checked:
    """What a verdict says, with what failed in words."""
    failure = verdict.failure
    parts = [] if failure is None else [failure.reason, failure.exception, failure.stdout]
    feedback = "\n".join(part for part in parts if part)
    if verdict.passed:
        return Checked("passes")
    if verdict.unrun == "unfit":
        return Checked("unfit", feedback)
    if verdict.unrun is not None:
        return Checked("not_run", feedback)
    found: Mapping[str, Found] = {"fail": "fails", "timeout": "timeout", "crash": "crash"}
    return Checked(found.get(verdict.outcome, "broken"), feedback)


def shuffled(tests: str, place: Place, order: int) -> str:
    """The tests in another order, another one for every `order`.

    Tests are renamed in Python, since unittest runs them by name, and numbered by `@Order` in Java. Those of a Python
    repository are moved, since pytest runs them as they stand; in a Java repository they stay. Order 0 is their own.
    """
    if not order:
        return tests
    dice = random.Random(order)
    if place.language == "java":
        return tests if place.suite is not None else _ordered_java(tests, dice)
    return _renamed(tests, dice) if place.suite is None else _moved(tests, dice)


def _renamed(tests: str, dice: random.Random) -> str:
    """Test methods with a number before the rest of their names; calls by name in the text are renamed with them."""
    tree = ast.parse(tests)
    methods = [
        one.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for one in node.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test")
    ]
    names = sorted(set(methods))
    dice.shuffle(names)
    new = {name: f"test_{place:03}_{name}" for place, name in enumerate(names)}
    if not new:
        return tests
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, new))})\b", lambda found: new[found[0]], tests)


def _moved(tests: str, dice: random.Random) -> str:
    """Test functions in another order, each with its decorators and the comments above it."""
    tree, names = ast.parse(tests), names_of_tests(tests)
    lines = tests.splitlines(keepends=True)
    ends = [node.end_lineno or node.lineno for node in tree.body[:-1]]
    starts, ends = [0, *ends], [*ends, len(lines)]
    parts = ["".join(lines[start:end]).rstrip("\n") + "\n" for start, end in zip(starts, ends, strict=True)]
    are_tests = [index for index, node in enumerate(tree.body) if getattr(node, "name", "") in names]
    places = are_tests.copy()
    dice.shuffle(places)
    moved = dict(zip(are_tests, (parts[index] for index in places), strict=True))
    return "".join(moved.get(index, part) for index, part in enumerate(parts))


def _ordered_java(tests: str, dice: random.Random) -> str:
    """Every `@Test` with a number, and every class at top level told to go by them."""
    api = "org.junit.jupiter.api"
    code = _IN_JAVA.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), tests)  # without texts and comments
    if "@TestMethodOrder" in code:
        return tests
    marks = [found.start() for found in _JAVA_TEST.finditer(code)]
    numbers = list(range(len(marks)))
    dice.shuffle(numbers)
    inserts = {at: f"@{api}.Order({number}) " for at, number in zip(marks, numbers, strict=True)}
    inserts |= dict.fromkeys(_classes(code), f"@{api}.TestMethodOrder({api}.MethodOrderer.OrderAnnotation.class) ")
    for at in sorted(inserts, reverse=True):
        tests = tests[:at] + inserts[at] + tests[at:]
    return tests


def _classes(code: str) -> list[int]:
    """Where the words before the name of each class begin, of a Java code without texts and comments."""
    found = re.finditer(r"(?m)(?<![\w.@])(?:(?:public|final|abstract|static|private|protected)\s+)*class\s+\w+", code)
    return [each.start() for each in found]
