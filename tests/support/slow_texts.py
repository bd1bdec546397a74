"""Replies that are made to be slow to read, up to a megabyte: for whatever parses a model's text."""

from collections.abc import Callable

MEGABYTE = 1_000_000


def _times(text: str) -> Callable[[int], str]:
    return lambda size: text * (size // len(text.encode("utf-8", "surrogatepass")))


def _in_fence(make: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: f"```python\n{make(size)}\n```\n"


def _after_function(make: Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: f"def f(x):\n    return x\n\n\n{make(size)}\n"


def _staircase(size: int) -> str:
    """Every line deeper by a column."""
    return "\n".join(" " * n + "if x:" for n in range(int((2 * size) ** 0.5)))


def _nested_fences(size: int) -> str:
    return "\n".join("`" * n + "python" for n in range(3, int((2 * size) ** 0.5)))


SLOW_TEXTS: dict[str, Callable[[int], str]] = {
    "dotted import": lambda size: "import " + "a." * (size // 2) + "a",
    "dotted imports": lambda size: ("import " + "a." * 900 + "a\n") * (size // 1800),
    "dotted import over lines": lambda size: "import " + "a.\\\n" * (size // 4) + "a",
    "dotted from import": lambda size: "from " + "a." * (size // 2) + "a import b",
    "dots of a relative import": lambda size: "from " + "." * size + " import b",
    "imported names": lambda size: "from a import " + "b," * (size // 2) + "c",
    "attributes": lambda size: "x" + ".a" * (size // 2),
    "backticks": _times("`"),
    "fence lines": _times("```\n"),
    "python fences": _times("```python\nx = 1\n```\n"),
    "definitions in fences": _times("```python\ndef g(x):\n    return h(x)\n```\n"),
    "open fences": _times("```python\n"),
    "tildes": _times("~~~\n"),
    "nested fences": _nested_fences,
    "markdown fences": _times("```markdown\n"),
    "round brackets": _times("("),
    "square brackets": _times("["),
    "braces": _times("{"),
    "closed brackets": lambda size: "(" * (size // 2) + ")" * (size // 2),
    "bracket pairs": _times("[]"),
    "bracketed lines": _times("(\n"),
    "open calls": _times("f("),
    "calls in calls": lambda size: "f(" * (size // 3) + ")" * (size // 3),
    "calls on calls": lambda size: "f" + "()" * (size // 2),
    "indices": lambda size: "x" + "[0]" * (size // 3),
    "signs": lambda size: "-" * size + "1",
    "nots": lambda size: "not " * (size // 4) + "x",
    "awaits": lambda size: "async def f():\n " + "await " * (size // 6) + "x",
    "lambdas": lambda size: "lambda: " * (size // 8) + "x",
    "lambda defaults": lambda size: "lambda x=" * (size // 9) + "1",
    "sums": lambda size: "1" + "+1" * (size // 2),
    "powers": lambda size: "1" + "**1" * (size // 3),
    "comparisons": lambda size: "1" + "<1" * (size // 2),
    "conditions": lambda size: "x if y else " * (size // 12) + "z",
    "assignments": lambda size: "x=" * (size // 2) + "1",
    "walruses": lambda size: "(x:=" * (size // 4) + "1",
    "comprehensions": lambda size: "[x for x in " * (size // 12) + "y",
    "starred": lambda size: "*" * size + "x",
    "ellipses": _times("."),
    "headers": _times("def f("),
    "headers on lines": _times("def f(\n"),
    "functions": _times("def f(x):\n    return x\n"),
    "functions of two names": _times("def f(x):\n    return g(x)\n\n\ndef g(x):\n    return f(x)\n\n\n"),
    "classes": _times("class A:\n    def f(self):\n        pass\n"),
    "class headers": _times("class A(\n"),
    "decorators": lambda size: "@d\n" * (size // 3) + "def f(x):\n    return x\n",
    "a long decorator": lambda size: "@d" + "(1)" * (size // 3) + "\ndef f(x):\n    return x\n",
    "at signs": _times("@x\n"),
    "parameters": lambda size: "def f(" + ", ".join(f"a{n}" for n in range(size // 9)) + "):\n    return 1\n",
    "one parameter again": lambda size: "def f(" + "a," * (size // 2) + "):\n    return 1\n",
    "arguments": lambda size: "f(" + "x," * (size // 2) + ")",
    "single quotes": _times("'"),
    "triple quotes": _times("'''"),
    "mixed quotes": _times("\"'"),
    "an open string": lambda size: "x = '" + "a" * size,
    "open strings": _times("x = '\n"),
    "open triple strings": _times('x = """\n'),
    "adjacent strings": _times("'a' "),
    "f-strings": lambda size: "f'" + "{x}" * (size // 3) + "'",
    "braces of an f-string": lambda size: "f'" + "{" * size,
    "nested formats": lambda size: "f'{x:" + "{y:" * (size // 3) + "}" * 3 + "'",
    "staircase": _staircase,
    "down the stairs": lambda size: "\n".join(reversed(_staircase(size).split("\n"))),
    "nested ifs on one line": _times("if x: "),
    "semicolons": _times("x;"),
    "empty statements": _times(";"),
    "passes": _times("pass\n"),
    "else": _times("else:\n"),
    "elifs": lambda size: "if x:\n    pass\n" + "elif x:\n    pass\n" * (size // 17),
    "finallys": lambda size: "\n".join(" " * n + "try:" for n in range(99)) + "\n" + _times("finally:\n")(size),
    "a line": _times("a"),
    "words": _times("a "),
    "blanks": _times(" "),
    "blanks before code": lambda size: " " * size + "def f(x): return x",
    "tabs": _times("\t"),
    "blank lines": _times("\n"),
    "lines of blanks": _times(" " * 99 + "\n"),
    "line continuations": _times("\\\n"),
    "carriage returns": _times("\r"),
    "form feeds": _times("\f"),
    "form feeds before code": lambda size: "\f" * size + "def f(x): return x",
    "vertical tabs": _times("\v"),
    "nul": _times("\0"),
    "nul in code": _times("def f(x):\n    return '\0'\n"),
    "byte order marks": _times("\ufeff"),
    "line separators": _times("x = 1\u2028"),
    "next lines": _times("# \x85\n"),
    "unicode names": _times("\u00e9\u0301 = 1\n"),
    "compatible names": _times("\ufb01 = 1\n"),
    "a long unicode name": lambda size: "def " + "\u00e9" * (size // 2) + "(x): return x",
    "wide characters": _times("\U0001d465"),
    "surrogates": _times("\ud800"),
    "digits": _times("1"),
    "a large number": lambda size: "x = " + "9" * size,
    "a large hexadecimal": lambda size: "x = 0x" + "f" * size,
    "escapes": lambda size: "x = '" + "\\x00" * (size // 4) + "'",
    "named characters": lambda size: "x = '" + "\\N{DIGIT ONE}" * (size // 13) + "'",
    "comments": _times("# x\n"),
    "a long comment": lambda size: "#" * size,
    "prompts": _times(">>> x\n"),
    "continued prompts": _times(">>> def f(x):\n...     return x\n"),
    "thinking": _times("<think>"),
    "thoughts": _times("<think></think>"),
    "ends of thinking": _times("</think>"),
    "thoughts in fences": _times("```\n<think>\n"),
    "patches": _times("@@ -1 +1 @@\n"),
    "list items": _times("- x\n"),
    "prose": _times("The function is here, and I think that `x = 1` does it.\n"),
    "prose and code": _times("So:\nx = f(1)\nand then\n"),
    "definitions among prose": _times("def f(x): return x\nNow this.\n"),
    "broken definitions": _times("def f(x) return x\n"),
    "matches": lambda size: "match x:\n" + " case 1: pass\n" * (size // 14),
    "patterns": lambda size: "match x:\n case " + "[" * (size // 2) + "]" * (size // 2) + ": pass",
    "alternatives": lambda size: "match x:\n case " + "1|" * (size // 2) + "1: pass",
    "type parameters": lambda size: "def f[" + "T," * (size // 2) + "](x): return x",
    "globals": lambda size: "def f():\n global " + "a," * (size // 2) + "a",
    "hints": lambda size: "x: " + "a[" * (size // 3) + "b" + "]" * (size // 3),
    "withs": lambda size: "with " + "a as b, " * (size // 8) + "c: pass",
    "star imports": _times("from a import *\n"),
    "future imports": _times("from __future__ import annotations\n"),
    "dictionary": lambda size: "x = {" + "1:1," * (size // 4) + "}",
    "tests": _times("def test_a(): pass\ntest_a()\n"),
    "prints": _times("print(f(1))\n"),
    "main guards": _times('if __name__ == "__main__":\n    f(1)\n'),
}  # fmt: skip

WRAPPED = {
    **SLOW_TEXTS,
    **{f"{name}, in a fence": _in_fence(make) for name, make in SLOW_TEXTS.items()},
    **{f"{name}, after a function": _after_function(make) for name, make in SLOW_TEXTS.items()},
}
