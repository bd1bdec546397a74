"""Baselines: models that see a task's reference and involve no language model. They show what a score means."""

from codechat.models.baselines import drifter, echo, refactorer, reference
from codechat.models.baselines.answering import BASELINES_VERSION

__all__ = ["BASELINES_VERSION", "drifter", "echo", "refactorer", "reference"]
