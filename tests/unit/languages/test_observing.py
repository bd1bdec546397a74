"""Programs that could tell how they are written have no known behaviour: every way that is known, and what is let
through."""

import ast
import re
import sys
from typing import Any

import pytest

from codechat.languages.python.behaviour import behaviour, looks_inside
from codechat.languages.python.nodes import nodes_of
from codechat.languages.python.observing import BUILTINS, FRAMES, MODULES, REVEALING, observes

TYPE_PARAMETERS = "(), " if sys.version_info >= (3, 13) else ""  # what Python 3.13 asks for further
DOCUMENTED = 'def g():\n    """TEXT"""\n\n\n'
TRICKS = {
    "its documentation": "def f():\n    return g.__doc__",
    "the module's": '"""TEXT"""\ndef f():\n    return __doc__',
    "by a written name": "def f():\n    return getattr(g, '__doc__')",
    "by a name that is put together": "def f():\n    return getattr(g, '__' + 'doc' + '__')",
    "by another name of getattr": "a = getattr\ndef f():\n    return a(g, '__' + 'doc__')",
    "by a field of a format": "def f():\n    return '{0.__doc__}'.format(g)",
    "by a field within a field": "def f():\n    return '{:{0.__doc__}}'.format(g, 1) if 0 else '{0.__doc__}'.format(g)",
    "by a format that is put together": "def f():\n    return ('{0._' + '_doc__}').format(g)",
    "by an unbound format": "def f():\n    return str.format('{0._' + '_doc__}', g)",
    "by format_map": "def f():\n    return ('{g._' + '_doc__}').format_map({'g': g})",
    "by a formatter": "import string\ndef f():\n    return string.Formatter().format('{0._' + '_doc__}', g)",
    "by attrgetter": "import operator\ndef f():\n    return operator.attrgetter('__doc' + '__')(g)",
    "by attrgetter of another name": "from operator import attrgetter as a\ndef f():\n    return a('__doc' + '__')(g)",
    "by methodcaller": (
        "import operator\ndef f():\n    return operator.methodcaller('__getattr' + 'ibute__', '__doc' + '__')(g)"
    ),
    "by a pattern": "def f():\n    match g:\n        case object(__doc__=told):\n            return told",
    "by what copies it": (
        "import functools\nclass Spy:\n    def __setattr__(self, name, value):\n        told.append(value)\n"
        "told = []\ndef f():\n    functools.update_wrapper(Spy(), g, updated=())\n    return str(told)"
    ),
    "by wraps of what is no function": (
        "import functools\nclass Spy:\n    def __setattr__(self, name, value):\n        told.append(value)\n"
        "told = []\ndef f():\n    functools.wraps(g, updated=())(Spy())\n    return str(told)"
    ),
    "by a subclass of property": (
        "class Spy(property):\n    def __setattr__(self, name, value):\n        told.append(value)\n"
        "told = []\ndef f():\n    Spy(g)\n    return str(told)"
    ),
    "by a class that is made of a text": (
        "from functools import cached_property\ntold = []\n"
        "def f():\n    spy = type('S', (cached_property,), {'__set' + 'attr__': lambda s, n, v: told.append(v)})\n"
        "    spy(g)\n    return str(told)"
    ),
    "by type, got by a comparison": (
        "from functools import cached_property\ntold = []\n"
        "class Take:\n    def __eq__(self, other):\n        self.kind = other\n        return True\n"
        "def f():\n    take = Take()\n    type(int) == take\n"
        "    take.kind('S', (cached_property,), {'__set' + 'attr__': lambda s, n, v: told.append(v)})(g)\n"
        "    return str(told)"
    ),
    "by type, got by a pattern": (
        "from functools import cached_property\ntold = []\n"
        "def f():\n    match int:\n        case object(__class__=kind):\n            pass\n"
        "    kind('S', (cached_property,), {'__set' + 'attr__': lambda s, n, v: told.append(v)})(g)\n"
        "    return str(told)"
    ),
    "by type, got from an annotation": (
        "from functools import cached_property\nfrom typing import Type, get_origin\ntold = []\n"
        "def f():\n    kind = get_origin(Type[int])\n"
        "    kind('S', (cached_property,), {'__set' + 'attr__': lambda s, n, v: told.append(v)})(g)\n"
        "    return str(told)"
    ),
    "by the names of a module": "def f():\n    return globals()['g'].__getattribute__('__doc__')",
    "by vars": "class C:\n    'TEXT'\ndef f():\n    return str(vars(C)['__doc__'])",
    "by a metaclass": (
        "class M(type):\n    def __new__(cls, name, bases, space):\n        told.append(str(space))\n"
        "        return super().__new__(cls, name, bases, space)\ntold = []\n"
        "class C(metaclass=M):\n    'TEXT'\ndef f():\n    return told[-1]"
    ),
    "by help": "import pydoc\ndef f():\n    return pydoc.render_doc(g)",
    "by eval": "def f():\n    return eval('g.__do' + 'c__')",
    "by exec": "def f():\n    space = {'g': g}\n    exec('told = g.__do' + 'c__', space)\n    return space['told']",
    "by a forward reference": (
        "from typing import List, get_args\ndef run(self):\n"
        f"    return self._evaluate({{'g': g}}, {{}}, {TYPE_PARAMETERS}recursive_guard=frozenset())\n"
        "def f():\n    return run(get_args(List['g.__' + 'doc__'])[0])"
    ),
    "by import": "def f():\n    return __import__('inspect').getdoc(g)",
    "by inspect": "import inspect\ndef f():\n    return inspect.getdoc(g)",
    "by a module of a module": "import dataclasses\ndef f():\n    return dataclasses.inspect.getdoc(g)",
    "by a module from a module": "from dataclasses import inspect\ndef f():\n    return inspect.getdoc(g)",
    "by its constants": "def f():\n    return str(g.__code__.co_consts)",
    "by doctest": "import doctest\ndef f():\n    return doctest.DocTestFinder().find(g, 'g')[0].docstring",
}
"""What tells the documentation TEXT of `g`; each is run, to see that it does."""

LINES = {
    "a traceback": (
        "def f():\n    try:\n        g(1)\n    except TypeError as error:\n        return error.__traceback__.tb_lineno"
    ),
    "a frame": "import sys\ndef f():\n    return sys._getframe().f_lineno",
    "a frame of a module of two names": (
        "import sys as m\ntake = m._getframe\nimport math as m\ndef f():\n    return take().f_lineno"
    ),
    "a generator's frame": "def h():\n    yield 1\ndef f():\n    return h().gi_frame.f_lineno",
    "a generator's frame by its name": (
        "def h():\n    yield 1\ndef f():\n    return getattr(getattr(h(), 'gi_frame'), 'f_lineno')"
    ),
    "a code object": "def f():\n    return g.__code__.co_firstlineno",
    "a module in a class": (
        "class C:\n    import sys\ndef f():\n    try:\n        g(1)\n    except TypeError:\n"
        "        return C.sys.exc_info()[2].tb_lineno"
    ),
    "a record of a logger": (
        "import logging\ntold = []\n"
        "def f():\n    logger = logging.getLogger('x')\n    logger.filter = told.append\n    logger.error('')\n"
        "    return told[0].lineno"
    ),
    "a warning": (
        "import warnings\ndef f():\n    with warnings.catch_warnings(record=True) as told:\n"
        "        warnings.simplefilter('always')\n        warnings.warn('')\n    return told[0].lineno"
    ),
    "inspect": "import inspect\ndef f():\n    return inspect.currentframe().f_lineno",
    "traceback": "import traceback\ndef f():\n    return traceback.extract_stack()[-1].lineno",
    "logging to a text": (
        "import io, logging\ndef f():\n    told = io.StringIO()\n    logger = logging.getLogger('y')\n"
        "    logger.propagate = False\n"
        "    handler = logging.StreamHandler(told)\n    handler.setFormatter(logging.Formatter('%(lineno)d'))\n"
        "    logger.addHandler(handler)\n    logger.error('')\n    return told.getvalue()"
    ),
}
"""What tells the number of a line; each is run."""

NAMES = {
    "locals": "def f():\n    LOCAL = 1\n    return list(locals())",
    "dir": "def f():\n    LOCAL = 1\n    return dir()",
    "vars": "def f():\n    LOCAL = 1\n    return list(vars())",
    "code": "def f():\n    LOCAL = 1\n    return f.__code__.co_varnames",
    "a frame": "import sys\ndef f():\n    LOCAL = 1\n    return list(sys._getframe().f_locals)",
    "eval": "def f():\n    LOCAL = 1\n    return eval('LOC' + 'AL')",
    "an exception": (
        "def f():\n    try:\n        LOCAL\n    except NameError as error:\n        return str(error)\n    LOCAL = 1"
    ),
    "an exception's name": (
        "def f():\n    def h():\n        return LOCAL\n    try:\n        h()\n    except NameError as error:\n"
        "        return error.args\n    LOCAL = 1"
    ),
    "the body of a class": (
        "def f():\n    LOCAL = 1\n    class C:\n        OTHER = 2\n        found = LOCAL\n    return C.found"
    ),
}
"""What tells the name LOCAL of a variable; each is run."""

ANNOTATIONS = {
    "annotations": "def h(x: TYPE): ...\ndef f():\n    return h.__annotations__",
    "type hints": "import typing\ndef h(x: TYPE): ...\ndef f():\n    return typing.get_type_hints(h)",
    "signature": "import inspect\ndef h(x: TYPE): ...\ndef f():\n    return inspect.signature(h)",
    "dispatch": (
        "from functools import singledispatch\n@singledispatch\ndef h(x):\n    return 'else'\n"
        "@h.register\ndef own(x: TYPE):\n    return 'own'\ndef f():\n    return h(1)"
    ),
    "a dataclass": (
        "from dataclasses import dataclass, fields\n@dataclass\nclass C:\n    x: TYPE = 1\n"
        "def f():\n    return str(fields(C)[0].type)"
    ),
    "of a class": "class C:\n    x: TYPE = 1\ndef f():\n    return C.__annotations__",
    "of the module": "x: TYPE = 1\ndef f():\n    return __annotations__",
}
"""What tells the annotation TYPE; each is run."""


def result(program: str) -> str:
    """What `f` of a trusted program returns: these are the tests' own."""
    space: dict[str, Any] = {"__name__": "tested"}
    exec(compile(program, "<tested>", "exec", dont_inherit=True), space)
    try:
        return re.sub(r"0x[0-9a-f]+", "", str(space["f"]()))
    except Exception as error:
        return repr(error)


def variants(kind: dict[str, str], old: str, new: str) -> list[Any]:
    return [pytest.param(each, each.replace(old, new), id=name) for name, each in kind.items()]


TELLING = [
    *variants(
        {name: each if each[0] == '"' else DOCUMENTED + each for name, each in TRICKS.items()}, "TEXT", "Other words."
    ),
    *variants({name: "#\n" + DOCUMENTED + each for name, each in LINES.items()}, "#\n", "#\n#\n"),
    *variants(NAMES, "LOCAL", "OTHER"),
    *variants(ANNOTATIONS, "TYPE", "int"),
]


@pytest.mark.parametrize(("one", "other"), [pytest.param(*each.values, id=each.id) for each in TELLING])
def test_two_programs_that_tell_share_nothing(one: str, other: str) -> None:
    one, other = one.replace("TYPE", "str"), other.replace("TYPE", "str")
    assert result(one) != result(other), "the program tells nothing, so that this test shows nothing"
    first, second = behaviour(one), behaviour(other)
    assert first is None or second is None or first.unnamed != second.unnamed


@pytest.mark.parametrize("name", sorted(BUILTINS | REVEALING | FRAMES))
def test_a_listed_name_is_refused_wherever_it_stands(name: str) -> None:
    assert behaviour(f"def f():\n    return {name}") is None
    assert behaviour(f"{name} = 1") is None
    if name not in BUILTINS:
        assert behaviour(f"def f(x):\n    return x.{name}") is None
        assert behaviour(f"def f(x):\n    return getattr(x, '{name}')") is None
        assert behaviour(f"from math import {name}") is None


@pytest.mark.parametrize(
    "name",
    [
        *("__doc__", "__annotations__", "__code__", "__dict__", "__globals__", "__closure__", "__defaults__"),
        *("__kwdefaults__", "__wrapped__", "__builtins__", "__file__", "__loader__", "__spec__", "__cached__"),
        *("__traceback__", "__context__", "__cause__", "__subclasses__", "__bases__", "__base__", "__mro__"),
        *("__getattribute__", "__getattr__", "__setattr__", "__init_subclass__", "__prepare__", "__set_name__"),
        *("__del__", "__exit__", "__aexit__", "__self__", "__func__", "__module__", "__qualname__", "__slots__"),
        *("__import__", "__match_args__", "__class_getitem__", "__reduce__", "__type_params__", "__annotate__"),
    ],
)
def test_a_special_name_that_is_not_listed_is_refused(name: str) -> None:
    for program in (f"x = {name}", f"def f(x):\n    return x.{name}", f"class C:\n    def {name}(self): ..."):
        assert behaviour(program) is None, program


@pytest.mark.parametrize(
    "module",
    [
        *("ast", "asyncio", "atexit", "builtins", "code", "codeop", "contextlib", "ctypes", "dis", "doctest", "enum"),
        *("faulthandler", "gc", "importlib", "inspect", "io", "linecache", "marshal", "numpy", "opcode", "os", "pdb"),
        *(
            "pickle",
            "pkgutil",
            "pydoc",
            "random",
            "runpy",
            "secrets",
            "subprocess",
            "symtable",
            "sysconfig",
            "tokenize",
        ),
        *("trace", "traceback", "tracemalloc", "types", "uuid", "warnings", "weakref", "candidate", "solution"),
    ],
)
def test_a_module_that_is_not_listed_is_refused(module: str) -> None:
    assert module not in MODULES
    for program in (f"import {module}", f"import {module} as m", f"from {module} import x", f"import math, {module}"):
        assert behaviour(program) is None


@pytest.mark.parametrize(
    "program",
    [
        "from math import *",
        "from . import x",
        "import collections.abc",
        "import math\ndef f(x):\n    return x(math)",
        "import math\nm = math",
        "import typing\ndef f(x):\n    return typing.sys",
        "import re\ndef f(x):\n    return re._compile",
        "if True:\n    import math",
        "class C:\n    import math",
        "def f(x):\n    return x._private",
        "def f(x):\n    return type(x)",
        "def f(x):\n    return type(x)(1)",
        "def f(x):\n    return x.__class__",
        "int = 1\ndef f(x):\n    return type(x) == int",
        "import logging\nlogger = logging.getLogger(__name__)",
        "from logging import getLogger",
        "import functools\ndef f(x):\n    return functools.wraps(x)",
        "from functools import wraps as w",
        "def f(x):\n    return '{0[a]}'.format(x)",
        "def f(x):\n    return '{{{0.a}}}'.format(x)",
    ],
)
def test_other_forms_that_are_refused(program: str) -> None:
    assert behaviour(program) is None


@pytest.mark.parametrize(
    "program",
    [
        "import re\ndef f(x):\n    return re.compile('a').match(x)",
        "import sys\nsys.setrecursionlimit(5000)\ndef f(x):\n    return min(x, sys.maxsize)",
        "from typing import List, Optional\ndef f(x: Optional[List[int]]) -> bool:\n    return not x",
        "import functools\n@functools.lru_cache(maxsize=None)\ndef f(x):\n    return x",
        "import functools\ndef d(g):\n    @functools.wraps(g)\n    def h(*a):\n        return g(*a)\n    return h",
        "import logging, time\ndef f(x):\n    logging.getLogger(__name__).debug('%s', time.perf_counter())",
        "def f(x):\n    return type(x) == int or type(x) is bool or type(x).__name__ == 'A' or isinstance(x, str)",
        "def f(x):\n    return getattr(x, 'real', 0) or hasattr(x, '__len__')",
        "def f(x):\n    return '{} of {:>3} is {:.2f} or {0!r}'.format(x, 1, 2.0)",
        "class A:\n    def __init__(self):\n        self._x = 1\n    def __eq__(self, other):\n        return True",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1",
        "from collections import Counter, defaultdict\nfrom itertools import chain\nfrom heapq import heappush",
        "def f(x):\n    try:\n        return int(x)\n    except ValueError as error:\n        raise TypeError from error",
    ],
)
def test_what_programs_often_use_is_let_through(program: str) -> None:
    assert observes(nodes_of(ast.parse(program))) == ""
    assert behaviour(program) is not None


def test_tests_may_look_too() -> None:
    assert not looks_inside("assert f(1) == 2")
    assert not looks_inside(
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(f(1))"
    )
    for snippet in (
        "assert f.__doc__",
        "import inspect\nassert inspect.signature(f)",
        "import radon.complexity",
        "import ast",
        "from mccabe import get_code_complexity",
        "assert open('temp.py')",
        "import solution",
        "assert f(",
    ):
        assert looks_inside(snippet)
