"""Classes and beginnings of modules that tell how they are written, without naming what tells it."""

import re
import typing
from typing import Any

import pytest

from codechat.languages.python.behaviour import behaviour, looks_inside

WATCH = 'class Watch:\n    def __init__(self, name="", bases=(), space=()):\n        self.space = list(space)\n'
TOLD = "def f():\n    return len(A.space)\n"
FIELD = "from dataclasses import dataclass, fields\n@dataclass\nclass A:\n    x: int = 1\n    def g(self):\n        "
SHOWN = "@dataclass(init=False)\nclass B(A):\n    y: int = 2\ndef f():\n    return repr(B())\n"
COPIED = (
    "import copy\nclass K: ...\nclass C:\n    PLACE\ndef get():\n    return C\n"
    "copy.dispatch_table[K] = lambda o: (get, (), (None, {'__match' + '_args__': ('__do' + 'c__',)}))\ncopy.copy(K())\n"
    "def f():\n    match C():\n        case C(told):\n            return told\n"
)
TEXT = ('"""TEXT"""', '"""Other"""')
MISSING = ('"""TEXT"""', "pass")
DIFFERENT = {
    "an object as a base": (f"{WATCH}base = Watch()\nclass A(base):\n    PLACE\n{TOLD}", MISSING),
    "a call as a base": (f"{WATCH}class A(Watch()):\n    PLACE\n{TOLD}", MISSING),
    "an item as a base": (f"{WATCH}bases = [Watch()]\nclass A(bases[0]):\n    PLACE\n{TOLD}", MISSING),
    "an attribute as a base": (
        f"{WATCH}class Holds:\n    base = Watch()\nclass A(Holds.base):\n    PLACE\n{TOLD}",
        MISSING,
    ),
    "a base that a decorator makes": (
        f"{WATCH}def made(kind):\n    return Watch()\n@made\nclass B: ...\nclass A(B):\n    PLACE\n{TOLD}",
        MISSING,
    ),
    "a base that a function of a module makes": (
        f"from operator import call as dataclass\n@dataclass\n{WATCH}class A(Watch):\n    PLACE\n{TOLD}",
        MISSING,
    ),
    "a base of an earlier class's name": (
        f"{WATCH}def change():\n    global Watch\n    Watch = Watch()\nchange()\nclass A(Watch):\n    PLACE\n{TOLD}",
        MISSING,
    ),
    "a base that was put into a module": (
        f"import math\n{WATCH}math.told = Watch()\nclass A(math.told):\n    PLACE\n{TOLD}",
        MISSING,
    ),
    "a data class that documents itself by its defaults": (
        "from dataclasses import dataclass\ntold = []\nclass D:\n    def __repr__(self):\n        told.append(1)\n"
        "        return ''\n@dataclass\nclass A:\n    PLACE\n    x: object = D()\ndef f():\n    return len(told)\n",
        MISSING,
    ),
    "a field of another name, in text": (f"{FIELD}PLACE\nfields(A)[0].name = 'g.__do' + 'c__'\n{SHOWN}", TEXT),
    "a field of another name, by setattr": (
        f"{FIELD}PLACE\nsetattr(fields(A)[0], 'name', 'g.__do' + 'c__')\n{SHOWN}",
        TEXT,
    ),
    "a field of another name, read by asdict": (
        "from dataclasses import asdict, dataclass, fields\n@dataclass\nclass A:\n    PLACE\n    x: int = 1\n"
        "for each in fields(A):\n    each.name = '__do' + 'c__'\ndef f():\n    return asdict(A())\n",
        TEXT,
    ),
    "an attribute that a copy sets": (COPIED, TEXT),
    "an annotation before its import": (
        "xPLACE = 3\nfrom typing import List\ndef f():\n    return x\n",
        (": List", ""),
    ),
    "a function before the import of its annotation": (
        "if True:\n    def f(xPLACE = 3):\n        return x\nfrom typing import List\n",
        (": List[int]", ""),
    ),
    "a union that typing keeps": (
        "from typing import Deque, List, Union\ndef g(xPLACE): ...\n"
        "def f():\n    return str(List[Deque[Union[bytearray, range]]])\n",
        (": List[Deque[Union[range, bytearray]]]", ""),
    ),
    "a text between the docstring and the future": (
        '"""What it is."""\nPLACEfrom __future__ import annotations\ndef f():\n    return 1\n',
        ("'more'\n", ""),
    ),
}
"""A program with a PLACE, and what stands there: two texts that Python does not run alike."""


def result(program: str) -> str:
    """What `f` of a trusted program returns, or how the program ends; `typing` has kept nothing before."""
    for forget in typing._cleanups:  # type: ignore[attr-defined]
        forget()
    space: dict[str, Any] = {"__name__": "tested"}
    try:
        exec(compile(program, "<tested>", "exec", dont_inherit=True), space)
        return re.sub(r"0x[0-9a-f]+", "", str(space["f"]()))
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("name", DIFFERENT)
def test_two_programs_that_do_different_things_share_nothing(name: str) -> None:
    program, places = DIFFERENT[name]
    one, other = (program.replace("PLACE", place) for place in places)
    assert result(one) != result(other), "the programs do the same, so that this test shows nothing"
    first, second = behaviour(one), behaviour(other)
    assert first is None or second is None or first.unnamed != second.unnamed


@pytest.mark.parametrize(
    "program",
    [
        "class Wrong(ValueError, KeyError):\n    PLACE\nclass Worse(Wrong):\n    x = 1",
        "from abc import ABC\nclass Shape(ABC):\n    PLACE\nclass Square(Shape):\n    x = 1",
        "from collections import namedtuple\nclass Point(namedtuple('Point', 'x y')):\n    PLACE",
        "import collections\nclass Ordered(collections.OrderedDict):\n    PLACE",
        "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass Stack(Generic[T]):\n    PLACE\n"
        "class Words(Stack[str], dict):\n    x = 1",
        "import functools\n@functools.total_ordering\nclass A:\n    PLACE\nclass B(A):\n    x = 1",
    ],
)
def test_docstrings_of_usual_classes_change_nothing(program: str) -> None:
    without = behaviour(program.replace("PLACE", "pass"))
    assert without is not None
    assert behaviour(program.replace("PLACE", '"""What it is."""')) == without


def test_a_union_in_an_annotation_changes_nothing_where_no_other_is_made() -> None:
    program = "from typing import List, Union\ndef f(x: List[Union[int, str]]):\n    return x\n"
    assert behaviour(program) is not None
    assert behaviour(program) == behaviour(program.replace(": List[Union[int, str]]", ""))


def test_data_classes_share_what_is_no_docstring() -> None:
    program = "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    name: str = field(default='')\n"
    known = behaviour(program)
    assert known is not None
    assert behaviour(f"{program}# a comment\n") == known


def test_tests_that_may_read_lines_look_inside() -> None:
    test = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
    assert looks_inside(f"{test}        with self.assertWarns(Warning) as told:\n            f()\n        told.lineno")
    assert looks_inside(f"{test}        with self.assertLogs() as told:\n            f()\n        assert told.output")
