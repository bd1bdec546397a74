"""The embedded dataset: fifty small tasks of this project's own, one module per topic.

Every reference is a function of the package: linted, typed and tested like the rest. A reference uses nothing
outside itself but its module's imports, since it has to run alone.
"""

from typing import Literal

from codechat.config import original_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.rows import hash_rows, task_from
from codechat.datasets.starter import calendar, grids, machines, mappings, numbers, parsing, recursion, sequences, texts
from codechat.tasks import Dataset

TOPICS = (texts, sequences, numbers, mappings, recursion, parsing, calendar, grids, machines)


class StarterConfig(DatasetConfig):
    """Options of `starter`."""

    kind: Literal["starter"] = original_option("starter", "which dataset")


@DATASETS.register("starter", StarterConfig)
def starter(config: StarterConfig) -> Dataset:
    """Fifty small tasks of this project's own: embedded, nothing to download."""
    rows = [row for module in TOPICS for row in module.topic.rows()]
    return Dataset("starter", tuple(task_from(row) for row in rows), hash_rows(rows))
