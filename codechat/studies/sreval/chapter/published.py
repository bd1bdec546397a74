"""What SR-Eval's paper prints (`published.yaml`): figures by model and setting, and the sizes of its datasets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DATA = Path(__file__).with_name("published.yaml")
LEVELS: Mapping[str, Mapping[str, str]] = {
    "function": {"sreval_python": "Python", "sreval_java": "Java"},
    "repository": {"sreval_python_repository": "Python", "sreval_java_repository": "Java"},
}
"""The paper's datasets by level, each with its language."""


class Setting(NamedTuple):
    """What a figure of a model rests on: `prompting` and `context` are options of the protocol."""

    dataset: str
    prompting: str
    context: str


class Figures(NamedTuple):
    """A model's figures in a setting: Acc by round, empty if unknown, AvgAcc, complete rate, and tokens per task."""

    rounds: Sequence[float | None]
    avg_acc: float | None
    complete_rate: float | None
    atc: float | None


@dataclass(frozen=True)
class Paper:
    """The paper's figures. Models go by its abbreviations, such as `OSS-20-T`, in its order.

    `names` has their full names with the reasoning level, `presets` the abbreviation of each of codechat's presets;
    `tasks` is Table 1 by dataset, and `total` its last row.
    """

    names: Mapping[str, str]
    presets: Mapping[str, str]
    tasks: Mapping[str, Mapping[str, Any]]
    figures: Mapping[str, Mapping[Setting, Figures]]


@cache
def paper() -> Paper:
    """The data file's content."""
    data = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    found: dict[str, dict[Setting, Figures]] = {model: {} for model in data["models"]}
    for dataset, lines in data["rounds"].items():
        for line, (*rounds, avg_acc, complete_rate) in lines.items():
            model, context = line.split()
            found[model][Setting(dataset, "full_history", context)] = Figures(rounds, avg_acc, complete_rate, None)
    for dataset, lines in data["prompting"].items():
        for line, (avg_acc, complete_rate, atc) in lines.items():
            model, context, prompting = line.split()
            setting = Setting(dataset, prompting, context)
            known = found[model].get(setting, Figures((), avg_acc, complete_rate, None))
            found[model][setting] = known._replace(atc=atc)
    names = {model: about["name"] for model, about in data["models"].items()}
    presets = {about["preset"]: model for model, about in data["models"].items()}
    return Paper(names, presets, data["tasks"], found)
