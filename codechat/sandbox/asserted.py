"""The verdict over a run of assertion snippets: passed only with the token that is told to no program."""

import secrets
from dataclasses import replace
from typing import Any

from codechat.domain import Failure, Outcome, Verdict
from codechat.sandbox.follow import Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.stream import Frames, Malformed
from codechat.sandbox.verdicts import ADDRESS, SHOWN, how_it_ended, read_exception

TOKEN_BYTES = 16


class AssertionJudge:
    """Reads one run's stream. Frames are claims; that the last snippet ran to its end is shown by the token."""

    def __init__(self, snippets: tuple[str, ...], entry_point: str, output_limit: int) -> None:
        self._snippets, self._entry_point, self._room = snippets, entry_point, output_limit
        self._frames = Frames()
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self.started = self._loaded = False
        self._index = -1
        self._outcome: Outcome | None = None
        self._failure: Failure | None = None

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; answer nothing, and whether the verdict is decided."""
        self._room -= len(data)
        try:
            if self._room < 0:
                raise Malformed("more output than is read")
            for kind, payload in self._frames.feed(data):
                self._frame(kind, payload)
                if self._outcome is not None:
                    break
        except Malformed as error:
            self._fail("crash", f"the results cannot be read: {error}")
        return b"", self._outcome is not None

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind == wire.STARTED and not self.started:
            self.started = True
        elif kind == wire.SYNTAX and not self._loaded:
            self._fail("syntax_error", "the program does not parse: " + payload.decode(errors="replace")[:SHOWN])
        elif kind == wire.MISSING and not self._loaded:
            self._fail("fail", f"the program does not define {self._entry_point}")
        elif kind == wire.LOADED and self.started and not self._loaded:
            self._loaded = True
        elif kind == wire.AT and self._loaded and payload == wire.INDEX.pack(self._index + 1):
            self._index += 1
        elif kind == wire.ERROR:
            outcome, reason, described = read_exception(payload)
            self._fail(outcome, reason, exception=described)
        elif kind == wire.DONE and secrets.compare_digest(payload, self.token):
            self._outcome = "pass"
        else:
            raise Malformed("a frame out of order")

    def _fail(self, outcome: Outcome, reason: str, **details: Any) -> None:
        """Decide, with the assertion that it happened at."""
        self._outcome = outcome
        if 0 <= self._index < len(self._snippets):
            details |= {"index": self._index, "input": self._snippets[self._index][: 2 * SHOWN]}
            if details.get("exception", "").rpartition("\n")[2].startswith("AssertionError"):
                reason = "an assertion does not hold"
        self._failure = Failure(reason, **details)

    def conclude(self, ended: Ended, cpu_limit: int) -> Verdict:
        """The verdict, once the child is gone."""
        if self._outcome is None:
            self._fail(*how_it_ended(ended, cpu_limit))
        failure = self._failure
        if failure is not None and (printed := ended.stdout[: self._frames.printed]):
            failure = replace(failure, stdout=ADDRESS.sub("0x…", printed.decode(errors="replace")))
        return Verdict(self._outcome or "crash", self._outcome == "pass", failure, round(ended.cpu_s, 4))
