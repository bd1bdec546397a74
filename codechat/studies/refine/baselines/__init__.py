"""Changes to code that the baselines make: refactorings of Python, edits of other languages, and defects."""

import random
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def first_that_parses(
    found: dict[str, list[T]], draw: random.Random, edited: Callable[[T], str], parses: Callable[[str], bool]
) -> str | None:
    """The code with one drawn edit: its kind drawn first, its place second. None if no edit is left that parses."""
    while found:
        kind = draw.choice(sorted(found))
        edit = found[kind].pop(draw.randrange(len(found[kind])))
        if not found[kind]:
            del found[kind]
        if parses(code := edited(edit)):
            return code
    return None
