"""A user's own tasks, in a file."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from codechat.base.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.rows import load_rows
from codechat.datasets.tasks import Dataset


class JsonlConfig(DatasetConfig):
    """Options of `jsonl`."""

    kind: Literal["jsonl"] = original_option("jsonl", "which dataset")
    path: str = place_option(..., "the file with one task a line, .jsonl or .jsonl.gz", min_length=1)
    name: str | None = place_option(
        None, "what the dataset is called in records and reports; the file's name unless given", min_length=1
    )

    @model_validator(mode="before")
    @classmethod
    def _named(cls, values: Any) -> Any:
        """Name the dataset after its file, so that the name stays when the file is moved."""
        if isinstance(values, dict) and values.get("name") is None and isinstance(values.get("path"), str):
            return {**values, "name": name_of(values["path"])}
        return values


def name_of(path: str) -> str | None:
    """A file's name without its endings: `my_tasks` of `data/my_tasks.jsonl.gz`; None if nothing is left."""
    return Path(path).name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json") or None


@DATASETS.register("jsonl", JsonlConfig)
def jsonl(config: JsonlConfig) -> Dataset:
    """Your own tasks from a .jsonl or .jsonl.gz file with EvalPlus's fields (dataset.path)."""
    return replace(load_rows(config.name or "jsonl", Path(config.path).expanduser()), own=True)
