"""The verdict on one run's stream of assertions."""

import secrets
from dataclasses import dataclass, replace
from typing import Any

from codechat.base.domain import Failure, Outcome, Verdict
from codechat.sandbox import Ended
from codechat.sandbox.inside import wire
from codechat.sandbox.suites.endings import ADDRESS, SHOWN, explain_end, read_exception
from codechat.sandbox.watch import Frames, Malformed

TOKEN_BYTES = 16
REASONS = {
    "object": "an object of the program's own class, or an attribute of one",
    "entry": "a class or a variable in the place of a function: it is no function",
    "plain": "a result that is not plain data",
    "array": "an array of NumPy, or a number of a type that tests ask for",
    "kept": "a list or the like that the program keeps",
    "exception": "an exception with attributes, a group or a base class of its own",
    "builtins": "a name of the program that is also a builtin's",
    "names": "a name of the program that is not the function under test",
    "text": "a text that is no plain definition of a plain function",
    "argument": "an argument that is not plain data, such as a function or an iterator",
    "world": "a call by a test that uses {world}",
    "attribute": "the attribute {attributes} of a function",
}
"""The words for each reason in `wire`: the only ones that a run can bring about."""


@dataclass(frozen=True)
class SharedProcess:
    """Why program and snippets share a process; `by_program`: the program brought it about when it ran."""

    reason: str
    by_program: bool = False


class AssertionsReader:
    """Reads one run's stream.

    If program and snippets share a process, frames are mere claims: only the token proves that the last snippet ran
    to its end. `shared` says why they share one; None if they have two. Then `must_share` is the reason in `wire` for
    which they must share one after all, None if there is none; `index` is the snippet that was reached.
    """

    def __init__(
        self, snippets: tuple[str, ...], entry_point: str, output_limit: int, shared: SharedProcess | None = None
    ) -> None:
        self._snippets, self._entry_point, self._bytes_left = snippets, entry_point, output_limit
        self._frames = Frames()
        self.token = secrets.token_bytes(TOKEN_BYTES)
        self._shared, self._parted = shared, shared is None
        self.must_share: str | None = None
        self._starts = 0
        self._loaded = False
        self.index = -1
        self._outcome: Outcome | None = None
        self._failure: Failure | None = None

    @property
    def started(self) -> bool:
        """Whether every process of the run was confined."""
        return self._starts == (2 if self._parted else 1)

    def read(self, data: bytes) -> tuple[bytes, bool]:
        """Take bytes; return an empty answer, and whether the verdict is decided."""
        self._bytes_left -= len(data)
        try:
            if self._bytes_left < 0:
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
            self._starts += 1
        elif kind == wire.SYNTAX and not self._loaded:
            self._fail("syntax_error", "the program does not parse: " + payload.decode(errors="replace")[:SHOWN])
        elif kind == wire.MISSING and not self._loaded:
            self._fail("fail", f"the program does not define {self._entry_point}")
        elif kind == wire.LOADED and self.started and not self._loaded:
            self._loaded = True
        elif kind == wire.AT and self._loaded and payload == wire.INDEX.pack(self.index + 1):
            self.index += 1
        elif kind == wire.ERROR:
            outcome, reason, described = read_exception(payload)
            self._fail(outcome, reason, exception=described)
        elif kind == wire.DONE and secrets.compare_digest(payload, self.token):
            self._outcome = "pass"
        elif kind == wire.INSIDE and self._parted:
            self.must_share = payload.decode(errors="replace")
            if self.must_share not in REASONS:
                raise Malformed("an unknown reason")
            self._fail("crash", "undecided")
        else:
            said = payload.decode(errors="replace") if kind == wire.GARBLED else "a frame out of order"
            raise Malformed(said)

    def _fail(self, outcome: Outcome, reason: str, **details: Any) -> None:
        """Decide: the program failed at the current assertion."""
        self._outcome = outcome
        if 0 <= self.index < len(self._snippets):
            details |= {"index": self.index, "input": self._snippets[self.index][: 2 * SHOWN]}
            if details.get("exception", "").rpartition("\n")[2].startswith("AssertionError"):
                reason = "an assertion does not hold"
        self._failure = Failure(reason, **details)

    def conclude(self, ended: Ended, cpu_limit: int) -> Verdict:
        """The verdict, once the processes are gone."""
        if self._outcome is None:
            self._fail(*explain_end(ended, cpu_limit))
        failure = self._failure
        if failure is not None and (printed := ended.stdout[: self._frames.printed]):
            failure = replace(failure, stdout=ADDRESS.sub("0x…", printed.decode(errors="replace")))
        passed = self._outcome == "pass"
        shared = self._shared or SharedProcess("")
        cpu_s = round(ended.cpu_s, 4)
        return Verdict(self._outcome or "crash", passed, failure, cpu_s, shared.reason, by_program=shared.by_program)
