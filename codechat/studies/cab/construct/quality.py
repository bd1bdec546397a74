"""What no model need say of an issue: personal data, issues that are there already, conditions without evidence."""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codechat.run.construct import Dropped, Item, Kept, Kit, Outcome
from codechat.studies.cab.construct.github import MAIL_MASK, mask
from codechat.studies.cab.tasks import words_of

NEAR = 0.8
"""From this share of common shingles on, two openings are one issue."""
SHINGLE, OFTEN = 4, 200  # words of a shingle; a shingle of more issues than that belongs to a template
LEAST_WORDS = 3
"""Fewer words of a thread are no evidence."""
DIGITS = 9
"""The least of a telephone number: fewer may be any number with a sign."""
_TELEPHONE = re.compile(
    r"(?<![\w.+/-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}-\d{3}-\d{4})(?![\w.-]*\d)"
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b")
_IP = re.compile(r"(?i)(?<!version )(?<!version: )(?<![\w.=-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_STOP = frozenset(
    words_of(
        "a an and are as at be been but by can could do does for from had has have how if in into is it its no not of "
        "on or so than that the their them then there these they this to was what when which who will with would you",
    )
)


def personal_in(text: str) -> str:
    """The kind of personal data in a text, empty if none is found.

    What `mask` took out is no longer there: the model says whether its marks count. Addresses of private and reserved
    networks name no person.
    """
    if (masked := mask(text)) != text:
        return "an e-mail address" if masked.count(MAIL_MASK) > text.count(MAIL_MASK) else "a token or key"
    if any(len(re.findall(r"\d", found[0])) >= DIGITS for found in _TELEPHONE.finditer(text)):
        return "a telephone number"
    if any(_is_account(found[0].replace(" ", "")) for found in _IBAN.finditer(text)):
        return "a bank account"
    return "an IP address" if any(_is_global(found[0]) for found in _IP.finditer(text)) else ""


def _is_account(text: str) -> bool:
    """Whether an account's check digits are right (ISO 13616)."""
    return len(text) >= 15 and int("".join(str(int(each, 36)) for each in text[4:] + text[:4])) % 97 == 1


def _is_global(text: str) -> bool:
    try:
        return ipaddress.IPv4Address(text).is_global and not text.endswith(".0")  # such as the version 12.4.1.0
    except ValueError:
        return False


def covers(evidence: str, condition: str) -> bool:
    """Whether words of a thread can be evidence of a condition: they are several, and name something of it."""
    words = words_of(evidence)
    return len(words) >= LEAST_WORDS and not _stems(words).isdisjoint(_stems(words_of(condition)))


def _stems(words: Sequence[str]) -> set[str]:
    """The beginnings of words with a meaning, by which `failing` and `fails` are one."""
    return {word[:4] for word in words if word not in _STOP}


Shingle = tuple[str, ...]


async def duplicates(items: Sequence[Item], kit: Kit) -> Sequence[Outcome]:
    """Stage duplicates: drops an issue whose opening repeats an earlier one, word for word or nearly."""
    seen: dict[Shingle, str] = {}
    kept: list[tuple[str, set[Shingle]]] = []
    holders: dict[Shingle, list[int]] = defaultdict(list)  # places in `kept`
    outcomes: list[Outcome] = []
    for item in items:
        words = tuple(words_of(f"{item.data.get('title', '')} {item.data.get('body') or ''}"))
        own = {words[start : start + SHINGLE] for start in range(max(1, len(words) - SHINGLE + 1))}
        same = (seen[words], 1.0) if words in seen else _near(own, kept, holders)
        if same is not None and words:
            outcomes.append(Dropped("duplicate", f"{same[1]:.2f} of {same[0]}"))
            continue
        seen[words] = item.id
        for each in own:
            holders[each].append(len(kept))
        kept.append((item.id, own))
        outcomes.append(Kept(item))
    return outcomes


def _near(
    own: set[Shingle], kept: Sequence[tuple[str, set[Shingle]]], holders: Mapping[Shingle, Sequence[int]]
) -> tuple[str, float] | None:
    """The first kept issue that is nearly the same, with the shingles in common of all (Jaccard); None without one."""
    places = {place for each in own if len(found := holders.get(each, ())) <= OFTEN for place in found}
    for id_, shingles in (kept[place] for place in sorted(places)):
        share = len(own & shingles) / len(own | shingles)
        if share >= NEAR:
            return id_, share
    return None


def texts_of(data: Mapping[str, Any]) -> Iterator[str]:
    """All texts of an issue."""
    yield from (data["title"], data["body"] or "", *(each["body"] or "" for each in data["comments"]))
