"""Rules for issues and their threads that need no model: who takes part, what is no text, and what is masked.

Section 3.1.2 of the paper names two rules by regular expression, of which it gives none: at least two participants, and
no media. Ours are written here. Published rows hold names of files (`page1.png`) and addresses that are broken up
(`http:// example. org`): neither is media.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

MEDIA: Mapping[str, re.Pattern[str]] = {
    # Both begin with what is rare in texts, because they are looked for in every thread.
    "an address": re.compile(r"://(?:(?<=\bhttp://)|(?<=\bhttps://))[^\s<>\"'`)]|\.(?<=\bwww\.)\w", re.IGNORECASE),
    "a picture or file": re.compile(r"!\[[^\]\n]*\]\s?[(\[]"),
    "a tag of media": re.compile(r"<(?:img|video|audio|picture|iframe)\b", re.IGNORECASE),
}
"""What an issue must not hold, in its title, its body and its comments."""

_MAIL = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-]|\.\w)")
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "[A-Za-z0-9]{20,255}"),
    **{"github_pat_": r"\w{20,255}", "glpat-": r"[\w-]{20,255}", "sk-": r"(?=[\w-]{0,80}\d)[\w-]{20,255}"},
    **{"hf_": "(?=[A-Za-z]{0,40}\\d|[a-z]{0,40}[A-Z])[A-Za-z0-9]{30,255}", "npm_": "[A-Za-z0-9]{36}"},
    **{"AKIA": "[0-9A-Z]{16}", "ASIA": "[0-9A-Z]{16}", "AIza": r"[\w-]{35}", "xox": r"[abeprs]-[\w-]{10,255}"},
    "eyJ": r"[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,2000}",
}
"""Tokens, as what they begin with, and a pattern of the rest."""
_TOKENS = re.compile(rf"(?<![\w-])(?:{'|'.join(map(''.join, _KINDS.items()))})(?![\w-])")
_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.{0,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----", re.DOTALL)
_BEARER = re.compile(r"(?i)(\bauthorization:\s*(?:bearer|token|basic)\s+)[\w.~+/=-]{16,4000}")
MAIL_MASK, TOKEN_MASK = "[e-mail address masked]", "[token masked]"


def mask(text: str) -> str:
    """The text without e-mail addresses and tokens; what stands for them says so."""
    if "@" in text:
        text = _MAIL.sub(MAIL_MASK, text)
    if any(map(text.__contains__, _KINDS)):  # else the pattern would be tried at each character of each thread
        text = _TOKENS.sub(TOKEN_MASK, text)
    if "-----BEGIN" in text:
        text = _KEY.sub(TOKEN_MASK, text)
    return _BEARER.sub(rf"\g<1>{TOKEN_MASK}", text) if "uthorization" in text else text


def media_in(*texts: str) -> str:
    """What of media the texts hold, in words; empty if they hold none."""
    return next((name for text in texts for name, pattern in MEDIA.items() if pattern.search(text)), "")


def turns_of(author: str, users: Sequence[str]) -> list[dict[str, list[int]]]:
    """The turns of a thread: neighbouring comments of one side merged, each by its number, 0 for the opening.

    A turn is what the author says and what others answer; the last one may lack an answer.
    """
    turns: list[dict[str, list[int]]] = [{"user": [0], "maintainer": []}]
    for number, user in enumerate(users, 1):
        if user == author and turns[-1]["maintainer"]:
            turns.append({"user": [], "maintainer": []})
        turns[-1]["user" if user == author else "maintainer"].append(number)
    return turns


def anonymized(issue: Mapping[str, Any]) -> dict[str, Any]:
    """The issue with people's names replaced: `user` for its author, `person_1` for the next who speaks, and so on.

    The names are the same throughout the thread, also where a text mentions one of them by `@`.
    """
    names = {issue["author"]: "user"}
    for comment in issue["comments"]:
        names.setdefault(comment["user"], f"person_{len(names)}")
    known = {name.casefold(): new for name, new in names.items()}
    mentions = re.compile(
        rf"(?<![\w/@])@({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?![\w-])", re.IGNORECASE
    )

    def renamed(text: str) -> str:
        return mentions.sub(lambda found: f"@{known[found[1].casefold()]}", text) if "@" in text else text

    comments = [{**each, "user": names[each["user"]], "body": renamed(each["body"])} for each in issue["comments"]]
    own = {"author": "user", "title": renamed(issue["title"]), "body": issue["body"] and renamed(issue["body"])}
    return {**issue, **own, "comments": comments}
