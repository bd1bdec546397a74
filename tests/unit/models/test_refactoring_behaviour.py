"""Transformations keep what a function does where that is easy to lose: iterators, closures, recursion, sharing."""

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest

from codechat.studies.refine.baselines.refactoring import refactor, transformable
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.patterns import applicable

# Every program defines `f`; the calls are made one after the other, so that what is kept between them counts too.
PROGRAMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "generator": (
        "def f(n):\n    def count(limit):\n        i = 0\n        while i < limit:\n            yield i\n            i += 1\n"
        "    return list(count(n)), next(count(n), None)\n",
        [(3,), (0,)],
    ),
    "generator at the top": (
        "def f(n):\n    for i in range(n):\n        if i % 2 == 0:\n            yield i\n",
        [(5,)],
    ),
    "one pass over an iterator": (
        "def f(n):\n    it = iter(range(n))\n    first = [x for x in it if x < 3]\n    for x in it:\n        first.append(x)\n"
        "    return first, next(it, 'end')\n",
        [(6,), (0,)],
    ),
    "loop that stops early on an iterator": (
        "def f(n):\n    it = iter(range(n))\n    for x in it:\n        if x == 2:\n            break\n    return list(it)\n",
        [(6,), (1,)],
    ),
    "late binding": (
        "def f(n):\n    made = []\n    for i in range(n):\n        made.append(lambda x: x + i)\n    return [g(1) for g in made]\n",
        [(3,)],
    ),
    "counter in a closure": (
        "def f(n):\n    total = 0\n    def add(x):\n        nonlocal total\n        total += x\n        return total\n"
        "    for i in range(n):\n        add(i)\n    result = add(1)\n    return result\n",
        [(4,)],
    ),
    "recursion": (
        "def f(n):\n    if n <= 1:\n        return 1\n    else:\n        return n * f(n - 1)\n",
        [(5,), (0,)],
    ),
    "star arguments": (
        "def f(*args, scale=2, **extra):\n    result = 0\n    for a in args:\n        result = result + a * scale\n"
        "    if extra:\n        result += 100\n    return result\n",
        [(1, 2, 3), ()],
    ),
    "mutable default": (
        "def f(x, seen=[]):\n    seen.append(x)\n    if len(seen) > 1:\n        return list(seen)\n    return None\n",
        [(1,), (2,), (3,)],
    ),
    "shadowed built-in": (
        "def f(values):\n    max = 0\n    for sum in values:\n        if sum > max:\n            max = sum\n    return max\n",
        [([3, 9, 2],), ([],)],
    ),
    "shared list": (
        "def f(n):\n    a = [0]\n    b = a\n    a += [n]\n    for i in range(2):\n        b.append(i)\n    return a is b, b\n",
        [(5,)],
    ),
    "condition that its branch changes": (
        "def f(values):\n    left = list(values)\n    if left:\n        left.clear()\n        return 'some'\n    else:\n        left.append(1)\n"
        "    return left\n",
        [([1],), ([],)],
    ),
    "loop with else": (
        "def f(values):\n    for v in values:\n        if v < 0:\n            found = v\n            break\n    else:\n        found = None\n"
        "    return found\n",
        [([1, -2],), ([1],)],
    ),
    "variable read after its loop": (
        "def f(n):\n    squares = []\n    for i in range(n):\n        squares.append(i * i)\n    return squares, i\n",
        [(3,)],
    ),
    "returns in nested loops": (
        "def f(grid):\n    for row in grid:\n        for cell in row:\n            if cell > 3:\n                return cell\n    return -1\n",
        [([[1, 5], [7]],), ([[1]],)],
    ),
    "falling off the end": (
        "def f(x):\n    if x > 0:\n        if x > 10:\n            return 'big'\n    elif x == 0:\n        return 'zero'\n",
        [(11,), (5,), (0,), (-1,)],
    ),
    "finally": (
        "def f(x):\n    log = []\n    try:\n        value = 10 // x\n        return value, log\n    except ZeroDivisionError:\n"
        "        return 'none', log\n    finally:\n        log.append('done')\n",
        [(5,), (0,)],
    ),
    "swap": (
        "def f(a, b):\n    a, b = b, a + b\n    x = [a, b]\n    x[0], x[1] = x[1], x[0]\n    return x\n",
        [(1, 2)],
    ),
    "short circuit": (
        "def f(x):\n    a = len(x) > 0 and x[0] == 1 or None\n    b = x[0] if x else 'empty'\n    return a, b, not x\n",
        [([],), ([1],), ([2],)],
    ),
    "strings": (
        "def f(n):\n    s = 'a' * 2 + \"it's\" + '''x\n  y'''  # one\n    t = f'{s!r:>{n + 20}}'  # two\n    return s[1:], t[::-1]\n",
        [(10,)],
    ),
    "stable sort": (
        "def f(words):\n    words = list(words)\n    words.sort(key=len, reverse=True)\n    return words, sorted(words), min(words, default='')\n",
        [(["bb", "a", "cc", "ddd", "b"],), ([],)],
    ),
    "class inside": (
        "def f(n):\n    class Box:\n        size = n\n        def grow(self, by):\n            self.size += by\n            return self.size\n"
        "    box = Box()\n    box.grow(2)\n    return box.size\n",
        [(3,)],
    ),
    "walrus and one line": (
        "def f(values):\n    out = []; k = 0\n    while (k := k + 1) < 4: out.append(k)\n    if any((bad := v) < 0 for v in values): return bad\n"
        "    return out\n",
        [([1, -2],), ([1],)],
    ),
    "match": (
        "def f(x):\n    match x:\n        case [a, 2]:\n            return a\n        case {'k': v}:\n            return v\n        case _:\n            return 3\n",
        [([7, 2],), ({"k": 5},), (0,)],
    ),
    "decorated": (
        "import functools\n\n\n@functools.lru_cache(maxsize=None)\ndef f(n):\n    if n < 2:\n        return n\n    return f(n - 1) + f(n - 2)\n",
        [(20,)],
    ),
    "raises": (
        "def f(d, key):\n    if key not in d:\n        raise KeyError(key)\n    value = d[key]\n    return value\n",
        [({1: 2}, 1), ({}, 1)],
    ),
}
CONFIG = INSTRUCTIONS.validate({"kind": "default"})
CHOSEN = [one for one in INSTRUCTIONS.build(CONFIG).instructions if one.id in transformable()]


def outcomes(code: str, calls: list[tuple[Any, ...]]) -> list[str]:
    """What the calls of a trusted program give or raise, and what they print."""
    space: dict[str, Any] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), space)
    return [outcome(space["f"], call) for call in calls]


def outcome(function: Any, call: tuple[Any, ...]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            result = function(*call)
            result = list(result) if isinstance(result, Iterator) else result
        except Exception as error:
            result = error
    return f"{result!r} {printed.getvalue()}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_behaviour_is_kept(name: str) -> None:
    code, calls = PROGRAMS[name]
    before = outcomes(code, calls)
    changed = 0
    for one in CHOSEN:
        if not applicable(code, one).applicable:
            continue
        revision = refactor(code, one, "f")
        changed += revision.changed
        assert outcomes(revision.code, calls) == before, f"{one.id}\n{revision.code}"
    assert changed >= 18  # the fewest: the recursion


@pytest.mark.parametrize("name", PROGRAMS)
def test_behaviour_is_kept_over_many_turns(name: str) -> None:
    """One transformation after the other on what the last one made, in a fixed order."""
    code, calls = PROGRAMS[name]
    before = outcomes(code, calls)
    for one in CHOSEN[::-5]:
        if applicable(code, one).applicable:
            made = refactor(code, one, "f").code
            assert outcomes(made, calls) == before, f"{one.id}\n{made}"
            code = made
