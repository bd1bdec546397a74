"""What a snippet sees outside is what it would see beside the program, or it runs there and the verdict says why."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.sandbox import Sandbox
from codechat.sandbox.suites.assertions import Assertions
from support.machine import sandbox_here

PLAIN = "def f(n=0, *rest, **more):\n    return n * n\n"
KEEPS = "kept = []\ndef f(n):\n    kept.append(n)\n    return kept\n"
DEFAULT = "def f(n, found=[]):\n    found.append(n)\n    return found\n"
STORES = "kept = []\ndef f(one):\n    kept[:] = [one]\ndef g(): return list(kept[0])\n"
PRINTS = "def f(n):\n    print('n' * n)\n    return n\n"
ERRORS = "class A(Exception): pass\nclass B(A): pass\ndef f(n): raise (A if n else B)('no')\n"
CODED = "def f(n):\n    error = ValueError('no')\n    error.code = n\n    raise error\n"
GENERATES = "def f(n):\n    for one in range(n):\n        got = yield one\n"
ARRAY = "def f(one):\n    one[0] = 7\n    return one\n"
CLASS = "class P:\n    def __init__(s, x): s.x = x\ndef f(n): return P(n)\n"
WARNS = "import warnings, logging\ndef f(n):\n    warnings.warn('no')\n    logging.getLogger().warning('no')\n    return n\n"
DECIMAL = "import decimal\ndef f(n): return str(decimal.Decimal(1) / n)\n"
CACHED = "import functools\n@functools.lru_cache\ndef f(n):\n    return n\n"
STOPS = "def f(n): raise StopIteration(n)\n"
COUNTS = "count = 0\ndef f(n=0):\n    global count\n    count += 1\n    return count\n"
HALF = "def f(it):\n    return next(it)\n"

# Program, snippets, whether they pass (inside, what is patched or printed is set back after every statement), and a part of the construct for which they run inside; "" if outside.
Case = tuple[str, tuple[str, ...], bool, str]
CASES: dict[str, Case] = {
    "a call": (PLAIN, ("assert f(3) == 9",), True, ""),
    "named arguments": (PLAIN, ("assert f(n=3, other=2) == 9",), True, ""),
    "a wrong result": (PLAIN, ("assert f(3) == 8",), False, ""),
    "time": (PLAIN, ("import time\nt = time.time()\nassert f(3) == 9 and time.time() - t < 5",), True, "time"),
    "random": ("import random\ndef f(): return random.random()", ("import random\nrandom.seed(1)\na = f()\nrandom.seed(1)\nassert a == f()",), True, "seed"),
    "a later call": ("import random\ndef f(): return random.random()", ("import random\nrandom.seed(1)\na = random.random()\nrandom.seed(1)", "assert a == f()"), True, "seed"),
    "a name of an earlier one": (PRINTS, ("import os\ndef run(n):\n    os.getcwd()\n    return f(n)", "assert run(3) == 3"), True, "os"),
    "warnings": (WARNS, ("import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        with self.assertWarns(UserWarning): f(1)",), True, "assertWarns"),
    "logs": (WARNS, ("import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        with self.assertNoLogs(): f(1)",), False, "assertNoLogs"),
    "the working folder": ("import os\ndef f(): return os.getcwd()", ("import os\nos.chdir('/')\nassert f() == '/'",), True, "chdir"),
    "the environment": ("import os\ndef f(): return os.environ.get('X')", ("import os\nos.environ['X'] = '1'\nassert f() == '1'",), True, "environ"),
    "files": ("def f(name): return open(name).read()", ("with open('x', 'w') as s: s.write('1')\nassert f('x') == '1'",), True, "open"),
    "threads": (PLAIN, ("import threading\nt = threading.Thread(target=f)\nt.start(); t.join()",), True, "threading"),
    "printing": (PRINTS, ("import io, contextlib\nb = io.StringIO()\nwith contextlib.redirect_stdout(b): f(5000)\nassert len(b.getvalue()) == 5001",), True, "redirect_stdout"),
    "printing, replaced": (PRINTS, ("import io, sys\nsys.stdout = b = io.StringIO()\nf(3)\nassert b.getvalue() == 'nnn\\n'",), True, "io"),
    "the system, renamed": (PRINTS, ("import sys as s\nl = s.getrecursionlimit()\nassert f(3) == 3",), True, "sys"),
    "recursion limits": ("def f(n): return n and 1 + f(n - 1)", ("import sys\nsys.setrecursionlimit(90)\ntry: f(200)\nexcept RecursionError: pass\nelse: assert False",), True, "setrecursionlimit"),
    "decimal contexts": (DECIMAL, ("import decimal\ndecimal.getcontext().prec = 3\nassert f(3) == '0.333'",), True, "getcontext"),
    "a local context": (DECIMAL, ("from decimal import localcontext\nwith localcontext() as c:\n    c.prec = 3\n    assert f(3) == '0.333'",), True, "localcontext"),
    "settings of numpy": ("import numpy\ndef f(): return str(numpy.array([1 / 3]))", ("import numpy\nnumpy.set_printoptions(precision=2)\nassert f() == '[0.33]'",), True, "set_printoptions"),
    "a global that changes": (COUNTS, ("f()\nassert f() == 2",), True, ""),
    "a mutable default": (DEFAULT, ("a = f(1)\nf(2)\nassert a == [1]",), False, "keeps"),
    "a mutable default's identity": (DEFAULT, ("assert f(1) is not f(2)",), False, "identity"),
    "its identity by a method": (DEFAULT, ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertIsNot(f(1), f(2))",), False, "identity"),
    "a result that is kept": (KEEPS, ("f(1).append(5)\nassert f(2) == [1, 2]",), False, "keeps"),
    "an argument that is kept": (STORES, ("a = [1]\nf(a)\na.append(2)\nassert g() == [1]",), False, "keeps"),
    "an argument that is not": ("def f(one):\n    def g(n): return n and g(n - 1)\n    g(2)\n    one.append(one[0])\n    return one", ("a = [1]\nassert f(a) == [1, 1] and a == [1, 1]",), True, ""),
    "a function passed": ("def f(g): return g(2)", ("assert f(lambda n: n + 1) == 3",), True, "argument"),
    "an iterator passed": (HALF, ("it = iter([1, 2])\nassert f(it) == 1 and next(it) == 2",), True, "iterator"),
    "an iterator that is not used up": (HALF, ("it = iter([1, 2])\nf(it)\nassert next(it, None) == None",), False, "iterator"),
    "a generator": (GENERATES, ("assert list(f(3)) == [0, 1, 2]",), True, ""),
    "a generator that is driven": (GENERATES, ("g = f(3)\nnext(g)\nassert g.send(1) == 1",), True, "driven"),
    "an array that changes": (ARRAY, ("import numpy\na = numpy.zeros(2)\nb = f(a)\nassert a[0] == 7 and (a == b).all()",), True, ""),
    "an array that stays": (ARRAY, ("import numpy\na = numpy.zeros(2)\nf(a)\nassert a[0] == 0",), False, ""),
    "a class": (CLASS, ("assert P(1).x == 1 and isinstance(f(2), P)",), True, "a name of the program"),
    "an object": (CLASS, ("assert f(2).x == 2",), True, "own class"),
    "builtins patched": ("def f(): return len([1])", ("import builtins\nold, builtins.len = builtins.len, lambda one: 7\ntry: assert f() == 7\nfinally: builtins.len = old",), True, "builtins"),
    "patches": ("import math\ndef f(): return math.pi", ("from unittest import mock\nwith mock.patch('math.pi', 3): assert f() == 3",), True, "mock"),
    "modules": (PLAIN, ("import sys\nassert sys.modules['candidate'].f(3) == 9",), True, "modules"),
    "imported": (PLAIN, ("from candidate import f as g\nassert g(3) == 9",), True, "program as a module"),
    "identity": (KEEPS, ("assert f(1) is f(2)",), True, "identity"),
    "identity of the single": (PLAIN.replace("n * n", "None"), ("assert f() is None",), True, ""),
    "numbers of objects": (KEEPS, ("assert id(f(1)) == id(f(2))",), True, "(id)"),
    "copies": (PLAIN.replace("n * n", "[n]"), ("import copy\nassert copy.deepcopy(f(3)) == [3]",), True, ""),
    "pickles": (PLAIN, ("import pickle\nassert pickle.loads(pickle.dumps(f(3))) == 9",), True, "pickle"),
    "weak references": (PLAIN, ("import weakref\nassert weakref.ref(f)()(3) == 9",), True, "weakref"),
    "a cache": (CACHED, ("f(1)\nf(1)\nassert f.cache_info().hits == 1",), True, "cache_info"),
    "attributes": ("def f(n):\n    f.calls += 1\nf.calls = 0", ("f(1)\nassert f.calls == 1",), True, "attribute calls"),
    "attributes, set": ("def f(): return f.factor", ("f.factor = 3\nassert f() == 3",), True, "attribute factor"),
    "attributes, asked": ("def f(): pass\nf.calls = 0", ("assert not hasattr(f, 'calls')",), False, "attribute calls"),
    "async": ("async def f(n): return n", ("import asyncio\nassert asyncio.run(f(3)) == 3",), True, "asyncio"),
    "its kind": (GENERATES, ("import inspect\nassert not inspect.isgeneratorfunction(f)",), False, "plain function"),
    "its kind by type": ("f = abs", ("import types\nassert isinstance(f, types.FunctionType)",), False, "plain definition"),
    "its name": ("def g(n): return n\nf = g", ("assert f.__name__ == 'f'",), False, "plain definition"),
    "its module": (PLAIN, ("assert f.__module__ == 'candidate' and f.__qualname__ == 'f'",), True, ""),
    "callable": ("f = 5", ("assert callable(f)",), False, "no function"),
    "compiled": (PLAIN, ("import dis\nassert 'BINARY_OP' in dis.Bytecode(f).dis()",), True, "compiled"),
    "doctests": ("def f():\n    '''\n    >>> f()\n    1\n    '''\n    return 1", ("import doctest\nassert doctest.run_docstring_examples(f, {'f': f}) == None",), True, "doctest"),
    "started": (PLAIN, ("import subprocess\nassert subprocess.DEVNULL == -3",), True, "processes"),
    "errors of its own": (ERRORS, ("try: f(1)\nexcept A as e: assert str(e) == 'no'",), True, "a name of the program"),
    "errors below its own": (ERRORS, ("try: f(0)\nexcept ValueError: pass",), False, "base class"),
    "attributes of errors": (CODED, ("try: f(3)\nexcept ValueError as e: assert e.code == 3",), True, "attributes"),
    "error groups": ("def f(): raise ExceptionGroup('x', [ValueError()])", ("try: f()\nexcept* ValueError: pass",), True, "group"),
    "the end of iterators": (STOPS, ("try: f(3)\nexcept StopIteration as e: assert e.value == 3",), True, ""),
    "the end of a map": (STOPS, ("assert [*map(f, [1])] == [5]",), False, ""),
    "except all": ("def f(n): __import__('os')._exit(0)", ("try: f(1)\nexcept BaseException: pass",), False, ""),
}  # fmt: skip


SUM = "def sum(a, b):\n    return a + b + 1\n"
LONGER = "def max(a, b): return a if len(a) > len(b) else b\n"
# Program, entry point, snippets, whether they pass, and where: the program's names are as in one namespace.
NAMED: dict[str, tuple[str, str, tuple[str, ...], bool, str]] = {
    "a builtin's, without an entry point": (SUM, "", ("assert sum(1, 2) == 4",), True, "outside"),
    "a builtin's, which fails": (SUM, "", ("assert sum(1, 2) == 3",), False, "outside"),
    "two builtins'": (SUM + LONGER, "", ("assert sum(1, 2) == 4", "assert max('b', 'aa') == 'aa'"), True, "inside"),
    "another than the entry point": (SUM + PLAIN, "f", ("assert sum(1, 2) == 4", "assert f(2) == 4"), True, "inside"),
    "one that excuses": ("def all(x): return True\n" + PLAIN, "f", ("assert all(f(n) == n for n in (2, 3))",), False, "outside"),
    "one that disturbs": (LONGER + PLAIN, "f", ("assert max(f(2), 3) == 4",), False, "inside"),
    "one that agrees": ("def abs(x): return x if x > 0 else -x\n" + PLAIN, "f", ("assert abs(f(2) - 4) < 1",), True, "inside"),
    "deleted": (SUM + "del sum\n" + PLAIN, "f", ("assert sum([f(2)]) == 4",), True, "outside"),
    "bound in a call": ("def f(n):\n    global sum\n    sum = None\n    return n", "f", ("f(1)\nassert sum is None",), False, "inside"),
    "of a star import": ("from math import *\n" + PLAIN, "f", ("assert sqrt(f(2)) == 2.0",), True, "inside"),
    "of an import": ("import math\nfrom typing import List\n" + PLAIN, "f", ("assert math.sqrt(f(2)) == 2.0 and List",), True, "outside"),
    "a helper": ("from math import isclose\n" + PLAIN, "f", ("assert isclose(f(2), 4)",), True, "inside"),
    "the runner's own": ("_unittest = _cases = _result = name = unittest = _ = None\n" + PLAIN, "f", ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(2), 4)",), True, "outside"),
    "an underscore": ("_ = 5\n" + PLAIN, "f", ("assert f(1) + _ == 6",), True, "inside"),
    "a dunder name": ("'Doc.'\n" + PLAIN, "f", ("assert __doc__ == 'Doc.'",), True, "inside"),
    "of an earlier snippet": ("helper = 1\n" + PLAIN, "f", ("def helper(n): return n", "assert helper(f(2)) == 4"), True, "outside"),
    "the word Stop": (STOPS, "f", ("# Stop\nfor got in map(f, (2, 3)): assert got == 1",), False, "outside"),
    "the end that a test names": (STOPS, "f", ("try: f(1)\nexcept StopIteration: pass\nassert [*map(f, (2,))] == []",), True, "inside"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
async def test_names_are_as_in_one_namespace(sandbox: Any, name: str) -> None:
    program, entry, snippets, passes, decided = NAMED[name]
    verdict = await Assertions(snippets).check(Program(program, Target(entry_point=entry)), sandbox)
    assert (verdict.passed, verdict.decided) == (passes, decided), verdict


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Any]:
    room = sandbox_here(kind="auto", idle_s=2.0, load_cpu_s=2.0)
    yield room
    asyncio.run(room.aclose())


async def assess(sandbox: Sandbox, program: str, snippets: tuple[str, ...]) -> Verdict:
    return await Assertions(snippets).check(Program(program, Target(entry_point="f")), sandbox)


@pytest.mark.parametrize("name", CASES)
async def test_a_snippet_sees_what_it_would_see_inside(sandbox: Any, name: str) -> None:
    program, snippets, passes, construct = CASES[name]
    verdict = await assess(sandbox, program, snippets)
    assert verdict.passed == passes, verdict
    assert verdict.decided == ("inside" if construct else "outside"), verdict
    assert construct in (verdict.inside or ""), verdict


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case[3] and "map" not in name])
async def test_forced_inside_it_ends_alike(sandbox: Any, name: str) -> None:
    program, snippets, passes, _ = CASES[name]
    verdict = await assess(sandbox, program, ("object() is object()", *snippets))
    assert (verdict.passed, verdict.decided) == (passes, "inside"), verdict
