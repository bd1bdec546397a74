"""Which programs have one behaviour: form changes nothing, whatever else differs does."""

import ast
import re
import sys
import warnings
from typing import Any

import pytest

from codechat.languages import language_of
from codechat.languages.behaviour import Behaving
from codechat.languages.python.behaviour import LONGEST, behaviour
from codechat.tasks import Task
from codechat.testing import dataset_tasks

PLAIN = (
    "def f(xs, y=2):\n    total = 0\n    for x in xs:\n        if x > y:\n            total += x\n    return total\n"
)
FORMS = {
    "comments": PLAIN.replace("total = 0", "total = 0  # so far\n    # now the loop"),
    "layout": PLAIN.replace("\n    for", "\n\n\n    for").replace("if x > y:", "if (\n            x\n            > y):"),
    "indentation": PLAIN.replace("    ", "\t"),
    "form feeds": "\f\n" + PLAIN,
    "line ends": PLAIN.replace("\n", "\r\n"),
    "an encoding, which is a comment in a text": "# -*- coding: utf-7 -*-\n" + PLAIN,
    "a docstring": PLAIN.replace("    total = 0", '    """Add."""\n    total = 0'),
    "two texts in a row": PLAIN.replace("    total = 0", '    """Add."""\n    "it"\n    total = 0'),
    "a module's docstring": '"""A module."""\n' + PLAIN,
    "annotations": PLAIN.replace("(xs, y=2)", "(xs: list[int], y: int | None = 2) -> int"),
    "annotations as texts": PLAIN.replace("(xs, y=2)", "(xs: 'List[int]', y: 'int' = 2) -> 'int'"),
    "an annotation of a local": PLAIN.replace("total = 0", "total: int = 0"),
    "names of locals": PLAIN.replace("total", "amount").replace("x in", "each in").replace("if x >", "if each >").replace(
        "+= x", "+= each"
    ),
    "numbers written otherwise": PLAIN.replace("y=2", "y=0b1_0"),
    "what the compiler computes": PLAIN.replace("y=2", "y=1 + 1"),
    "a statement that does nothing": PLAIN.replace("    return", "    pass\n    return"),
}  # fmt: skip


def key(program: str) -> str:
    found = behaviour(program)
    assert found is not None, program
    return found.unnamed


@pytest.mark.parametrize("form", FORMS)
def test_form_changes_no_behaviour(form: str) -> None:
    assert FORMS[form] != PLAIN
    assert key(FORMS[form]) == key(PLAIN)


def test_names_of_locals_are_part_of_one_of_the_hashes() -> None:
    one, other, again = behaviour(PLAIN), behaviour(FORMS["names of locals"]), behaviour(FORMS["comments"])
    assert one is not None and other is not None and again is not None
    assert one.named != other.named and one.named == again.named


def test_alike_parts_of_two_functions_may_differ_in_the_names_of_locals() -> None:
    part = "def {}(xs):\n    n = 2\n    return [{} + n for {} in xs], (lambda: n)()\n"
    alike = part.format("f", "x", "x") + part.format("g", "x", "x")
    assert key(alike) == key(part.format("f", "x", "x") + part.format("g", "each", "each"))
    assert key(alike) != key(part.format("f", "x", "x") + part.format("h", "x", "x"))


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
def test_whatever_else_differs_is_another_behaviour(one: str, other: str) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    "program",
    [
        "def f(x:",
        "x = '\x00'",
        "x = '\ud800'",
        "",
        "x = 1" + "0" * LONGEST,
        "x = " + "-" * 200 + "1",
        "x = 1 +" * 99 + "1",
    ],
)
def test_what_cannot_be_read_or_takes_long_has_none_that_is_known(program: str) -> None:
    found = behaviour(program)
    assert found is None or program == ""


def test_a_capital_letter_of_another_alphabet_is_the_name_that_python_makes_of_it() -> None:
    assert key("def f(x):\n    return 𝐱") == key("def f(x):\n    return x")


@pytest.mark.parametrize("program", [*FORMS.values(), *(each for pair in PAIRS for each in pair)])
def test_what_was_hashed_before_changes_no_hash(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = behaviour(program)
    monkeypatch.setattr(sys.modules[behaviour.__module__], "_OF_TREES", {})
    assert behaviour.__wrapped__(program) == behaviour(program + "# another text\n" * 2) == first


@pytest.mark.parametrize(
    "end", ["", "\n", "\n\n", "\r", "\r\n", "\n\\\n", "\\\n", "\n#", "\n# \\\n", "\n\f\n", "\n    \n"]
)
def test_the_end_of_a_program_is_read_as_python_reads_it(end: str) -> None:
    program = PLAIN.removesuffix("\n") + end
    try:
        compile(program, "", "exec")
    except SyntaxError:
        return
    assert behaviour(program) in (behaviour(PLAIN), None)


def test_only_python_knows_behaviours() -> None:
    assert isinstance(language_of("python"), Behaving)
    assert not isinstance(language_of("java"), Behaving)


# -- properties over real programs ---------------------------------------------------------------------------------


def references() -> list[Task]:
    return [task for task in dataset_tasks("starter") if task.reference and behaviour(task.reference)]


@pytest.mark.parametrize("task", references(), ids=lambda task: task.task_id)
def test_a_reference_in_other_forms(task: Task) -> None:
    program = task.reference or ""
    commented = re.sub(r"(?m)^( *)(return|for|if|while) ", r"\1# here\n\1\2 ", program)
    assert ast.dump(ast.parse(commented)) == ast.dump(ast.parse(program))
    for form in (ast.unparse(ast.parse(program)), commented, f"'''Said.'''\n{program}", undocumented(program)):
        assert key(form) == key(program)


def undocumented(program: str) -> str:
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


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
        found = behaviour(ast.unparse(tree))
        assert found is None or found.unnamed != key(program), mutant.done
        number += 1
    assert number or "def" in program


def test_warnings_of_a_program_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert behaviour("def f(x):\n    return x is 3 or '\\d'  # warns\n")
