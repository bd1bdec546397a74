"""What the grammar lets through and the compiler does not is no code, though nothing is compiled."""

import pytest

from codechat.extraction import extract

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
    assert extract(f"```python\n{text}\n```", "f").problem == "syntax_error"


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
    assert extract(f"```python\n{text}\n```", "f").code == text
