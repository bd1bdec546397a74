"""Which programs have one code key: comments and layout change nothing, whatever else differs does, and a program that
might read its own lines has none."""

import ast
import re
import warnings
from typing import Any

import pytest

from codechat.datasets.tasks import Task
from codechat.sandbox.languages import ComparesCode, language_of
from codechat.sandbox.languages.python.code_key import code_key
from codechat.sandbox.languages.python.syntax import LONGEST_SOURCE
from codechat.testing import dataset_tasks

PLAIN = (
    "def f(xs, y=2):\n    total = 0\n    for x in xs:\n        if x > y:\n            total += x\n    return total\n"
)
FORMS = {
    "comments": PLAIN.replace("total = 0", "total = 0  # so far\n    # now the loop"),
    "layout": PLAIN.replace("\n    for", "\n\n\n    for").replace(
        "if x > y:", "if (\n            x\n            > y):"
    ),
    "indentation": PLAIN.replace("    ", "\t"),
    "form feeds": "\f\n" + PLAIN,
    "line ends": PLAIN.replace("\n", "\r\n"),
    "an encoding, which is a comment in a text": "# -*- coding: utf-7 -*-\n" + PLAIN,
    "numbers written otherwise": PLAIN.replace("y=2", "y=0b1_0"),
}
OTHERS = {
    "a docstring": PLAIN.replace("    total = 0", '    """Add."""\n    total = 0'),
    "annotations": PLAIN.replace("(xs, y=2)", "(xs: list[int], y: int | None = 2) -> int"),
    "names of locals": PLAIN.replace("total", "amount"),
    "a statement that does nothing": PLAIN.replace("    return", "    pass\n    return"),
}
"""Programs that do the same, whose compiled code differs or might."""


def key(program: str) -> str:
    found = code_key(program)
    assert found is not None, program
    return found


@pytest.mark.parametrize("form", FORMS)
def test_form_changes_no_code(form: str) -> None:
    assert FORMS[form] != PLAIN
    assert key(FORMS[form]) == key(PLAIN)


@pytest.mark.parametrize("other", OTHERS)
def test_documentation_and_names_are_code(other: str) -> None:
    assert key(OTHERS[other]) != key(PLAIN)


PAIRS = [
    (
        "def f(x):\n    def g():\n        return 1\n    return g",
        "def f(x):\n    global g\n    def g():\n        return 1\n    return g",
    ),
    ("class A:\n    class B:\n        def f(x): ...", "class A:\n    global B\n    class B:\n        def f(x): ..."),
    ("class A:\n    class B:\n        def f(x): ...", "class B:\n    class A:\n        def f(x): ..."),
    ("def f(x):\n    return 1", "def f(x):\n    return True"),
    ("def f(x):\n    return 1", "def f(x):\n    return 1.0"),
    ("def f(x):\n    return 0.0", "def f(x):\n    return -0.0"),
    ("def f(x):\n    return 0j", "def f(x):\n    return -0j"),
    ("def f(x):\n    return 1e999 - 1e999", "def f(x):\n    return -(1e999 - 1e999)"),
    ("def f(x):\n    return (1, 2)", "def f(x):\n    return (1, 2.0)"),
    ("def f(x):\n    return 'a'", "def f(x):\n    return b'a'"),
    ("def f(x):\n    return ''", "def f(x):\n    return None"),
    ("def f(x):\n    return x in {1, 2}", "def f(x):\n    return x in {True, 2}"),
    ("def f(x):\n    return [y for y in {8, 0}]", "def f(x):\n    return [y for y in {0, 8}]"),
    ("def f(x):\n    return x in {'a', 'b'}", "def f(x):\n    return x in {'b', 'a'}"),
    ("def f(x=1):\n    return x", "def f(x=2):\n    return x"),
    ("def f(x):\n    return x", "def f(y):\n    return y"),
    ("def f(x):\n    return x", "def f(*, x):\n    return x"),
    ("def f(x):\n    return x", "def f(x, /):\n    return x"),
    ("def f(x):\n    return x", "def f(*x):\n    return x"),
    ("def f(x):\n    return x", "def g(x):\n    return x"),
    ("def f(x):\n    return x + 1", "def f(x):\n    return x - 1"),
    ("def f(x):\n    return x.a", "def f(x):\n    return x.b"),
    ("def f(x):\n    return a", "def f(x):\n    return b"),
    ("def f(x):\n    return [x]", "def f(x):\n    yield [x]"),
    ("def f(x):\n    return x", "async def f(x):\n    return x"),
    (
        "def f(x):\n    def g():\n        return x\n    return g",
        "def f(x):\n    def h():\n        return x\n    return h",
    ),
    ("def f(x):\n    return lambda a: a", "def f(x):\n    return lambda b: b"),
    ("N = 1\ndef f(x):\n    return x", "M = 1\ndef f(x):\n    return x"),
    ("class A:\n    a = 1\n    b = 2", "class A:\n    b = 2\n    a = 1"),
    ("class A:\n    a: int = 1", "class A:\n    a: str = 1"),
    ("class A:\n    a: int = 1", "class A:\n    a = 1"),
    ("class A(B):\n    pass", "class A(C):\n    pass"),
    ("def f(x):\n    return x", "@d\ndef f(x):\n    return x"),
    ("def f(x):\n    return x", "from __future__ import annotations\ndef f(x):\n    return x"),
    ("def f(x):\n    assert x\n    return x", "def f(x):\n    return x"),
    ("def f(x):\n    return 'a\\r'", "def f(x):\n    return 'a\\n'"),
    ("def f(x):\n    return f'{x=}'", "def f(x):\n    return f'{x = }'"),
    ("def f(x):\n    return x[1:]", "def f(x):\n    return x[:1]"),
    ("def f(x):\n    return {**x}", "def f(x):\n    return {None: x}"),
    ("def f(x, *, a, b=1):\n    return a", "def f(x, *, a=1, b):\n    return a"),
    ("def f(x):\n    return 'Name'", "def f(x):\n    return Name"),
    ("def f(x):\n    return (1,), 2", "def f(x):\n    return (1, 2),"),
    ("def f(x):\n    return x", "def f(x: nothing):\n    return x"),
    ("def f(x):\n    return x", "def f(x) -> print('defined'):\n    return x"),
    ("def f(x):\n    return x", "def f(x: List[int]):\n    return x"),
    (
        "from typing import List\ndef f(x):\n    return x",
        "from typing import List\ndef f(x: List[int, int]):\n    return x",
    ),
    ("from typing import List\ndef f(x):\n    return x", "from typing import List\ndef f(x: List['(']):\n    return x"),
    ("def f(x):\n    return x", "def f(x: None | None):\n    return x"),
    ("def f(x):\n    return x", "def f(x: int[str]):\n    return x"),
    ("int = g\ndef f(x):\n    return x", "int = g\ndef f(x: int[str]):\n    return x"),
    ("def g(list):\n    def f(x):\n        return x", "def g(list):\n    def f(x: list[int]):\n        return x"),
    (
        "def f(x):\n    try:\n        a\n    except NameError as e:\n        return str(e)\n    a = 1",
        "def f(x):\n    try:\n        b\n    except NameError as e:\n        return str(e)\n    b = 1",
    ),
    (
        "def f(x):\n    a = 1\n    b = 2\n    class C:\n        a = a\n    return C.a",
        "def f(x):\n    b = 1\n    a = 2\n    class C:\n        a = b\n    return C.a",
    ),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_whatever_else_differs_is_other_code(one: str, other: str) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "program", ["def f(x:", "x = '\x00'", "x = 1" + "0" * LONGEST_SOURCE, "x = " + "-" * 9999 + "1"]
)
def test_what_cannot_be_read_has_no_key(program: str) -> None:
    assert code_key(program) is None


def test_half_a_surrogate_pair_in_a_text_is_code_like_any_other() -> None:
    assert key("x = '\\ud800'") != key("x = '\\ud801'")


def test_a_capital_letter_of_another_alphabet_is_the_name_that_python_makes_of_it() -> None:
    assert key("def f(x):\n    return 𝐱") == key("def f(x):\n    return x")


@pytest.mark.parametrize(
    "end", ["", "\n", "\n\n", "\r", "\r\n", "\n\\\n", "\\\n", "\n#", "\n# \\\n", "\n\f\n", "\n    \n"]
)
def test_the_end_of_a_program_is_read_as_python_reads_it(end: str) -> None:
    program = PLAIN.removesuffix("\n") + end
    try:
        compile(program, "", "exec")
    except SyntaxError:
        return
    assert code_key(program) in (key(PLAIN), None)


def test_only_python_compares_code() -> None:
    assert isinstance(language_of("python"), ComparesCode)
    assert not isinstance(language_of("java"), ComparesCode)


def test_warnings_of_a_program_do_not_show() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert key("def f(x):\n    return x is 3 or '\\d'  # warns\n")


# -- programs that read their own lines ----------------------------------------------------------------------------

LINES = {
    "a traceback": (
        "def f():\n    try:\n        [][1]\n    except IndexError as error:\n"
        "        return error.__traceback__.tb_lineno"
    ),
    "a frame": "import sys\ndef f():\n    return sys._getframe().f_lineno",
    "a frame of a module of a module": "import collections\ndef f():\n    return collections._sys._getframe().f_lineno",
    "a generator's frame": "def h():\n    yield 1\ndef f():\n    return h().gi_frame.f_lineno",
    "a generator's frame by its name": (
        "def h():\n    yield 1\ndef f():\n    return getattr(getattr(h(), 'gi_' + 'frame'), 'f_lineno')"
    ),
    "a generator's frame in a pattern": (
        "def h():\n    yield 1\ndef f():\n    match h():\n        case object(gi_frame=g):\n            return g.f_lineno"
    ),
    "a generator's frame in a format": "def h():\n    yield 1\ndef f():\n    return '{0.gi_frame.f_lineno}'.format(h())",
    "a code object": "def f():\n    return f.__code__.co_firstlineno",
    "a code object by attrgetter": (
        "from operator import attrgetter as a\ndef f():\n    return a('__co' + 'de__.co_firstlineno')(f)"
    ),
    "a code object by eval": "def f():\n    return eval('f.__co' + 'de__.co_firstlineno', {'f': f})",
    "a code object by a class's table": (
        "def f():\n    return type(f).__dict__['__co' + 'de__'].__get__(f).co_firstlineno"
    ),
    "a module in a class": (
        "class C:\n    import sys\ndef f():\n    try:\n        [][1]\n    except IndexError:\n"
        "        return C.sys.exc_info()[2].tb_lineno"
    ),
    "a context manager": (
        "class C:\n    def __enter__(self): ...\n    def __exit__(self, kind, error, trace):\n"
        "        self.line = trace.tb_lineno\n        return True\n"
        "def f():\n    c = C()\n    with c:\n        [][1]\n    return c.line"
    ),
    "a record of a logger": (
        "import logging\ntold = []\n"
        "def f():\n    logger = logging.getLogger('x')\n    logger.filter = told.append\n    logger.error('')\n"
        "    return told[0].lineno"
    ),
    "logging to a text": (
        "import logging\ntold = []\nclass Own(logging.StreamHandler):\n    def emit(self, record):\n"
        "        told.append(self.format(record))\n"
        "def f():\n    handler = Own()\n    handler.setFormatter(logging.Formatter('%(lineno)d'))\n"
        "    logger = logging.getLogger('y')\n    logger.propagate = False\n    logger.addHandler(handler)\n"
        "    logger.error('')\n    return told"
    ),
    "a warning": (
        "import warnings\ndef f():\n    with warnings.catch_warnings(record=True) as told:\n"
        "        warnings.simplefilter('always')\n        warnings.warn('')\n    return told[0].lineno"
    ),
    "inspect": "import inspect\ndef f():\n    return inspect.currentframe().f_lineno",
    "inspect of another module": "from dataclasses import inspect\ndef f():\n    return inspect.currentframe().f_lineno",
    "traceback": "import traceback\ndef f():\n    return traceback.extract_stack()[-1].lineno",
}
"""Programs whose result changes if a line is added above them; each is run, to see that it does."""


def result(program: str) -> Any:
    """What `f` of a trusted program returns: these are the tests' own."""
    space: dict[str, Any] = {"__name__": "tested"}
    exec(compile(program, "<tested>", "exec", dont_inherit=True), space)
    return space["f"]()


@pytest.mark.parametrize("name", LINES)
def test_a_program_that_reads_its_lines_has_no_key(name: str) -> None:
    assert result(LINES[name]) != result("#\n" + LINES[name])
    assert code_key(LINES[name]) is None


@pytest.mark.parametrize(
    "module", ["ast", "gc", "io", "linecache", "os", "sys", "types", "numpy", "solution", "codechat"]
)
def test_a_module_that_is_not_listed_is_refused(module: str) -> None:
    for program in (f"import {module}", f"import {module} as m", f"from {module} import x", f"import math, {module}"):
        assert code_key(program) is None
    assert code_key(f"from .{module} import x") is None


@pytest.mark.parametrize(
    "program",
    [
        "import re\ndef f(x):\n    return re.compile('a').match(x)",
        "from typing import List, Optional\ndef f(x: Optional[List[int]]) -> bool:\n    return not x",
        "import functools\n@functools.lru_cache(maxsize=None)\ndef f(x):\n    return x",
        "import logging, time\ndef f(x):\n    logging.getLogger(__name__).debug('%s', time.perf_counter())",
        "def f(x):\n    return type(x) == int or x.__class__.__name__ == 'A' or isinstance(x, str)",
        "class A:\n    def __init__(self):\n        self._x = 1\n    def __eq__(self, other):\n        return True",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1",
        "from collections import *\nfrom itertools import chain\nfrom heapq import heappush",
        "def f(x):\n    'Opens eval and sys.'\n    return {'open': 1, 'email': 2, '__code__': 3}[x]",
        "if __name__ == '__main__':\n    print('ran')",
    ],
)
def test_what_programs_often_use_is_let_through(program: str) -> None:
    assert key(program) == key(f"# a comment\n{program}\n\n# another")


@pytest.mark.parametrize(
    "number",
    ["float('nan')", "float(b'\\fNaN')", "complex('1+nanj')", "Decimal('sNaN1')", "float('-Infinity\\r')", "1e999"],
)
def test_a_number_that_may_be_hashed_by_its_address_is_refused(number: str) -> None:
    assert code_key(f"from decimal import Decimal\ndef f():\n    return str({{{number}}})") is None


@pytest.mark.parametrize("harmless", ["'nanny'", "'of infinity'", "b'\\xff'", f"0x{'f' * 5000}"])
def test_other_constants_are_let_through(harmless: str) -> None:
    assert code_key(f"def f():\n    return str({{{harmless}}})")


def test_tests_may_use_unittest() -> None:
    test = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(f(1))"
    assert code_key(test) is None
    assert code_key(test, frozenset({"unittest"}))
    for more in ("with self.assertWarns(Warning) as caught: f()\n        caught.lineno", "import inspect"):
        assert code_key(f"{test}\n        {more}", frozenset({"unittest"})) is None


# -- properties over real programs ---------------------------------------------------------------------------------


def references() -> list[Task]:
    return [task for task in dataset_tasks("starter") if task.reference and code_key(task.reference)]


@pytest.mark.parametrize("task", references(), ids=lambda task: task.task_id)
def test_a_reference_in_other_forms(task: Task) -> None:
    program = task.reference or ""
    commented = re.sub(r"(?m)^( *)(return|for|if|while) ", r"\1# here\n\1\2 ", program)
    for form in (ast.unparse(ast.parse(program)), commented):
        assert key(form) == key(program)


class Mutants(ast.NodeTransformer):
    """Changes one node of a tree: the one of a number."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.done = ""

    def visit(self, node: ast.AST) -> Any:
        if not self.done and (changed := mutated(node)) is not None:
            self.left -= 1
            if self.left < 0:
                self.done = ast.dump(node)
                return changed
        return self.generic_visit(node)


def mutated(node: ast.AST) -> ast.AST | None:
    """Another program's node; None if this one stays."""
    found: ast.AST | None = None
    match node:
        case ast.Constant(value=bool()):
            found = ast.Constant(int(node.value))
        case ast.Constant(value=int()):
            found = ast.Constant(float(node.value) if node.value < 10**15 else 0)
        case ast.Attribute():
            found = ast.Attribute(node.value, f"{node.attr}_", node.ctx)
        case ast.Add():
            found = ast.Sub()
        case ast.Lt():
            found = ast.LtE()
        case ast.keyword(arg=str()):
            found = ast.keyword(f"{node.arg}_", node.value)
    return found


@pytest.mark.parametrize("task", references(), ids=lambda task: task.task_id)
def test_every_mutant_of_a_reference_is_another_program(task: Task) -> None:
    program, number = task.reference or "", 0
    while True:
        mutant = Mutants(number)
        tree = ast.fix_missing_locations(mutant.visit(ast.parse(program)))
        if not mutant.done:
            break
        assert code_key(ast.unparse(tree)) != key(program), mutant.done
        number += 1
    assert number or "def" in program
