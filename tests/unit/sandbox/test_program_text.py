"""A program's text says what its functions are, as running it would, or says that it cannot be read so."""

import builtins
import inspect
import math
import typing
from typing import Any

import pytest

from codechat.sandbox.inside.text import NotPlain, Text, bound_names, split_lines

IMPORTS = (
    "import math, collections.abc as abc, typing as t\nfrom typing import List, Literal, Optional\nimport numpy as np\n"
)
PLAIN = [
    "def f(): pass",
    "def f(a, b=1, *c, d, e='x', **g): pass",
    "def f(a, /, b: int = -1) -> None: pass",
    "def f(a: int, *b: str, c: list[int] = [1], **d: 'float') -> 'dict[str, int]': pass",
    "def f(a: int | None, b: List[int], c: t.Sequence[Optional[int]]) -> tuple[int, ...]: pass",
    "def f(a: Literal['x', 1], b: abc.Sized, c: np.ndarray, d: None = None): pass",
    "def f(a: Literal['x'] = 'x', b: 'List[int]' = ()) -> 'None': pass",
    "def f(a):\n    '''Adds.\n\n    Much.\n    '''",
    "def f(a):\n    1\n    'no documentation'",
    "def f(a): 'one', 'two'",
    "async def f(a: bytes): return a",
]


@pytest.mark.parametrize("future", [False, True])
@pytest.mark.parametrize("definition", PLAIN)
def test_a_function_is_read_as_it_runs(definition: str, future: bool) -> None:
    source = ("from __future__ import annotations\n" if future else "") + IMPORTS + definition
    space: dict[str, Any] = {}
    exec(compile(source, "<program>", "exec", dont_inherit=True), space)
    text = Text(source)
    node = text.function("f")
    assert text.signature(node) == inspect.signature(space["f"])
    assert text.annotations(node) == space["f"].__annotations__
    assert list(text.annotations(node)) == list(space["f"].__annotations__)
    assert text.annotations(node, strings=True) == typing.get_type_hints(space["f"])
    assert text.documentation(node) == space["f"].__doc__


def test_what_stands_in_strings_is_read_where_nothing_is_evaluated() -> None:
    text = Text("from __future__ import annotations\ndef f(a: 'int' | None): pass")
    assert text.annotations(text.function("f")) == {"a": "'int' | None"}


@pytest.mark.parametrize(
    "note",
    [
        "1 + 2", "f()", "unknown", "len", "math.sin(1)", "'1 +'", "'unknown'", "-1", "list['unknown']", "typing._T", "t._T",
        "t.Annotated[int, 1]", "Literal[len]", "math[0]", "int | 'str'", "t.a.b", "List[1 + 2]", "lambda: 0",
    ],
)  # fmt: skip
def test_an_annotation_that_would_have_to_be_evaluated_is_not_read(note: str) -> None:
    text = Text(IMPORTS + f"def f(a: {note}): pass")
    with pytest.raises(NotPlain):
        text.annotations(text.function("f"))


def test_a_default_that_is_no_literal_is_not_read() -> None:
    text = Text("def f(a=len): pass")
    with pytest.raises(NotPlain, match="the default len"):
        text.signature(text.function("f"))


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("def f(): pass", True), ("def f(): pass\ndef f(): pass", True), ("def f(): pass\nf = 1", False),
        ("f = lambda: 1", False), ("if True:\n    def f(): pass", False), ("def f(): pass\nimport f", False),
        ("def f(): pass\ndef g():\n    global f", False), ("def f(): pass\nfrom math import *", False),
        ("def f(): pass\nfor f in (): pass", False), ("def f(): pass\nclass f: pass", False),
        ("def f(): pass\ntry: pass\nexcept ValueError as f: pass", False), ("def g(f):\n    f = 1\ndef f(): pass", True),
        ("import functools\n@functools.cache\ndef f(): pass", True),
        ("from functools import lru_cache as c\n@c(None)\ndef f(): pass", True),
        ("import functools\n@functools.wraps\ndef f(): pass", False),
        ("import functools\n@functools.cache.a\ndef f(): pass", False),
        ("@cache\ndef f(): pass", False), ("@(lambda g: g)\ndef f(): pass", False),
        ("import functools\nfunctools = 1\n@functools.cache\ndef f(): pass", False),
    ],
)  # fmt: skip
def test_a_name_is_a_function_if_it_is_bound_by_its_definition_alone(source: str, plain: bool) -> None:
    if plain:
        assert Text(source).function("f").name == "f"
        return
    with pytest.raises(NotPlain):
        Text(source).function("f")


@pytest.mark.parametrize(
    "source",
    [
        "import functools\n@functools.cache\ndef f(): pass", "async def f(): pass", "def f(): yield", "def f(): yield from ()",
    ],
)  # fmt: skip
def test_a_plain_function_has_no_decorator_and_returns_at_once(source: str) -> None:
    assert Text("def f(): return 1").plain_function("f").name == "f"
    assert Text(source).function("f").name == "f"
    with pytest.raises(NotPlain):
        Text(source).plain_function("f")


@pytest.mark.parametrize(
    ("source", "found", "meant"),
    [
        ("import math", math, True), ("import math as m", math, False), ("from math import pi", math.pi, False),
        ("from typing import Optional", typing.Optional, True), ("from typing import Optional as O", typing.Optional, False),
        ("import numpy as np", __import__("numpy"), True), ("import collections.abc", __import__("collections"), True),
        ("from collections import Counter", __import__("collections").Counter, True),
        ("from functools import reduce", __import__("functools").reduce, False),
    ],
)  # fmt: skip
def test_an_import_is_what_it_says_and_means_the_same_in_every_program_or_not(
    source: str, found: Any, meant: bool
) -> None:
    text = Text(source)
    name = source.rpartition(" ")[2].partition(".")[0]
    assert text.imported(name) is found
    if meant:
        assert text.meant(name) is found
    else:
        with pytest.raises(NotPlain):
            text.meant(name)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import os", "os"), ("from math import __doc__", "__doc__"), ("from math import nothing", "nothing"),
        ("import math\nmath = 1", "math"), ("x = 1", "x"), ("from . import math", "math"), ("from .math import pi", "pi"),
        ("if True:\n    import math", "math"), ("from os import path", "path"),
    ],
)  # fmt: skip
def test_other_imports_are_not_read(source: str, name: str) -> None:
    with pytest.raises(NotPlain):
        Text(source).imported(name)


def test_the_names_that_a_program_binds() -> None:
    source = (
        "import a.b, c as d\nfrom e import f\nx, (y, *z) = 1, (2,)\nfor i in (): pass\nwith open(n) as w: pass\n"
        "def g(p): q = 1; global h\nclass K: k = 1\nv: int = 1\nif (u := 1): pass\n"
        "match x:\n    case [m, *r]: pass\n    case int() as o: pass\n"
    )
    assert bound_names(source) == set("adfxyziwghKvumro")
    assert bound_names("from math import *\na = 1") == {"*", "a", *vars(builtins)}
    assert bound_names("a = (") == set()


def test_lines_end_where_python_ends_them() -> None:
    assert split_lines("a\x0cb\nc\r\nd\re") == ["a\x0cb\n", "c\r\n", "d\r", "e"]
