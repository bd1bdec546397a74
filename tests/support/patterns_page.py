"""The tables of docs/instructions.md as the code has them."""

import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from codechat.studies.refine.instructions.pool import VERBS
from codechat.studies.refine.patterns import Pattern, patterns


def verb_rows() -> Iterator[str]:
    """The leading verbs of each change."""
    verbs: dict[str, list[str]] = defaultdict(list)
    for verb, change in VERBS.items():
        verbs[change].append(verb)
    for change, known in verbs.items():
        yield f"| `{change}` | {', '.join(known)} |"


def pattern_rows() -> Iterator[str]:
    """Every pattern with its options and its noun; a star marks those that need no syntax tree."""
    for name, pattern in sorted(patterns().items()):
        star = "\\*" if pattern.on_tokens else ""
        noun = re.sub(r"\{(\w+)\}", r"*\1*", pattern.noun)
        options = _options(pattern)
        yield f"| `{name}`{star}{options and f' ({options})'} | {noun} |"


def _options(pattern: Pattern) -> str:
    taken = list(inspect.signature(pattern.find).parameters.values())[1:]
    return "; ".join(
        f"`{one.name}`: {_kind(one.annotation)}{'' if one.default is one.empty else _default(one.default)}"
        for one in taken
    )


def _default(value: Any) -> str:
    return ", or none" if value in (None, "") else f" (`{str(value).lower() if isinstance(value, bool) else value}`)"


def _kind(kind: Any) -> str:
    choices = [each for each in get_args(kind) if isinstance(each, str)]
    if choices:
        return "/".join(f"`{each}`" for each in choices)
    if hasattr(kind, "__metadata__"):
        return "regular expression"
    inner = [each for each in get_args(kind) if each is not type(None)]
    if get_origin(kind) is list:
        return "list of texts"
    if inner:
        return _kind(inner[0])
    return {bool: "`true`/`false`", int: "number", str: "text"}[kind]
