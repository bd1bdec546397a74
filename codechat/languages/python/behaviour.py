"""What a program does, as a hash of its compiled code, which comments, layout and the like do not change.

The tree is brought into `plain_form` before it is compiled: where lines end decides which jumps the compiler may join,
and a docstring moves all constants. A name of a local variable is no part of compiled code but in its tables. The hash
holds for programs that are run by the minor version of Python that runs codechat.

A tree decides all of this, and most texts of a dialogue have the tree of an earlier one: comments, blank lines and
brackets are no part of it. So trees are looked up first, in a tenth of the time.
"""

import ast
import hashlib
import marshal
import struct
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from codechat.files import content_hash
from codechat.languages.behaviour import Behaviour
from codechat.languages.python.nodes import MOST_NODES, Nodes, TooMuch, nodes_of
from codechat.languages.python.observing import observes
from codechat.languages.python.plain_form import to_plain_form
from codechat.languages.python.syntax import fresh_tree_of, tree_of

VERSION = 3
LONGEST = 20_000
"""Characters of a program that is compiled: the compiler's time may grow with the square of some parts."""
_OPTIMIZED = 1  # a code's flag CO_OPTIMIZED: it is a function's
_OF_CLASSES = {"__class__", "__classdict__"}
_HERE = [VERSION, sys.implementation.name, sys.hexversion]
_LONGEST_KEY = 10 * MOST_NODES
_TREES = 4096
_OF_TREES: dict[bytes, Behaviour | None] = {}  # the latest, by the hash of their trees


class _Unknown(Exception):
    """A constant that has no hash here."""


@lru_cache(maxsize=4096)
def behaviour(program: str) -> Behaviour | None:
    """See `Behaving`."""
    if len(program) > LONGEST:
        return None
    text = program.removesuffix("\n")  # as the text that the program was made of, whose tree is known
    try:
        key = _tree_key(tree_of(text))
        if key not in _OF_TREES:
            _OF_TREES[key] = _of_compiled(nodes_of(fresh_tree_of(text)))
            if len(_OF_TREES) > _TREES:
                del _OF_TREES[next(iter(_OF_TREES))]
        return _OF_TREES[key]
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _tree_key(tree: ast.Module) -> bytes:
    """A hash of all of a tree but its places in the text. Raises `TooMuch`."""
    found: list[Any] = []
    left: list[Any] = [tree]
    while left:
        part = left.pop()
        if isinstance(part, ast.AST):
            found.append(type(part).__name__)
            for field in part._fields:
                left.append(getattr(part, field, None))  # noqa: PERF401  half as fast by `extend`
        elif isinstance(part, list):
            found.append(len(part))
            left += part
        else:
            found += (type(part).__name__, part)
        if len(found) > _LONGEST_KEY:
            raise TooMuch
    return hashlib.sha256(marshal.dumps(found, 2)).digest()


def _of_compiled(code: Nodes) -> Behaviour | None:
    """What the tree does when it is compiled, which changes it."""
    if observes(code):
        return None
    try:
        to_plain_form(code)
        compiled = _compiled(code.tree)
        written, names = _written(compiled), list(_names(compiled))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, _Unknown):
        return None
    here = [*_HERE, written, _displays(code) if "frozenset" in written else ""]
    named = content_hash([here, names])
    return Behaviour(named if _tells_names(code, compiled) else content_hash(here), named)


def looks_inside(snippet: str) -> bool:
    """Whether a test might tell how the program that it tests is written, beyond what its names are."""
    try:
        return bool(observes(nodes_of(fresh_tree_of(snippet)), frozenset({"unittest"})))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return True


def _compiled(tree: ast.Module) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: CodeType = compile(tree, "", "exec", dont_inherit=True, optimize=0)
    return code


def _written(code: CodeType) -> str:
    """All of a code object that decides what it does, as one text: equal for no other.

    Its qualified name follows from the names and stores of the codes around it. It is left out, because the compiler
    makes one of two codes that differ in nothing else: whether it does would depend on the names of local variables.
    """
    names = code.co_varnames
    layout = [names.index(cell) if cell in names else None for cell in code.co_cellvars]
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize)
    whole = (
        *(code.co_name, code.co_flags, counts, parameters_of(code), code.co_names, layout),
        *(len(code.co_freevars), code.co_code, code.co_exceptiontable, [_constant(each) for each in code.co_consts]),
    )
    return ascii(whole)


def parameters_of(code: CodeType) -> tuple[str, ...]:
    """The names of all parameters of a function's code."""
    count = code.co_argcount + code.co_kwonlyargcount
    more = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # CO_VARARGS, CO_VARKEYWORDS
    return code.co_varnames[: count + more]


def _constant(value: Any) -> Any:
    """A constant with its type, so that no two differ and have one text. Raises `_Unknown`."""
    kind = type(value)
    if kind not in _CONSTANTS:
        raise _Unknown
    return (kind.__name__, _CONSTANTS[kind](value))


_CONSTANTS: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys((type(None), type(...), bool, str, bytes), lambda value: value),
    int: hex,
    float: lambda value: struct.pack("<d", value),
    complex: lambda value: struct.pack("<dd", value.real, value.imag),
    tuple: lambda value: [_constant(each) for each in value],
    frozenset: lambda value: sorted(ascii(_constant(each)) for each in value),  # its order: see `_displays`
    CodeType: _written,
}


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _names(code: CodeType) -> Iterator[list[str]]:
    """The names of local variables."""
    for each in _codes(code):
        yield [*each.co_varnames, "", *each.co_cellvars, "", *each.co_freevars]


def _displays(code: Nodes) -> str:
    """The sets that are written out, in order: a set of constants is walked through in the order it was made in."""
    return "\n".join(ast.dump(each.node) for each in code.of(ast.Set))


def _tells_names(code: Nodes, compiled: CodeType) -> bool:
    """Whether the program may tell the names of its local variables.

    An exception that it catches may name one that has no value yet, and the body of a class looks for a variable of
    the function around it by its name, among its own first.
    """
    if any(isinstance(each.node, ast.ExceptHandler) and each.node.name for each in code.nodes):
        return True
    bodies = [each for each in _codes(compiled) if not each.co_flags & _OPTIMIZED]
    return any({*each.co_freevars, *each.co_cellvars} - _OF_CLASSES for each in bodies)
