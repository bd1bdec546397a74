"""What MultiCodeIF's paper prints (`published.yaml`): Tables IV to VI, and which models have open weights."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

from codechat.report.study import REPLAYED

DATA = Path(__file__).with_name("published.yaml")
TASKS, CHAINS = 1526, 165
"""How many sessions a cell of the whole dataset has: tasks of one constraint, or chains of levels."""

Weights = Literal["open", "closed"]


@dataclass(frozen=True)
class Paper:
    """The paper's figures in per cent, by the paper's names of models.

    `accuracy` has a figure for each of `categories` and the mean over tasks; `means` are Figure 7's. `satisfaction`
    has SSR of four levels and its mean, then HSR alike. `ifrepair` has IFRepair@0 to 4, then four gains.
    """

    categories: Sequence[str]
    accuracy: Mapping[str, Sequence[float]]
    means: Sequence[float]
    satisfaction: Mapping[str, Sequence[float]]
    ifrepair: Mapping[str, Sequence[float]]
    known: Mapping[str, str]
    weights: Mapping[str, Weights]
    beginnings: Mapping[str, Weights]

    def name_of(self, model: str) -> str:
        """The paper's name of a model; empty if the paper has none such."""
        return self.known.get(_plain(model), "")

    def weights_of(self, model: str) -> Weights | None:
        """Whether a model's weights are open; None if its name does not tell."""
        if name := self.name_of(model):
            return self.weights[name]
        told = [begin for begin in self.beginnings if _plain(model).startswith(begin)]
        return self.beginnings[max(told, key=len)] if told else None


@cache
def paper() -> Paper:
    """The data file's content."""
    data: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    models = data["models"]
    return Paper(
        **{name: data[name] for name in ("categories", "accuracy", "means", "satisfaction", "ifrepair")},
        known={known: name for name, about in models.items() for known in about["known"]},
        weights={name: about["weights"] for name, about in models.items()},
        beginnings={begin: kind for kind, names in data["weights"].items() for begin in names},
    )


def _plain(model: str) -> str:
    """A model's name without its publisher, capitals and signs."""
    return re.sub(r"[^a-z0-9]", "", model.removesuffix(REPLAYED).rpartition("/")[2].lower())
