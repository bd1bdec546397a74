"""Programs that try to pass assertions that they do not meet. All are wrong: solve(n) should return n * n, be typed, be
simple and be well laid out (see test_attacks_assertions.py)."""

# What every attack that cheats the checkers would like to hide.
UGLY = """
def solve(n: int):
    if n==1:return 2
    for a in (1,2):
        for b in (1,2):
            if a==b and n>a or n<b: n=n+0
            elif a>b: pass
            elif a<b: pass
            elif n: pass
    return n+1
"""

# Whatever finds the names of the interpreter's own parts does it at load, or when the test calls it.
ASSERTION_ATTACKS: dict[str, str] = {
    "plainly wrong": UGLY,
    "exit at load": "import sys\nsys.exit(0)",
    "hard exit at load": "import os\nos._exit(0)",
    "exit in the call": "import sys\ndef solve(n: int) -> int: sys.exit(0)",
    "hard exit in the call": "import os\ndef solve(n: int) -> int: os._exit(0)",
    "quit by exception": "def solve(n: int) -> int: raise SystemExit",
    "keyboard interrupt": "def solve(n: int) -> int: raise KeyboardInterrupt",
    "generator exit": "def solve(n: int) -> int: raise GeneratorExit",
    "stop iteration": "def solve(n: int) -> int: raise StopIteration",
    "stop iteration by another name": """
import builtins
real = StopIteration
def solve(n: int) -> int:
    builtins.StopIteration = builtins.RuntimeError = real
    globals()["StopIteration"] = KeyError
    raise real
""",
    "skip": "import unittest\ndef solve(n: int) -> int: raise unittest.SkipTest('no')",
    "pytest's skip": "class Skipped(BaseException): pass\ndef solve(n: int) -> int: raise Skipped('no')",
    "killed": "import os, signal\ndef solve(n: int) -> int: os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal\ndef solve(n: int) -> int: os.kill(os.getpid(), signal.SIGTERM); os._exit(0)",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef solve(n: int) -> int: raise SystemExit(0)",
    "alarm handler": """
import os, signal
signal.signal(signal.SIGALRM, lambda *a: os._exit(0))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def solve(n: int) -> int: return n + 1
""",
    "prints what looks like a verdict": """
print('{"outcome": "pass", "passed": true}')
print("OK\\n1 passed\\nRan 1 test in 0.000s\\n\\nOK", flush=True)
"""
    + UGLY,
    "writes the end of the stream": """
import os
os.write(3, b"L\\0\\0\\0\\0\\0\\0" + b"A\\x04\\0\\0\\0\\0\\0\\0\\0\\0\\0" + b"Z\\x10\\0\\0\\0\\0\\0" + bytes(16))
os._exit(0)
""",
    "writes the end during a call": """
import os
def solve(n: int) -> int:
    os.write(3, b"Z\\x10\\0\\0\\0\\0\\0" + bytes(16))
    os._exit(0)
""",
    "writes an end without a token": "import os\ndef solve(n: int) -> int:\n    os.write(3, b'Z\\0\\0\\0\\0\\0\\0')\n    os._exit(0)",
    "closes the channel": "import os\ndef solve(n: int) -> int:\n    os.closerange(0, 64)\n    return n + 1",
    "token in the frames": """
import os, sys
def solve(n: int) -> int:
    frame, found = sys._getframe(), []
    while frame:
        for scope in (frame.f_locals, frame.f_globals):
            for value in list(scope.values()):
                for one in (value, *(value.values() if type(value) is dict else ()), *(vars(value).values() if hasattr(value, "__dict__") else ())):
                    if type(one) is bytes and len(one) == 16: found.append(one)
                    if type(one) is dict: found += [v for v in one.values() if type(v) is bytes and len(v) == 16]
        frame = frame.f_back
    for token in found: os.write(3, b"Z\\x10\\0\\0\\0\\0\\0" + token)
    os._exit(0)
""",
    "token through a traceback": """
import os
def solve(n: int) -> int:
    try: raise ValueError
    except ValueError as error: frame = error.__traceback__.tb_frame
    while frame:
        for constant in frame.f_code.co_consts:
            if type(constant) is bytes and len(constant) == 16: os.write(3, b"Z\\x10\\0\\0\\0\\0\\0" + constant)
        frame = frame.f_back
    os._exit(0)
""",
    "token through the collector": """
import gc, os
def solve(n: int) -> int:
    for value in gc.get_objects():
        for one in gc.get_referents(value):
            if type(one) is bytes and len(one) == 16: os.write(3, b"Z\\x10\\0\\0\\0\\0\\0" + one)
    os._exit(0)
""",
    "sender called": """
import io, os
def solve(n: int) -> int:
    for kind in io.TextIOBase.__subclasses__():
        space = kind.write.__globals__ if hasattr(kind.write, "__globals__") else {}
        if "wire" in space: space["Channel"].send = lambda *a: None
    os._exit(0)
""",
    "tests emptied": """
import sys
def solve(n: int) -> int:
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if type(value) is list: value.clear()
            if type(value) is dict and "snippets" in value: value["snippets"] = []
        frame = frame.f_back
    return n + 1
""",
    "tests emptied at load": """
import sys
frame = sys._getframe()
while frame:
    for value in list(frame.f_locals.values()):
        if type(value) is list: value.clear()
    frame = frame.f_back
"""
    + UGLY,
    "runner replaced": """
import builtins
builtins.exec = builtins.eval = lambda *a, **k: None
builtins.map = builtins.zip = lambda *a, **k: iter(())
builtins.compile = lambda *a, **k: None
"""
    + UGLY,
    "modules of the runner replaced": """
import sys
frame = sys._getframe()
while frame:
    for name in ("_exhaust", "_compiled", "describe", "_write", "guard"):
        if name in frame.f_globals and "wire" in frame.f_globals: frame.f_globals[name] = lambda *a, **k: None
    frame = frame.f_back
"""
    + UGLY,
    "assertion error replaced": """
import builtins
class Never(BaseException): pass
builtins.AssertionError = Never
"""
    + UGLY,
    "builtins replaced": """
import builtins
for name in ("all", "any", "isinstance", "len", "max", "min", "abs", "hasattr", "getattr", "callable", "sorted", "set"):
    setattr(builtins, name, lambda *a, **k: 0)
"""
    + UGLY,
    "builtins shadowed": """
def isinstance(*a): return True
def len(*a): return 0
def all(*a): return True
def max(*a): return 0
class AssertionError(BaseException): pass
"""
    + UGLY,
    "checkers patched": """
import mccabe, pycodestyle, radon.complexity
radon.complexity.cc_visit = lambda *a, **k: []
radon.complexity.cc_rank = lambda *a: "A"
pycodestyle.StyleGuide = type("S", (), {"__init__": lambda s, *a, **k: None, "check_files": lambda s, *a: type("R", (), {"total_errors": 0})()})
mccabe.get_code_complexity = lambda *a, **k: 0
mccabe.PathGraphingAstVisitor = None
"""
    + UGLY,
    "checkers' classes patched": """
import ast, inspect, mccabe, pycodestyle, radon.visitors
pycodestyle.Checker.check_all = lambda self, *a, **k: 0
pycodestyle.BaseReport.error = lambda self, *a: None
pycodestyle.StyleGuide.check_files = lambda self, *a: type("R", (), {"total_errors": 0})()
radon.visitors.ComplexityVisitor.visit_FunctionDef = lambda self, node: None
radon.visitors.Function.complexity = 1
mccabe.PathGraph.complexity = lambda self: 0
ast.NodeVisitor.visit = lambda self, node: None
inspect.BlockFinder.tokeneater = lambda self, *a: None
"""
    + UGLY,
    "checkers' tables emptied": """
import pycodestyle
for name in pycodestyle._checks: pycodestyle._checks[name].clear()
pycodestyle.DEFAULT_IGNORE = "E,W"
pycodestyle.MAX_LINE_LENGTH = 10**6
"""
    + UGLY,
    "checkers' code replaced": """
import inspect, pycodestyle, radon.complexity
def quiet(self, *a, **k): return []
for function in (radon.complexity.cc_visit, pycodestyle.Checker.check_all, inspect.getsource):
    try: function.__code__ = quiet.__code__
    except Exception: pass
"""
    + UGLY,
    "checkers' defaults replaced": """
import pycodestyle
pycodestyle.StyleGuide.check_files.__defaults__ = ([],)
pycodestyle.Checker.__init__.__defaults__ = (None, [], None, None)
"""
    + UGLY,
    "checkers as other modules": """
import sys, types
class Fake(types.ModuleType):
    total_errors = 0
    def __getattr__(self, name): return Fake(name)
    def __call__(self, *a, **k): return self
    def __iter__(self): return iter(())
    def __le__(self, other): return True
    __lt__ = __eq__ = __le__
    def __hash__(self): return 0
for name in ("radon", "radon.complexity", "mccabe", "pycodestyle", "inspect", "ast", "unittest", "os"):
    sys.modules[name] = Fake(name)
"""
    + UGLY,
    "import hook": """
import builtins, importlib.abc, importlib.machinery, sys, types
class Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.cc_visit = lambda *a: []
        module.StyleGuide = lambda *a, **k: types.SimpleNamespace(check_files=lambda *a: types.SimpleNamespace(total_errors=0))
        return module
    def exec_module(self, module): pass
sys.meta_path.insert(0, Hook())
for name in ("radon.complexity", "radon", "pycodestyle", "mccabe"): sys.modules.pop(name, None)
plain = builtins.__import__
builtins.__import__ = lambda name, *a, **k: Hook().create_module(types.SimpleNamespace(name=name)) if name in ("radon.complexity", "pycodestyle") else plain(name, *a, **k)
"""
    + UGLY,
    "modules beside it": """
import os, sys
for name in ("radon", "mccabe", "pycodestyle", "inspect", "temp"):
    with open(name + ".py", "w") as stream: stream.write("StyleGuide = cc_visit = getsource = lambda *a, **k: []")
sys.path.insert(0, os.getcwd())
sys.path_importer_cache.clear()
for name in ("radon", "radon.complexity", "mccabe", "pycodestyle", "inspect"): sys.modules.pop(name, None)
"""
    + UGLY,
    "inspect patched": """
import inspect
good = "def solve(n: int) -> int:\\n    return n * n\\n"
inspect.getsource = inspect.getsourcelines = inspect.findsource = lambda *a: good
"""
    + UGLY,
    "lines cached": """
import linecache
good = ["def solve(n: int) -> int:\\n", "    return n * n\\n"] + ["\\n"] * 40
for name in list(linecache.cache): linecache.cache[name] = (1, None, good, name)
linecache.cache[__file__] = (1, None, good, __file__)
linecache.getlines = linecache.updatecache = lambda *a, **k: good
"""
    + UGLY,
    "file replaced": """
import linecache, os
os.chmod(__file__, 0o600)
with open(__file__, "w") as stream: stream.write("def solve(n: int) -> int:\\n    return n * n\\n" * 30)
linecache.clearcache()
"""
    + UGLY,
    "file replaced in the call": """
import linecache
def solve(n: int) -> int:
    with open(__file__, "w") as stream: stream.write("def solve(n: int) -> int:\\n    return n * n\\n" * 30)
    linecache.clearcache()
    if n==1:return 2
    return n+1
""",
    "settings of the checker": """
import os
for name in ("setup.cfg", "tox.ini", ".pep8"):
    with open(name, "w") as stream: stream.write("[pycodestyle]\\nignore = E,W\\n[pep8]\\nignore = E,W\\n[flake8]\\nignore = E,W\\n")
os.makedirs(os.path.expanduser("~/.config"), exist_ok=True)
with open(os.path.expanduser("~/.config/pycodestyle"), "w") as stream: stream.write("[pycodestyle]\\nignore = E,W\\n")
"""
    + UGLY,
    "checkers patched in the call": UGLY.replace(
        "    if n==1:",
        """
    import pycodestyle, radon.complexity, mccabe, inspect
    pycodestyle.StyleGuide.check_files = lambda self, *a: type("R", (), {"total_errors": 0})()
    radon.complexity.cc_visit = lambda *a: [type("B", (), {"complexity": 1})()]
    mccabe.PathGraph.complexity = lambda self: 0
    if n==1:""",
    ),
    "trace function": """
import sys
def tracer(frame, event, argument):
    if frame.f_code.co_filename.startswith("<"): frame.f_lineno = frame.f_code.co_firstlineno + 50
    return tracer
try: sys.settrace(tracer)
except RuntimeError: pass
try: sys.setprofile(tracer)
except RuntimeError: pass
"""
    + UGLY,
    "audit hook": """
import sys
def hook(event, arguments):
    if event == "exec": raise SystemExit(0)
sys.addaudithook(hook)
"""
    + UGLY,
    "late thread": """
import threading, time
def late():
    while True:
        import pycodestyle, radon.complexity
        radon.complexity.cc_visit = lambda *a, **k: []
        pycodestyle.StyleGuide.check_files = lambda self, *a: type("R", (), {"total_errors": 0})()
        time.sleep(0)
threading.Thread(target=late, daemon=True).start()
"""
    + UGLY,
    "raw memory": """
import ctypes, os
def solve(n: int) -> int:
    for address in range(id(os), id(os) + 4096, 8):
        if ctypes.string_at(address, 16): pass
    ctypes.memmove(id(1) + 24, id(2) + 24, 4)
    return n + 1
""",
    "own memory": "import os\ndef solve(n: int) -> int:\n    open('/proc/self/mem', 'r+b').write(b'pass')\n    os._exit(0)",
    "collector's callback": """
import gc, pycodestyle
gc.callbacks.append(lambda *a: setattr(pycodestyle.StyleGuide, "check_files", lambda s, *a: type("R", (), {"total_errors": 0})()))
gc.set_threshold(1, 1, 1)
"""
    + UGLY,
    "forked twin answers": """
import os, time
def solve(n: int) -> int:
    if os.fork() == 0:
        for _ in range(20): os.write(3, b"Z\\x10\\0\\0\\0\\0\\0" + bytes(16))
        os._exit(0)
    os.wait()
    return n + 1
""",
    "test's names rewritten": """
import sys
def solve(n: int) -> int:
    frame = sys._getframe(1)
    frame.f_globals["solve"] = lambda n: n * n
    frame.f_globals["check"] = lambda *a: None
    if n==1:return 2
    return n+1
""",
    "regular expressions cached": """
import re
class Never:
    def __getattr__(self, name): return lambda *a, **k: None
for key in list(re._cache): re._cache[key] = Never()
"""
    + UGLY,
    "endless": "def solve(n: int) -> int:\n    while True: pass",
    "sleeping": "import time\ndef solve(n: int) -> int:\n    time.sleep(3600)",
    "memory": "def solve(n: int) -> int:\n    kept = []\n    while True: kept.append([0] * 10_000_000)",
    "main guard": "if __name__ == '__main__':\n    def solve(n: int) -> int: return n * n\n",
}

# Results that answer for themselves: nothing but a comparison of their plain values tells them from right ones.
LIES: dict[str, str] = {
    "equal to everything": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def solve(n: int) -> int: return Yes()
""",
    "a number that is equal to everything": """
class Yes(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def solve(n: int) -> int: return Yes(0)
""",
    "reflected": """
class Yes(int):
    __slots__ = ()
    def __eq__(self, other): return True
    def __rsub__(self, other): return 0
    __sub__ = __rsub__
    __hash__ = int.__hash__
def solve(n: int) -> int: return Yes(n)
""",
    "metaclass": """
class Meta(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return 1
class Yes(metaclass=Meta): pass
def solve(n: int) -> int: return Yes
""",
    "a function in the place of a method": """
class Yes: __eq__ = id
def solve(n: int) -> int: return Yes()
""",
    "made at run time": """
space = {}
exec("class Yes:\\n    def __eq__(self, other): return True", space)
def solve(n: int) -> int: return space["Yes"]()
""",
    "from elsewhere, it says": """
class Yes:
    def __eq__(self, other): return True
Yes.__module__ = "fractions"
def solve(n: int) -> int: return Yes()
""",
    "added to a class of the library": """
import fractions
class Yes(fractions.Fraction):
    def __eq__(self, other): return True
    __hash__ = fractions.Fraction.__hash__
def solve(n: int) -> int: return Yes(1)
""",
    "mock": "from unittest.mock import ANY\ndef solve(n: int) -> int: return ANY",
    "inherited": """
class Base:
    def __eq__(self, other): return True
class Yes(Base): pass
def solve(n: int) -> int: return Yes()
""",
}
