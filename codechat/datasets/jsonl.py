"""A user's own tasks, in a file."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from codechat.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.rows import load_rows
from codechat.tasks import Dataset


class JsonlConfig(DatasetConfig):
    """Options of `jsonl`."""

    kind: Literal["jsonl"] = original_option("jsonl", "which dataset")
    path: str = place_option(..., "the file with one task a line, .jsonl or .jsonl.gz", min_length=1)


@DATASETS.register("jsonl", JsonlConfig)
def jsonl(config: JsonlConfig) -> Dataset:
    """Your own tasks from a .jsonl or .jsonl.gz file with EvalPlus's fields (dataset.path)."""
    return replace(load_rows("jsonl", Path(config.path).expanduser()), own=True)
