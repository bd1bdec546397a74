"""Prompt templates (`{{name}}` is replaced once; the inserted text is never read as a template) and counted nouns."""

import re

_FIELD = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def fill(template: str, **values: str) -> str:
    """The template with its fields replaced. Raises `KeyError` for a field without a value."""
    return _FIELD.sub(lambda match: values[match.group(1)], template).strip("\n")


def require(template: str, *must: str, may: tuple[str, ...] = ()) -> str:
    """The template itself; raises `ValueError` if a field is missing or unknown."""
    found = set(_FIELD.findall(template))
    for name in must:
        if name not in found:
            raise ValueError(f"the prompt must contain {{{{{name}}}}}")
    for name in sorted(found - {*must, *may}):
        raise ValueError(f"the prompt has the unknown field {{{{{name}}}}}; it may have {', '.join((*must, *may))}")
    return template


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 cell`, `2 cells`, `2 replies`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
