"""The kinds of failure, and how each is handled.

A user's mistake ends the command with exit status 2 and at most five lines; a failure of infrastructure is retried,
then recorded as errored and never scored; anything else is a bug and keeps its traceback.
"""

import difflib
from collections.abc import Iterable

MAX_LINES = 5
MAX_WIDTH = 400
LONGEST_SLIP = 200  # characters of a name whose nearest ones are looked for


class UserError(Exception):
    """A mistake the user can correct; `remedy` says how."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [line for part in (self.message, self.remedy) for line in part.splitlines() if line.strip()]
        if len(lines) > MAX_LINES:
            lines = [*lines[: MAX_LINES - 1], f"… and {len(lines) - MAX_LINES + 1} more lines"]
        return "\n".join(line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 1] + "…" for line in lines)

    def __reduce__(self) -> tuple[type["UserError"], tuple[str, str]]:
        return (type(self), (self.message, self.remedy))


class BrokenTask(UserError):
    """A task whose tests no program can pass, or whose reference gives no results to compare with."""


class InfrastructureError(Exception):
    """Something outside failed (endpoint, judge, disk) after its retries: recorded, never scored.

    `retries` and `rate_limited` count the failed attempts, as in a reply.
    """

    retries: int = 0
    rate_limited: int = 0


class BrokenTest(InfrastructureError):
    """A test that was made during the session, for instance by a model, and decides nothing; a suite raises it.

    The session is errored, unless the protocol catches the error and leaves the turn unscored. It is no sign of a
    failing endpoint: any number in a row stops no cell.
    """


class ConversationRefused(InfrastructureError):
    """An endpoint that answers others refuses this conversation, in words that are not known.

    The session is errored. It is no sign of a failing endpoint: any number in a row stops no cell.
    """


class JudgeUnreadable(InfrastructureError):
    """So many of a judge's answers in a row could not be read that it is asked no more: the cell stops."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


class EndpointDown(InfrastructureError):
    """An endpoint that cannot be reached: a user's mistake at the start, later a failure of infrastructure."""


class Stopped(InfrastructureError):
    """No new call may start, because the user interrupted or a budget is reached: the next run resumes the session."""


class ContextOverflow(Exception):
    """The conversation no longer fits the model: the session ends, and is completed (contract, section 2)."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> str:
    """A hint with the known names closest to `name`; if none is close, with the first 15 names."""
    names = sorted(known)
    # a longer name is no slip of the hand, and comparing it would take long
    close = difflib.get_close_matches(name, names, n=count, cutoff=0.5) if len(name) <= LONGEST_SLIP else []
    if close:
        return "did you mean " + " or ".join(f"'{match}'" for match in close) + "?"
    if not names:
        return "there is nothing to choose from"
    shown = ", ".join(names[:15])
    return f"choose from: {shown}" + (f", … ({len(names)} in all)" if len(names) > 15 else "")
