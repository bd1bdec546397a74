"""What the grammar lets through and the compiler does not is no code, though nothing is compiled."""

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract
from codechat.sandbox.languages.python.syntax import tree_of

SCOPING = [
    "def f(x):\n    global x\n    return x",
    "def f(x):\n    y = 1\n    global y\n    return y",
    "def f(x):\n    print(y)\n    global y",
    "nonlocal y\ndef f(x):\n    return x",
    "def f(x):\n    nonlocal y\n    return y",
    "def f(x):\n    y: int\n    global y",
    "def f(x):\n    from math import *\n    return pi",
    "def f(x):\n    from math import \\\n        *\n    return pi",
    "def f(x, x):\n    return x",
    "def f(x, *x):\n    return x",
    "def f(x, /, *, x=1):\n    return x",
    "class A:\n    def g(self, **self): ...\ndef f(x):\n    return x",
    "def f(x):\n    if x:\n        def g(a, a): ...\n    return x",
    "f = lambda x, x: x",
    "def f(x):\n    return [x := 0 for x in x]",
    "def f(x):\n    return [y for y in (y := x)]",
    "class A:\n    b = [c := d for d in ()]\ndef f(x):\n    return x",
    "def f(x):\n    return [(yield y) for y in x]",
    "from __future__ import annotations\ndef f(x):\n    y: (yield) = x",
    "from __future__ import wings\ndef f(x):\n    return x",
    "import math\nfrom __future__ import annotations\ndef f(x):\n    return x",
    "def f(x):\n    return x\nreturn 1",
    "def f(x):\n    break",
    "def f(x):\n    for y in x:\n        def g():\n            continue",
]


@pytest.mark.parametrize("text", SCOPING)
def test_what_would_not_compile_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SyntaxError):
        compile(text, "x", "exec")
    assert extract(f"```python\n{text}\n```", Target(entry_point="f")).problem == "syntax_error"


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    global y\n    y = x\n    return y",
        "from math import *\ndef f(x):\n    return pi",
        "def f(x, *args, y=1, **more):\n    return [z := x for _ in args]",
        "def f(x):\n    yield from (lambda x: x)(x)",
        "def f(x):\n    def g(x):\n        nonlocal z\n        z = x\n    z = 0\n    return g(x)",
    ],
)
def test_what_compiles_is_code(text: str) -> None:
    compile(text, "x", "exec")
    assert extract(f"```python\n{text}\n```", Target(entry_point="f")).code == text


@pytest.mark.parametrize(
    "text",
    [
        f"import {'a.' * 1000}a",
        f"import b, {'a.' * 1000}a",
        f"if x: from .. {'ab . ' * 1000}a import b",
        "x = 1\nimport " + "a\u0301.\\\n" * 1000 + "a",
    ],
)
def test_an_endless_import_is_not_parsed(text: str) -> None:
    with pytest.raises(ValueError, match="1000 dotted parts"):
        tree_of(text)


def test_other_dots_are_no_import() -> None:
    numbers = "0.1 0.2\n" * 2000
    assert tree_of(f'import a.b\nx = """{numbers}"""').body
    assert tree_of("import a.b\n" * 2000).body
    assert tree_of("a.b\n" * 2000).body
    assert tree_of(f"import {'a.' * 999}a").body
