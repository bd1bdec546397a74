"""Programs that try to be taken for right without computing the answer. All are wrong."""

# The task under attack: solve(n) returns three square roots. Frames are one byte of kind and a length, see wire.py.
FORGING: dict[str, str] = {
    "object equal to all": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def solve(n): return Yes()
""",
    "list equal to all": """
class Yes(list):
    def __eq__(self, other): return True
    def __len__(self): return 3
def solve(n): return Yes([1.0, 2.0, 3.0])
""",
    "floats equal to all": """
class Yes(float):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __abs__ = __sub__
def solve(n): return [Yes(0), Yes(0), Yes(0)]
""",
    "metaclass": """
class Meta(type):
    def __eq__(cls, other): return True
    def __instancecheck__(cls, other): return True
    def __hash__(cls): return 1
class Yes(metaclass=Meta): pass
def solve(n): return Yes
""",
    "lying class": """
class Yes:
    @property
    def __class__(self): return list
    def __eq__(self, other): return True
    def __iter__(self): return iter([0.0])
def solve(n): return Yes()
""",
    "mock ANY": "from unittest.mock import ANY\ndef solve(n): return ANY",
    "array protocol": """
class Yes:
    __array_priority__ = 1e9
    def __array__(self, *a, **k):
        import numpy
        return numpy.zeros(0)
    def __array_function__(self, *a, **k): return True
    def __array_ufunc__(self, *a, **k): return True
    def __eq__(self, other): return True
def solve(n): return Yes()
""",
    "empty array broadcast": "import numpy\ndef solve(n): return numpy.zeros((0,))",
    "shape broadcast": "def solve(n): return [[[]]]",
    "nan": "def solve(n): return [float('nan')] * 3",
    "infinity": "def solve(n): return [float('inf')] * 3",
    "patched numpy": """
import numpy
numpy.allclose = numpy.testing.assert_allclose = lambda *a, **k: True
def solve(n): return [0.0, 0.0, 0.0]
""",
    "patched builtins": """
import builtins
for name in ("all", "any", "abs", "len", "isinstance", "bool", "zip", "type", "issubclass"):
    setattr(builtins, name, lambda *a, **k: True)
def solve(n): return [0.0, 0.0, 0.0]
""",
    "patched math": """
import math, cmath
math.isclose = math.isfinite = cmath.isclose = lambda *a, **k: True
def solve(n): return [0.0, 0.0, 0.0]
""",
    "patched marshal": """
import marshal
marshal.dumps = lambda *a, **k: b"T"
def solve(n): return [0.0, 0.0, 0.0]
""",
    "patched digest": """
import hashlib
hashlib.sha256 = lambda *a, **k: type("H", (), {"digest": lambda s: b"0" * 32, "update": lambda s, x: None})()
def solve(n): return [0.0] * 100_000
""",
    "patched encoder": """
import sys
def solve(n):
    frame = sys._getframe()
    while frame:
        for name in ("encode", "canonical", "plain"):
            if name in frame.f_globals:
                frame.f_globals[name] = lambda *a, **k: (b"T", 0)
        frame = frame.f_back
    return [0.0]
""",
    "calls emptied": """
import sys
def solve(n):
    frame = sys._getframe(1)
    while frame:
        for value in list(frame.f_locals.values()):
            if isinstance(value, list): value.clear()
            if isinstance(value, dict) and "calls" in value: value["calls"] = b""
        frame = frame.f_back
    return [0.0]
""",
    "expected through frames": """
import sys
def solve(n):
    frame, found = sys._getframe(), []
    while frame:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if any(word in name.lower() for word in ("expect", "truth", "answer", "reference", "result")):
                    found.append(value)
        frame = frame.f_back
    for value in found:
        if isinstance(value, (list, tuple)) and len(value) == 3: return value
    return found and found[0]
""",
    "expected through gc": """
import gc
def solve(n):
    for value in gc.get_objects():
        if type(value) in (list, tuple) and len(value) == 3 and all(type(x) is float for x in value):
            if abs(value[0] ** 2 - n) < 1e-9: return list(value)
    return None
""",
    "reference through gc": """
import gc
def solve(n):
    for value in gc.get_objects():
        if isinstance(value, dict):
            for text in list(value.values()):
                if isinstance(text, str) and "math.sqrt" + "(n" in text:
                    space = {}
                    exec(text, space)
                    if space["solve"] is not solve: return space["solve"](n)
    return None
""",
    "expected through a traceback": """
def solve(n):
    try:
        raise ValueError
    except ValueError as error:
        frame = error.__traceback__.tb_frame
        while frame.f_back: frame = frame.f_back
        return [value for value in frame.f_locals.values()]
""",
    "trace function": """
import sys
def tracer(frame, event, argument):
    if event == "return":
        for name, value in frame.f_locals.items():
            if name in ("right", "exact", "passed"): frame.f_locals[name] = True
    return tracer
sys.settrace(tracer); sys.setprofile(tracer)
def solve(n): return [0.0, 0.0, 0.0]
""",
    "done without results": "import os\nos.write(3, b'L\\0\\0\\0\\0\\0\\0Z\\0\\0\\0\\0\\0\\0')\nos._exit(0)",
    "done during a call": "import os\ndef solve(n):\n    os.write(3, b'Z\\0\\0\\0\\0\\0\\0')\n    os._exit(0)",
    "true frames and done": """
import os
def solve(n):
    for _ in range(20): os.write(3, b"V\\x01\\0\\0\\0\\0\\0T")
    os.write(3, b"Z\\0\\0\\0\\0\\0\\0")
    os._exit(0)
""",
    "claimed digests": """
import os
def solve(n):
    for _ in range(20): os.write(3, b"D\\x28\\0\\0\\0\\0\\0" + bytes(40))
    os.write(3, b"Z\\0\\0\\0\\0\\0\\0")
    return None
""",
    "canonical answers": """
import os
def solve(n):
    for _ in range(20): os.write(3, b"C\\x20\\0\\0\\0\\0\\0" + bytes(32))
    return None
""",
    "exit status": "import os\nos._exit(0)",
    "system exit": "import sys\ndef solve(n): sys.exit(0)",
    "atexit": """
import atexit, os
atexit.register(lambda: os.write(3, b"Z\\0\\0\\0\\0\\0\\0"))
def solve(n): raise SystemExit(0)
""",
    "late thread": """
import os, threading, time
def late():
    while True:
        for number in range(3, 16):
            try: os.write(number, b"V\\x01\\0\\0\\0\\0\\0TZ\\0\\0\\0\\0\\0\\0")
            except OSError: pass
        time.sleep(0.001)
threading.Thread(target=late, daemon=True).start()
def solve(n): return None
""",
    "forked child answers": """
import os, time
def solve(n):
    if os.fork() == 0:
        for _ in range(50): os.write(3, b"V\\x01\\0\\0\\0\\0\\0T")
        os.write(3, b"Z\\0\\0\\0\\0\\0\\0")
        os._exit(0)
    time.sleep(0.2)
    os._exit(0)
""",
    "cursor in shared memory": """
import gc, mmap, os
def solve(n):
    for value in gc.get_objects():
        for part in (value, *(vars(value).values() if hasattr(value, "__dict__") else ())):
            if type(part) is mmap.mmap:
                part[0:16] = (1 << 40).to_bytes(8, "little") + bytes(8)
                part[4096:4101] = b"Z\\0\\0\\0\\0\\0\\0"
    os._exit(0)
""",
    "own memory": """
def solve(n):
    with open("/proc/self/mem", "r+b") as memory:
        memory.write(b"pass")
""",
    "parent's memory": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def solve(n):
    hits = 0
    for pid in (os.getppid(), 1, 2, 3):
        buffer = ctypes.create_string_buffer(16)
        local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 16)
        remote = (ctypes.c_size_t * 2)(id(object), 16)
        for call in (310, 311):
            hits += libc.syscall(call, pid, local, 1, remote, 1, 0) > 0
    return [float(hits)] * 3
""",
    "answers on disk": """
import os
def solve(n):
    for folder, _, names in os.walk("/"):
        if folder.startswith(("/sys", "/usr", "/python", "/packages")): continue
        for name in names:
            if name.endswith((".bin", ".jsonl", ".gz")) and ("expected" in folder or "EVAL" in name.upper()):
                return open(os.path.join(folder, name), "rb").read()[:100].decode("latin-1")
    return None
""",
    "package's own dataset": """
import importlib
def solve(n):
    module = importlib.import_module("codechat.sandbox.suites.calls.reference_results")
    return [str(path) for path in module.secret_folder("expected").iterdir()]
""",
    "evalplus's interface": """
def solve(n):
    from evalplus.data import get_human_eval_plus
    return get_human_eval_plus()["HumanEval/0"]["canonical_solution"]
""",
    "loaded modules": """
import sys
def solve(n):
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if "expected" in name.lower() or "results" in name.lower(): return value
    return None
""",
    "iterator mark": "def solve(n): return (..., 'iterator', [1.0, 2.0, 3.0])",
    "opaque mark": "def solve(n): return (..., 'opaque', 'list')",
    "pickle": """
import os
class Boom:
    def __reduce__(self): return (os.system, ("touch /tmp/pickled",))
def solve(n): return Boom()
""",
    "code object": "def solve(n): return [solve.__code__] * 3",
    "inputs rewritten": """
import gc
def solve(n):
    for value in gc.get_objects():
        if type(value) is tuple and len(value) == 1 and type(value[0]) is int: pass
    return n
""",
    "number that changes": """
class Shifty(int):
    def __add__(self, other): return other
    def __index__(self): return 7
    def __sub__(self, other): return 0
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def solve(n): return [Shifty(1), Shifty(1), Shifty(1)]
""",
    "replaced exit": """
import os, signal
os._exit = lambda code: None
signal.setitimer = lambda *a: None
def solve(n): return [0.0, 0.0, 0.0]
""",
    "coroutine": "async def solve(n): return [n ** 0.5, (n + 1) ** 0.5, (n + 2) ** 0.5]",
}
