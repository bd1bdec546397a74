"""No pattern of the package takes time that grows with the square of a text, or faster: texts come from models.

Every pattern is attacked by texts that its own parts make: each run of parts, repeated. A pattern is tried as the
package uses it: `search` at all places, `match` at the first.
"""

import ast
import random
import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import codechat

ROOT = Path(codechat.__file__).parent
APART = (
    "studies/multicodeif/constraints/",  # examined in a process that is killed at a limit of time
    "sandbox/inside/",  # runs beside programs, within their limits
    "testing/",  # servers for tests
    "report/tracking/address.py",  # the user's own address
)
LENGTH = 2000
SLOW_S = 0.004
"""CPU seconds for `LENGTH` characters: a pattern of linear time takes a tenth."""
GROWTH = 3.0
"""Times as long for twice the text: linear patterns take 2, quadratic patterns 4."""
ALPHABET = "a 0_\n\t.\"'(){}[]<>=:;,-+*/\\`~#|&!@A\x00é"
ANCHORED = {"match", "fullmatch"}
Use = tuple[str, str, int]


def uses() -> dict[Use, list[str]]:
    """Every pattern as (pattern, method, flags), with its places."""
    found: dict[Use, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(APART):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        methods = methods_by_name(tree)
        for node in ast.walk(tree):
            if not is_call_of_re(node):
                continue
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            pattern, method = text_of(node.args[0]), node.func.attr
            if pattern is None or method == "escape":
                continue
            named = [name for name, value in assigned(tree) if any(part is node for part in ast.walk(value))]
            called = {each for name in named for each in methods.get(name, ())} or {"search"}
            for each in called if method == "compile" else {method}:
                kind = each if each in ANCHORED else "search"
                found[pattern, kind, flags_of(node)].append(f"{place}:{node.lineno}")
    return found


def is_call_of_re(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    named = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
    return named and isinstance(node, ast.Call) and bool(node.args)


def text_of(node: ast.expr) -> str | None:
    """A literal pattern, with `name` in place of what is filled in; None for any other value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(text)):
            return text.decode("latin-1")
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "name" for part in parts)
    return None


def flags_of(call: ast.Call) -> int:
    names = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
    return sum(
        int(getattr(re, name)) for name in ("MULTILINE", "DOTALL", "IGNORECASE", "VERBOSE", "ASCII") if name in names
    )


def assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


@cache
def methods_elsewhere() -> dict[str, set[str]]:
    """The methods called on the name of a public pattern anywhere in the package."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        for name, methods in own_methods(ast.parse(path.read_text(encoding="utf-8"))).items():
            found[name] |= methods
    return found


def own_methods(tree: ast.AST) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found[node.value.id].add(node.attr)
        elif isinstance(node, ast.Name):
            found[node.id]  # named without a method: searched
    return found


def methods_by_name(tree: ast.AST) -> dict[str, set[str]]:
    return {
        name: methods if name.startswith("_") else methods_elsewhere()[name]
        for name, methods in own_methods(tree).items()
    }


def attacks(pattern: str, flags: int) -> list[str]:
    """Units to repeat: texts that match runs of up to seven parts of the pattern, at every level."""
    generator, found = random.Random(0), dict.fromkeys(["a", " ", "\n", "\t", "a ", "\n "])
    for parts in runs(parser.parse(pattern, flags)):
        for _ in range(3):
            unit = sample(parts, generator)
            if 0 < len(unit) < 200:
                found[unit] = None
    return list(found)


def runs(tree: Any) -> Iterator[list[Any]]:
    parts = list(tree)
    for last in range(len(parts)):
        for first in range(max(0, last - 6), last + 1):
            yield parts[first : last + 1]
        for inner in inner_of(*parts[last]):
            yield from runs(inner)


def inner_of(op: Any, value: Any) -> list[Any]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return [value[2]]
    if op is ops.SUBPATTERN:
        return [value[3]]
    if op is ops.ATOMIC_GROUP:
        return [value]
    if op is ops.BRANCH:
        return list(value[1])
    return [value[1]] if op in (ops.ASSERT, ops.ASSERT_NOT) else []


def sample(parts: Any, generator: random.Random) -> str:
    """A text that the parts match, or nearly."""
    found = ""
    for op, value in parts:
        inner = inner_of(op, value)
        if op is ops.LITERAL:
            found += chr(value)
        elif op in (ops.IN, ops.NOT_LITERAL, ops.ANY):
            found += letter(op, value, generator)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            times = value[0] or min(value[1], generator.choice([0, 1, 2]))
            found += "".join(sample(inner[0], generator) for _ in range(min(times, 8)))
        elif inner and (op is not ops.ASSERT_NOT):
            found += sample(generator.choice(inner), generator)
    return found


def letter(op: Any, value: Any, generator: random.Random) -> str:
    """A character that one part matches."""
    compiled = parser.State()
    pattern = {ops.ANY: ".", ops.NOT_LITERAL: f"[^{re.escape(chr(value))}]" if op is ops.NOT_LITERAL else ""}.get(op)
    if pattern is None:
        import re._compiler as compiler  # type: ignore[import-not-found]

        one = compiler.compile(parser.SubPattern(compiled, [(op, value)]))
    else:
        one = re.compile(pattern)
    able = [each for each in ALPHABET if one.fullmatch(each)] or [chr(n) for n in range(0x250) if one.fullmatch(chr(n))]
    return generator.choice(able or ["a"])


def has_loop(tree: Any) -> bool:
    return any(
        (op in (ops.MAX_REPEAT, ops.MIN_REPEAT) and value[1] > 50) or any(map(has_loop, inner_of(op, value)))
        for op, value in tree
    )


def seconds(run: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began


def worst_of(pattern: str, method: str, flags: int, length: int = LENGTH) -> str:
    """The first text that takes a pattern more than linear time; empty if none is found."""
    if not has_loop(parser.parse(pattern, flags)):
        return ""
    compiled = re.compile(pattern, flags)
    run: Callable[[str], object] = (
        getattr(compiled, method) if method in ANCHORED else lambda text: sum(1 for _ in compiled.finditer(text))
    )
    for unit in attacks(pattern, flags):
        for before, after in (("", ""), ("", "\x00"), ("x", "!\n")):
            short, long = (before + unit * (chars // len(unit)) + after for chars in (length, 2 * length))
            for few in (18, 24, 120, 600):  # exponential time shows before it takes years
                if min(seconds(run, before + unit * few + after) for _ in range(2 if few > 24 else 1)) > 10 * SLOW_S:
                    return f"{before!r} {unit!r} {few} times {after!r}"
            if seconds(run, short) < SLOW_S:
                continue
            once = min(seconds(run, short) for _ in range(8))
            if once >= SLOW_S and min(seconds(run, long) for _ in range(3)) > GROWTH * once:
                return f"{before!r} {unit!r}… {after!r} ({once:.3f} s)"
    return ""


@pytest.mark.long
def test_no_pattern_blows_up() -> None:
    found = {}
    for (pattern, method, flags), places in uses().items():
        if worst := worst_of(pattern, method, flags):
            found[places[0]] = f"{method} {pattern!r:.150}: {worst}"
    assert not found


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\s+$", "search"),
        (r"(a|a)*b", "match"),
        (r"(\w+)*!", "match"),
        (r"git[^;]*?\sclone", "search"),
        (r"^\s*def\s*\(", "search"),
        (r"<([^>]*)>", "search"),
    ],
)
def test_patterns_that_blow_up_are_found(pattern: str, method: str) -> None:
    assert worst_of(pattern, method, re.MULTILINE, 4 * LENGTH)  # a fast machine takes less than SLOW_S for LENGTH


@pytest.mark.parametrize("pattern", [r"\S+", r"^[ \t]*def\b", r"a[^a]b", r"\d+(?:\.\d+)?"])
def test_patterns_of_linear_time_are_not(pattern: str) -> None:
    assert not worst_of(pattern, "search", re.MULTILINE)
