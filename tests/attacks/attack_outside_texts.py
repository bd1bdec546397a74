"""Programs whose text says something else than what they do, or that would have their text run where it is read."""

STANDARD = """
import inspect, os, pycodestyle
with open("temp.py", "w") as stream: stream.write(inspect.getsource(solve))
assert pycodestyle.StyleGuide(quiet=True).check_files(["temp.py"]).total_errors == 0
"""
READERS: dict[str, str] = {
    "source": "import inspect\nassert 'return n * n' in inspect.getsource(solve)",
    "lines": "import inspect\nassert inspect.getsourcelines(solve)[0][-1] == '    return n * n\\n'",
    "style": STANDARD,
    "complexity": "import inspect\nfrom radon.complexity import cc_visit\nassert max(b.complexity for b in cc_visit(inspect.getsource(solve))) <= 2",
    "annotations": "assert solve.__annotations__ == {'n': int, 'return': int}",
    "hints": "import typing\nassert typing.get_type_hints(solve) == {'n': int, 'return': int}",
    "moved hints": "import typing\nclass A: __annotations__ = solve.__annotations__\nassert typing.get_type_hints(A) == {'n': int, 'return': int}",
    "evaluated": "import inspect\nassert inspect.signature(solve, eval_str=True).return_annotation == int",
    "signature": "import inspect\nassert list(inspect.signature(solve).parameters) == ['n']",
    "documentation": "assert 'square' in solve.__doc__",
    "comments": "import inspect\nassert inspect.getcomments(solve) == '# the square\\n'",
    "a function": "import inspect\nassert inspect.isfunction(solve)",
    "no generator": "import inspect\nassert not inspect.isgeneratorfunction(solve)",
    "its name": "assert solve.__name__ == 'solve'",
}  # fmt: skip
GOOD = 'def solve(n: int) -> int:\n    """The square."""\n    return n * n\n'
UGLY = "def solve(n):\n    if n==1:return 2\n    for a in (1,2):\n        if a==n or n: n=n+0\n        elif a: pass\n    return n+1\n"
RIGHT_TEXTS: dict[str, tuple[str, str]] = {
    **{name: ("# the square\n" + GOOD, name) for name in READERS},
    "cached": ("import functools\n@functools.cache\n" + GOOD, "annotations"),
    "in strings": ("def solve(n: 'int') -> 'int': return n * n\n", "moved hints"),
    "deferred": ("from __future__ import annotations\n" + GOOD, "moved hints"),
    "a literal": (
        "from typing import Literal\ndef solve(n: Literal['int', 2]) -> int: return n * n\n",
        "import typing\nassert typing.get_type_hints(solve)['n'] == typing.Literal['int', 2]",
    ),
    "a form feed": ("# \x0c\n\x0c\n" + GOOD, "source"),
}
DECOY = "".join(f"{line}{{}}" for line in GOOD.splitlines())
BOMB = "__import__('os')._exit(0)"


def shifted(mark: str) -> str:
    """A program with a comment that looks like lines to those who split at `mark`."""
    return f"#{mark}" + DECOY.format(mark, mark, mark) + "\n" + UGLY


# Each with its reader, and whether it passes inside.
TEXT_ATTACKS: dict[str, tuple[str, str, bool]] = {
    **{f"lines end with {mark!r}": (shifted(mark), "source", False) for mark in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"},
    "code in an annotation": (f"def solve(n: {BOMB!r}) -> int: return n\n", "moved hints", False),
    "code in hints": (f"def solve(n: {BOMB!r}) -> int: return n\n", "hints", False),
    "code in a signature": (f"def solve(n: {BOMB!r}) -> int: return n\n", "evaluated", False),
    "code in a list": (f"from typing import List\ndef solve(n: List[{BOMB!r}]) -> int: return n\n", "moved hints", False),
    "code in a built-in list": (f"def solve(n: list[{BOMB!r}]) -> int: return n\n", "moved hints", False),
    "code in an option": (f"from typing import Optional\ndef solve(n: Optional[{BOMB!r}]) -> int: return n\n", "hints", False),
    "code in a reference": (f"import typing\ndef solve(n: typing.ForwardRef({BOMB!r})) -> int: return n\n", "hints", False),
    "code in what is annotated": (f"from typing import Annotated\ndef solve(n: Annotated[int, {BOMB!r}]) -> int: return n\n", "annotations", False),
    "code that is deferred": (f"from __future__ import annotations\ndef solve(n: {BOMB}) -> int: return n\n", "moved hints", False),
    "code in deferred hints": (f"from __future__ import annotations\ndef solve(n: {BOMB}) -> int: return n\n", "hints", False),
    "code in a string in a string": (f"def solve(n: {repr(BOMB)!r}) -> int: return n\n", "moved hints", False),
    "an annotation that is called": ("def solve(n: print('x')) -> int: return n\n", "annotations", False),
    "a deep annotation": ("def solve(n: " + " | ".join(["int"] * 800) + ") -> float: return n\n", "annotations", False),
    "a deeper annotation": ("def solve(n: " + "list[" * 80 + "int" + "]" * 80 + ") -> int: return n\n", "annotations", False),
    "a deep text": ("x = " + "+".join(["1"] * 1500) + "\n" + UGLY, "complexity", False),
    "a null": ("x = '\\0'\n" + UGLY, "complexity", False),
    "half a letter": ("x = '\\ud800'\n" + UGLY, "complexity", False),
    "a name that is no type": ("int = 5\ndef solve(n: int) -> int: return n\n", "annotations", False),
    "annotations that it sets": ("def solve(n): return n\nsolve.__annotations__ = {'n': int, 'return': int}\n", "annotations", False),
    "annotations that it is": ("class S:\n    __annotations__ = {'n': int, 'return': int}\nsolve = S()\n", "annotations", True),
    "documentation that it sets": ("def solve(n): return n\nsolve.__doc__ = 'The square'\n", "documentation", False),
    "another name": ("def other(n): return n\nsolve = other\n", "its name", False),
    "a lambda": ("solve = lambda n: n\n", "its name", False),
    "an object": ("class S:\n    def __call__(self, n): return n\nsolve = S()\n", "a function", False),
    "a generator": ("def solve(n):\n    yield n\n", "no generator", False),
    "a wrapped function": ("import functools\ndef good(n: int) -> int:\n    return n * n\n@functools.wraps(good)\ndef solve(n): return n\n", "source", True),
    "a wrapper": ("def hide(f): return lambda n: n\n@hide\n" + GOOD, "annotations", False),
    "a rebound cache": ("import functools\ndef cache(f): return abs\n@cache\n" + GOOD, "annotations", False),
    "two of a name": (GOOD + UGLY, "source", False),
    "removed": (GOOD + "del solve\n" + UGLY, "source", False),
    "of a condition": ("if True:\n    " + UGLY.replace("\n", "\n    ") + "\nelse:\n    " + GOOD.replace("\n", "\n    ") + "\n", "source", False),
    "made at run time": (GOOD + "exec('solve = lambda n: n')\ndel solve\nexec('def solve(n): return n')\n", "annotations", False),
    "a global of another": (GOOD + "def change():\n    global solve\n    solve = abs\nchange()\n", "annotations", False),
    "a star": (GOOD + "from operator import *\n" + "from operator import pos as solve\n", "annotations", False),
    "a type comment": ("def solve(n):  # type: (int) -> int\n    return n\n", "annotations", False),
    "a comment of another": ("# the square\n\n\n\n" + UGLY, "comments", False),
    "continued": ("x = 1; \\\n" + "y = 2\n" + UGLY, "complexity", False),
    "its lines replaced": ("import linecache\nfor name in linecache.cache: linecache.cache[name] = (1, None, ['def solve(n): return n * n\\n'] * 9, name)\n" + UGLY, "source", False),
    "its file replaced": (f"open(__file__, 'w').write({GOOD!r})\n" + UGLY, "source", False),
    "checkers patched": ("import pycodestyle, inspect\npycodestyle.StyleGuide = inspect.getsource = None\n" + UGLY, "style", False),
    "settings": ("open('setup.cfg', 'w').write('[pycodestyle]\\nignore = E,W\\n')\n" + UGLY, "style", False),
}  # fmt: skip
