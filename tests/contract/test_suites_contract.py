"""What every kind of suite owes its users. A new kind adds its example."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from codechat.base.config import is_identity
from codechat.base.domain import OUTCOMES, Program, Target, Verdict
from codechat.base.errors import InfrastructureError, UserError
from codechat.sandbox import SANDBOXES, SandboxConfig
from codechat.sandbox.suites import SUITES, HasCost, Suite
from codechat.sandbox.suites.checker import Checker, NoSandbox
from codechat.studies.sreval import suite_maven as maven
from support import repositories
from support.machine import needs_java

TARGET = Target(entry_point="double")
RIGHT = "def double(x):\n    return 2 * x\n"
HANGS = "import time\ntime.sleep(60)\n"
SPINS = "while True: pass\n"
REPOSITORY = {
    "shop/twice.py": "def double(x):\n    return x + x\n",
    "tests/test_twice.py": "from shop.twice import double\n\ndef test_double():\n    assert double(4) == 8\n",
}
JUNIT = """
import org.junit.jupiter.api.*;
class MathsTest { @Test void doubles() { Assertions.assertEquals(4, Maths.twice(2)); } }
"""
LIMITS = {"idle_s": 1.5, "load_cpu_s": 0.5, "min_cpu_s": 0.3, "total_cpu_s": 2.0, "memory_mb": 2048, "processes": 16}


@dataclass(frozen=True)
class Example:
    """A row of a kind, programs that pass, fail and are hostile, and changes of the row that each change the tests."""

    row: dict[str, Any]
    changes: dict[str, Any]
    right: str = RIGHT
    wrong: str = "def double(x):\n    return x\n"
    hostile: tuple[str, ...] = (HANGS, SPINS, "import os\nos._exit(0)\n", "x = [0] * 10**10\n", "(", "")
    outside: frozenset[str] = field(default_factory=frozenset)


EXAMPLES: dict[str, Example] = {
    "calls": Example(
        {"entry_point": "double", "reference": RIGHT, "base_input": [[1], [2]], "plus_input": [[0.5]]},
        {
            "entry_point": "twice",
            "reference": "def double(x):\n    return x + x\n",
            "base_input": [[1], [3]],
            "plus_input": [[1.5]],
            "atol": 0.5,
            "oracle": "set_equal",
            "base_output": [2, 4],
            "plus_output": [1.0],
            "language": "javascript",
        },
    ),
    "assertions": Example(
        {"tests": ["assert double(2) == 4"]},
        {
            "tests": ["assert double(2) == 4", "assert double(1) == 2"],
            "needs": ["threads"],
            "cpu_s": 99.0,
            "one_file": True,
        },
    ),
    "repository": Example(
        {
            "project": "own/shop",
            "file": "shop/twice.py",
            "lines": [1, 2],
            "nodes": ["tests/test_twice.py::test_double"],
        },
        {
            "project": "own/mart",
            "file": "shop/thrice.py",
            "lines": [1, 1],
            "indent": 4,
            "nodes": ["tests/test_twice.py"],
        },
        hostile=("import os\nos._exit(0)\n", "(", ""),
        outside=frozenset({"own/shop"}),
    ),
    "inserted": Example(
        {
            "project": "own/shop",
            "file": "shop/twice.py",
            "function": "double",
            "lines": [1, 2],
            "beside": "tests/test_twice.py::test_double",
            "tests": "def test_more():\n    assert double(5) == 10\n",
        },
        {
            "project": "own/mart",
            "file": "shop/thrice.py",
            "function": "twice",
            "lines": [1, 1],
            "beside": "tests/test_twice.py::Twice::test_double",
            "tests": "def test_more():\n    assert double(5) == 11\n",
        },
        hostile=(
            "import os\nos._exit(0)\n",
            "def double(x):\n    import pytest\n    pytest.skip()\n",
            "def double(x):\n    import time\n    time.sleep(60)\n",
            "def double(x):\n    while True: pass\n",
            "(",
            "",
        ),
        outside=frozenset({"own/shop"}),
    ),
    "maven": Example(
        {
            "project": "own/shop",
            "file": "src/main/java/shop/Twice.java",
            "lines": [4, 6],
            "code": repositories.METHOD,
            "test_file": "src/test/java/shop/TwiceTest.java",
            "test_lines": [7, 10],
            "test_code": repositories.TEST,
            "tests": "@Test void more() {}",
            "words": ["test"],
        },
        {
            "project": "own/mart",
            "file": "pom.xml",
            "lines": [4, 5],
            "test_file": "pom.xml",
            "test_lines": [7, 9],
            "tests": "@Test void other() {}",
            "words": ["verify"],
        },
        right="public static int twice(int x) { return 2 * x; }",
        wrong="public static int twice(int x) { return x; }",
        hostile=("public static int twice(int x) { System.exit(0); }", "(", ""),
        outside=frozenset({"own/shop"}),
    ),
    "exit_status": Example(
        {"tests": ["assert double(2) == 4"], "wall_s": 2.0},
        {"tests": ["assert double(2) == 5"], "wall_s": 3.0},
        hostile=(HANGS, SPINS, "x = [0] * 10**10\n", "("),
    ),
    "junit": Example(
        {"tests": JUNIT},
        {"tests": JUNIT.replace("4", "8"), "declares": ["List"]},
        right="class Maths { static int twice(int x) { return 2 * x; } }",
        wrong="class Maths { static int twice(int x) { return x; } }",
        hostile=("class Maths { static { System.exit(0); } static int twice(int x) { return x; } }", "(", ""),
    ),
    "tool": Example(
        {"argv": ["perl", "-c", "{program}"], "file": "a.pl", "wall_s": 2.0},
        {
            "argv": ["perl", "-wc", "{program}"],
            "file": "b.pl",
            "files": {"notes": "x"},
            "environment": {"PERL5LIB": "."},
            "passes": 255,
            "wall_s": 3.0,
        },
        right="print 6 * 7;\n",
        wrong="print 6 * ;\n",
        hostile=("BEGIN { sleep 60 }", "BEGIN { 1 while 1 }", "BEGIN { print 'a' while 1 }", "BEGIN { kill 9, $$ } ("),
    ),
}


KINDS = [component.name for component in SUITES]


@pytest.fixture(params=[pytest.param(name, marks=needs_java) if name == "junit" else name for name in KINDS])
def kind(request: pytest.FixtureRequest) -> str:
    assert request.param in EXAMPLES, "give the new kind an example above"
    return str(request.param)


@pytest.fixture
def example(kind: str) -> Example:
    return EXAMPLES[kind]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Any]:
    config = SANDBOXES.validate({"kind": "auto", "maven_repository": "/usr/share", **LIMITS})
    room = SANDBOXES.build(config, workers=1)
    yield room
    asyncio.run(room.aclose())


@pytest.fixture
def make(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a suite of the kind from its example's row with changes; a stand-in runs tests of Java repositories."""
    monkeypatch.setattr(maven, "toolchain", lambda jdk: repositories.STAND_IN)
    monkeypatch.setattr(maven, "LEAST", {})

    def made(folder: str = "own", /, **changes: Any) -> Suite:
        row = {"kind": kind, **EXAMPLES[kind].row, **changes}
        if kind in ("repository", "inserted"):
            row["folder"] = str(repository(tmp_path / folder, REPOSITORY))
        if kind == "maven":
            row["folder"] = str(repository(tmp_path / folder, repositories.JAVA_FILES))
        config = SUITES.validate(row)
        return SUITES.build(config)

    return made


def repository(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_kind_describes_itself(kind: str) -> None:
    component = SUITES[kind]
    assert component.summary
    for name, option in component.config.model_fields.items():
        assert option.description, name
        is_identity(option)


def test_a_suite_has_the_members_of_one(kind: str, make: Any, example: Example) -> None:
    suite = make()
    assert suite.kind == kind
    assert set(suite.outside) == example.outside and all(len(digest) == 64 for digest in suite.outside.values())
    hash(suite.key)


def test_the_key_is_equal_for_equal_tests_and_for_no_others(make: Any, example: Example) -> None:
    keys = [make().key, *(make(**{name: value}).key for name, value in example.changes.items())]
    assert len(set(keys)) == len(keys), "a change that decides verdicts leaves the key"
    assert make().key == make("elsewhere").key == keys[0]


def test_every_option_that_decides_is_in_the_key(kind: str, example: Example) -> None:
    """`executes` says only how far a verdict can be trusted, `tools` what is visible beside: they decide nothing.

    Nor does a `signature` for programs in Python.
    """
    options = {name for name, option in SUITES[kind].config.model_fields.items() if is_identity(option)}
    assert options - {"kind", "executes", "tools", "signature"} == set(example.changes) - {"kind"}


async def test_a_right_program_passes_and_a_wrong_one_fails(make: Any, sandbox: Any, example: Example) -> None:
    suite = make()
    right = await suite.check(Program(example.right, TARGET), sandbox)
    assert (right.outcome, right.passed_base, right.failure) == ("pass", True, None)
    wrong = await suite.check(Program(example.wrong, TARGET), sandbox)
    assert (wrong.outcome, wrong.passed) == ("fail", False)
    assert wrong.failure is not None and wrong.failure.reason
    assert wrong.cpu_s >= 0 and right.cpu_s >= 0


@pytest.mark.long
async def test_a_hostile_program_is_bounded_and_raises_nothing(make: Any, sandbox: Any, example: Example) -> None:
    suite = make()
    for source in example.hostile:
        verdict = await asyncio.wait_for(suite.check(Program(source, TARGET), sandbox), 15)
        assert not verdict.passed, source
        assert verdict.failure is not None and verdict.failure.reason
    assert (await suite.check(Program(example.right, TARGET), sandbox)).passed


async def test_lone_surrogates_and_other_odd_text_raise_nothing(make: Any, sandbox: Any) -> None:
    for source in ("\ud800", "\0", "x = '\udfff'\n", "\ufeff", "é" * 10_000):
        assert (await make().check(Program(source, TARGET), sandbox)).outcome in OUTCOMES


async def test_a_checker_runs_each_pair_once(make: Any, sandbox: Any, example: Example) -> None:
    checker, program = Checker(sandbox), Program(example.right, TARGET)
    first, second = await asyncio.gather(checker.check(program, make()), checker.check(program, make()))
    assert first is second is await checker.check(program, make())
    assert await checker.check(Program(example.wrong, TARGET), make()) is not first


async def test_what_it_costs_is_in_seconds(make: Any, sandbox: Any) -> None:
    suite = make()
    if isinstance(suite, HasCost):
        assert 0 <= await suite.cost_s(sandbox) < 10


async def test_a_repositorys_key_follows_its_content(tmp_path: Path) -> None:
    def suite(folder: str, text: str) -> Suite:
        root = repository(tmp_path / folder, {**REPOSITORY, "notes.txt": text})
        config = SUITES.validate({"kind": "repository", "folder": str(root), **EXAMPLES["repository"].row})
        return SUITES.build(config)

    one, same, other = suite("one", "a"), suite("same", "a"), suite("other", "b")
    assert (one.key, one.outside) == (same.key, same.outside)
    assert one.key != other.key and one.outside != other.outside


async def test_a_tool_that_is_not_installed_is_the_users_to_mend(sandbox: Any) -> None:
    config = SUITES.validate({"kind": "tool", "argv": ["no-such-tool-at-all"]})
    with pytest.raises(UserError, match="not installed"):
        await SUITES.build(config).check(Program("x"), sandbox)


async def test_a_tool_that_runs_programs_can_be_fooled_and_says_so(sandbox: Any) -> None:
    def suite(**options: Any) -> Suite:
        config = SUITES.validate({"kind": "tool", "argv": ["perl", "{program}"], **options})
        return SUITES.build(config)

    failed = await suite(executes=True).check(Program("print qq(6 * 7\\n); warn 'odd'; exit 3"), sandbox)
    assert failed.failure is not None and failed.decided == "inside"
    assert (failed.failure.reason, failed.failure.stdout) == ("it ends with status 3", "6 * 7")
    assert "odd" in str(failed.failure.exception)
    passed = await suite(passes=3).check(Program("exit 3"), sandbox)
    assert passed.passed and passed.decided == "outside"


async def test_the_program_may_be_given_to_a_tool_that_lies_beside_it(sandbox: Any) -> None:
    script = "#!/usr/bin/perl\nopen(F, '<', shift); exit(<F> =~ /^ok/ ? 0 : 1)\n"
    row = {"kind": "tool", "argv": ["./check", "{program}"], "files": {"check": script}, "tools": ["/usr/bin/perl"]}
    config = SUITES.validate(row)
    suite = SUITES.build(config)
    assert (await suite.check(Program("ok"), sandbox)).passed
    assert (await suite.check(Program("no"), sandbox)).outcome == "fail"


async def test_a_suite_may_need_no_sandbox() -> None:
    @dataclass(frozen=True)
    class Short:
        kind = "short"
        key = "short"
        outside: Any = field(default_factory=dict)

        async def check(self, program: Program, sandbox: Any) -> Any:
            return Verdict("pass" if len(program.source) < 5 else "fail", True)

    nothing: Any = None
    assert (await Checker(nothing).check(Program("x"), Short())).passed


class Stumbling:
    """Fails as infrastructure does, once."""

    kind, key = "stumbling", "stumbling"

    def __init__(self) -> None:
        self.outside: dict[str, str] = {}
        self.checks = 0

    async def check(self, program: Program, sandbox: Any) -> Any:
        self.checks += 1
        await asyncio.sleep(0.01)
        if self.checks == 1:
            raise InfrastructureError("no box to be had")
        return Verdict("pass", True)


async def test_a_checker_remembers_no_failure_of_the_infrastructure() -> None:
    nothing: Any = None
    checker, suite = Checker(nothing), Stumbling()
    results = await asyncio.gather(*(checker.check(Program("x"), suite) for _ in range(3)), return_exceptions=True)
    assert all("no box" in str(result) for result in results) and suite.checks == 1
    assert (await checker.check(Program("x"), suite)).passed
    cancelled = asyncio.create_task(checker.check(Program("y"), suite))
    await asyncio.sleep(0)
    cancelled.cancel()
    assert (await checker.check(Program("y"), suite)).passed and suite.checks == 3


async def test_a_reference_is_run_once_for_all_cells_of_a_process_whose_sandboxes_are_alike() -> None:
    def checker(**options: Any) -> Checker:
        sandbox: Any = NoSandbox(SandboxConfig(kind="none", **options))
        return Checker(sandbox)

    suite, program = Stumbling(), Program("x = 'the reference of this test'")
    with pytest.raises(InfrastructureError):
        await checker().check_reference(program, suite)
    found = await asyncio.gather(*(checker().check_reference(program, suite) for _ in range(2)))
    assert suite.checks == 3, "two cells at once have no verdict yet"
    assert (await checker().check_reference(program, suite)) in found and suite.checks == 3
    await checker(idle_s=1).check_reference(program, suite)
    assert suite.checks == 4, "other limits may give another verdict"
    await checker().check(program, suite)
    assert suite.checks == 5, "a model's program is run in every cell"
