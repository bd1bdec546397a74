"""Texts from outside: programs, replies, task files, names.

Records keep them unchanged, except for characters that UTF-8 cannot hold (`writable`). A terminal or a table shows
hidden characters by their codes (`visible`). Names with hidden characters are refused (`problem_of_name`).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

DEEPEST = 100
"""Levels of lists and objects in JSON from outside: real data has some ten, and readers of a value recurse."""
LONGEST_NAME = 500
"""Characters of a task's or a model's name: stores refuse long ones, and no table could show them."""

T = TypeVar("T")

# Control characters but tab and line end; marks that are invisible, break lines or turn the direction of text; tags;
# halves of surrogate pairs. The labelling page has the same set.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text from outside: a file's, an endpoint's, another program's.

    Halves of surrogate pairs stay, because a test's input may have them: texts for records are made `writable`. Raises
    `ValueError` with a one-line message for text that is not JSON or not UTF-8, for more than `DEEPEST` levels, and for
    an integer of more digits than Python converts.
    """
    decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        value = json.loads(decoded)
    except RecursionError:
        raise ValueError(f"nested more than {DEEPEST} levels deep") from None
    if decoded.count("[") + decoded.count("{") > DEEPEST and is_deep(value):
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    return value


def is_deep(value: Any) -> bool:
    """Whether a value has more than `DEEPEST` levels of lists and objects; one that holds itself has."""
    level = [value] if type(value) in (dict, list) else []
    for _ in range(DEEPEST):
        parts = (part for whole in level for part in (whole.values() if type(whole) is dict else whole))
        level = [*{id(part): part for part in parts if type(part) in (dict, list)}.values()]
        if not level:
            return False
    return True


def writable(value: T) -> T:
    """The value with every half of a surrogate pair in its texts as U+FFFD, because no file in UTF-8 can hold it.

    Texts are searched in dataclasses, mappings, lists and tuples; a pair of halves becomes its character. A value
    without halves is returned itself.
    """
    made: Any = value
    if isinstance(value, str):
        made = _without_halves(value)
    elif isinstance(value, dict | list | tuple) and _is_writable(value):
        return value
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        new = {name: fit for name, part in parts.items() if (fit := writable(part)) is not part}
        made = replace(value, **new) if new else value
    elif isinstance(value, Mapping):
        made = {writable(key): writable(part) for key, part in value.items()}
    elif type(value) in (list, tuple):
        items: Any = value
        made = type(items)(map(writable, items))
    result: T = value if made == value else made
    return result


def _is_writable(value: Any) -> bool:
    """Whether a JSON value can be written unchanged; writing it is faster than searching its texts."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return False
    return True


def _without_halves(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def visible(text: str) -> str:
    r"""The text with hidden and control characters as their codes (`\x1b`, `\u202e`); tabs and line ends stay."""
    return _HIDDEN.sub(lambda match: _code(match[0]), text)


def _code(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def problem_of_name(name: str) -> str:
    """The reason why a text cannot be the name of a task or a model; empty if it can."""
    if not name.strip():
        return "is empty"
    if len(name) > LONGEST_NAME:
        return f"has {len(name)} characters, {LONGEST_NAME} are the most"
    hidden = _HIDDEN.search(name) or re.search(r"[\t\n]", name)
    return f"has the control or invisible character U+{ord(hidden[0]):04X}" if hidden else ""
