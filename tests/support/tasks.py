"""Tasks made by hand: no other test helper builds one."""

from typing import Any

from codechat.domain import AssertionTests, InputOutputTests, ProgramTests, Requirement, Task

Calls = tuple[tuple[Any, ...], ...]


def task_of(
    task_id: str,
    signature: str,
    reference: str | None = None,
    *,
    prompt: str = "",
    base: Calls = (),
    plus: Calls = (),
    assertions: ProgramTests | None = None,
    requirements: tuple[Requirement, ...] = (),
    level: str | None = None,
    **comparison: Any,
) -> Task:
    """A task for the function that `signature` defines; `comparison` holds further options of the calls' comparison."""
    return Task(
        task_id=task_id,
        prompt=prompt,
        entry_point=signature.removeprefix("def ").partition("(")[0],
        signature=signature,
        reference=reference,
        tests=InputOutputTests(base, plus, **comparison),
        assertions=assertions,
        requirements=requirements,
        level=level,
    )


def snippets(*texts: str) -> AssertionTests:
    """Tests by Python snippets that follow a program."""
    return AssertionTests(texts)
