"""The embedded dataset: fifty small tasks of this project's own, in `starter.jsonl`, a file of `dataset=jsonl`."""

from pathlib import Path
from typing import Literal

from codechat.base.config import original_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.rows import load_rows
from codechat.datasets.tasks import Dataset


class StarterConfig(DatasetConfig):
    """Options of `starter`."""

    kind: Literal["starter"] = original_option("starter", "which dataset")


@DATASETS.register("starter", StarterConfig)
def starter(config: StarterConfig) -> Dataset:
    """Fifty small tasks of this project's own: embedded, nothing to download."""
    return load_rows("starter", Path(__file__).with_suffix(".jsonl"))
