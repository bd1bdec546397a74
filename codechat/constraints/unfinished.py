"""The tree of code that breaks off, as in a reply that was cut: what it leaves open is closed before it is read."""

from codechat.constraints.blanking import blanked
from codechat.languages.grammar import Grammar, Tree

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def tree_of(grammar: Grammar, code: str) -> Tree:
    """The tree of a code; of one that leaves brackets open with these closed, if more of it can be read then.

    The brackets are closed at the code's end, so places stay; if its last line is in the way, that is left out.
    """
    code = grammar.within(code)
    tree = grammar.parse(code)
    if not tree.broken:
        return tree
    kept = (code.rstrip(), code.rstrip().rpartition("\n")[0])
    closed = [f"{each}{closing}\n" for each in kept if (closing := _closing(grammar.parse(each)))]
    return max(
        (tree, *map(grammar.parse, closed)), key=lambda each: (not each.broken, len(each.functions) + len(each.classes))
    )


def _closing(tree: Tree) -> str:
    """The brackets that would close those that a code leaves open."""
    opened: list[str] = []
    for character in blanked(tree):
        if character in _CLOSING:
            opened.append(_CLOSING[character])
        elif opened and character == opened[-1]:
            opened.pop()
    return "".join(reversed(opened))
