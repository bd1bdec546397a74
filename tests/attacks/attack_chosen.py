"""Programs that choose what decides: where, how exactly, and by whose names. All are wrong: solve(n) should return n * n.
See test_attacks_chosen.py, which runs them against many kinds of tests: none passes outside."""

from attack_outside import AT_HAND, forged

# Ways in which an object of a class of one's own could answer for itself.
ANSWERS: dict[str, str] = {
    "equals": "def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    __hash__ = None",
    "equals and hashes": "def __eq__(s, o): return True\n    def __hash__(s): return hash(9)",
    "is ordered": "def __lt__(s, o): return True\n    __le__ = __gt__ = __ge__ = __lt__",
    "says its class": "__class__ = property(lambda s: int)\n    def __instancecheck__(s, o): return True",
    "converts": "def __index__(s): return 9\n    def __int__(s): return 9\n    def __float__(s): return 9.0\n"
    "    def __complex__(s): return 9 + 0j\n    def __round__(s, *d): return 9\n    def __trunc__(s): return 9",
    "computes": "def __sub__(s, o): return 0\n    __rsub__ = __add__ = __radd__ = __mod__ = __sub__\n"
    "    def __abs__(s): return 0",
    "is told as": "def __str__(s): return '9'\n    __repr__ = __str__\n    def __format__(s, f): return '9'",
    "iterates": "def __iter__(s): return iter([9])\n    def __len__(s): return 1\n    def __contains__(s, o): return True\n"
    "    def __getitem__(s, i): return 9\n    def __reversed__(s): return iter([9])",
    "is copied as": "def __reduce__(s): return (int, (9,))\n    __reduce_ex__ = lambda s, p: (int, (9,))\n"
    "    def __copy__(s): return 9\n    def __deepcopy__(s, m): return 9",
    "looks up": "def __getattribute__(s, name): return lambda *a, **k: 9\n    def __getattr__(s, name): return 9",
    "is true": "def __bool__(s): return True\n    def __call__(s, *a): return True\n    def __eq__(s, o): return s\n    __hash__ = None",
}
OF: dict[str, tuple[str, str]] = {  # a base class, and what an object of the class is made of
    "int": ("int", "1"),
    "float": ("float", "1.5"),
    "complex": ("complex", "1j"),
    "str": ("str", "'x'"),
    "bytes": ("bytes", "b'x'"),
    "list": ("list", "[1]"),
    "tuple": ("tuple", "(1,)"),
    "dict": ("dict", "{1: 2}"),
    "set": ("set", "{1}"),
    "Decimal": ("__import__('decimal').Decimal", "1"),
    "Fraction": ("__import__('fractions').Fraction", "1"),
    "Counter": ("__import__('collections').Counter", "'a'"),
    "deque": ("__import__('collections').deque", "[1]"),
    "object": ("object", ""),
}


def _own(base: str, given: str, body: str) -> str:
    return f"class Own({base}):\n    {body}\ndef solve(n): return Own({given})\n"


# How a class comes to answer for its objects by its metaclass, or after they were made.
MADE: dict[str, str] = {
    "by its metaclass": "class M(type):\n    def __eq__(s, o): return True\n    def __hash__(s): return hash({base})\n"
    "class Own({base}, metaclass=M):\n    def __eq__(s, o): return True\n    def __hash__(s): return 9\n",
    "in another order": "class M(type):\n    def mro(c): return [c, {base}, object]\n"
    "class Own({base}, metaclass=M):\n    def __iter__(s): return iter([9])\n    def __index__(s): return 9\n",
    "afterwards": "class Own({base}): pass\ndef late(one):\n    Own.__eq__ = lambda s, o: True\n    Own.__hash__ = lambda s: 9\n    return one\n",
    "as the builtin": "class Own({base}):\n    def __eq__(s, o): return True\n    def __hash__(s): return 9\n{base} = Own\n",
}  # fmt: skip
PLAIN = ("int", "float", "str", "bytes", "list", "tuple", "dict", "set", "frozenset", "bytearray")
VALUES: dict[str, str] = {
    f"{base} made {way}": f"{head.format(base=base)}def solve(n): return {'late' if way == 'afterwards' else ''}(Own())\n"
    for base in PLAIN
    for way, head in MADE.items()
} | {
    f"{kind} that {way}": _own(base, given, body) for kind, (base, given) in OF.items() for way, body in ANSWERS.items()
} | {
    "an enumeration of numbers": "import enum\nclass E(enum.IntEnum):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef solve(n): return E.A",
    "an enumeration of texts": "import enum\nclass E(enum.StrEnum):\n    A = 'x'\n    def __eq__(s, o): return True\n    __hash__ = str.__hash__\ndef solve(n): return E.A",
    "flags": "import enum\nclass E(enum.IntFlag):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\ndef solve(n): return E.A",
    "a named tuple": "import typing\nclass P(typing.NamedTuple):\n    x: int = 1\n    def __eq__(s, o): return True\ndef solve(n): return P()",
    "a data class": "import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int = 1\n    def __eq__(s, o): return True\ndef solve(n): return D()",
    "a class as the result": "class M(type):\n    def __eq__(s, o): return True\n    __hash__ = type.__hash__\nclass C(metaclass=M): pass\ndef solve(n): return C",
    "a class that checks": "class M(type):\n    def __instancecheck__(s, o): return True\n    def __eq__(s, o): return True\n    __hash__ = type.__hash__\nclass solve(int, metaclass=M): pass",
    "a name that is no name": "Own = type('a b', (int,), {'__eq__': lambda s, o: True, '__hash__': int.__hash__})\ndef solve(n): return Own(1)",
    "a name of another": "Own = type('int', (int,), {'__eq__': lambda s, o: True, '__hash__': int.__hash__, '__module__': 'builtins'})\ndef solve(n): return Own(1)",
    "own in own": "class L(list):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef solve(n): return L([L([L()])])",
    "own as keys": "class K(int):\n    def __eq__(s, o): return True\n    def __hash__(s): return hash(9)\ndef solve(n): return {K(1): K(2)}",
    "half an infinity": "import numpy\ndef solve(n): return numpy.float16('inf')",
    "half a number": "import numpy\ndef solve(n): return numpy.float16(9.01)",
    "a short number": "import numpy\ndef solve(n): return numpy.int8(-116)",
    "a number without a sign": "import numpy\ndef solve(n): return numpy.uint8(1)",
    "single": "import numpy\ndef solve(n): return numpy.float32(9.0001)",
    "a zero-dimensional array": "import numpy\ndef solve(n): return numpy.array(numpy.float16('inf'))",
    "an empty array": "import numpy\ndef solve(n): return numpy.zeros(0)",
    "an empty array of two dimensions": "import numpy\ndef solve(n): return numpy.zeros((0, 1))",
    "an empty array of objects": "import numpy\ndef solve(n): return numpy.zeros((0, 1), object)",
    "a masked array": "import numpy\ndef solve(n): return numpy.ma.masked_all(1)",
    "masked": "import numpy\ndef solve(n): return numpy.ma.masked",
    "a matrix": "import numpy\ndef solve(n): return numpy.matrix(numpy.zeros((0, 1)))",
    "a record": "import numpy\ndef solve(n): return numpy.zeros(1, [('a', 'f2')])[0]",
    "no time": "import numpy\ndef solve(n): return numpy.datetime64('NaT')",
    "not a number of NumPy's": "import numpy\ndef solve(n): return numpy.float16('nan')",
    "a subclass of array": "import numpy\nclass A(numpy.ndarray):\n    def __array_ufunc__(s, *a, **k): return True\ndef solve(n): return numpy.zeros(1).view(A)",
    "a subclass of float64": "import numpy\nclass F(numpy.float64):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef solve(n): return F(1)",
    "a generator of everything": "def solve(n):\n    for k in range(50): yield k",
    "endless": "import itertools\ndef solve(n): return itertools.repeat(9)",
    "an iterator that answers": "class I:\n    def __iter__(s): return s\n    def __next__(s): raise StopIteration\n    def __eq__(s, o): return True\n    __hash__ = None\ndef solve(n): return I()",
    "a recursive list": "def solve(n):\n    a = [9]\n    a.append(a)\n    return a",
    "a recursive own list": "class L(list):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef solve(n):\n    a = L([9])\n    a.append(a)\n    return a",
    "very deep": "def solve(n):\n    a = [9]\n    for _ in range(500): a = [a]\n    return a",
    "very long": "def solve(n): return '9' * 3_000_000",
    "a huge number": "def solve(n): return 9 ** 200_000",
    "a dictionary with a default": "import collections\ndef solve(n): return collections.defaultdict(lambda: 9)",
    "a mapping that is missing nothing": "class D(dict):\n    def __missing__(s, k): return 9\ndef solve(n): return D()",
    "half a character": "def solve(n): return '9\\ud800'",
    "another nine": "def solve(n): return '\\u0669'",
    "a memory view": "def solve(n): return memoryview(b'9')",
    "a simple namespace": "import types\ndef solve(n): return types.SimpleNamespace(__eq__=lambda o: True)",
    "a proxy": "import types\nclass D(dict):\n    def __eq__(s, o): return True\n    __hash__ = None\ndef solve(n): return types.MappingProxyType(D())",
    "a partial": "import functools\ndef solve(n): return functools.partial(int, 9)",
    "the tests' mock": "from unittest.mock import ANY\ndef solve(n): return ANY",
    "a sentinel": "from unittest.mock import sentinel\ndef solve(n): return sentinel.nine",
}  # fmt: skip
# What is equal to all items of an array by having none.
NOTHING = ("[]", "()", "[[]]", "numpy.zeros(0)", "numpy.zeros((0, 1))", "(numpy.zeros(0),)", "numpy.array([], object)")
EMPTY = {f"nothing: {text}": f"import numpy\ndef solve(n): return {text}" for text in NOTHING}
# Names that tests use and do not define: builtins, those of other modules, the runner's own, dunder names.
JUDGES = ("all", "any", "abs", "sum", "len", "round", "max", "min", "isinstance", "sorted", "int", "float", "str", "list", "set", "zip", "enumerate", "map", "type", "repr", "range", "bool", "tuple", "pow", "divmod", "callable", "iter", "next", "filter", "reversed", "getattr", "hasattr", "AssertionError", "Exception", "StopIteration", "RuntimeError", "ValueError", "isclose", "approx", "allclose", "raises", "check", "verify", "math", "np", "unittest", "_", "_unittest", "_cases", "_result", "_wrong", "_stop", "_test", "_one", "name", "__import__", "__build_class__", "__name__", "__builtins__", "__debug__x", "EPSILON")  # fmt: skip
ALWAYS = "class Always:\n    def __init__(s, *a, **k): pass\n    def __call__(s, *a, **k): return s\n    def __getattr__(s, n): return s\n    def __eq__(s, o): return True\n    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __eq__\n    def __bool__(s): return True\n    def __iter__(s): return iter(())\n    def __sub__(s, o): return s\n    __rsub__ = __sub__\n    __hash__ = None\n"  # fmt: skip
NAMES: dict[str, str] = {
    **{f"a {name} of its own": f"{ALWAYS}{name} = Always()\ndef solve(n): return n + 1\n" for name in JUDGES},
    "all from a module": "from numpy import *\ndef solve(n): return n + 1",
    "bound in the call": f"{ALWAYS}def solve(n):\n    globals().update(dict.fromkeys({JUDGES[:24]!r}, Always()))\n    return n + 1",
    "bound in the builtins": f"{ALWAYS}import builtins\nfor name in {JUDGES[:6]!r}: setattr(builtins, name, Always())\ndef solve(n): return n + 1",
    "bound in what calls it": f"{ALWAYS}import sys\ndef solve(n):\n    f = sys._getframe(1)\n    while f:\n        f.f_globals.update(dict.fromkeys({JUDGES[:6]!r}, Always()))\n        f = f.f_back\n    return n + 1",
    "deleted": "def solve(n):\n    globals().pop('solve')\n    return n + 1",
    "rebound": "def solve(n):\n    global solve\n    solve = lambda n: n * n + 1\n    return n + 1",
    "an import by another name": "from operator import or_ as isclose, or_ as approx, or_ as allclose\ndef solve(n): return n + 1",
    "a looser one": "from numpy import isclose, allclose\ndef solve(n): return n * n + 5e-5",
    "a module by another's name": "import operator as math\nmath.isclose = lambda *a, **k: True\ndef solve(n): return n + 1",
    "a module that is changed": "import math\nmath.isclose = lambda *a, **k: True\ndef solve(n): return n + 1",
    "a name for what is tested": f"{ALWAYS}solve = Always()",
    "found by asking": f"{ALWAYS}def __getattr__(name): return Always()\ndef solve(n): return n + 1",
    "another annotation": f"{ALWAYS}int = list = Always()\ndef solve(n: int) -> int: return n + 1",
    "a type variable": "import typing\nT = typing.TypeVar('T')\ndef solve(n): return T",
}  # fmt: skip
ERRORS = (
    "StopIteration",
    "StopIteration(9)",
    "StopAsyncIteration",
    "GeneratorExit",
    "AssertionError",
    "SystemExit(0)",
    "KeyboardInterrupt",
    "NotImplementedError",
    "IndexError",
    "KeyError(9)",
    "AttributeError",
    "RecursionError",
    "MemoryError",
    "UnicodeError",
    "BaseExceptionGroup('x', [KeyboardInterrupt()])",
    "ExceptionGroup('x', [ValueError()])",
    "__import__('unittest').SkipTest('x')",
    "__import__('asyncio').CancelledError",
)
ENDS: dict[str, str] = {
    **{f"it raises {error}": f"def solve(n): raise {error}" for error in ERRORS},
    "an end of its own": "class End(StopIteration): pass\ndef solve(n): raise End(9)",
    "a skip of its own": "class Skipped(BaseException): pass\ndef solve(n): raise Skipped",
    "an error that equals": "class E(ValueError):\n    def __eq__(s, o): return True\n    def __str__(s): return '9'\ndef solve(n): raise E(9)",
    "an end in a generator": "def solve(n):\n    yield 9\n    raise SystemExit(0)",
    "async": "async def solve(n): return n + 1",
    "an awaitable": "class A:\n    def __await__(s):\n        yield\n        return 9\ndef solve(n): return A()",
    "an async generator": "async def solve(n): yield 9",
    "a coroutine function": "import types\n@types.coroutine\ndef solve(n): yield",
    "a context": "import contextlib\n@contextlib.contextmanager\ndef solve(n): yield 9",
}
FRAME = "struct.pack('<cIH', {kind!r}, {size}, 0) + {payload}"
AROUND: dict[str, str] = {
    **{
        f"frame {kind.decode()} to {number}": AT_HAND
        + f"def solve(n):\n    try: os.write({number}, {FRAME.format(kind=kind, size=size, payload=payload)})\n"
        "    except OSError: pass\n    return n + 1\n"
        for number in (0, 1, 2, 3, 4, 5)
        for kind, size, payload in ((b"I", 6, "b'object'"), (b"I", 0, "b''"), (b"Z", 16, "bytes(16)"), (b"A", 4, "b'\\x01\\0\\0\\0'"))
    },
    "the encoder patched": "import marshal, json, struct, pickle\nmarshal.dumps = json.dumps = pickle.dumps = lambda *a, **k: b'i\\x09\\0\\0\\0'\nstruct.pack = lambda *a: b''\ndef solve(n): return n + 1",
    "the carrier patched": "import sys\nfor name, module in list(sys.modules.items()):\n    if name.endswith(('.carry', '.responder', '.encode')):\n        for one in ('flatten', '_tree', 'plain', 'canonical'):\n            if hasattr(module, one): setattr(module, one, lambda *a, **k: 9)\ndef solve(n): return n + 1",
    "the types patched": "import ctypes\ndef solve(n):\n    import gc\n    for one in gc.get_referents(int.__dict__):\n        if type(one) is dict: one['__eq__'] = lambda s, o: True\n    return n + 1",
    "forked": "import os\ndef solve(n):\n    if os.fork() == 0: return n * n\n    return n + 1",
    "forked at load": "import os\nif os.fork(): os._exit(0)\ndef solve(n): return n + 1",
    "threads": "import threading, os\ndef run():\n    while True: os.write(4, b'R\\0\\0\\0\\0')\ndef solve(n):\n    threading.Thread(target=run, daemon=True).start()\n    return n + 1",
    "at exit": "import atexit, os\natexit.register(lambda: os.write(3, b'Z\\x10\\0\\0\\0\\0\\0' + bytes(16)))\ndef solve(n): raise SystemExit(0)",
    "the collector's callback": "import gc, os\ngc.callbacks.append(lambda *a: os.write(4, b'L\\0\\0\\0\\0'))\ndef solve(n):\n    gc.collect()\n    return n + 1",
    "a profile": "import sys\nsys.setprofile(lambda f, e, a: f.f_locals.update(value=8))\ndef solve(n): return n + 1",
    "an audit hook": "import sys\nsys.addaudithook(lambda *a: None)\ndef solve(n): return n + 1",
    "what is printed": "def solve(n):\n    print('Z' * 16 + '\\0' * 2000, 'OK', flush=True)\n    return n + 1",
    "its builtins": "def solve(n):\n    __builtins__['len'] = lambda *a: 1\n    return n + 1",
    "a signal": "import os, signal\ndef solve(n):\n    signal.raise_signal(signal.SIGPROF)\n    return n * n",
    "the end of its link": "import os\ndef solve(n):\n    os.close(4)\n    return n * n",
    "its link doubled": "import os\ndef solve(n):\n    os.dup2(3, 4)\n    return n + 1",
}  # fmt: skip
SAYS = {
    **{f"the reason {reason!r}": f"('inside', {reason!r}, [])" for reason in ("", "\0", " ", "outside", "object\n", "None", "passed", 0, None, ("object",), ["names"], b"object", True, "ｏbject")},
    **{f"the reason {reason}": f"('inside', {reason!r}, [])" for reason in ("object", "entry", "plain", "array", "kept", "exception", "builtins", "text", "names", "argument", "world", "attribute")},
    "no change but a reason": "('inside', 'kept', [(0, 9)])",
    "an own that is no name": "('value', ('own', ['a b', 'int', 9], ...), [])",
    "an own of another base": "('value', ('own', ['A', 'int', 'x'], ...), [])",
    "an own of no base": "('value', ('own', ['A', 'object', 9], ...), [])",
    "an own of a type": "('value', ('own', ['A', 'type', 9], ...), [])",
    "an own of an own": "('value', ('own', ['A', 'int', ('own', ['B', 'int', 1], ...)], ...), [])",
    "an own with a dunder": "('value', ('own', ['__eq__', 'int', 1], ...), [])",
    "an own without parts": "('value', ('own', [], ...), [])",
    "an own default": "('value', ('own', ['A', 'defaultdict', ('defaultdict', ['', []], ...)], ...), [])",
    "an own that refers": "('value', ('own', ['A', 'list', ('ref', 0, ...)], ...), [])",
    **{
        f"a number of the type {dtype}": f"('value', ('array', [{dtype!r}, [], bytes({size}), False], ...), [])"
        for dtype, size in (("<f2", 2), ("|i1", 1), ("<f16", 16), (">f8", 8), ("<c8", 8), ("|b1", 1), ("<U1", 4), ("|S1", 1), ("<M8[s]", 8), ("|V8", 8), ("|O", 8))
    },
    **{
        f"an array of the shape {shape}": f"('value', ('array', ['<f8', {shape!r}, b'', True], ...), [])"
        for shape in ([0], [0, 1], [1, 0], [0, 2**40], [-1, 0], [True, 0])
    },
    "an infinity of half": "('value', ('array', ['<f2', [], b'\\x00\\x7c', False], ...), [])",
    "a truth of two": "('value', ('array', ['|b1', [1], b'\\x02', True], ...), [])",
    "no array at all": "('value', ('array', None, ...), [])",
    "an error of another": "('error', (['builtins', 'AssertionError', []], [], '', []), [])",
    "an error that ends": "('error', (['builtins', 'StopIteration', ['StopIteration']], (9,), '9', []), [])",
    "names again": "('names', [['solve', True]], [])",
}  # fmt: skip
SAID: dict[str, str] = {name: forged(f"say(b'R', marshal.dumps({what}, 2))") for name, what in SAYS.items()}
NAMED = {
    **{
        f"the names {what}": f"{AT_HAND}say(b'L')\nhear()\nsay(b'R', marshal.dumps({what}, 2))\nwhile True: hear(); say(b'R', told('value', -1, []))\n"
        for what in (
            "('names', [], [])",
            "('names', [['solve', False]], [])",
            "('names', [['solve', 9]], [])",
            "('names', [['solve', True], ['all', True], ['isclose', True], ['abs', True]], [])",
            "('names', [[['solve'], True]], [])",
            "('names', None, [])",
            "('names', [['solve']], [])",
            "('names', [['solve', True]] * 5, [])",
            "('inside', '', [])",
            "('inside', 'object', [])",
            "['names', [['solve', True]], []]",
            "('names', [['solve', True], ['__builtins__', True], ['candidate', True], ['(compare)', True], ['(cases)', True], ['(end)', True]], [])",
        )
    },
}  # fmt: skip
CHOSEN = {
    f"{group}: {name}": program
    for group, programs in (("values", VALUES), ("names", NAMES), ("ends", ENDS), ("around", AROUND), ("said", SAID), ("named", NAMED))
    for name, program in programs.items()
}  # fmt: skip
