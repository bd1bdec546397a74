"""HumanEval+ (EvalPlus): 164 tasks whose prompt is the beginning of the program."""

from dataclasses import replace
from typing import Literal

from codechat.base.config import original_option, place_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.reading.release import Release
from codechat.datasets.reading.rows import load_rows
from codechat.datasets.tasks import Dataset
from codechat.sandbox.suites.calls import Calls

RELEASE = Release(
    "HumanEvalPlus",
    "v0.1.10",
    "HUMANEVAL_OVERRIDE_PATH",
    "2f3d2a24e8825cf0e6d5442475b1c625a4e4e79fb35611239515a60c16c8734a",
    r"HumanEval/\d+",
)


class HumanEvalConfig(DatasetConfig):
    """Options of `humaneval`."""

    kind: Literal["humaneval"] = original_option("humaneval", "which dataset")
    path: str | None = place_option(None, "a local HumanEvalPlus .jsonl or .jsonl.gz; null: its cache", min_length=1)
    url: str | None = place_option(None, "the download if no path is given; null: its release", min_length=1)


@DATASETS.register("humaneval", HumanEvalConfig)
def humaneval(config: HumanEvalConfig) -> Dataset:
    """HumanEval+ v0.1.10: 164 tasks by EvalPlus, downloaded to its cache on first use."""
    return RELEASE.compared(load_rows("humaneval", RELEASE.locate(config.path, config.url), _adapt))


def _adapt(calls: Calls) -> Calls:
    """Accept any root of the polynomial in HumanEval/32, not only the reference's."""
    return replace(calls, oracle="polynomial_root") if calls.name == "HumanEval/32" else calls
