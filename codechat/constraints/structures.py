"""The data structures that a program uses, and its operations on them."""

import re
from collections.abc import Sequence

from codechat.constraints.answers import Answer
from codechat.constraints.receivers import on_another
from codechat.languages.grammar import Found, Tree

_SAME = {"tree_map": "treemap", "buffer.buffer": "bytes.buffer"}


def plain(name: str) -> str:
    """A structure's name without its package, in lower case: `deque` for `collections.deque`."""
    name = _SAME.get(name.lower(), name.lower())
    return re.split(r"\.|::", name)[-1]


def use_of(name: str, answer: Answer, code: str) -> Found | None:
    """The first place where a program uses a structure: by a type's name, a literal, or its own class of that name."""
    tree, customs = answer.tree(code), answer.grammar.customs
    if customs.structures_qualified:
        return _qualified_use(_SAME.get(name.lower(), name), tree, customs.packages)
    wanted = plain(name)
    if wanted in customs.modules:
        imported = any(found.text == wanted for found in tree.imports)
        return next((call for call in tree.calls if imported and re.match(customs.modules[wanted], call.text)), None)
    names = {wanted, *(called.lower() for called, own in tree.aliases.items() if own.lower() == wanted)}
    named = [found for found in (*tree.types, *tree.classes) if found.text.lower() in names]
    made = [found for mark, found in tree.marked("makes") if mark == wanted]
    return min((*named, *made), key=lambda found: found.start, default=None)


def _qualified_use(name: str, tree: Tree, packages: Sequence[str]) -> Found | None:
    """The same, if a language's own `map` differs from `sync.Map` only by what precedes the name."""
    wanted = name.lower()
    if "." in wanted:
        named = [found for _, found in tree.marked("qualified") if found.text.lower() == wanted]
    elif wanted in packages:
        named = [found for _, found in tree.marked("qualified") if found.text.lower().startswith(f"{wanted}.")]
    else:
        named = [found for found in (*tree.types, *tree.classes) if found.text == name]
        named += [found for mark, found in tree.marked("makes") if mark == wanted]
    return min(named, key=lambda found: found.start, default=None)


def operation_of(name: str, answer: Answer, code: str) -> int | None:
    """The line of an operation in a program: a call of that name, in any case, or the language's own form of it.

    Calls on variables that surely hold another structure do not count. A function that the program itself defines
    counts if the structure is a class of the program, or has no method of that name.
    """
    tree = answer.tree(code)
    wanted, structure = re.split(r"\.|::", name.lower())[-1], plain(answer.values[0])
    places = [found for found in tree.calls if found.text.lower() == wanted and not on_another(found, structure, tree)]
    own = any(found.text.lower() == structure for found in tree.classes)
    customs = answer.grammar.customs
    if own or not customs.has_method(structure, wanted):
        places += [function.name for function in tree.functions if function.name.text.lower() == wanted]
    query = customs.written.get(wanted)
    if not places and query:
        for match in answer.grammar.matches(query, tree):
            return int(match["set"][0].start_point[0]) + 1
    return min((found.line for found in places), default=None)
