"""Programs that lie by their values: hash collisions, huge values, objects of library types that are not what they
seem, forged frames. All are wrong, for the task of test_attacks.py: solve(n) returns three square roots."""

# Frames are one byte of kind, the payload's length and what was printed, see wire.py; descriptor 3 is the channel.
SEND = """
import marshal, os, struct
def send(kind, payload):
    data = struct.pack("<cIH", kind, len(payload), 0) + payload
    while data: data = data[os.write(3, data):]
def number(n): return struct.pack("<i", n)
def loaded(): send(b"L", b"")  # the true frame is still waiting in shared memory
"""


def value(payload: str) -> str:
    """A program that sends the bytes of an expression as the result of its call, and then nothing."""
    return f"{SEND}\ndef solve(n):\n    loaded(); send(b'V', {payload})\n    os._exit(0)\n"


P = 2**61 - 1  # integers that differ by it have the same hash
COLLIDING = f"[{P} * (i + 1) + 7 for i in range(21_000)]"
SLOW: dict[str, str] = {
    "colliding set": f"def solve(n): return list(map(frozenset, [{COLLIDING}]))[0]",
    "colliding set, forged": value(
        f"(lambda parts: b'<' + number(len(parts)) + b''.join(parts))([marshal.dumps(x, 2) for x in {COLLIDING}])"
    ),
    "colliding keys, forged": value(
        f"b'{{' + b''.join(marshal.dumps(x, 2) + b'N' for x in {COLLIDING}[:17_000]) + b'0'"
    ),
    "colliding keys in an exception, forged": value(
        f"b'{{' + b''.join(marshal.dumps(x, 2) + b'N' for x in {COLLIDING}[:17_000]) + b'0'"
    ).replace("b'V'", "b'X'"),
    "colliding floats, forged": value(
        "b'<' + number(30_000) + b''.join(b'g' + struct.pack('<d', (i % 1000 + 1) * 2.0 ** (61 * (i // 1000 % 16))) "
        "for i in range(30_000))"
    ),
    "colliding complexes, forged": value(
        "b'<' + number(15_000) + b''.join(b'y' + struct.pack('<dd', -1000003.0 * i, i) for i in range(15_000))"
    ),
    "colliding tuples, forged": value(
        f"(lambda parts: b'<' + number(len(parts)) + b''.join(parts))([b'(' + number(1) + marshal.dumps({P} * i + 1, 2) "
        "for i in range(13_000)])"
    ),
    "colliding frozensets, forged": value(
        f"(lambda parts: b'<' + number(len(parts)) + b''.join(parts))([b'<' + number(1) + marshal.dumps({P} * i + 1, 2) "
        "for i in range(13_000)])"
    ),
    "crowded probes, forged": value(
        "(lambda parts: b'<' + number(len(parts)) + b''.join(parts))([b'i' + number(i) for i in range(30_000)] + "
        "[marshal.dumps((i << 17) + 5, 2) for i in range(9_000)])"
    ),
    "one value in a set 300,000 times": value("b'<' + number(300_000) + b'N' * 300_000"),
    "300,000 nothings": value("b'[' + number(300_000) + b'N' * 300_000"),
    "150,000 dictionaries": value("b'[' + number(150_000) + b'{0' * 150_000"),
    "60,000 empty sets": value("b'[' + number(60_000) + (b'<' + number(0)) * 60_000"),
    "sets in sets, 190 deep": value("b'<' + number(300) + ((b'<' + number(1)) * 190 + b'N') * 300"),
    "tuples in tuples in a set": value("b'<' + number(300) + ((b'(' + number(1)) * 190 + b'N') * 300"),
    "a bush": value(
        "(lambda bush: bush(bush, 5))(lambda f, d: b'N' if d == 0 else b'<' + number(10) + f(f, d - 1) * 10)"
    ),
    "huge integer": value("b'l' + number(130_000) + b'\\xff\\x7f' * 130_000"),
    "huge integers in a set": value("b'<' + number(100) + (b'l' + number(1_300) + b'\\xff\\x7f' * 1_300) * 100"),
    "huge fraction": value(
        "b'(' + number(3) + b'.u' + number(8) + b'fraction(' + number(2) + "
        "(b'l' + number(60_000) + b'\\xff\\x7f' * 60_000) * 2"
    ),
    "long text": value("b'u' + number(300_000) + b'\\0' * 300_000"),
    "long bytes": value("b'u' + number(300_000) + b'\\xff' * 300_000"),
    "long exception": value("marshal.dumps(('E' * 60_000, '0x' + 'f' * 100_000, ['y' * 90_000], 'error'), 2)").replace(
        "b'V'", "b'X'"
    ),
    "10,000 frames": f"{SEND}\ndef solve(n):\n    loaded()\n    for _ in range(10_000): send(b'V', b'[' + number(0))\n",
}
LYING: dict[str, str] = {
    "endless generator of roots": "def solve(n):\n    while True: yield n ** 0.5",
    "generator of the roots": "def solve(n):\n    for k in range(3): yield (n + k) ** 0.5",
    "map of the roots": "def solve(n): return map(lambda k: (n + k) ** 0.5, range(3))",
    "generator that raises": "def solve(n):\n    yield n ** 0.5\n    raise SystemExit(0)",
    "generator that exits": "import os\ndef solve(n):\n    yield n ** 0.5\n    os._exit(0)",
    "generator that sleeps": "import time\ndef solve(n):\n    while True:\n        time.sleep(0.05)\n        yield n",
    "generators of generators": "def solve(n):\n    while True: yield solve(n)",
    "iterator that patches the encoder": """
import sys
def solve(n):
    def patching():
        frame = sys._getframe()
        while frame:
            for name in ("encode", "plain", "opaque", "_yielded", "islice", "marshal"):
                if name in frame.f_globals: frame.f_globals[name] = lambda *a, **k: (b"T", 0, True)
            frame = frame.f_back
        yield 1.0
    return patching()
""",
    "patched encoder's tables": """
import sys
for module in list(sys.modules.values()):
    for name in ("CONTAINERS", "BASES", "MARKS", "SEQUENCES"):
        table = getattr(module, name, None)
        if isinstance(table, dict):
            for key in list(table): table[key] = lambda *a: 1.0
def solve(n): return [n] * 3
""",
    "patched marshal and hashlib": """
import hashlib, marshal
marshal.dumps = lambda value, *a: b"[\\x03\\0\\0\\0" + b"NNN"
marshal.loads = lambda *a: [1.0] * 3
hashlib.sha256 = None
def solve(n): return [0.0] * 3
""",
    "subclass of array": """
import numpy
class Array(numpy.ndarray):
    def tolist(self): return [1.0] * 3
    def __eq__(self, other): return True
    def ravel(self): return self
def solve(n): return numpy.zeros(3).view(Array)
""",
    "array of the roots": "import numpy\ndef solve(n): return numpy.sqrt(numpy.array([n, n + 1, n + 2]))",
    "array of objects": """
import numpy
class Yes:
    def __eq__(self, other): return True
def solve(n): return numpy.array([Yes(), Yes(), Yes()], dtype=object)
""",
    "array with a lying shape": """
import numpy
class Shape(tuple):
    def __iter__(self): return iter((3,))
    def __eq__(self, other): return True
class ndarray:
    dtype = type("D", (), {"kind": "f"})
    shape = Shape((9, 9))
    def ravel(self): return self
    def tolist(self): return [1.0] * 3
ndarray.__module__ = "numpy"
def solve(n): return ndarray()
""",
    "endless item": """
class float64:
    def item(self): return float64()
float64.__module__ = "numpy"
def solve(n): return type("T", (float64,), {"__module__": "numpy", "item": lambda self: float64()})()
""",
    "subclass of deque": """
from collections import deque
class Deque(deque):
    def __iter__(self): return iter([1.0])
    def __eq__(self, other): return True
def solve(n): return Deque([n ** 0.5, (n + 1) ** 0.5, (n + 2) ** 0.5])
""",
    "subclass of fraction": """
from fractions import Fraction
class Yes(Fraction):
    def __eq__(self, other): return True
    __hash__ = Fraction.__hash__
    def as_integer_ratio(self): return [1.0] * 3
    def __int__(self): raise ValueError
    def __float__(self): raise ValueError
def solve(n): return [Yes(1, 3)] * 3
""",
    "fraction that is a list": """
from fractions import Fraction
class Yes(Fraction):
    def __eq__(self, other): return self
    def __ne__(self, other): return False
    def __int__(self): return 3
def solve(n): return Yes(1, 3)
""",
    "subclass of decimal": """
from decimal import Decimal
class Yes(Decimal):
    def __eq__(self, other): return True
    def __ne__(self, other): return True
def solve(n): return [Yes(1)] * 3
""",
    "huge decimal": "from decimal import Decimal\ndef solve(n): return [Decimal('1E+99999999')] * 3",
    "tiny decimal": "from decimal import Decimal\ndef solve(n): return [Decimal('1E-99999999')] * 3",
    "subclass of datetime": """
import datetime
class Day(datetime.datetime):
    def isoformat(self, *a): return [1.0]
    def utcoffset(self): raise SystemExit(0)
    def __eq__(self, other): return True
def solve(n): return Day(2024, 1, 1)
""",
    "time zone that exits": """
import datetime, os
class Zone(datetime.tzinfo):
    def utcoffset(self, when): os._exit(0)
def solve(n): return datetime.datetime(2024, 1, 1, tzinfo=Zone())
""",
    "endless range": "def solve(n): return range(10 ** 18)",
    "range of nothing": "def solve(n): return range(0)",
    "view of keys": "def solve(n): return {(n + k) ** 0.5: k for k in range(3)}.keys()",
    "memory": "def solve(n): return memoryview(bytes(24)).cast('d')",
    "array of the standard library": "from array import array\ndef solve(n): return [array('d', [n ** 0.5])] * 3",
    "metaclass of an iterator": """
class Meta(type):
    def __subclasscheck__(cls, other): return True
    def mro(cls): return [cls, object]
    __eq__ = lambda cls, other: True
    __hash__ = lambda cls: hash(list)
class Yes(metaclass=Meta):
    __class__ = list
    def __next__(self): return 1.0
    def __iter__(self): return self
def solve(n): return Yes()
""",
    "hash that lies": """
class Key(float):
    def __hash__(self): return 1
    def __eq__(self, other): return True
def solve(n): return {Key(1), Key(2), Key(3)}
""",
    "hash that raises": """
class Key(tuple):
    def __hash__(self): raise KeyboardInterrupt
def solve(n): return iter([Key((n,))])
""",
    "mark of an array": "def solve(n): return (..., 'array', ('f', (3,), [(n + k) ** 0.5 for k in range(3)]))",
    "mark of a deque": "def solve(n): return (..., 'deque', [(n + k) ** 0.5 for k in range(3)])",
    "mark of an array without content": "def solve(n): return (..., 'array', None)",
    "unknown mark": "def solve(n): return (..., 'list', [1.0])",
    "mark in a mark": "def solve(n):\n    x = 1\n    for _ in range(100): x = (..., 'range', x)\n    return x",
}
FRAMES: dict[str, str] = {
    "exception of dictionaries": value("marshal.dumps(('E', 'x', {1: 2}, 'error'), 2)").replace("b'V'", "b'X'"),
    "exception of five": value("marshal.dumps(('E', 'x', [], 'error', 1), 2)").replace("b'V'", "b'X'"),
    "exception of numbers": value("marshal.dumps((1, 2, [3], 4), 2)").replace("b'V'", "b'X'"),
    "exception of a mark": value("marshal.dumps((..., 'opaque', 'E', 'error'), 2)").replace("b'V'", "b'X'"),
    "lines that are no texts": value("marshal.dumps(('E', 'x', [(1,), {}], 'error'), 2)").replace("b'V'", "b'X'"),
    "digest of a chosen size": f"{SEND}\ndef solve(n):\n    loaded(); send(b'D', bytes(32) + bytes(8))\n    return [0.0]",
    "digest without a size": f"{SEND}\ndef solve(n):\n    loaded(); send(b'D', b'x')\n    return [0.0]",
    "canonical after a digest": f"{SEND}\ndef solve(n):\n    loaded(); send(b'D', bytes(40)); send(b'C', bytes(32))\n    return [0.0]",
    "canonical without content": f"{SEND}\ndef solve(n):\n    loaded(); send(b'C', b'')\n    return [0.0]",
    "CPU time claimed": f"{SEND}\ndef solve(n):\n    loaded(); send(b'T', b'')\n    return [0.0]",
    "loaded twice": f"{SEND}\ndef solve(n):\n    loaded(); send(b'L', b'')\n    return [0.0]",
    "a frame that never ends": f"{SEND}\ndef solve(n):\n    loaded(); os.write(3, struct.pack('<cIH', b'V', 300_000, 0))\n    os._exit(0)",
    "a frame too long": f"{SEND}\ndef solve(n):\n    loaded(); send(b'V', bytes(400_000))\n    os._exit(0)",
    "printed lies": f"{SEND}\ndef solve(n):\n    loaded(); os.write(3, struct.pack('<cIH', b'Z', 0, 65535))\n    os._exit(0)",
    "cursor that lies": """
import gc, os, struct
def solve(n):
    channel = next(x for x in gc.get_objects() if type(x).__name__ == "Channel")
    channel.shared[0:16] = struct.pack("<QQ", 1 << 20, 0)
    channel.shared[4096:4096 + (1 << 20)] = (struct.pack("<cIH", b"V", 1, 0) + b"T") * 131072
    os._exit(0)
""",
}
VALUES = SLOW | LYING | FRAMES
