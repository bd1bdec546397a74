"""Baselines: models that see a task's reference and involve no language model. They show what a score means."""

from codechat.models.baselines import drifter, echo, refactorer

BASELINES_VERSION = 2
"""The version of what the refactorer and the drifter answer; the echo repeats code and has none.

Raise it whenever one of them may answer a request with other code than before. It becomes part of the id of every cell
of such a model. Version 1: 204 transformations, many of which sent a value through a construct that does nothing.
"""

__all__ = ["BASELINES_VERSION", "drifter", "echo", "refactorer"]
