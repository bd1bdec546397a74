"""The tree of code that breaks off, as in a reply that was cut: open brackets are closed before it is read."""

from codechat.constraints.blanking import blanked
from codechat.languages.grammar import Grammar, Tree

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def tree_of(grammar: Grammar, code: str) -> Tree:
    """The tree of a code; open brackets are closed first, if more of the code can be read then.

    They are closed at the code's end, so that places stay the same; if the last line prevents that, it is left out.
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
    """The brackets that would close the open ones of a code."""
    opened: list[str] = []
    for character in blanked(tree):
        if character in _CLOSING:
            opened.append(_CLOSING[character])
        elif opened and character == opened[-1]:
            opened.pop()
    return "".join(reversed(opened))
