"""Behaviours of a test server: answers made of the tasks' reference solutions."""

import hashlib
import re
from collections.abc import Callable, Iterable

from codechat.datasets import DATASETS
from codechat.tasks import Task
from codechat.testing.behaviour import Call, Result, error

Solver = Callable[[Call], Result]


def dataset_tasks(dataset: str, path: str | None = None) -> tuple[Task, ...]:
    """The tasks of a dataset by its name, read from a file if it needs one. Raises `UserError`."""
    config = DATASETS.validate({DATASETS[dataset].key: dataset} | ({} if path is None else {"path": path}))
    return DATASETS.build(config).tasks


def reference_solver(tasks: Iterable[Task]) -> Solver:
    """Every answer is the reference solution of the task that the first user message states.

    Judge prompts get a well-formed verdict: all instructions apply, and none was followed: the code never changes.
    A conversation about an unknown task is refused with 400. Tasks without a reference are unknown.
    """
    known = [
        (_squeeze(task.prompt), _squeeze(task.target.signature), task) for task in tasks if task.reference is not None
    ]
    known.sort(key=lambda entry: len(entry[0]), reverse=True)
    found: dict[str, str] = {}

    def solve(call: Call) -> Result:
        for words, verdict in (("VERDICT: NOT_APPLICABLE", "APPLICABLE"), ("VERDICT: ADHERED", "VIOLATED")):
            if words in call.messages[0]["content"]:
                return f"The request was compared with the code.\nREASON: a fixed answer.\nVERDICT: {verdict}"
        first = next(message["content"] for message in call.messages if message["role"] == "user")
        if first not in found:
            task = _task_of(_squeeze(first), known)
            if task is None:
                return error(400, "this server knows no task with this statement")
            found[first] = f"Here is the code:\n\n```python\n{task.reference}\n```\n"
        return found[first]

    return solve


def fading_solver(tasks: Iterable[Task]) -> Solver:
    """The reference at first; each later turn breaks it with the chance, in percent, at the end of the model's name.

    Broken code is repaired with a quarter of that chance. Draws depend only on the conversation. A model without a
    number at the end of its name is refused with 400.
    """
    right = reference_solver(tasks)

    def solve(call: Call) -> Result:
        reply = right(call)
        user = [message["content"] for message in call.messages if message["role"] == "user"]
        if not isinstance(reply, str) or "VERDICT:" in reply:
            return reply
        number = str(call.body["model"]).rpartition("-")[2]
        if not number.isdecimal():
            return error(400, "the model's name must end in a percentage: model.name=fading-20", param="model")
        percent, broken = int(number), False
        for turn in range(1, len(user)):
            luck = int(hashlib.sha256(f"{call.body['model']}/{user[0]}/{turn}".encode()).hexdigest(), 16) % 400
            broken = luck >= percent if broken else luck < 4 * percent
        return re.sub(r"\breturn\b.*", "return 'broken'", reply) if broken else reply

    return solve


def _task_of(message: str, known: list[tuple[str, str, Task]]) -> Task | None:
    """The task whose statement, else whose signature, is in the message; the longest statement wins."""
    stated = [(signature, task) for prompt, signature, task in known if prompt in message]
    signed = [task for signature, task in stated if signature in message]
    if signed or stated:
        return signed[0] if signed else stated[0][1]
    named = [task for _, signature, task in known if signature in message]
    return named[0] if len(named) == 1 else None


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" \"'")
