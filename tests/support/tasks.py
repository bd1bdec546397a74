"""Tasks made by hand: no other test helper builds one."""

from typing import Any

from codechat.base.domain import Target
from codechat.datasets.tasks import Requirement, Task
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls

Inputs = tuple[tuple[Any, ...], ...]


def task_of(
    task_id: str,
    signature: str,
    reference: str | None = None,
    *,
    prompt: str = "",
    base: Inputs = (),
    plus: Inputs = (),
    assertions: Suite | None = None,
    requirements: tuple[Requirement, ...] = (),
    level: str | None = None,
    **comparison: Any,
) -> Task:
    """A task for the function that `signature` defines; `comparison` holds further options of the calls' comparison."""
    name = signature.removeprefix("def ").partition("(")[0]
    calls = Calls(name, reference, base, plus, name=task_id, **comparison) if base or plus else None
    return Task(
        task_id=task_id,
        prompt=prompt,
        target=Target("python", name, signature),
        suite=calls or assertions,
        reference=reference,
        requirements=requirements,
        level=level,
    )


def snippets(*texts: str) -> Assertions:
    """Tests by Python snippets that follow a program."""
    return Assertions(texts)
