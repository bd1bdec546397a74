"""Where patterns are found, on code that would fool a text search or a careless walk of the tree."""

import gc
import textwrap
import tokenize
import weakref
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.studies.refine.patterns import patterns, read
from codechat.studies.refine.patterns.reading.code import with_whole_strings


def lines(name: str, code: str, **options: Any) -> list[int]:
    found = patterns()[name].present(read(textwrap.dedent(code).lstrip("\n")), options)
    return [occurrence.line for occurrence in found]


CASES: list[tuple[str, dict[str, Any], list[int], str]] = [
    ("comment", {}, [2], 'x = "# no"\n# yes\ny = f"{x} # no"  # noqa: E501\n'),
    ("comment", {}, [3], "#!/bin/sh\n# -*- coding: utf-8 -*-\n# yes\nx = 1  # type: int\n"),
    ("comment", {"own_line": False}, [2], "# own\nx = (1,  # beside\n     # own\n     2)\n"),
    ("comment", {}, [1, 3], "# é\ndef f(:\n    x  # after\n"),
    ("header_comment", {}, [1], "# one\n@cache\ndef f():\n    # two\n    pass\n"),
    ("header_comment", {}, [1, 2], "# one\n# two\n"),
    ("commented", {"statement": "function", "place": "above"}, [3], "# one\n@cache\ndef f(): pass\n"),
    ("uncommented", {"statement": "if"}, [4], "# a\nif a: pass\nelif b: pass\nif c: pass\n"),
    ("commented", {"statement": "loop", "place": "beside"}, [1], "for x in (\n  y  # beside\n):\n    pass\n"),
    ("commented", {"statement": "loop", "place": "beside"}, [], "for x in y:\n    pass  # inside\n"),
    ("code_in_comment", {}, [1, 4, 5], "# x = 1\n# x is one\n# O(n)\n# for x in y:\n# log.info(x)\n# see f(x)\n"),
    ("prose", {"matches": r"\bO\("}, [2, 3], 'x = "O(n)"\n# O(1)\ndef f(): "O(n)"\n'),
    ("blank_line", {}, [3], 'x = 1\ndef f():\n\n    s = """\n\n"""\n    return s\n\n'),
    ("no_blank_before", {"statement": "return"}, [3], "def f():\n    x = 1\n    return x\n"),
    ("blank_before", {"statement": "return"}, [5], "def f():\n    x = 1\n\n    # so\n    return x\n"),
    ("blank_before", {"statement": "return"}, [], "def f():\n\n    return 1\n"),
    ("trailing_space", {}, [1], 'x = 1 \ny = """a  \nb"""\n'),
    ("joined_statements", {}, [1, 2, 4], "a = 1; b = 2\nif a: b = 3\nelif b:\n    c = 4; d = 5\nf = lambda: (1, 2)\n"),
    ("joined_statements", {}, [2, 3], "match x:\n    case 1: y = 1\n    case _: y = 2\n"),
    ("backslash", {}, [1], 'x = 1 + \\\n    2\ny = """\\\n"""\n# \\\nz = 1\n'),
    ("indented", {"unit": "2"}, [2], "if a:\n  if b:\n      c = 1\n"),
    ("otherwise_indented", {"unit": "2"}, [3], "if a:\n  if b:\n      c = 1\n"),
    ("quoted", {"quote": "single"}, [1, 1], "x = 'a', \"b\", 'it\"s', '''t''', 'a\\n'\n"),
    ("quoted", {"quote": "double"}, [1], 'x = f"{y[0]}"\n'),
    ("tight_comma", {}, [], "x = f'{f(a,b)}'\n"),
    ("comment", {}, [3], 'x = f"""\n# no {a} # no\n"""  # yes\n'),
    ("quoted", {"quote": "double"}, [], "x = f\"{y['a']}\"\n"),
    ("signature_over_lines", {}, [1, 7], "def f(\n    a,\n    *,\n    b=1,\n    **c,\n): pass\ndef g(a,\n  b): pass\n"),
    ("wrapped_return", {}, [2, 3], "def f():\n    return (1)\n    return (\n        1)\n    return (1) + (2)\n"),
    ("bare_return", {}, [3, 4], "def f():\n    return\n    return 1\n    return (1), (2)\n    return ()\n"),
    ("redundant_parentheses", {}, [1, 3], "if (a): pass\nif (a, b): pass\nwhile (a): pass\nif (a) or (b): pass\n"),
    ("redundant_parentheses", {}, [], "def f():\n    return (x for x in y)\nwhile (a := b): pass\n"),
    ("tight_comma", {}, [1], "f(a,b)\nf(a, b,)\nx[1,]\ny = 'a,b'\n"),
    ("tight_operator", {}, [1, 3], "a=1\nf(a=1)\nif a==1: pass\ndef g(a=1) -> int: pass\ns = 'a==b'\n"),
    (
        "local_name",
        {"matches": "[a-z]"},
        [2, 3, 4],
        "def f(a, *b):\n    c = 1\n    for d in a: pass\n    [e for e in a]\n",
    ),
    ("local_name", {"matches": "[a-z]"}, [], "x = 1\ndef f(a):\n    global x\n    x = lambda y: y\n    a = _ = 1\n"),
    (
        "local_name",
        {"matches": "[a-z]"},
        [4, 6, 7],
        "try: pass\nexcept E as x: pass\ndef f():\n    with a as b: pass\n    match v:\n        case [c, *_]: pass\n        case {'k': 1, **d}: pass\n",
    ),
    ("local_name", {"matches": "[a-z]"}, [3], "def f():\n    def g(b):\n        b = c = b\n"),
    ("local_name", {"matches": r"\w"}, [], "def f():\n    for _ in range(2): pass\n"),
    ("unused_local", {}, [2], "def f():\n    a = 1\n    b = 2\n    c = 3\n    c += b\n    del c\n"),
    ("unused_local", {}, [], "def f():\n    a = 1\n    def g():\n        return a\n    for b in g(): pass\n"),
    (
        "unused_import",
        {},
        [1, 2],
        "import os.path\nfrom a import b as c\nimport d\nfrom __future__ import e\nf(d.os)\n",
    ),
    ("shadowing_local", {}, [2], "def f(max):\n    sum = max\n    return sum\n"),
    ("bare_parameter", {}, [2, 3], "class A:\n    def f(self, a): pass\ndef g(self, b: int): pass\n"),
    ("bare_local", {}, [3], "def f():\n    a: int\n    b = a = 1\n    c: int = 2\n    for d in e: pass\n"),
    (
        "legacy_hint",
        {"kind": "generic"},
        [3, 4, 5],
        "import typing as t\nfrom typing import List\nx: List[int]\ny: t.Dict\nz: 'List'\n",
    ),
    ("modern_hint", {"kind": "optional"}, [1], "def f(a: int | None): return a | 1\n"),
    ("type_alias", {}, [1, 3], "A = list[int]\nb = c[0]\nD = int | None\ne = 1 | 2\ndef f():\n    G = list[int]\n"),
    ("any_docstring", {}, [1, 3], '"""m"""\ndef f():\n    """f"""\n    """no"""\nx = """no"""\n'),
    ("undocumented_parameter", {}, [2], "def f(a,\n      b):\n    '''Takes a; a_b is none.'''\n"),
    (
        "nesting",
        {"deeper_than": 2},
        [4],
        "def f():\n  for a in b:\n    if a:\n      with c: pass\n    elif d:\n      pass\n",
    ),
    ("nesting", {"deeper_than": 2}, [], "for a in b:\n  if a:\n    def g():\n      if a: pass\n"),
    ("elif", {}, [3], "if a:\n    pass\nelif b:\n    pass\nelse:\n    if c: pass\n    d = 1\n"),
    ("elif", {}, [], "if a:\n    pass\nelse:\n    if b: pass\n"),
    ("if_with_else", {}, [1, 4], "if a: pass\nelif b: pass\nelse: pass\nif c: pass\nelse:\n    if d: pass\n"),
    ("else_after_exit", {}, [3], "for x in y:\n    if x: continue\n    else: pass\n    if x: pass\n    else: break\n"),
    ("two_way_value", {}, [2], "def f():\n    if a: return 1\n    else: return 2\n    if b: c = 1\n    else: d = 1\n"),
    (
        "several_returns",
        {},
        [3],
        "def f():\n    def g(): return 1\n    def h():\n        return 1\n        return 2\n    return 3\n",
    ),
    ("single_return", {}, [1], "def f():\n    if a: x = 1\n    return x\ndef g():\n    if a: return 1\n"),
    ("guard", {}, [3], "def f():\n    '''d'''\n    if a: return 1\n    if b: c = 1\n    return c\n"),
    ("if_statement", {}, [1], "if a: pass\nif __name__ == '__main__':\n    if b: print(1)\n"),
    ("condition", {}, [], "if '__main__' == __name__: pass\n"),
    ("nested_loop", {}, [2], "for a in b:\n    while c:\n        def g():\n            for d in e: pass\n"),
    (
        "index_loop",
        {},
        [1, 2, 5],
        "for i in range(len(a)): pass\n[i for i in range(0, len(a))]\nfor i in range(1, len(a)): pass\n"
        "n = len(a)\nfor i in range(n): pass\n",
    ),
    ("index_loop", {}, [], "def range(x): return x\nfor i in range(len(a)): pass\n"),
    ("index_loop", {}, [], "for i in range(n): pass\nm = len(a)\nm = 3\nfor i in range(m): pass\n"),
    ("forward_loop", {}, [1], "for a in b: pass\nfor a in b[::-1]: pass\nfor i in range(n, 0, -1): pass\n"),
    (
        "forward_loop",
        {},
        [1, 4],
        "for a in sorted(b[::-1]): pass\nfor a in list(b[::-1]): pass\nc = set(reversed(b))\nfor a in c: pass\n",
    ),
    ("f_string", {}, [1, 2], "x = f'{a:{b}}'\ny = f'a'\nz = '{a}'\n"),
    ("magic_number", {}, [3, 5], "A = 3\nB: int = 4\nc = 5\ndef f(d=6, *, e=7):\n    return -1 + 8 + True\n"),
    ("named_constant", {"used": True}, [1], "A = 1\nB = 2\ndef f(): return A\nprint(B)\n"),
    ("split_comparison", {}, [1, 4], "a < b and b < c\na < b and c < d\na < b or b < c\na == b and b == c\n"),
    ("split_comparison", {}, [], "a == 0 and b == 0\na == b and c == d\n"),
    ("shared_state", {}, [2], "S = {}\ndef f(x): S[x] = 1\ndef g(x):\n    y = []\n    y.append(x)\n    return y\n"),
    ("shared_state", {}, [3], "n = 0\ndef g(x): return x\ndef f():\n    global n\n    n += 1\n"),
    ("leaving_loop", {}, [3, 5], "for x in y:\n    s += x\nfor x in y:\n    if x: s += x\nwhile x: x -= 1\n"),
    ("trailing_space", {}, [2], "def f():\n    '''A \n    b'''\n    return '''c \n'''\n"),
    ("comment", {"matches": r"[^.#\s]\s*$"}, [1, 4], "# One\n# ends.\nx = 1\n# Three\n"),
    ("emptiness_test", {}, [1, 2, 3], "len(a) == 0\na != []\na == ''\na == 0\nlen(a) == 1\nlen(a) == False\n"),
    ("equality_choice", {}, [1], "a == 1 or a == 2\na == 1 or b == 1\na == 1 and a == 2\n"),
    ("old_formatting", {}, [1, 2, 6], "'%s' % a\n'{}'.format(a)\na % b\nformat(a)\na.format(b)\nformat(a, '5')\n"),
    ("self_assignment", {}, [1, 2], "a = a + 1\nb[0] = b[0] * 2\nc = 1 + c\nd = e = d + 1\n"),
    ("passing_variable", {}, [2], "def f():\n    a = 1\n    return a\ndef g():\n    b = 1\n    c = b\n    return b\n"),
    ("recursion", {}, [1, 3], "def f(): g()\ndef h(): pass\ndef g(): f()\n"),
    ("recursion", {}, [2], "class A:\n    def f(self): return self.f()\n    def g(self): return g()\ndef g(): pass\n"),
    ("recursion", {}, [], "def f(f): return f()\ndef g():\n    x.g()\n    return 'g()'\n"),
    ("recursion", {}, [1], "async def f(x):\n    return await f(x)\n"),
    ("cacheable", {}, [1], "def f(s: str):\n    return [c for c in s]\ndef g(s):\n    return [c for c in s]\n"),
    ("cacheable", {}, [1], "def f(s):\n    return s[0] + s.lower()\ndef g(s):\n    return s[0] + s\n"),
    (
        "cacheable",
        {},
        [],
        "def f(a: 'int', *b):\n    return [*b]\ndef g(a: list):\n    return a\ndef h(a):\n    a.pop()\n",
    ),
    (
        "cacheable",
        {},
        [4],
        "def f(a):\n    yield a\n    return 1\ndef g(a):\n    return a + 1\ndef h(a):\n    print(a)\n",
    ),
    (
        "cacheable",
        {},
        [5],
        "def f(a):\n    def g(b):\n        a.c = b\n        return b\n    def h(b): return b\n    return g\n",
    ),
    (
        "frozen_membership",
        {},
        [2, 3],
        "a = frozenset(b)\nc in a\nc not in frozenset(b)\nc in set(b)\nfor d in frozenset(b): pass\n",
    ),
    ("branching", {}, [1, 2, 4], "a if b else c\ntry: pass\nexcept E: pass\nwhile a: pass\nwith a: pass\n"),
    ("decision", {}, [1], "a if b else c\ntry: pass\nexcept E: pass\n"),
    (
        "subclass",
        {"of": ["abc.ABC"], "derived": True},
        [2],
        "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...\nclass B(A): pass\n"
        "class C(abc.ABC): pass\nclass D(C): pass\n",
    ),
    (
        "subclass",
        {"of": ["Exception"], "raised": True},
        [1],
        "class A(Exception): pass\nclass B(Exception): pass\nraise A(B)\n",
    ),
    ("cacheable", {}, [1], "def f(a):\n    c = [0]\n    c[0] = a\n    return c\n"),
    ("helper", {}, [1], "def a(): pass\ndef b():\n    def c(): pass\n    return [c, a]\ndef d(): d()\n"),
    ("helper", {}, [], "def wrap(f): return f\n@wrap\ndef b(): pass\nb()\n"),
    ("generator_function", {}, [2], "def f():\n    def g(): yield 1\n    return (x for x in g())\n"),
    ("closure", {}, [3, 4], "def f():\n    def g(): pass\n    return g\ndef h(): return lambda: 1\n"),
    (
        "mutated_parameter",
        {},
        [2, 3, 4],
        "def f(a, b):\n    a.append(1)\n    a[0] = 1\n    del a[0]\n    b = b[:]\n    b.sort()\n",
    ),
    (
        "use",
        {"names": ["functools.reduce"]},
        [3, 4],
        "import functools as f\nfrom functools import reduce as r\nr(a)\nf.reduce\nreduce\n",
    ),
    ("use", {"names": ["collections.deque"]}, [2], "from collections import *\ndeque()\nlen\n"),
    ("use", {"names": ["copy.copy"]}, [3], "import copy\ndef f(copy): return copy.copy(1)\ncopy.copy(2)\n"),
    ("use", {"names": ["sorted", ".sort"]}, [1, 2], "sorted(a)\na.sort()\n'sorted(a)'\na.sorted()\nsort(a)\n"),
    ("collection", {"kind": "set"}, [1, 2, 3], "{1}\n{a for a in b}\nfrozenset()\n{}\nx: set\n"),
    ("collection", {"kind": "tuple"}, [1, 3], "a = 1, 2\nb, c = a\ntuple(a)\nx: tuple[int, str] = a\n"),
    ("bit_operation", {}, [1, 2], "a & b\na <<= 1\ndef f(x: int | None) -> int | str: pass\n"),
    ("stack", {}, [1], "a.append(1)\na.pop()\nb.append(1)\nb.pop(0)\nc.pop()\n"),
    ("table_lookup", {}, [3, 4], "t = {1: 2}\ne = {}\nt[1]\nt.get(1)\ne[1]\nt[1] = 2\n"),
    (
        "node_class",
        {"links": ["next"]},
        [1, 3],
        "class A:\n    __slots__ = ('next',)\nclass B:\n    def f(self): self.next = 1\nclass C:\n    def next(self): pass\n",
    ),
    ("comparison_with_boolean", {}, [1, 2], "a == True\na != None\na is None\na == 1\n"),
]


@pytest.mark.parametrize(
    ("name", "options", "expected", "code"), CASES, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(CASES)]
)
def test_found_where_a_reader_finds_it(name: str, options: dict[str, Any], expected: list[int], code: str) -> None:
    assert lines(name, code, **options) == expected


def test_line_ends_and_byte_order_mark_do_not_matter() -> None:
    unix = "# one\nif a:\n    b = '# no'  # two\n"
    for text in (unix.replace("\n", "\r\n"), "\ufeff" + unix, unix.replace("\n", "\r")):
        assert [one.line for one in patterns()["comment"].present(read(text), {})] == [1, 3]


@pytest.mark.parametrize(
    "text",
    ["def f(:", "x = (", "\x00", "'''", "  x\n y", "f'{", "\ud800", "(" * 500, "-" * 5000 + "1", "x" + ".a" * 5000],
)
def test_what_does_not_parse_has_no_tree_and_says_why(text: str) -> None:
    code = read(text)
    assert code.tree is None
    assert code.problem.startswith("does not parse: ")
    for pattern in patterns().values():
        required = {"matches": "x", "statement": "if", "unit": "2", "quote": "single", "kind": "set", "names": ["a"]}
        if pattern.name in ("comment", "loop", "use", "quoted", "tight_comma", "wrapped_return", "indented"):
            taken = {key: value for key, value in required.items() if key in pattern.find.__annotations__}
            taken.pop("matches", None)
            pattern.present(code, taken)


@pytest.mark.parametrize("guard", ["", 'if __name__ == "__main__":\n    f()\n'])
def test_a_program_is_freed_without_the_collector(guard: str) -> None:
    code = read.__wrapped__(f"def f():\n    # a comment\n    return [x for x in (1, 2)]\n{guard}")
    held = [weakref.ref(code), weakref.ref(code.whole)]
    gc.disable()
    try:
        for name in ("comment", "comprehension", "function", "unused_local", "magic_number", "trailing_space"):
            patterns()[name].present(code.whole, {})
        del code
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()


def test_invalid_escapes_raise_no_warning() -> None:
    assert read("x = '\\d'\ny = 1 is 1\n").tree is not None


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("comment", {"own": True}, "has no option 'own'"),
        ("comment", {"own_line": "yes"}, r"comment\.own_line"),
        ("comment", {"matches": "("}, "not a regular expression"),
        ("commented", {}, "needs 'statement'"),
        ("commented", {"statement": "loops"}, "'loop'"),
        ("use", {"names": "sorted"}, r"use\.names"),
    ],
)
def test_wrong_options_are_told(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        patterns()[name].check_options(options)


def test_f_strings_in_parts_are_one_string(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.12 and later give an f-string's parts as tokens: rebuilt here for whatever version runs the tests."""
    start, end = 1001, 1002
    monkeypatch.setitem(tokenize.tok_name, start, "FSTRING_START")
    monkeypatch.setitem(tokenize.tok_name, end, "FSTRING_END")
    text = ['x = f"""{f\'a,b\'}', 'c""" # d']

    def token(kind: int, *places: tuple[int, int]) -> tokenize.TokenInfo:
        return tokenize.TokenInfo(kind, "", *places, text[0])

    parts = [
        token(tokenize.NAME, (1, 0), (1, 1)),
        token(start, (1, 4), (1, 8)),
        token(tokenize.OP, (1, 8), (1, 9)),
        token(start, (1, 9), (1, 11)),
        token(end, (1, 14), (1, 15)),
        token(tokenize.OP, (1, 15), (1, 16)),
        token(end, (2, 1), (2, 4)),
        token(tokenize.COMMENT, (2, 5), (2, 8)),
    ]
    whole = list(with_whole_strings(parts, text))
    assert [one.type for one in whole] == [tokenize.NAME, tokenize.STRING, tokenize.COMMENT]
    assert whole[1].string == 'f"""{f\'a,b\'}\nc"""'
    assert (whole[1].start, whole[1].end) == ((1, 4), (2, 4))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = [" + "1," * 20_000 + "]", "more than 20,000 parts"),
        ("x = 1\n" * 7_000, "more than 20,000 parts"),
        ("if x:\n" + "".join(" " * (n + 1) + "if x:\n" for n in range(90)) + " " * 91 + "x = " + "-" * 95 + "1", "nested too deeply"),
        (f"x = 1\ny = 0x{'f' * 3_000}", "a number with too many digits"),
    ],
    ids=["a long list", "many statements", "deep", "a long number"],
)  # fmt: skip
def test_what_takes_too_long_to_search_is_not_read(text: str, problem: str) -> None:
    code = read(text)
    assert code.tree is None and not code.nodes and problem in code.problem


def test_the_main_guard_is_read_only_where_the_whole_is_asked_for() -> None:
    code = read("def f(): pass\n\nif __name__ == '__main__':\n    f()\n")
    assert [type(node).__name__ for node in code.nodes] == ["Module", "FunctionDef", "arguments", "Pass"]
    assert [type(node).__name__ for node in code.whole.nodes][4:7] == ["If", "Compare", "Name"]
