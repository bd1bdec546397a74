"""The chapters that protocols bring to a report, by the protocol's name.

The `chapter` of a study registers itself when it is imported; so does a module of another installed package that is
named under the entry-point group `codechat.chapter`, or the protocol's own under `codechat.protocol`.
A protocol without a chapter has the generic one.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from codechat.base.plugins import import_all
from codechat.report.generic import Chapter
from codechat.report.generic.stopped import StoppedChapter
from codechat.report.metrics.sequences import STOPPED

__all__ = ["Chapter", "chapter_of", "leads", "register"]

C = TypeVar("C", bound=type[Chapter])
_OWN: dict[str, Chapter] = {STOPPED: StoppedChapter()}
_GENERIC = Chapter()


def register(protocol: str) -> Callable[[C], C]:
    """Decorator for the chapter of a protocol. Raises `ValueError` if the protocol has another already."""

    def remember(chapter: C) -> C:
        known = _OWN.setdefault(protocol, chapter())
        if type(known).__module__ != chapter.__module__:
            raise ValueError(f"the protocol '{protocol}' has two chapters: {type(known).__module__} has one already")
        return chapter

    return remember


def chapter_of(protocol: str) -> Chapter:
    """The protocol's chapter, or the generic one. Raises `UserError` if an installed chapter cannot be loaded."""
    _discover()
    return _OWN.get(protocol, _GENERIC)


def leads(protocol: str) -> bool:
    """Whether a protocol's chapter comes first in a report: one of its own that does not say otherwise."""
    chapter = chapter_of(protocol)
    return chapter is not _GENERIC and chapter.leads


@cache
def _discover() -> None:
    import_all(__name__, "chapter")
    import_all(__name__, "protocol")
