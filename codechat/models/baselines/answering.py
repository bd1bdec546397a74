"""What the baselines that write code share: what a call gives them, and how they answer."""

import re

from codechat.domain import Reply
from codechat.errors import UserError
from codechat.models import Crib, Request


def crib_of(request: Request) -> Crib:
    """What only a baseline may see. A call without it is a bug of the caller."""
    if request.crib is None:
        raise RuntimeError("a baseline was called without its crib")
    return request.crib


def reference_of(crib: Crib) -> str:
    """The task's solution. Raises `UserError` where it has none."""
    if crib.task.reference is None:
        raise UserError(
            f"task {crib.task.task_id} has no reference solution, which a baseline model answers with",
            "choose another model, or a dataset with references",
        )
    return crib.task.reference


def answer(code: str) -> Reply:
    """The code in a fence that no run of backticks in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return Reply(f"{fence}python\n{code.rstrip()}\n{fence}\n")
