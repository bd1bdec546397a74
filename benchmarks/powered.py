"""How often prediction-powered intervals of adherence, and of differences of two entrants, cover the truth.

    python benchmarks/powered.py [--studies 2000] [--tasks 100] [--labels 400] [--process plain]

Two models answer the same tasks and are judged by one judge (benchmarks/judged.py has the process); the second follows
some more instructions. People label decisions of both cells, drawn as `codechat audit export … correction=N` draws
them. `PPI++` and `Rogan-Gladen` are the estimates of `codechat report … audit=DIR`, of the first model's adherence and
of the difference, with the mean widths of their 95 % intervals. `moody`: the judge errs more on half of the tasks;
`biased`: it is less strict with the second model (its specificity is 0.1 lower), which Rogan-Gladen assumes away.
"""

import argparse
from collections import defaultdict
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from codechat.report.audit.allocation import Group, allocation
from codechat.report.metrics.corrected import Correction, Share
from codechat.report.metrics.judge_errors import JudgeLabels, Label, ends
from coverage import bootstraps
from judged import JUDGES, SCOPES, UNEVEN, Cell, cell, truth

from codechat.report.metrics.powered import Powered, powered, powered_difference
from codechat.report.metrics.statistics import Figure

BETTER = 1.06
WAYS = ("plain", "moody", "biased")


def labelled(cells: dict[str, Cell], labels: int, luck: np.random.Generator) -> JudgeLabels:
    """The labels of some decisions of all cells together."""
    places: dict[Group, list[tuple[str, int, int, int]]] = defaultdict(list)
    for name, seen in cells.items():
        for task, scope, repeat in np.ndindex(*seen.followed.shape):
            places[Group(SCOPES[scope], bool(seen.adhered[task, scope, repeat]))].append((name, task, scope, repeat))
    sizes = {group: len(found) for group, found in sorted(places.items())}
    drawn = [
        Label("d", f"{task:05d}", group.scope, group.adhered, float(cells[name].followed[task, scope, repeat]), name)
        for group, count in allocation(sizes, labels).items()
        for name, task, scope, repeat in (places[group][at] for at in luck.permutation(len(places[group]))[:count])
    ]
    judged = {scope: Figure.union(seen.judged[scope] for seen in cells.values()) for scope in SCOPES}
    return JudgeLabels("noisy", {"d": judged}, tuple(drawn))


class Found(NamedTuple):
    """Whether an interval covers, and its width."""

    covers: bool
    width: float

    @classmethod
    def of(cls, interval: tuple[float, float] | None, expected: float) -> "Found":
        assert interval is not None
        return cls(interval[0] <= expected <= interval[1], interval[1] - interval[0])


@cache
def expected(better: float) -> float:
    """The share of instructions that a model follows."""
    return truth(better)


def study(judge: tuple[float, float], way: str, chosen: Any, number: int, drawn: Any) -> list[Found] | None:
    """The intervals of one study: PPI++ and Rogan-Gladen of a share, then of a difference; None if one is refused."""
    luck = np.random.default_rng([number, *(round(100 * each) for each in judge), WAYS.index(way)])
    tasks = luck.choice(UNEVEN, size=chosen.tasks)
    laxer = (judge[0], judge[1] - 0.1 * (way == "biased"))
    cells = {
        name: cell(tasks, errs, luck, better=better, moody=way == "moody")
        for name, errs, better in (("a", judge, 1.0), ("b", laxer, BETTER))
    }
    known = labelled(cells, chosen.labels, luck)
    correction = Correction(known, {"d": drawn})
    own = [powered(known, {name}, seen.judged) for name, seen in cells.items()]
    shares = [correction.share("d", seen.judged) for seen in cells.values()]
    if not all(isinstance(each, Powered) for each in own) or not all(isinstance(each, Share) for each in shares):
        return None
    a, b = (each for each in own if isinstance(each, Powered))
    first, second = (each for each in shares if isinstance(each, Share))
    gap = expected(1.0) - expected(BETTER)
    return [
        Found.of(a.interval, expected(1.0)),
        Found.of(first.interval, expected(1.0)),
        Found.of(powered_difference(a, b)[1], gap),
        Found.of(ends(first.drawn - second.drawn), gap),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--labels", type=int, default=400)
    parser.add_argument("--process", choices=WAYS, help="one of the processes alone")
    chosen = parser.parse_args()
    print("| judge | process | adherence: PPI++ | Rogan-Gladen | difference: PPI++ | Rogan-Gladen | refused |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    drawn = bootstraps(chosen.tasks)
    for way in WAYS if chosen.process is None else (chosen.process,):
        for judge in JUDGES:
            found = [study(judge, way, chosen, number, drawn[number % len(drawn)]) for number in range(chosen.studies)]
            done = [each for each in found if each is not None]
            cells = [
                f"{np.mean([each[at].covers for each in done]):.1%}, {np.mean([each[at].width for each in done]):.3f}"
                for at in range(4)
            ]
            refused = 1 - len(done) / len(found)
            print(f"| {judge[0]} / {judge[1]} | {way} | {' | '.join(cells)} | {refused:.1%} |", flush=True)


if __name__ == "__main__":
    main()
