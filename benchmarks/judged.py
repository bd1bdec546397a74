"""How often the interval of the corrected adherence covers the truth: simulated studies with judges of known errors.

    python benchmarks/judged.py [--studies 2000] [--tasks 100] [--labels 200] [--picture docs/judged.png]

A model answers ten turns on every task and follows an instruction with a probability that depends on its scope and on
the task: on half of the tasks it follows far fewer. A judge calls a followed instruction adhered with its sensitivity
and any other violated with its specificity. People label some of its decisions, drawn as `codechat audit export` does:
by `correction=N`, or by their share (`adherence=N`). The interval is that of `codechat report … audit=DIR`. `own`: the
labels are of the cell that is corrected. `rare`: the same of a model that violates few instructions. `other`: the
labels are of a cell of a better model on the same tasks, with the same judge. `moody`: they are of the own cell, and
the judge errs 1.7 times as often as told on half of the tasks, and 0.3 times on the others. Coverage is that of the
studies that are not refused.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from coverage import POOL, bootstraps

from codechat.report.audit.allocation import Group, allocation
from codechat.report.metrics.corrected import Correction, Share
from codechat.report.metrics.judge_errors import JudgeLabels, Label
from codechat.report.metrics.statistics import Figure, TaskBootstrap

RATES = {"cosmetic": 0.9, "structural": 0.8, "semantic": 0.65}  # of instructions that are followed, by scope
REPEATS = 3  # turns of each scope
UNEVEN = (0.6, 1.1)  # what the rates are multiplied by on either half of the tasks
BETTER = {"other": 1.08, "rare": 1.8}  # and for the better models
MOODS = (0.3, 1.7)  # what a moody judge's errors are multiplied by on either half of the tasks
JUDGES = ((0.7, 0.7), (0.7, 0.95), (0.95, 0.7), (0.8, 0.8), (0.9, 0.9), (0.95, 0.95))
WAYS = (
    ("own", "correction"), ("rare", "correction"), ("other", "correction"),
    ("own", "share"), ("rare", "share"), ("moody", "correction"),
)  # fmt: skip
LABELS_OF = {
    "own": "labels of the cell itself", "rare": "of a cell with few violations", "other": "of another model's cell",
    "moody": "judge errs by task",
}  # fmt: skip
SCOPES = tuple(RATES)


class Cell(NamedTuple):
    """What was followed and what was judged adhered, of shape (tasks, scopes, repeats)."""

    followed: Any
    adhered: Any

    @property
    def judged(self) -> dict[str, Figure]:
        """By scope the changes judged adhered, by task."""
        hits = self.adhered.sum(axis=2)
        return {
            scope: Figure({f"{task:05d}": (int(count), REPEATS) for task, count in enumerate(hits[:, place])})
            for place, scope in enumerate(SCOPES)
        }


def truth(better: float = 1.0) -> float:
    """The share of instructions that are followed."""
    return float(np.mean([min(1.0, rate * factor * better) for rate in RATES.values() for factor in UNEVEN]))


def cell(
    tasks: Any, judge: tuple[float, float], luck: np.random.Generator, *, better: float = 1.0, moody: bool = False
) -> Cell:
    """A cell over tasks, each given by its factor."""
    chances = np.minimum(1.0, tasks[:, None] * np.array(list(RATES.values())) * better)
    followed = luck.random((len(tasks), len(SCOPES), REPEATS)) < chances[..., None]
    errs = np.where(followed, 1 - judge[0], 1 - judge[1])
    if moody:
        errs = errs * luck.choice(MOODS, size=len(tasks))[:, None, None]
    return Cell(followed, followed ^ (luck.random(followed.shape) < errs))


def labelled(seen: Cell, labels: int, way: str, luck: np.random.Generator) -> JudgeLabels:
    """The labels of some decisions."""
    judged = seen.judged
    places: dict[Group, list[tuple[int, int, int]]] = defaultdict(list)
    for task, scope, repeat in np.ndindex(*seen.followed.shape):
        places[Group(SCOPES[scope], bool(seen.adhered[task, scope, repeat]))].append((task, scope, repeat))
    if way == "correction":
        sizes = {group: len(found) for group, found in sorted(places.items())}
        drawn = [(group, place) for group, count in allocation(sizes, labels).items()
                 for place in luck.permutation(places[group])[:count]]  # fmt: skip
    else:
        every = [(group, place) for group, found in places.items() for place in found]
        drawn = [every[number] for number in luck.permutation(len(every))[:labels]]
    return JudgeLabels(
        "noisy",
        {"d": judged},
        tuple(
            Label("d", f"{task:05d}", group.scope, group.adhered, float(seen.followed[task, scope, repeat]))
            for group, (task, scope, repeat) in drawn
        ),
    )


class Tally(NamedTuple):
    """The share of studies that are refused; of the others those whose corrected and raw interval cover, the mean
    widths of both, and the mean error of the corrected share."""

    refused: float
    corrected: float
    raw: float
    width: float
    raw_width: float
    bias: float


def coverage(judge: tuple[float, float], way: tuple[str, str], chosen: Any, drawn: Sequence[TaskBootstrap]) -> Tally:
    """What comes of the studies of one judge."""
    found: list[tuple[bool, bool, float, float, float]] = []
    better = BETTER["rare"] if way[0] == "rare" else 1.0
    expected = truth(better)
    for number in range(chosen.studies):
        luck = np.random.default_rng([number, *(round(100 * each) for each in judge), WAYS.index(way)])
        tasks = luck.choice(UNEVEN, size=chosen.tasks)
        own = cell(tasks, judge, luck, better=better, moody=way[0] == "moody")
        seen = cell(tasks, judge, luck, better=BETTER["other"]) if way[0] == "other" else own
        bootstrap = drawn[number % POOL]
        known = labelled(seen, chosen.labels, way[1], luck)
        share = Correction(known, {"d": bootstrap}).share("d", own.judged)
        if not isinstance(share, Share):
            continue
        low, high = share.interval or (0.0, 1.0)
        sums = own.adhered.sum(axis=(1, 2))
        figure = Figure({f"{task:05d}": (int(hits), own.adhered[0].size) for task, hits in enumerate(sums)})
        raw = bootstrap.interval(figure) or (0.0, 1.0)
        covers = raw[0] <= expected <= raw[1]
        found.append((low <= expected <= high, covers, high - low, raw[1] - raw[0], share.value - expected))
    means = np.mean(found, axis=0) if found else np.full(5, np.nan)
    return Tally(1 - len(found) / chosen.studies, *means.tolist())


def draw(rows: list[tuple[tuple[float, float], tuple[str, str], Tally]], path: Path) -> None:
    """Coverage of the corrected and of the raw intervals by judge, a panel for each way to draw."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9, 6), layout="constrained")
    for panel, way in zip(canvas.subplots(2, 3, sharex=True, sharey=True).flat, WAYS, strict=True):
        own = [(judge, tally) for judge, of, tally in rows if of == way]
        panel.axhspan(93, 97, color="#EEF3F7")
        panel.axhline(95, color="#888888", linewidth=0.8)
        panel.plot([100 * tally.corrected for _, tally in own], "o-", color="#0072B2", label="corrected")
        panel.plot([100 * tally.raw for _, tally in own], "s-", color="#D55E00", label="raw")
        panel.set_xticks(range(len(own)), [f"{a:g} / {b:g}" for (a, b), _ in own], rotation=45, ha="right", fontsize=8)
        panel.set_title(f"{LABELS_OF[way[0]]}, by {way[1]}", loc="left", fontsize=9)
        handles = panel.get_legend_handles_labels()
    for panel in canvas.axes[3:]:
        panel.set_xlabel("Sensitivity / specificity")
    for panel in canvas.axes[::3]:
        panel.set_ylabel("Intervals that cover, %")
    canvas.legend(*handles, loc="outside lower center", ncols=2, frameon=False)
    canvas.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Print the table, and draw the picture if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    drawn = bootstraps(chosen.tasks)
    rows = []
    print("| judge | labels of | drawn by | corrected | raw | widths | mean error | refused |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for way in WAYS:
        for judge in JUDGES:
            tally = coverage(judge, way, chosen, drawn)
            rows.append((judge, way, tally))
            name, shares = " / ".join(f"{each:g}" for each in judge), (100 * tally.corrected, 100 * tally.raw)
            words = " | ".join(f"{share:.1f} %" for share in shares)
            widths = f"{tally.width:.3f}, {tally.raw_width:.3f} | {tally.bias:+.4f} | {100 * tally.refused:.1f} %"
            print(f"| {name} | {way[0]} | {way[1]} | {words} | {widths} |", flush=True)
    if chosen.picture:
        draw(rows, chosen.picture)


if __name__ == "__main__":
    main()
