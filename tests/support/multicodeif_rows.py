"""Rows in the form of MultiCodeIF's task file."""

from typing import Any

CONSTRAINED: dict[str, Any] = {
    "task_id": "syntax_function/1",
    "level": "single",
    "category": "syntax",
    "constraint_type": "function",
    "language": "rust",
    "answer": "Rust;push_str",
    "prompt": "Join words with push_str.",
}
ANSWERS = ["Java;HashMap", "Java;HashMap;['put', 'get']", "Java;HashMap;100", "java;HashMap"]


def constrained(**fields: Any) -> dict[str, Any]:
    """The row with other fields."""
    return {**CONSTRAINED, **fields}


def chain(number: int = 0) -> list[dict[str, Any]]:
    """A chain of four levels."""
    return [
        constrained(
            task_id=f"multi/{number}/{level}",
            level=f"L{level}",
            chain=number,
            category="data_structure",
            constraint_type="cumulative",
            language="java",
            answer=ANSWERS[level - 1],
            answers_cumulative=ANSWERS[:level],
            prompt=f"Keep a phone book, level {level}.",
        )
        for level in range(1, 5)
    ]
