"""Which pairs of instructions contradict each other, by the data of their rules alone.

A rule asks for a construct to be made, for one to go, or for both. Two instructions contradict each other if

- one makes a construct that the other wants gone: comments are added, and comments are removed;
- one changes all occurrences of a construct that the other removes, or changes into another form: nothing is left to be
  changed.

A wish for fewer occurrences contradicts only additions of new text: what takes the place of existing code need not
raise the count. Most constructs involve others: a comment above a loop is a comment, and `break` is a jump. Form alone
decides, so a pair that is merely hard to follow is no contradiction.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from codechat.base.domain import Contradiction, Instruction

BY = "rules"
_OF_RULES = ("quantifier", "where", "into", "at_least", "keeps")
_ESCAPE = re.compile(r"\\[A-Za-z]")
_WORD = re.compile(r"[A-Za-z]{3,}|>{3}")
"""A word in a regular expression, or the prompt of an example."""


class Construct(NamedTuple):
    """A pattern with its options."""

    name: str
    options: Mapping[str, Any] = {}


_LOOP, _DICT = Construct("loop"), Construct("collection", {"kind": "dict"})
_INVOLVED: Mapping[str, Sequence[Construct]] = {
    "header_comment": [Construct("comment", {"own_line": True})],
    "commented": [Construct("comment")],
    "module_docstring": [Construct("any_docstring")],
    "docstring": [Construct("any_docstring")],
    "documented_parameter": [Construct("docstring")],
    "short_docstring": [Construct("docstring")],
    "tall_docstring": [Construct("docstring")],
    "blank_after_docstring": [Construct("docstring"), Construct("blank_line")],
    "blank_before": [Construct("blank_line")],
    "wrapped_return": [Construct("redundant_parentheses")],
    "imported": [Construct("import")],
    "named_return": [Construct("passing_variable")],
    "guard": [Construct("early_return"), Construct("if_without_else")],
    "fast_path": [Construct("guard"), Construct("if_statement"), Construct("return")],
    "closure": [Construct("nested_function")],
    "comprehension": [Construct("list_comprehension")],
    "break": [Construct("jump"), _LOOP],
    "for": [_LOOP],
    "while": [_LOOP],
    "endless_loop": [Construct("while")],
    "forward_loop": [Construct("for")],
    "index_loop": [Construct("for")],
    "collecting_loop": [_LOOP],
    "loop_else": [_LOOP],
    "walk_each": [Construct("for")],
    "finally": [Construct("try")],
    "frozen_membership": [Construct("collection", {"kind": "set"})],
    "dispatch_table": [_DICT],
    "table_lookup": [_DICT],
    "module_cache": [_DICT],
    "stack": [Construct("use", {"names": [".append"]})],
}
"""The constructs that every occurrence of a construct involves."""
_BY_OPTION: Mapping[tuple[str, str, Any], Construct] = {
    ("commented", "place", "beside"): Construct("comment", {"own_line": False}),
    ("commented", "place", "above"): Construct("comment", {"own_line": True}),
    ("decorated", "own", True): Construct("nested_function"),
    ("quoted", "quote", "triple_double"): Construct("any_docstring"),
    ("quoted", "quote", "triple_single"): Construct("any_docstring"),
}
"""The same of constructs with one value of an option."""
_BY_NAME: Mapping[tuple[str, str], Construct] = {
    ("call", "enumerate"): Construct("for"),
    ("call", ".append"): Construct("for"),
    ("use", "collections.Counter"): _DICT,
    ("use", "collections.defaultdict"): _DICT,
}
"""The same of what is called or used by name; a call of `append` takes the place of a comprehension."""
_NAMED = ("names", "by", "of")
"""Options with names of what is called, used, applied or derived from."""


def contradict(one: Instruction, other: Instruction) -> Contradiction | None:
    """Whether two instructions contradict each other; None if one has no rule."""
    if one.rule is None or other.rule is None:
        return None
    for first, second in ((one, other), (other, one)):
        for gone in _gone(second):
            made = _made(first)
            if made and all(_involves(each, gone) for each in made) and (_all_go(second) or _is_new_text(first)):
                return Contradiction(True, BY, f"{first.id} makes {made[0].name}, {second.id} wants {gone.name} gone")
        if _takes_away(first, second):
            return Contradiction(True, BY, f"{first.id} and {second.id} want the same changed or gone")
    return Contradiction(False, BY)


def _takes_away(changing: Instruction, other: Instruction) -> bool:
    """Whether all that one instruction wants changed is removed by the other, or changed into another form."""
    if "add" in (changing.change, other.change) or not (_all_go(changing) and _all_go(other)):
        return False
    return (
        changing.change == "modify"
        and _made(changing) != _made(other)
        and any(_involves(mine, its) for mine in _gone(changing) for its in _gone(other))
    )


def _all_go(instruction: Instruction) -> bool:
    return bool((instruction.rule or {}).get("quantifier") != "fewer")


def _is_new_text(instruction: Instruction) -> bool:
    rule = instruction.rule or {}
    return instruction.change == "add" and ("where" not in rule or rule.get("quantifier", "some") != "some")


def _made(instruction: Instruction) -> list[Construct]:
    """The constructs of which the instruction wants more, any of them; none if it only takes something away."""
    rule = instruction.rule or {}
    return [_subject(rule)] if instruction.change == "add" else list(_constructs(rule.get("into", ())))


def _gone(instruction: Instruction) -> list[Construct]:
    """The constructs of which nothing, or less, is to be left."""
    rule = instruction.rule or {}
    if instruction.change != "add":
        return [_subject(rule)]
    return list(_constructs(rule.get("where", ()))) if rule.get("quantifier") == "all" else []


def _subject(rule: Mapping[str, Any]) -> Construct:
    return next(_constructs({name: value for name, value in rule.items() if name not in _OF_RULES}))


def _constructs(clause: Any) -> Iterator[Construct]:
    for part in clause if isinstance(clause, list | tuple) else [clause]:
        options = {"pattern": part} if isinstance(part, str) else dict(part)
        yield Construct(options.pop("pattern"), options)


def _involves(made: Construct, gone: Construct) -> bool:
    """Whether every occurrence of the first construct involves one of the second."""
    if made.name == gone.name or (made.name, gone.name) == ("call", "use"):
        return all(_within(name, made.options.get(name), value) for name, value in gone.options.items())
    if (made.name, gone.name) == ("indented", "otherwise_indented"):
        return bool(made.options.get("unit") != gone.options.get("unit"))
    return any(_involves(each, gone) for each in _involved(made))


def _involved(made: Construct) -> Iterator[Construct]:
    yield from _INVOLVED.get(made.name, ())
    for option, value in made.options.items():
        if isinstance(value, str | bool) and (found := _BY_OPTION.get((made.name, option, value))):
            yield found
    if made.name == "docstring" and "matches" in made.options:  # a section takes several lines
        yield Construct("tall_docstring")
    names = [name for option in _NAMED for name in made.options.get(option, ())]
    if any("." in name[1:] for name in names):
        yield Construct("import")
    yield from (_BY_NAME[made.name, name] for name in names if (made.name, name) in _BY_NAME)


def _within(option: str, mine: Any, its: Any) -> bool:
    """Whether an option with one value finds nothing that the other value does not; a missing one finds all."""
    if isinstance(mine, list) and isinstance(its, list):
        return all(any(fnmatchcase(name, known) for known in its) for name in mine)
    if option == "matches" and mine is not None and mine != its:  # regular expressions: by their words
        return bool(_words(mine)) and _words(mine) <= _words(its)
    return bool(mine == its)


def _words(expression: str) -> set[str]:
    return set(_WORD.findall(_ESCAPE.sub(" ", expression)))
