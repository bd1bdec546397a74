"""What CodeAssistBench's paper prints (`published.yaml`): its Table 2, of a sample of the issues of two cohorts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from codechat.report.study import REPLAYED

DATA = Path(__file__).with_name("published.yaml")
COHORTS: Mapping[str, str] = {"recent": "recent", "all_time": "all-time"}
"""The cohorts as metrics.json names them, and in words."""


@dataclass(frozen=True)
class Paper:
    """The paper's Table 2. `figures` has by cohort and model three triples by verdict (correct, partially correct,
    incorrect): shares in per cent, turns of the real thread, rounds.

    `issues` counts the paper's sample by cohort; `known` has the paper's name of a model by its plain one.
    """

    figures: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]
    issues: Mapping[str, int]
    known: Mapping[str, str]

    def name_of(self, model: str) -> str:
        """The paper's name of a model; empty if the paper has none such."""
        plain = re.sub(r"[^a-z0-9]", "", model.removesuffix(REPLAYED).rpartition("/")[2].lower())
        return self.known.get(plain, "")


@cache
def paper() -> Paper:
    """The data file's content."""
    data: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    known = {plain: name for name, plains in data["models"].items() for plain in plains}
    return Paper({cohort: data[cohort] for cohort in COHORTS}, data["issues"], known)
