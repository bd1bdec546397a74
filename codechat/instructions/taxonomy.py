"""Scope × change, and the change meant by an instruction's leading verb (paper III-B, Table II)."""

import re
from collections.abc import Mapping

from codechat.domain import Change
from codechat.errors import UserError

_VERBS: dict[Change, str] = {
    "add": """
        add adopt annotate apply attach create declare define describe document ensure explain implement include insert
        introduce log memoise provide put state use
    """,
    "remove": """
        avoid delete discard drop eliminate exclude forbid limit minimise omit prevent prohibit reduce remove strip
    """,
    "modify": """
        change combine convert extract inline invert merge move optimise refactor reformat rename reorder replace
        rewrite shorten simplify split swap switch transform turn
    """,
}

VERBS: Mapping[str, Change] = {verb: change for change, verbs in _VERBS.items() for verb in verbs.split()}
"""The 59 verbs. Words in -ise are also known in -ize."""


def leading_verb(text: str) -> str:
    """The first word of an instruction, in lower case; empty if there is none."""
    match = re.match(r"\W*([A-Za-z][A-Za-z'-]*)", text)
    return match.group(1).lower() if match else ""


def change_of(text: str, verbs: Mapping[str, Change] = VERBS) -> Change:
    """The change meant by the leading verb. Raises `UserError` for an unknown verb."""
    verb = leading_verb(text)
    for spelling in _spellings(verb):
        if spelling in verbs:
            return verbs[spelling]
    raise UserError(
        f"the leading verb '{verb}' of '{text:.60}' stands for no change",
        f"map it: +instructions.verbs.{verb or 'VERB'}=add (or remove, modify), or start with one of its "
        f"{len(verbs)} verbs: {', '.join(list(verbs)[:6])}, …",
    )


def _spellings(verb: str) -> tuple[str, ...]:
    if verb.endswith("ize"):
        return verb, f"{verb[:-3]}ise"
    if verb.endswith("ise"):
        return verb, f"{verb[:-3]}ize"
    return (verb,)
