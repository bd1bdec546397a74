"""What the baselines that write code share: what a call gives them, and how they answer."""

from codechat.domain import Reply
from codechat.errors import UserError
from codechat.languages import fence
from codechat.models import BaselineView, Request

BASELINES_VERSION = 2
"""The version of what the refactorer and the drifter answer; the echo repeats code and has none.

Raise it whenever one of them may answer a request with other code than before. It becomes part of the id of every cell
of such a model. Version 1: 204 transformations, many of which sent a value through a construct that does nothing.
"""


def view_of(request: Request) -> BaselineView:
    """What only a baseline may see. A call without it is a bug of the caller."""
    if request.view is None:
        raise RuntimeError("a baseline was called without its view of the task")
    return request.view


def reference_of(view: BaselineView) -> str:
    """The right answer to the request. Raises `UserError` if the task has none."""
    reference = view.reference if view.reference is not None else view.task.reference
    if reference is None:
        raise UserError(
            f"{view.task.task_id} has no reference solution, which a baseline model answers with",
            "add canonical_solution to the task, or choose a model that is not a baseline",
        )
    return reference


def answer(code: str, view: BaselineView) -> Reply:
    """The code in a fence of the task's language."""
    return Reply(fence(code, view.task.target.language))
