"""Read a maintainer's reply: `EXPLORE: command` lines, and the answer behind `ANSWER:`."""

import re
from dataclasses import dataclass

_LIST_OR_QUOTE = re.compile(r"(?:>[ \t]*)*(?:(?:[-*+]|#{1,6}|\d{1,3}[.)])[ \t]+)?")
_MARKED = re.compile(r"(\*{0,3}|_{0,3}|`)(EXPLORE|ANSWER)(?::\1|\1[ \t]*:)[ \t]*(.*)$", re.DOTALL)
_WHOLE = re.compile(r"(\*{1,3}|_{1,3}|`)((?:EXPLORE|ANSWER)[ \t]*:.*)\1$", re.DOTALL)
"""A line that is emphasised, or in backticks, from its mark to its end."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply's commands before its answer, the answer (None if it has none), and the text that is no command."""

    commands: tuple[str, ...]
    answer: str | None
    text: str


def read_reply(reply: str) -> Said:
    """Read a reply, thinking removed.

    A command is the rest of a line that begins with `EXPLORE:`, in capitals; the line may be indented, quoted, an item
    of a list, a heading, or in a fence; it, or its mark alone, may be bold or in backticks. The answer is everything
    behind the first `ANSWER:` that begins a line: lines behind it are never commands. An answer or a command without
    text is none.
    """
    commands: list[str] = []
    rest: list[str] = []
    lines = reply.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for place, line in enumerate(lines):
        mark, said = _marked(line)
        if mark == "ANSWER":
            answer = "\n".join([said, *lines[place + 1 :]]).strip()
            return Said(tuple(commands), answer or None, "\n".join([*rest, answer]).strip())
        if mark is None:
            rest.append(line)
        elif said:
            commands.append(said)
    return Said(tuple(commands), None, "\n".join(rest).strip())


def _marked(line: str) -> tuple[str | None, str]:
    """The mark that a line begins with, and the text behind it."""
    begun = line.lstrip()
    begun = begun[_prefix(begun) :].strip()
    whole = _WHOLE.match(begun)
    if whole is not None and whole[1] not in whole[2]:
        begun = whole[2]
    match = _MARKED.match(begun)
    if match is None:
        return None, ""
    return match[2], _unwrapped(match[3].strip()) if match[2] == "EXPLORE" else match[3]


def _prefix(line: str) -> int:
    match = _LIST_OR_QUOTE.match(line)
    return match.end() if match else 0


def _unwrapped(command: str) -> str:
    """A command without the backticks around the whole of it."""
    if len(command) > 1 and command[0] == command[-1] == "`" and "`" not in command[1:-1]:
        return command[1:-1].strip()
    return command
