"""Calls in other languages: values go in and come out as they are, and only a right program passes."""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES, Sandbox
from codechat.sandbox.suites.calls import Calls, Driven
from support.machine import needs_java, needs_node
from support.mistakes import mistake

LIMITS = {"min_cpu_s": 0.3, "idle_s": 2.0, "total_cpu_s": 3.0, "load_cpu_s": 1.0}
ECHO = "const same = (...all) => all.length > 1 ? all : all[0]\n"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**31, -(2**31) - 1, 2**53 - 1, -(2**53) + 1, 0.5, -0.0, 1e300, math.inf, -math.inf),
    *("", "a", "é \N{GRINNING FACE}", "\ud800x\udfff", "\ufffd", "nul\0"),
    *([], [1, [2.5, "x"]], (1, (2.0,)), {"a": 1, "b": [None]}, {1: 2.0, 2: 3.5}, {1, 2, 3}, {"x", "y"}, {(1, 2): 3}),
    {"__proto__": 1},
)


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[asyncio.Runner, Sandbox]]:
    with asyncio.Runner() as runner:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto", **LIMITS}), workers=1)
        yield runner, sandbox
        runner.run(sandbox.aclose())


def check(world: tuple[asyncio.Runner, Sandbox], suite: Driven, source: str) -> Verdict:
    runner, sandbox = world
    return runner.run(suite.check(Program(source, Target(suite.language, suite.entry_point)), sandbox))


def driven(*values: Any, entry: str = "same", reference: str = ECHO) -> Driven:
    calls = Calls(entry, reference, tuple((value,) for value in values), expected_base=values)
    return Driven.of(calls, "javascript", "")


@needs_node
def test_every_value_comes_back(world: tuple[asyncio.Runner, Sandbox]) -> None:
    verdict = check(world, driven(*VALUES), ECHO)
    assert verdict.passed and verdict.decided == "outside", verdict


@needs_node
@pytest.mark.parametrize(
    ("expected", "returned"),
    [
        (1, "'1'"), ("1", "1"), ([1], "'1'"), ([1, 2], "[1]"), ([1], "[1, 2]"), ({"a": 1}, "{a: 2}"), ({1: 2}, "{1: 3}"),
        ({1: 2}, "{'01': 2}"), ([1, 2], "new Set([1, 2])"), ({1, 2}, "[1, 2]"), (None, "NaN"), (None, "''"), (None, "0"),
        (None, "undefined"), (0, "undefined"),
        (0.5, "0.5001"), (2**53 - 1, "2 ** 53"), ("é", "'e\u0301'"), (1, "Promise.resolve(1)"), (1, "new Number(1)"),
        (1, "() => 1"), ({"a": 1}, "new (class { a = 1 })"), ([0] * 3, "'000'"),
    ],
)  # fmt: skip
def test_another_value_is_wrong(world: tuple[asyncio.Runner, Sandbox], expected: Any, returned: str) -> None:
    verdict = check(world, driven(expected), f"const same = () => ({returned})")
    assert (verdict.outcome, verdict.failure and verdict.failure.reason) == ("fail", "wrong result")


@needs_node
def test_each_form_of_a_module_is_one(world: tuple[asyncio.Runner, Sandbox]) -> None:
    for source in (
        "function same(x) { return x }",
        "module.exports = x => x",
        "exports.same = x => x",
        "export default function same(x) { return x }",
        "import fs from 'fs'\nexport const same = x => x",
        "const { inspect } = require('util'); let same = x => inspect && x // the end",
    ):
        assert check(world, driven(1), source).passed, source


@needs_node
@pytest.mark.parametrize(
    ("source", "outcome", "reason"),
    [
        ("const same = (", "syntax_error", "the program does not parse: line"),
        ("const other = 1", "fail", "the program does not define same"),
        ("const same = 1", "fail", "the program does not define same"),
        ("function same() { null.x }", "fail", "an exception"),
        ("null.x", "fail", "an exception"),
        ("function same() { for (;;); }", "timeout", "the CPU time of this input is used up"),
        ("for (;;);", "timeout", "the CPU time of this input is used up"),
        ("process.exit(0)", "crash", "the process ended with status 0"),
        ("const same = x => { process.abort() }", "crash", "killed by SIG"),
        ("const same = x => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", "timeout", "it sleeps or"),
        ("const same = x => '*'.repeat(3e5)", "fail", "wrong result"),
    ],
)
def test_an_end_has_its_reason(world: tuple[asyncio.Runner, Sandbox], source: str, outcome: str, reason: str) -> None:
    verdict = check(world, driven(1), source)
    assert verdict.outcome == outcome and not verdict.passed_base
    assert verdict.failure is not None and verdict.failure.reason.startswith(reason)


@needs_node
def test_a_failure_names_its_input_and_what_was_printed_before(world: tuple[asyncio.Runner, Sandbox]) -> None:
    calls = Calls("f", "const f = x => x", ((1,), (2,)), ((3,), (4,)))
    source = "console.log('loaded'); const f = x => { console.error(x); return x < 4 ? x : 0 }"
    verdict = check(world, Driven.of(calls, "javascript", ""), source)
    assert verdict.passed_base and verdict.failure is not None
    assert (verdict.failure.suite, verdict.failure.index, verdict.failure.input) == ("plus", 1, "4")
    assert verdict.failure.stdout == "loaded\n1\n2\n3\n4\n"


@needs_node
def test_a_model_in_python_gives_the_results_and_the_own_reference_where_it_counts(
    world: tuple[asyncio.Runner, Sandbox],
) -> None:
    model = Calls("half", "def half(x): return x // 2", ((4,), (-3,)))
    own = "const half = x => Math.trunc(x / 2)"
    suite = replace(Driven.of(replace(model, reference=own), "javascript", ""), model=model)
    assert check(world, suite, "const half = x => Math.floor(x / 2)").passed
    assert not check(world, suite, own).passed
    as_own = replace(suite, own=frozenset({1}))
    assert check(world, as_own, own).passed and as_own.key != suite.key
    assert not check(world, as_own, "const half = x => Math.floor(x / 2)").passed


@needs_node
def test_what_is_undefined_is_right_where_the_reference_gives_it(world: tuple[asyncio.Runner, Sandbox]) -> None:
    """A model's None stands for either then; a test of HumanEval/12 wants null, and no mutant that gives nothing."""
    model = Calls("longest", "def longest(a): return max(a, key=len, default=None)", (([],), (["a", "bb"],)))
    found = "const longest = a => a.length ? a.reduce((x, y) => y.length > x.length ? y : x) : "

    def passes(reference: str, source: str) -> bool:
        suite = replace(Driven.of(replace(model, reference=found + reference), "javascript", ""), model=model)
        alone = check(world, replace(suite, model=None), found + source)
        verdict = check(world, suite, found + source)
        assert verdict.passed == alone.passed
        assert verdict.passed or (verdict.failure and verdict.failure.actual == source)
        return verdict.passed

    assert passes("null", "null") and passes("undefined", "undefined") and passes("undefined", "null")
    assert not passes("null", "undefined") and not passes("undefined", "0")
    within = driven([None, 1], {"a": None})
    assert check(world, within, "const same = x => Array.isArray(x) ? [undefined, 1] : { a: undefined }").passed


def test_what_a_language_cannot_express_is_said() -> None:
    assert driven(2**53, 10**400, b"x", 1j, [1, {"a": 2**60}], 1).inexpressible().keys() == {0, 1, 2, 3, 4}


def test_language_and_signature_are_in_the_key() -> None:
    one = driven(1)
    keys = {each.key for each in (one, replace(one, language="java"), replace(one, signature="x"))}
    assert len(keys) == 3 and replace(one).key == one.key


JAVA = "import java.util.*;\nclass Solution {{ {} }}"
SCALED = "public List<Double> scaled(List<Integer> all, double by, Optional<Long> more)"
RIGHT_IN_JAVA = (
    SCALED
    + """ {
    System.out.println("called");
    List<Double> made = new ArrayList<>();
    for (int each : all) made.add(each * by + more.orElse(0L));
    return made;
}"""
)


@needs_java
def test_java_takes_and_gives_the_types_of_the_signature(world: tuple[asyncio.Runner, Sandbox]) -> None:
    calls = Calls("scaled", JAVA.format(RIGHT_IN_JAVA), (([1, 2], 0.5, None), ([], 2, 2**40)), (([-(2**31)], 1.5, 3),))
    suite = Driven.of(calls, "java", SCALED)
    assert not suite.inexpressible()
    right = check(world, suite, JAVA.format(RIGHT_IN_JAVA))
    assert right.passed and right.decided == "outside"
    wrong = check(world, suite, JAVA.format(RIGHT_IN_JAVA.replace("each * by", "each / by")))
    assert wrong.failure is not None and (wrong.failure.actual, wrong.failure.stdout) == ("[2.0, 4.0]", "called\n")
    other = check(world, suite, JAVA.format(RIGHT_IN_JAVA.replace("List<Integer> all", "List<Object> all")))
    assert other.outcome in ("fail", "syntax_error") and not other.passed_base
    assert check(world, suite, RIGHT_IN_JAVA).outcome == "syntax_error"


@needs_java
def test_every_value_comes_back_from_java(world: tuple[asyncio.Runner, Sandbox]) -> None:
    values = (
        *(None, True, 0, -1, 2**31, -(2**63), 0.5, -0.0, math.inf, "", "é \N{GRINNING FACE}", "\ud800x"),
        *([], [1, [2.5, "x"]], (1, (2.0,)), {"a": 1, "b": [None]}, {1: 2.0}, {1, 2}),
    )
    reference = JAVA.format("Object same(Object x) { return x; }")
    suite = Driven.of(
        Calls("same", reference, tuple((each,) for each in values), expected_base=values),
        "java",
        "Object same(Object x)",
    )
    verdict = check(world, suite, reference)
    assert verdict.passed, verdict


@pytest.mark.parametrize(
    ("signature", "able", "unable"),
    [
        ("int f(int x)", [0, 2**31 - 1], [2**31, 1.0, True, None, "1"]),
        ("int f(long x)", [-(2**63)], [2**63, 0.5]),
        ("int f(double x)", [1, 0.5, 2**53], [2**53 + 1, None]),
        ("int f(Double x)", [None, 1.5], ["x"]),
        ("static int f(final List<List<Integer>> x)", [[[1], []], ((1,),)], [[1], [[2**31]], "ab"]),
        ("int f(int[][] x)", [[[1]]], [[1], [None]]),
        ("int f(Map<String, List<Integer>> x)", [{"a": [1]}], [{1: [1]}, [1]]),
        ("int f(java.util.Set<Character> x)", [{"a"}], [{"ab"}, ["a"]]),
        ("int f(Object x)", [[1, "a", {"b": 0.5}]], [2**63, b"x"]),
        ("int f(Optional<Integer> x)", [None, 1], ["x"]),
    ],
)
def test_java_says_what_a_type_cannot_hold(signature: str, able: list[Any], unable: list[Any]) -> None:
    calls = Calls("f", "", tuple((each,) for each in (*able, *unable)))
    assert Driven.of(calls, "java", signature).inexpressible().keys() == set(range(len(able), len(able) + len(unable)))


@pytest.mark.parametrize("signature", ["", "f", "int f", "int f(", "int f(int)", "f(int x)"])
def test_a_head_that_is_none_is_said(signature: str) -> None:
    with pytest.raises(ValueError, match="no head"):
        Driven.of(Calls("f", "", ((1,),)), "java", signature).inexpressible()


async def test_a_language_without_a_driver_is_refused() -> None:
    with mistake("cobol", "base_input"):
        await replace(driven(1), language="cobol").tools(SANDBOXES.validate({"kind": "process"}))  # type: ignore[arg-type]


async def test_a_missing_tool_is_named() -> None:
    config = SANDBOXES.validate({"kind": "process", "node": "/nowhere/node"})
    with pytest.raises(UserError, match=r"sandbox\.node"):
        await driven(1).tools(config)  # type: ignore[arg-type]
