"""How often prediction-powered intervals of adherence, and of differences of two entrants, cover the truth.

    python benchmarks/powered.py [--studies 2000] [--tasks 100] [--labels 400] [--process plain]

Two models answer ten turns on the same tasks and follow an instruction with a probability that depends on its scope and
on the task: on half of the tasks they follow far fewer. The second follows some more. A judge calls a followed
instruction adhered with its sensitivity and any other violated with its specificity. People label decisions of both
cells, drawn as `codechat audit export … correction=N` draws them. Shown are the coverage and the mean width of the 95 %
intervals of `codechat report … audit=DIR`, of the first model's adherence and of the difference, and the coverage of
the raw interval of adherence. `moody`: the judge errs 1.7 times as often on half of the tasks, and 0.3 times on the
others; `biased`: it is less strict with the second model (its specificity is 0.1 lower).
"""

import argparse
from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from coverage import bootstraps

from codechat.report.comparison import JudgeLabels, Label
from codechat.report.metrics.statistics import TaskRatio
from codechat.studies.refine.audit import Group, allocation
from codechat.studies.refine.chapter.powered import Powered, powered, powered_difference

RATES = {"cosmetic": 0.9, "structural": 0.8, "semantic": 0.65}  # of instructions that are followed, by scope
REPEATS = 3  # turns of each scope
UNEVEN = (0.6, 1.1)  # what the rates are multiplied by on either half of the tasks
MOODS = (0.3, 1.7)  # what a moody judge's errors are multiplied by on either half of the tasks
JUDGES = ((0.7, 0.7), (0.7, 0.95), (0.95, 0.7), (0.8, 0.8), (0.9, 0.9), (0.95, 0.95))
SCOPES = tuple(RATES)
BETTER = 1.06
WAYS = ("plain", "moody", "biased")


class Cell(NamedTuple):
    """What was followed and what was judged adhered, of shape (tasks, scopes, repeats)."""

    followed: Any
    adhered: Any

    @property
    def judged(self) -> dict[str, TaskRatio]:
        """By scope the changes judged adhered, by task."""
        hits = self.adhered.sum(axis=2)
        return {
            scope: TaskRatio({f"{task:05d}": (int(count), REPEATS) for task, count in enumerate(hits[:, place])})
            for place, scope in enumerate(SCOPES)
        }


@cache
def truth(better: float) -> float:
    """The share of instructions that a model follows."""
    return float(np.mean([min(1.0, rate * factor * better) for rate in RATES.values() for factor in UNEVEN]))


def cell(
    tasks: Any, judge: tuple[float, float], luck: np.random.Generator, *, better: float, moody: bool = False
) -> Cell:
    """A cell over tasks, each given by its factor."""
    chances = np.minimum(1.0, tasks[:, None] * np.array(list(RATES.values())) * better)
    followed = luck.random((len(tasks), len(SCOPES), REPEATS)) < chances[..., None]
    errs = np.where(followed, 1 - judge[0], 1 - judge[1])
    if moody:
        errs = errs * luck.choice(MOODS, size=len(tasks))[:, None, None]
    return Cell(followed, followed ^ (luck.random(followed.shape) < errs))


def labelled(cells: dict[str, Cell], labels: int, luck: np.random.Generator) -> JudgeLabels:
    """The labels of some decisions of all cells together."""
    places: dict[Group, list[tuple[str, int, int, int]]] = defaultdict(list)
    for name, seen in cells.items():
        for task, scope, repeat in np.ndindex(*seen.followed.shape):
            places[Group(SCOPES[scope], bool(seen.adhered[task, scope, repeat]))].append((name, task, scope, repeat))
    sizes = {group: len(found) for group, found in sorted(places.items())}
    drawn = [
        Label(f"{task:05d}", group.scope, group.adhered, float(cells[name].followed[task, scope, repeat]), name)
        for group, count in allocation(sizes, labels).items()
        for name, task, scope, repeat in (places[group][at] for at in luck.permutation(len(places[group]))[:count])
    ]
    return JudgeLabels("noisy", {(each.scope, each.adhered): size for each, size in sizes.items()}, tuple(drawn))


class Found(NamedTuple):
    """Whether an interval covers, and its width."""

    covers: bool
    width: float

    @classmethod
    def of(cls, interval: tuple[float, float] | None, expected: float) -> "Found":
        assert interval is not None
        return cls(interval[0] <= expected <= interval[1], interval[1] - interval[0])


def study(judge: tuple[float, float], way: str, chosen: Any, number: int, drawn: Any) -> list[Found] | None:
    """The intervals of one study: of a share, of a difference, and the raw one of the share; None if it is refused."""
    luck = np.random.default_rng([number, *(round(100 * each) for each in judge), WAYS.index(way)])
    tasks = luck.choice(UNEVEN, size=chosen.tasks)
    laxer = (judge[0], judge[1] - 0.1 * (way == "biased"))
    cells = {
        name: cell(tasks, errs, luck, better=better, moody=way == "moody")
        for name, errs, better in (("a", judge, 1.0), ("b", laxer, BETTER))
    }
    known = labelled(cells, chosen.labels, luck)
    own = [powered(known, {name}, seen.judged) for name, seen in cells.items()]
    if not all(isinstance(each, Powered) for each in own):
        return None
    a, b = (each for each in own if isinstance(each, Powered))
    return [
        Found.of(a.interval, truth(1.0)),
        Found.of(powered_difference(a, b)[1], truth(1.0) - truth(BETTER)),
        Found.of(drawn.interval(TaskRatio.union(cells["a"].judged.values())), truth(1.0)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--labels", type=int, default=400)
    parser.add_argument("--process", choices=WAYS, help="one of the processes alone")
    chosen = parser.parse_args()
    print("| judge | process | adherence | difference | raw adherence | refused |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    drawn = bootstraps(chosen.tasks)
    for way in WAYS if chosen.process is None else (chosen.process,):
        for judge in JUDGES:
            found = [study(judge, way, chosen, number, drawn[number % len(drawn)]) for number in range(chosen.studies)]
            done = [each for each in found if each is not None]
            cells = [
                f"{np.mean([each[at].covers for each in done]):.1%}, {np.mean([each[at].width for each in done]):.3f}"
                for at in range(3)
            ]
            refused = 1 - len(done) / len(found)
            print(f"| {judge[0]} / {judge[1]} | {way} | {' | '.join(cells)} | {refused:.1%} |", flush=True)


if __name__ == "__main__":
    main()
