"""Programs that try to pass assertions decided in another process, where nothing of theirs lives. All are wrong:
solve(n) should return n * n. See test_attacks_outside.py."""

# What a hostile candidate has at hand: the socket to the tester, and its messages.
AT_HAND = """
import marshal, os, struct, sys, socket
def say(kind, payload=b""): os.write(4, struct.pack("<cI", kind, len(payload)) + payload)
def told(*value): return marshal.dumps(value, 2)
def hear():
    data = b""
    while len(data) < 5: data += os.read(4, 5 - len(data))
    kind, size = struct.unpack("<cI", data)
    data = b""
    while len(data) < size: data += os.read(4, size - len(data))
    return kind, data
FUNCTION = told("function", None)
def serve(answer):
    say(b"L")
    while True:
        kind, data = hear()
        if kind == b"N": say(b"R", FUNCTION if data == b"solve" else told("missing", None))
        else: answer(data)
"""


def forged(answer: str) -> str:
    """A program that answers calls by itself: `answer` is the body of a function of the call's bytes, `data`."""
    return f"{AT_HAND}\ndef answer(data):\n    {answer}\nserve(answer)\n"


def result(expression: str, before: str = "") -> str:
    """A program whose function returns the value of `expression`, after the definitions `before`."""
    return f"{before}\ndef solve(n: int) -> int:\n    return {expression}\n"


YES = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = __lt__
    def __bool__(self): return True
    def __getitem__(self, key): return self
    def __iter__(self): return iter([self])
    def __len__(self): return 1
    def __hash__(self): return hash(9)
    def __getattr__(self, name): return self
    def __call__(self, *rest, **more): return self
    def __sub__(self, other): return 0
    __rsub__ = __sub__
"""
EQUAL = "import collections, numpy\nclass Yes:\n    def __eq__(self, other): return True\n    __hash__ = None"
# Results that answer for themselves. They are not plain: these programs choose to be judged inside.
LYING: dict[str, str] = {
    "equal to everything": result("Yes()", YES),
    "in a list": result("[Yes()]", YES),
    "in a dict": result("{9: Yes(), 'a': Yes()}", YES),
    "as a class": result("Meta('Y', (), {})", YES.replace("class Yes:", "class Meta(type):")),
    "a slot of int": result("Odd(n)", "class Odd(int):\n    __eq__ = int.__ne__\n    __hash__ = int.__hash__"),
    "a slot of float": result("Odd(n)", "class Odd(float):\n    __eq__ = float.__ne__\n    __hash__ = float.__hash__"),
    "a slot of list": result("Odd()", "class Odd(list):\n    __eq__ = list.__ne__\n    __hash__ = None"),
    "proxy": result("weakref.proxy(kept)", "import weakref" + YES + "kept = Yes()"),
    "mapping proxy": result("types.MappingProxyType(M())", "import types" + YES + "class M(Yes, dict): pass"),
    "user list": result("L([0])", "import collections\nclass L(collections.UserList):\n    def __eq__(s, o): return True"),
    "user dict": result("L()", "import collections\nclass L(collections.UserDict):\n    def __eq__(s, o): return True"),
    "user string": result("S('')", "import collections\nclass S(collections.UserString):\n    def __eq__(s, o): return True"),
    "objects in an array": result("numpy.array([Yes()], dtype=object)", EQUAL),
    "an array of objects": result("numpy.array(Yes(), dtype=object)", EQUAL),
    "a subclass of array": result("numpy.zeros(1).view(A)", "import numpy\nclass A(numpy.ndarray):\n    def __eq__(s, o): return True"),
    "any": result("ANY", "from unittest.mock import ANY"),
    "a mock": result("M()", "from unittest.mock import MagicMock\ndef M():\n    m = MagicMock()\n    m.__eq__.return_value = True\n    return m"),
    "another class, it says": result("C()", "class C(int):\n    __class__ = property(lambda s: int)\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__"),
    "a named tuple": result("P(0)", "import collections\nclass P(collections.namedtuple('P', 'x')):\n    def __eq__(s, o): return True\n    __hash__ = tuple.__hash__"),
    "an enumeration": result("E.A", "import enum\nclass E(enum.IntEnum):\n    A = 1\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__"),
    "a data class": result("D()", "import dataclasses\n@dataclasses.dataclass(eq=False)\nclass D:\n    def __eq__(s, o): return True"),
    "a subclass of bool's base": result("B(n)", "class B(int):\n    def __eq__(s, o): return True\n    def __hash__(s): return 9"),
    "a string": result("S('x')", "class S(str):\n    def __eq__(s, o): return True\n    __hash__ = str.__hash__"),
    "a fraction": result("F(1)", "import fractions\nclass F(fractions.Fraction):\n    def __eq__(s, o): return True\n    __hash__ = fractions.Fraction.__hash__"),
    "a decimal": result("D(1)", "import decimal\nclass D(decimal.Decimal):\n    def __eq__(s, o): return True\n    __hash__ = decimal.Decimal.__hash__"),
    "a coroutine": "async def solve(n: int) -> int: return n + 1\n",
    "a function": result("lambda *a: True"),
    "itself": result("solve"),
    "in a list of a library": result("collections.UserList([Yes()])", EQUAL),
    "in a mapping of the library": result("collections.ChainMap({'a': Yes()})", EQUAL),
    "only its items": result("G()", "class G:\n    def __getitem__(self, key): return self\n    __eq__ = object.__eq__"),
}  # fmt: skip
# Plain values that compare oddly.
ODD: dict[str, str] = {
    "not a number": result("float('nan')"),
    "nan in a list": result("[float('nan')]"),
    "not implemented": result("NotImplemented"),
    "ellipsis": result("..."),
    "decimal nan": result("decimal.Decimal('NaN')", "import decimal"),
    "signalling nan": result("decimal.Decimal('sNaN')", "import decimal"),
    "an empty array": result("numpy.zeros((0, 3))", "import numpy"),
    "an array of everything": result("numpy.arange(100)", "import numpy"),
    "an array of shape zero": result("numpy.zeros((10**9, 0))", "import numpy"),
    "an array without bytes": result("numpy.zeros(0, 'U0')", "import numpy"),
    "a structured array": result("numpy.zeros(1, [('a', int)])", "import numpy"),
    "an array of dates": result("numpy.zeros(1, 'M8[s]')", "import numpy"),
    "an array without strides": result("numpy.broadcast_to(1, (10**12,))", "import numpy"),
    "odd truths": result("numpy.frombuffer(b'\\x02\\x03', dtype=bool)", "import numpy"),
    "a set of everything": result("set(range(1000))"),
    "an iterator of everything": result("iter(range(1000))"),
    "a default": result("collections.defaultdict(int)", "import collections"),
    "a counter": result("collections.Counter()", "import collections"),
    "infinity": result("float('inf')"),
    "a complex": result("complex(n * n, 1e-30)"),
    "minus zero": result("-0.0"),
    "true": result("True"),
    "nothing": result("None"),
    "text of it": result("str(n * n)"),
    "bytes of it": result("bytes([n * n])"),
    "a range": result("range(n * n)"),
    "a type": result("int"),
    "nested": result("[n * n]"),
    "its argument": result("n"),
}
HUNT = """
import ctypes, gc, os, sys
def hunt():
    found = []
    def look(one):
        if type(one) is bytes and len(one) == 16: found.append(one)
    for number in range(256):
        try: os.lseek(number, 0, 0); data = os.read(number, 1 << 20)
        except OSError: continue
        found += [data[at:at + 16] for at in range(0, len(data), 16)]
    for one in gc.get_objects():
        if type(one) is dict: [look(value) for value in list(one.values())]
        if type(one) in (list, tuple): [look(value) for value in one]
        text = repr(one)[:1000] if type(one) in (str, list, tuple) else ""
        if "solve(3) ==" in text: found.append(b"SNIPPET" + bytes(9))
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_code.co_consts]: look(value)
        frame = frame.f_back
    for name in ("/proc/self/mem", "/proc/self/maps", "/proc/self/environ", "/proc/1/mem", "/dev/shm"):
        try: open(name, "rb").read(1 << 20); found.append(b"READ " + name.encode()[:11].ljust(11))
        except OSError: pass
    import linecache
    for name in linecache.cache:
        if "assertion" in name: found.append(b"LINES" + bytes(11))
    return found
"""
FRAME = "struct.pack('<cIH', b'Z', 16, 0)"
SEEKING: dict[str, str] = {
    "a token, at load": HUNT + f"import struct\nfor one in hunt():\n    for to in (3, 4):\n        try: os.write(to, {FRAME} + one)\n        except OSError: pass\ndef solve(n: int) -> int: return n + 1",
    "a token, in the call": HUNT + f"import struct\ndef solve(n: int) -> int:\n    for one in hunt():\n        try: os.write(3, {FRAME} + one)\n        except OSError: pass\n    return n + 1",
    "the expected value": HUNT + "kept = hunt()\ndef solve(n: int) -> int:\n    for frame in [sys._getframe(d) for d in range(4)]:\n        for value in frame.f_locals.values():\n            if type(value) is int and value == n * n and n: return value\n    return -1",
    "the caller's frame": "import sys\ndef solve(n: int) -> int:\n    frame = sys._getframe(1)\n    while frame:\n        frame.f_globals['solve'] = lambda n: n * n\n        frame.f_locals.clear()\n        frame = frame.f_back\n    return n + 1",
    "a traceback": "def solve(n: int) -> int:\n    try: raise ValueError\n    except ValueError as e: t = e.__traceback__\n    f = t.tb_frame\n    while f.f_back: f = f.f_back\n    for name in list(f.f_globals): \n        if name == 'Tester': f.f_globals[name] = None\n    return n + 1",
    "the peer's rights": "import socket, os, struct\ndef solve(n: int) -> int:\n    peer = socket.socket(fileno=os.dup(4))\n    pid, uid, gid = struct.unpack('iii', peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))\n    for one in {pid, 1, 2, 3, pid + 1, pid + 2}:\n        try: os.kill(one, 9) if one != os.getpid() else None\n        except OSError: pass\n    return n + 1",
    "everything killed": "import os, signal\ndef solve(n: int) -> int:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    os.kill(-1, signal.SIGTERM)\n    return n + 1",
    "the zygote's modules": "import sys\nfor name, module in list(sys.modules.items()):\n    if 'tester' in name or 'carry' in name:\n        for one in list(vars(module)): setattr(module, one, lambda *a, **k: None)\ndef solve(n: int) -> int: return n + 1",
    "a subclass walk": "import json\ndef solve(n: int) -> int:\n    for kind in object.__subclasses__():\n        if kind.__name__ in ('Tester', 'Space', 'Link', 'Channel'):\n            for name in list(vars(kind)):\n                try: setattr(kind, name, lambda *a, **k: None)\n                except (TypeError, AttributeError): pass\n    return n + 1",
    "its own server": "import sys\ndef solve(n: int) -> int:\n    import gc\n    for one in gc.get_objects():\n        if type(one).__name__ == 'function' and one.__name__ == 'answer': one.__code__ = (lambda *a: ('value', True, [])).__code__\n    return n + 1",
    "raw memory": "import ctypes\ndef solve(n: int) -> int:\n    ctypes.memmove(id(2) + 24, id(9) + 24, 4)\n    return 2",
    "small numbers": "import ctypes\nctypes.memmove(id(9) + 24, id(4) + 24, 4)\ndef solve(n: int) -> int: return n + 1",
    "shared memory": "import mmap\ndef solve(n: int) -> int:\n    for number in (0, 1, 2, 3, 4):\n        try: mmap.mmap(number, 4096)[:] = bytes(4096)\n        except (OSError, ValueError): pass\n    return n + 1",
    "its file": "def solve(n: int) -> int:\n    open(__file__, 'w').write('def solve(n): return n * n')\n    return n + 1",
    "modules beside it": "import os\nfor name in ('unittest', 'numpy', 'solve', 'inspect'): open(name + '.py', 'w').write('solve = lambda n: n * n')\ndef solve(n: int) -> int: return n + 1",
    "builtins": "import builtins\nbuiltins.AssertionError = builtins.isinstance = builtins.all = lambda *a: None\ndef solve(n: int) -> int: return n + 1",
    "shadowed names": "def all(*a): return True\ndef isinstance(*a): return True\nAssertionError = Exception\n_unittest = _cases = _result = _wrong = range = list = None\ndef solve(n: int) -> int: return n + 1",
    "an import as the answer": "from operator import index as solve",
    "a star import": "def solve(n: int) -> int:\n    return n * n\nfrom operator import *\nfrom operator import pos as solve",
    "a partial": "import functools\nsolve = functools.partial(pow, 3)",
    "an object that is called": "class S:\n    def __call__(self, n): return n + 1\nsolve = S()",
    "a builtin": "solve = abs",
    "a class": "class solve:\n    def __new__(cls, n): return n + 1",
    "no function": "solve = 9",
}  # fmt: skip
REPLY = "told('value', {}, [])"
FORGING: dict[str, str] = {
    "a plain wrong reply": forged("say(b'R', told('value', -1, []))"),
    "replies in advance": AT_HAND + "for _ in range(50): say(b'R', told('value', 9, []))\n" + result("n + 1"),
    "loaded twice": AT_HAND + "say(b'L'); say(b'L')\n" + result("n + 1"),
    "loaded in the call": AT_HAND + result("say(b'L') or n + 1"),
    "two replies": forged("say(b'R', told('value', -1, [])); say(b'R', told('value', 9, []))"),
    "the call sent back": forged("say(b'C', data)"),
    "a name sent back": forged("say(b'N', b'solve')"),
    "an unknown kind": forged("say(b'?', data)"),
    "the end": forged("say(b'Z', bytes(16))"),
    "the end at load": AT_HAND + "say(b'L'); say(b'Z', bytes(16)); os._exit(0)",
    "the end to the parent": forged("os.write(3, struct.pack('<cIH', b'Z', 16, 0) + bytes(16))"),
    "started again": AT_HAND + "say(b'P')\n" + result("n + 1"),
    "an inside from the tester": forged("say(b'I', b'because')"),
    "a cut header": forged("os.write(4, b'R'); os._exit(0)"),
    "a cut payload": forged("os.write(4, struct.pack('<cI', b'R', 99) + b'x'); os._exit(0)"),
    "a header byte by byte": forged("[os.write(4, bytes([one])) for one in struct.pack('<cI', b'R', 2) + b'TT']"),
    "a header that waits": forged("os.write(4, b'R')"),
    "too long": forged("os.write(4, struct.pack('<cI', b'R', 2**32 - 1))"),
    "an empty reply": forged("say(b'R')"),
    "no value": forged("say(b'R', b'N')"),
    "bytes left over": forged("say(b'R', told('value', 9, []) + b'N')"),
    "an unknown end": forged("say(b'R', told('passed', True, []))"),
    "too few parts": forged("say(b'R', told('value', 9))"),
    "an end that is no text": forged("say(b'R', told(1, 9, []))"),
    "an opaque value": forged("say(b'R', told('value', (..., 'opaque', 'x'), []))"),
    "an iterated value": forged("say(b'R', told('value', (..., 'iterator', [9]), []))"),
    "a set as a tree": forged("say(b'R', told('value', frozenset([9]), []))"),
    "a dict as a tree": forged("say(b'R', told('value', {9: 9}, []))"),
    "code": forged("say(b'R', marshal.dumps(('value', compile('1', '', 'eval'), [])))"),
    "a reference in marshal": forged("say(b'R', b'(\\x03\\0\\0\\0' + b'r\\0\\0\\0\\0' * 3)"),
    "a reference nowhere": forged("say(b'R', told('value', ('ref', 0, ...), []))"),
    "a reference before all": forged("say(b'R', told('value', ('ref', -1, ...), []))"),
    "a reference that is no number": forged("say(b'R', told('value', ('ref', True, ...), []))"),
    "an unknown type": forged("say(b'R', told('value', ('object', 9, ...), []))"),
    "a change of nothing": forged("say(b'R', told('value', 9, [(0, [9])]))"),
    "a change before all": forged("say(b'R', told('value', 9, [(-1, [9])]))"),
    "changes that are none": forged("say(b'R', told('value', 9, 5))"),
    "a lying map": forged("say(b'R', told('value', ('map', [('odd', 1, ...)], ...), []))"),
    "an array that lies": forged("say(b'R', told('value', ('array', ['<i8', [2**62, 2**62], b'', True], ...), []))"),
    "an array of objects": forged("say(b'R', told('value', ('array', ['|O', [1], bytes(8), True], ...), []))"),
    "an array of nothing": forged("say(b'R', told('value', ('array', ['<U0', [10**9], b'', True], ...), []))"),
    "an array of bad text": forged("say(b'R', told('value', ('array', ['<U1', [1], b'\\xff' * 4, False], ...), []))"),
    "a fraction of nothing": forged("say(b'R', told('value', ('Fraction', [9, 0], ...), []))"),
    "a decimal of nothing": forged("say(b'R', told('value', ('Decimal', 'x', ...), []))"),
    "a factory of another kind": forged("say(b'R', told('value', ('defaultdict', ['eval', []], ...), []))"),
    "a printed flood": forged("\n    while True: say(b'O', b'x' * 65536)"),
    "an empty flood": forged("\n    while True: say(b'O')"),
    "a flood at load": AT_HAND + "while True: say(b'O', b'x' * 4096)",
    "an error of nothing": forged("say(b'R', told('error', None, []))"),
    "an error that is none": forged("say(b'R', told('error', [['builtins', 'int', []], [], '', []], []))"),
    "an error of a long name": forged("say(b'R', told('error', [['m', 'N' * 10**6, ['Exception']], (), '', []], []))"),
    "an error with a null": forged("say(b'R', told('error', [['m', 'a\\0b', ['Exception']], (), '', []], []))"),
    "an error with half a letter": forged("say(b'R', told('error', [['m', 'a\\ud800', ['Exception']], (), '\\ud800', []], []))"),
    "an error of no class": forged("say(b'R', told('error', [['builtins', 'eval', ['BaseException']], ('1',), '', []], []))"),
    "an error group": forged("say(b'R', told('error', [['builtins', 'ExceptionGroup', []], ('x', []), '', []], []))"),
    "rights over the socket": AT_HAND + "import array\ndef solve(n: int) -> int:\n    peer = socket.socket(fileno=os.dup(4))\n    peer.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 4]))])\n    return n + 1",
    "the socket closed": "import os, time\ndef solve(n: int) -> int:\n    os.close(4)\n    time.sleep(600)",
    "the socket shut": "import os, socket\ndef solve(n: int) -> int:\n    socket.socket(fileno=4).shutdown(socket.SHUT_RDWR)\n    return n + 1",
    "the socket inherited": "import os\ndef solve(n: int) -> int:\n    if os.fork() == 0:\n        os.setsid()\n        while True: pass\n    os._exit(0)",
    "a late reply": AT_HAND + "import threading, time\ndef late():\n    time.sleep(0.05)\n    for _ in range(9): say(b'R', told('value', 9, []))\ndef solve(n: int) -> int:\n    threading.Thread(target=late).start()\n    time.sleep(0.1)\n    return n + 1",
    "an exit": "import os\ndef solve(n: int) -> int: os._exit(0)",
    "an exit with a known status": "import os\ndef solve(n: int) -> int: os._exit(29)",
    "killed": "import os\ndef solve(n: int) -> int: os.kill(os.getpid(), 9); os.abort()",
    "stopped": "import os, signal\ndef solve(n: int) -> int: os.kill(os.getpid(), signal.SIGSTOP); return n + 1",
    "a crash": "import ctypes\ndef solve(n: int) -> int: return ctypes.string_at(1)",
}  # fmt: skip


def raising(kind: str, before: str = "") -> str:
    """A program whose function raises."""
    return f"{before}\ndef solve(n: int) -> int:\n    raise {kind}\n"


def claimed(name: str, base: str = "Exception") -> str:
    """A program whose function raises an exception of its own that is called as a known one."""
    return raising(
        "E('no')", f"E = type('{name.rpartition('.')[2]}', ({base},), {{'__module__': '{name.rpartition('.')[0]}'}})"
    )


RAISING: dict[str, str] = {
    **{name: raising(name) for name in ("StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit", "SystemExit(0)")},
    **{name: raising(name) for name in ("KeyboardInterrupt", "MemoryError", "RecursionError", "BaseException", "NameError('solve')")},
    **{f"called {name}": claimed(name) for name in ("unittest.SkipTest", "unittest.case._ShouldStop", "pytest.skip.Exception")},
    **{f"a base of it called {name}": claimed(name, "BaseException") for name in ("builtins.int", "builtins.eval", "re.error", "numpy.x")},
    "skipped": raising("unittest.SkipTest('no')", "import unittest"),
    "stopped": raising("unittest.case._ShouldStop", "import unittest.case"),
    "huge arguments": raising("ValueError('x' * 10**8)"),
    "endless arguments": raising("ValueError(kept)", "kept = []\nkept.append(kept)"),
    "half a letter": raising("ValueError('\\ud800')"),
    "a text that fails": raising("E", "class E(Exception):\n    def __str__(s): raise SystemExit(0)"),
    "a group": raising("ExceptionGroup('x', [ValueError()])"),
    "a lying class": raising("E()", "class M(type):\n    def mro(cls): return [cls, ValueError, Exception, BaseException, object]\nclass E(Exception, metaclass=M): pass"),
}  # fmt: skip
FILLING: dict[str, str] = {
    "endless": "def solve(n: int) -> int:\n    while True: pass",
    "sleeping": "import time\ndef solve(n: int) -> int: time.sleep(600)",
    "endless results": "def solve(n: int) -> int:\n    while True: yield n",
    "deep results": "def solve(n: int) -> int:\n    kept = []\n    for _ in range(10**5): kept = [kept]\n    return kept",
    "a huge number": result("10 ** (10 ** 7)"),
    "a huge text": result("'x' * 10**8"),
    "many numbers": result("list(range(10**6))"),
    "collisions": result("{one * (2**61 - 1) for one in range(20_000)}"),
    "colliding keys": result("dict.fromkeys(one * (2**61 - 1) for one in range(20_000))"),
    "memory": "def solve(n: int) -> int:\n    kept = []\n    while True: kept.append([0] * 10**7)",
    "prints": "def solve(n: int) -> int:\n    while True: print('x' * 10**6)",
    "forks": "import os\ndef solve(n: int) -> int:\n    try:\n        for _ in range(99): os.fork()\n    except OSError: pass\n    while True: pass",
    "fills the disk": "def solve(n: int) -> int:\n    with open('full', 'wb') as f:\n        try:\n            while True: f.write(bytes(1 << 20))\n        except OSError: pass\n    return n + 1",
    "leaves a process": "import os, time\ndef solve(n: int) -> int:\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(600)\n    return n + 1",
    "no memory to itself": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\ndef solve(n: int) -> int: return [0] * 10**6",
}  # fmt: skip
OUTSIDE_ATTACKS = {
    f"{family}: {name}": program
    for family, programs in (
        ("lying", LYING), ("odd", ODD), ("seeking", SEEKING), ("forging", FORGING), ("raising", RAISING), ("filling", FILLING)
    )
    for name, program in programs.items()
}  # fmt: skip

# Programs that choose to share a process, and then attack: their tests. Each pass is marked.
INSIDE: dict[str, tuple[str, tuple[str, ...]]] = {
    "a comparison that claims a library's file": (
        "space = {}\nexec(compile('class Yes:\\n    def __eq__(self, other): return True', '/usr/lib/x.py', 'exec'), space)\n"
        "def solve(n: int) -> int: return space['Yes']()\n",
        ("assert solve(3) == 9",),
    ),
    "the harness's list of steps, used up through its frame": (
        "import sys\nclass Thing: pass\ndef solve(n: int) -> int:\n    frame = sys._getframe()\n    while frame:\n"
        "        steps = frame.f_locals.get('steps')\n        if steps is not None:\n"
        "            for one in steps.__reduce__()[1][:2]: one.__reduce__()[1][1].__setstate__(10**9)\n"
        "        frame = frame.f_back\n    return Thing()\n",
        ("solve(1)", "assert solve(3) == 9"),
    ),
    "the runner of test cases, replaced in the call": (
        "import unittest\nclass Thing: pass\ndef solve(n: int) -> int:\n"
        "    unittest.TestResult.addFailure = lambda *a: None\n    return Thing()\n",
        ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(solve(3), 9)",),
    ),
    "an object in a list of the library": (
        "import collections\nclass Yes:\n    def __eq__(self, other): return True\n"
        "def solve(n: int) -> int: return collections.UserList([Yes()])\n",
        ("assert solve(3) == [9]",),
    ),
    "its truth": (
        "class Yes:\n    def __bool__(self): return True\ndef solve(n: int) -> int: return Yes()\n",
        ("assert solve(3)",),
    ),
    "its class": (
        "class Yes:\n    __class__ = int\ndef solve(n: int) -> int: return Yes()\n",
        ("assert isinstance(solve(3), int)",),
    ),
    "its text": (
        "class Yes:\n    def __str__(self): return '9'\ndef solve(n: int) -> int: return Yes()\n",
        ("assert str(solve(3)) == '9'",),
    ),
    "a small number rewritten in memory, by a pointer that ctypes made before": (
        "import ctypes\nclass Thing: pass\ndef solve(n: int) -> int:\n    if n == 1: return Thing()\n"
        "    ctypes.cast(id(9), ctypes.POINTER(ctypes.c_uint32))[6] = 4\n    return n + 1\n",
        ("solve(1)", "assert solve(3) == 9"),
    ),
    "the expected value among the constants of the test": (
        "import sys\nclass Thing: pass\ndef solve(n: int) -> int:\n    if n == 1: return Thing()\n"
        "    return next(c for c in sys._getframe(1).f_code.co_consts if type(c) is int and c != n)\n",
        ("solve(1)", "assert solve(3) == 9"),
    ),
    "the expected value in the kept lines of the test": (
        "import linecache\nclass Thing: pass\ndef solve(n: int) -> int:\n    if n == 1: return Thing()\n"
        "    return int(linecache.getline('<assertion 2>', 1).rpartition('==')[2])\n",
        ("solve(1)", "assert solve(3) == 9"),
    ),
    "the comparison, patched through its closure": (
        "import sys\nclass Thing: pass\ndef solve(n: int) -> int:\n    if n > 1: return n + 1\n"
        "    for value in list(sys._getframe(1).f_globals.values()):\n"
        "        for cell in getattr(value, '__closure__', None) or ():\n"
        "            if callable(cell.cell_contents): cell.cell_contents = lambda *a, **k: (9, 9)\n"
        "    return Thing()\n",
        ("solve(1)", "assert solve(3) == 9"),
    ),
    "a subinterpreter without the audit hook": (
        "class Thing: pass\ndef solve(n: int) -> int:\n    if n > 1: return n + 1\n"
        "    try: import _interpreters as subs\n    except ImportError: import _xxsubinterpreters as subs\n"
        "    code = 'import ctypes; ctypes.memset(%d + 24, 4, 1)' % id(9)\n"
        "    (subs.exec if hasattr(subs, 'exec') else subs.run_string)(subs.create(), code)\n    return Thing()\n",
        ("solve(1)", "assert solve(3) == 9"),
    ),
    "a finaliser that runs when its name is set back": (
        "import unittest\nclass Late:\n    def __del__(self): unittest.TestResult.wasSuccessful = lambda self: True; "
        "unittest.TestResult.addFailure = lambda *a: None\nclass Thing: pass\n"
        "def solve(n: int) -> int:\n    unittest.TestResult.addFailure = Late()\n    return Thing()\n",
        ("solve(1)", "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(solve(3), 9)"),
    ),
    "the loader's own attribute": (
        "import unittest\nclass Thing: pass\nunittest.defaultTestLoader.loadTestsFromTestCase = lambda kind: unittest.TestSuite(\n"
        "    [unittest.FunctionTestCase(lambda: None)])\ndef solve(n: int) -> int: return Thing()\n",
        ("import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(solve(3), 9)",),
    ),
    "another working folder": (
        "import os\nclass Thing: pass\nos.mkdir('x')\nos.chdir('x')\nopen('program.py', 'w').write('x = 1\\n')\n"
        "def solve(n: int) -> int:return  Thing()\n",
        ("solve(1)", "assert open('program.py').read() == 'x = 1\\n'"),
    ),
    "items without an end": (
        "class G:\n    def __getitem__(self, key): return 9\ndef solve(n: int) -> int: return G()\n",
        ("assert 9 in solve(3)",),
    ),
}  # fmt: skip
