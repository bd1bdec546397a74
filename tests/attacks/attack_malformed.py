"""Programs and results that no honest programmer would send. All are wrong."""

MALFORMED: dict[str, str] = {
    "empty": "",
    "comment": "# nothing",
    "syntax error": "def solve(n:",
    "null byte": "def solve(n): return 1\0",
    "lone surrogate": "def solve(n): return '\ud800'",
    "bad indentation": "def solve(n):\n\treturn 1\n        return 2",
    "nested brackets": "def solve(n): return " + "(" * 5000 + ")" * 5000,
    "nested operators": "def solve(n): return " + "-" * 200_000 + "1",
    "a megabyte": "x = 0\n" * 170_000 + "def solve(n): return x",
    "long line": "def solve(n): return [" + "0," * 300_000 + "]",
    "other name": "def resolve(n): return n",
    "not callable": "solve = 3",
    "none": "solve = None",
    "class": "class solve: pass",
    "wrong arity": "def solve(): return 1",
    "raises at load": "raise RuntimeError('no')",
    "exits at load": "import sys\nsys.exit(3)",
    "raises base exception": "def solve(n): raise KeyboardInterrupt",
    "own base exception": "class E(BaseException): pass\ndef solve(n): raise E('x')",
    "exception with evil text": """
class E(Exception):
    def __str__(self): raise E()
    __repr__ = __str__
def solve(n): raise E()
""",
    "exception with endless text": "class E(Exception):\n    def __str__(self):\n        while True: pass\ndef solve(n): raise E()",
    "long exception": "def solve(n): raise ValueError('x' * 10_000_000)",
    "exception chain": """
def solve(n):
    error = None
    for _ in range(10_000):
        try:
            raise ValueError('x') from error
        except ValueError as caught: error = caught
    raise error
""",
    "returns nothing": "def solve(n): pass",
    "holds itself": "def solve(n):\n    x = []\n    x.append(x)\n    return x",
    "nested deeply": "def solve(n):\n    x = []\n    for _ in range(1500): x = [x]\n    return x",
    "generator": "def solve(n):\n    yield n",
    "endless generator": "def solve(n):\n    while True: yield n",
    "function": "def solve(n): return solve",
    "module": "import math\ndef solve(n): return math",
    "right text": "def solve(n): return str([n ** 0.5, (n + 1) ** 0.5, (n + 2) ** 0.5])",
    "right as set": "def solve(n): return {n ** 0.5, (n + 1) ** 0.5, (n + 2) ** 0.5}",
    "right as tuple": "def solve(n): return (n ** 0.5, (n + 1) ** 0.5, (n + 2) ** 0.5)",
    "bytes": "def solve(n): return b'\\xff' * 24",
    "lone surrogate returned": "def solve(n): return ['\\ud800', '\\udfff', '']",
    "evil conversion": """
class Evil(dict):
    def items(self): raise SystemExit
    def __iter__(self): raise SystemExit
    def __len__(self): return -1
def solve(n): return Evil(a=1)
""",
    "evil attribute": """
class Evil:
    def __getattribute__(self, name): raise RecursionError(name)
def solve(n): return [Evil()] * 3
""",
    "module deleted": "import sys\nsys.modules.clear()\ndef solve(n): return None",
    "builtins deleted": "import builtins\nfor name in list(vars(builtins)):\n    if not name.startswith('_'): delattr(builtins, name)\ndef solve(n): return None",
}
