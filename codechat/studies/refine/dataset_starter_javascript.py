"""Twenty of the starter's tasks in JavaScript, with the ids, inputs and results of the starter, except inputs with a
number or truth value that differs in JavaScript."""

from pathlib import Path
from typing import Literal

from codechat.base.config import original_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.rows import load_rows
from codechat.datasets.tasks import Dataset


class StarterJavaScriptConfig(DatasetConfig):
    """Options of `starter_javascript`."""

    kind: Literal["starter_javascript"] = original_option("starter_javascript", "which dataset")


@DATASETS.register("starter_javascript", StarterJavaScriptConfig)
def starter_javascript(config: StarterJavaScriptConfig) -> Dataset:
    """Twenty of the starter's tasks in JavaScript: embedded, nothing to download; they run in Node."""
    return load_rows("starter_javascript", Path(__file__).with_suffix(".jsonl"))
