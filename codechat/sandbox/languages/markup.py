"""Scripts within a page of HTML or a component of Vue."""

import re

_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|template|script|!--)", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b[^<>]{0,500}>(.*?)(?:</script\b|\Z)", re.IGNORECASE | re.DOTALL)
_SOURCE = re.compile(r"<script\b[^<>]{0,500}?\bsrc\s*=\s*[\"']?([^\"'\s<>]+)", re.IGNORECASE)


def scripts(text: str) -> str:
    """The text with spaces for everything but its scripts, if it is a page; lines and places stay."""
    if not _PAGE.match(text):
        return text
    kept, end = [], 0
    for script in _SCRIPT.finditer(text):
        kept += [_blank(text[end : script.start(1)]), script[1]]
        end = script.end(1)
    return "".join((*kept, _blank(text[end:])))


def sources(text: str) -> list[tuple[str, int]]:
    """The addresses of the scripts that a page loads, each with its line, from 1; none if the text is no page."""
    if not _PAGE.match(text):
        return []
    return [(found[1], text.count("\n", 0, found.start()) + 1) for found in _SOURCE.finditer(text)]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
