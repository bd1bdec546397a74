"""The embedded issues: three of this project's own, on tiny repositories, to show a dialogue without key or network."""

from dataclasses import asdict
from typing import Literal

from codechat.config import original_option
from codechat.datasets import DATASETS, DatasetConfig
from codechat.files import content_hash
from codechat.studies.cab.issues import with_replies
from codechat.studies.cab.starter import kettle, pebble, till
from codechat.tasks import Dataset

ISSUES = (till.ISSUE, pebble.ISSUE, kettle.ISSUE)


class AssistStarterConfig(DatasetConfig):
    """Options of `assist_starter`."""

    kind: Literal["assist_starter"] = original_option("assist_starter", "which dataset")


@DATASETS.register("assist_starter", AssistStarterConfig)
def assist_starter(config: AssistStarterConfig) -> Dataset:
    """Three small issues of this project's own, with their repositories: embedded, nothing to download."""
    tasks = with_replies(issue.task() for issue in ISSUES)
    content = content_hash([asdict(issue) for issue in ISSUES])
    return Dataset("assist_starter", tuple(tasks), content)
