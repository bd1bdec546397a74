"""What snippets read of a program's function, use and reach, construct by construct."""

import pytest

from codechat.sandbox.suites.assertions.constructs import find_constructs


@pytest.mark.parametrize(
    ("snippet", "reads"),
    [
        ("f(1)", set()), ("f.__name__", {"definition"}), ("f.__qualname__", {"definition"}), ("__name__", set()),
        ("f.__annotations__", {"annotations"}), ("import inspect", {"source"}), ("f.__doc__", {"doc"}),
        ("from inspect import signature\nsignature(f)", {"annotations", "signature", "source"}),
    ],
)  # fmt: skip
def test_what_is_read_of_a_function_is_known(snippet: str, reads: set[str]) -> None:
    assert find_constructs(snippet).reads == reads


@pytest.mark.parametrize(
    ("snippet", "inside"),
    [
        ("a is b", True), ("a is not b", True), ("a is None", False), ("None is a", False), ("a == b", False), ("a is True", False),
        ("type('X', (), {})", True), ("type(a)", False), ("compile('x', '', 'eval')", True), ("a.compile", False),
        ("sys.path", True), ("f(", False), ("t.assertIs(a, b)", True), ("t.assertIs(a, None)", False),
    ],
)  # fmt: skip
def test_what_needs_the_programs_process_is_known(snippet: str, inside: bool) -> None:
    assert bool(find_constructs(snippet).inside) is inside


@pytest.mark.parametrize(
    ("snippet", "world"),
    [
        ("import math", ""), ("import math, os", "os"), ("import nothing_known", "nothing_known"), ("import os as o", "os"),
        ("from math import pi", ""), ("from os import path", "os"), ("from . import x", "a relative import"), ("open('x')", "open"),
    ],
)  # fmt: skip
def test_what_reaches_the_world_is_named(snippet: str, world: str) -> None:
    assert find_constructs(snippet).world == world


@pytest.mark.parametrize(
    ("snippet", "attributes"),
    [
        ("f.cache", {("f", "cache")}), ("f.__name__", set()), ("f().x", set()), ("hasattr(f, 'x')", {("f", "x")}),
        ("getattr(f, 'x', 1)", {("f", "x")}), ("getattr(f, name)", {("f", "name"), }), ("hasattr(f())", set()),
        ("hasattr(f, '__name__')", set()), ("other(f, 'x')", set()),
    ],
)  # fmt: skip
def test_attributes_that_a_stub_lacks_are_known(snippet: str, attributes: set[tuple[str, str]]) -> None:
    assert find_constructs(snippet).attributes == attributes


@pytest.mark.parametrize(
    ("snippet", "arrays"),
    [("f(1)", "none"), ("import numpy", "values"), ("np.array", "values"), ("np.float32(1)", "types")],
)
def test_how_arrays_are_read_is_known(snippet: str, arrays: str) -> None:
    assert find_constructs(snippet).arrays == arrays
