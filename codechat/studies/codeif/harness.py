"""The rules of CodeIF-Bench's own harness: how it extracts code, which tests it appends, its time limit.

The rules keep their faults, so that published verdicts can be reproduced: a fence counts only if its opening line is
exactly "```python", a test that does not parse fails every program, and the verdict is an exit status, which the
tested code can choose. The verdict that codechat trusts, of the suite `assertions`, is recorded beside it.
"""

import re
from collections.abc import Sequence
from typing import Literal

from codechat.suites.assertions import Assertions
from codechat.tasks import Requirement

Mode = Literal["base", "single_round", "multi_round", "n_round"]

WALL_S = 3.0
UNSCORED = "Functionality Extension"  # its requirement may contradict the task's own tests

_FENCE = re.compile(r"```python\r?\n(.*?)```", re.DOTALL)
_DOCSTRING = re.compile(r' {4}"""\r?\n.*?"""', re.DOTALL)


def official_code(mode: Mode, reply: str) -> str:
    """The code that the harness takes from a reply: the first ```python fence, else the whole reply.

    Except in `base`, two things are deleted: docstrings in triple double quotes behind four spaces whose text begins on
    the line after the quotes, then blank lines.
    """
    fence = _FENCE.search(reply)
    code = fence.group(1) if fence else reply
    if mode == "base":
        return code
    return "\n".join(line for line in _DOCSTRING.sub("", code).splitlines() if line.strip())


def official_tests(
    mode: Mode, task: Assertions, asked: Sequence[Requirement], current: Requirement | None
) -> tuple[str, ...] | None:
    """The snippets that the harness appends; None if it gives no verdict.

    `asked` are the requirements so far in the dialogue, the current one last. An extension of the function is tested
    only by its own test; in `n_round` it has no verdict and does not count in later turns.
    """
    if current is None:
        return task.snippets
    if mode != "n_round":
        own = _snippets(current)
        return own if current.strategy == UNSCORED else (*task.snippets, *own)
    if current.strategy == UNSCORED:
        return None
    kept = [one for one in asked if one.strategy != UNSCORED]
    return (*task.snippets, *(snippet for one in kept for snippet in _snippets(one)))


def _snippets(requirement: Requirement) -> tuple[str, ...]:
    """Its assertions; the harness knows no tests of repositories."""
    return requirement.suite.snippets if isinstance(requirement.suite, Assertions) else ()


def official_source(code: str, snippets: Sequence[str]) -> str:
    """The file that the harness runs."""
    return "\n".join([code, *snippets])
