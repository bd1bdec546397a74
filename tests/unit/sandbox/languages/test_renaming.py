"""Renaming on the syntax tree: scopes are followed, behaviour stays, and an unclear name is left alone."""

import ast
import builtins

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.sandbox.languages.python.renaming import renamed

EVERYWHERE = '''\
def deco(g):
    return g

@deco
def f(x: int = 1, *rest: int, k=lambda x: x, **more) -> int:
    """x f"""
    def own(x): return x
    def outer(y):
        nonlocal x
        x += y
        return [x for x in range(x)] + [x for q in [x]]
    print(f"{x} {x!r:>{x}} x {{x}}", "x", x.real, own(x=x), f(x=x, **{"x": 1}))
    return f(x - 1)

def other():
    f = 1
    return f, {f: f"f {f}"}

def of_module():
    global f
    return f(x=2)
'''


def test_a_parameter_is_followed_through_scopes_and_formatted_texts() -> None:
    found = renamed(EVERYWHERE, "x", "thing", ["f"])
    assert found is not None
    for line in (
        "def f(thing: int = 1, *rest: int, k=lambda x: x, **more) -> int:",
        "    def own(x): return x",
        "        nonlocal thing",
        "        thing += y",
        "        return [x for x in range(thing)] + [thing for q in [thing]]",
        '    print(f"{thing} {thing!r:>{thing}} x {{x}}", "x", thing.real, own(x=thing), f(thing=thing, **{"x": 1}))',
        "    return f(thing=2)",
        '    """x f"""',
    ):
        assert line in found.split("\n")


def test_a_function_is_followed_but_not_a_variable_of_its_name() -> None:
    found = renamed(EVERYWHERE, "f", "make", ["f"])
    assert found is not None
    assert "def make(x: int" in found and "    return make(x - 1)" in found
    assert '    f = 1\n    return f, {f: f"f {f}"}' in found
    assert "    global make\n    return make(x=2)" in found


def test_what_is_renamed_back_is_the_text_before() -> None:
    for old, functions in (("x", ["f"]), ("f", ["f"])):
        found = renamed(EVERYWHERE, old, "thing", functions)
        back = ["thing"] if old == "f" else functions
        assert found is not None and renamed(found, "thing", old, back) == EVERYWHERE


def test_calls_of_a_function_that_is_defined_elsewhere() -> None:
    assert renamed("assert f(1, x=2) == g(x=3)", "x", "thing", ["f"]) == "assert f(1, thing=2) == g(x=3)"
    assert renamed("assert f(1, x=2) == o.f(3)", "f", "make", ["f"]) == "assert make(1, x=2) == o.f(3)"


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return locals()['x']\n",
        "def f(x):\n    return eval('x')\n",
        "def f(x):\n    class A:\n        x = x\n    return A.x\n",
        "def f(x):\n    import x\n    return x\n",
        "def f(x):\n    try:\n        return x\n    except ValueError as x:\n        return x\n",
        "from functools import partial\ndef f(x):\n    return x\ng = partial(f, x=1)\n",
    ],
)
def test_an_unclear_name_is_left_alone(program: str) -> None:
    assert renamed(program, "x", "thing", ["f"]) is None


def test_a_text_that_is_no_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        renamed("def f(x", "x", "thing", ["f"])


NAMES = ["x", "y", "f", "g"]
EXPRESSION = st.recursive(
    st.sampled_from(["1", "x", "y", "'x'", "'f'", "str(f'x {x} {{x}} {y!r:>{x!r}}')", "f'{[x for y in [x]]} y'"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: f"({two[0]}, {two[1]})"),
        st.tuples(st.sampled_from(NAMES[:2]), inner, inner).map(lambda p: f"[{p[1]} for {p[0]} in ({p[2]}, 2)]"),
        st.tuples(st.sampled_from(NAMES[:2]), inner, inner).map(lambda p: f"(lambda {p[0]}: {p[1]})({p[2]})"),
        inner.map(lambda one: f"g(x={one})"),
        inner.map(lambda one: f"g({one}, y=x)"),
    ),
    max_leaves=6,
)
STATEMENT = st.one_of(
    EXPRESSION.map(lambda one: f"    out.append({one})\n"),
    st.tuples(st.sampled_from(NAMES[:2]), EXPRESSION).map(lambda p: f"    {p[0]} = {p[1]}\n"),
    st.tuples(st.sampled_from(NAMES[:2]), EXPRESSION, EXPRESSION).map(
        lambda p: f"    def h({p[0]}=0):\n        return {p[1]}\n    out.append(h({p[2]}))\n"
    ),
    EXPRESSION.map(lambda one: f"    def h():\n        nonlocal x\n        x = {one}\n    h()\n"),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STATEMENT, min_size=1, max_size=4))
def test_behaviour_stays(statements: list[str]) -> None:
    program = "def g(x, y=3):\n    return [x, y]\n\n\ndef f(x, y):\n    out = []\n" + "".join(statements)
    program += "    return out, x, y\n"
    changed = program
    for old, new in (("x", "thing"), ("y", "stuff"), ("g", "help_out"), ("f", "make")):
        functions = ["f", "help_out" if old == "f" else "g"]
        found = renamed(changed, old, new, functions)
        assert found is not None or old in ("x", "y"), "functions are not shadowed here"
        changed = found or changed
    assert {"f", "g"}.isdisjoint(node.name for node in ast.parse(changed).body if isinstance(node, ast.FunctionDef))
    assert run(changed, "make") == run(program, "f")


def run(program: str, name: str) -> object:
    """What a program of the test's own returns, or the kind of its exception."""
    space: dict[str, object] = {"__builtins__": builtins}
    exec(compile(program, "<test>", "exec"), space)
    function = space[name]
    assert callable(function)
    try:
        return function(5, [6])
    except Exception as error:
        return type(error)
