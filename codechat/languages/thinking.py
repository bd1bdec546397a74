"""Removes the parts of a reply in which the model thinks aloud."""

import re
from dataclasses import dataclass, field

_EVENT = re.compile(
    r"(?m)^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>[^\n<]*)"
    r"|(?P<lead>^[ \t\ufeff]*)?(?P<tag><(?P<slash>/?)think(?:ing)?>)",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?think", re.IGNORECASE)
_REST_BLANK = re.compile(r"[ \t\r]*(?:\n|\Z)")
_LEADING_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")


def without_thinking(reply: str) -> str:
    """The reply for the history: without `<think>…</think>` parts, the rest unchanged.

    An opening tag without an end (a reply cut off) removes all that follows; an end without an opening tag (a
    template wrote it) removes all that precedes. A tag inside a fence or in quotes does not count. The
    result is empty if the reply has nothing else. Linear in the reply's length.
    """
    if not _TAG.search(reply):
        return reply
    events = list(_EVENT.finditer(reply))
    scan = _Scan(reply)
    for event, following in zip(events, [*events[1:], None], strict=True):
        scan.take(event, following)
    return scan.result()


@dataclass(slots=True)
class _Scan:
    reply: str
    kept: list[str] = field(default_factory=list)
    start: int = 0
    """The start of the text that is not yet kept or removed."""
    thinking: bool = False
    ended_once: bool = False
    fence: re.Match[str] | None = None
    opened_in_fence: bool = False
    removed: bool = False

    def take(self, event: re.Match[str], following: re.Match[str] | None) -> None:
        """Handle one fence line or tag; `following` is the next of them."""
        opening = not event["slash"]
        if self.thinking:
            if event["tag"] and not opening:
                self._resume(event)
        elif event["fence"]:
            self._fence(event)
        elif self.fence is not None:
            self.opened_in_fence |= opening
            if not opening and not self.opened_in_fence and self._ends_unseen_thinking(event):
                self._forget(event)
        elif self.reply[event.start("tag") - 1 : event.start("tag")] in ("`", "'", '"'):
            return
        elif not opening:
            if self.ended_once:
                self.kept.append(self.reply[self.start : event.start("tag")])
                self._resume(event)
            else:
                self._forget(event)
        elif event["lead"] is not None or (following is not None and following["slash"]):
            self.kept.append(self.reply[self.start : event.start()])
            self.thinking = self.removed = True

    def _fence(self, event: re.Match[str]) -> None:
        run, info = event["fence"], event["info"].strip()
        if self.fence is None:
            if run[0] == "~" or "`" not in info:
                self.fence, self.opened_in_fence = event, False
        else:
            opened = self.fence["fence"]
            near = len(event["indent"]) <= len(self.fence["indent"]) + 3
            if run[0] == opened[0] and len(run) >= len(opened) and not info and near:
                self.fence = None

    def _ends_unseen_thinking(self, event: re.Match[str]) -> bool:
        """A closing tag alone on its line ends a part without an opening tag, even in an unclosed fence."""
        return not self.ended_once and event["lead"] is not None and bool(_REST_BLANK.match(self.reply, event.end()))

    def _resume(self, event: re.Match[str]) -> None:
        self.start, self.thinking, self.ended_once, self.removed = event.end(), False, True, True

    def _forget(self, event: re.Match[str]) -> None:
        self.kept.clear()
        self.fence = None
        self._resume(event)

    def result(self) -> str:
        if not self.thinking:
            self.kept.append(self.reply[self.start :])
        text = "".join(self.kept)
        return _LEADING_BLANK_LINES.sub("", text) if self.removed else text
