"""The size of a cell: its tasks, and the number of their tests (paper, Table III); the same for every protocol.

The engine adds these counts to every metrics.json, so that a report needs no dataset at hand.
"""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from codechat.datasets.tasks import Task
from codechat.sandbox.suites import HasTestCounts

LOADED = "loaded"
"""The key of the counts in metrics.json; those of older versions lack it."""


def count_loaded(tasks: Sequence[Task]) -> dict[str, Any]:
    """The tasks, those whose own tests can be counted, and all tests of these: original and added ones.

    Tests of requirements are not counted: they belong to a turn. `lengths`, if the tasks say any, has the mean
    characters and lines of a turn's question, code and tests, three each.
    """
    texts = [each for task in tasks for each in task.lengths()]
    means = {
        unit: [round(fmean(map(measure, column)), 2) for column in zip(*texts, strict=True)]
        for unit, measure in (("characters", len), ("lines", _lines))
    }
    suites: Iterator[object] = (task.suite for task in tasks)
    known = [suite.test_counts for suite in suites if isinstance(suite, HasTestCounts)]
    return {
        "tasks": len(tasks),
        "counted": len(known),
        "original_tests": sum(original for original, _ in known),
        "added_tests": sum(added for _, added in known),
        **({"lengths": means} if texts else {}),
    }


def _lines(text: str) -> int:
    return text.count("\n") + 1
