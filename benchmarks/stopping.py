"""May a study stop when it knows? Simulated studies of two models that stop by `stop.difference` or by `stop.width`.

    python benchmarks/stopping.py [--studies 2000] [--width 1.0]

Two models hold dialogues of ten turns on the tasks of one dataset: 164 as in HumanEval+, 378 as in MBPP+. A task is as
hard for one as for the other, and the rest is chance: the process of benchmarks/power.py (*seeds*), the second model
breaking more often, so that in every study the MST of all tasks differ by exactly the effect (turns of a few tasks are
added or taken away). The tasks are run in a random order, with the checkpoints of codechat.

By effect: the share of sessions that stopping by difference saves; of studies, how many stop before their last task,
and how many with the wrong sign (any sign, if there is no difference); and how many have a moment, of all their draws,
at which the interval of the difference, or that of the first model's MST, misses. Then what stopping by width saves.
"""

import argparse
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from power import dialogues, draw_tasks

from codechat.report.metrics.statistics import ALPHA, log_capital, mean_interval
from codechat.run.cell.stopping import checkpoints

TURNS = 10
EFFECTS = (0.0, 0.3, 0.6, 1.0)
SIZES = (164, 378)
WON = math.log(2 / ALPHA)


class Saved(NamedTuple):
    """What the studies of one effect come to: shares, and the standard deviation of the differences by task."""

    sessions: float
    ended_early: float
    wrong: float
    missed_difference: float
    missed_mst: float
    deviation: float


def sustained(passed: Any) -> Any:
    """The passing turns from turn 0 on, by task."""
    return np.logical_and.accumulate(passed[:, 0], axis=-1).sum(axis=-1)


def study(size: int, effect: float, worse: float, luck: np.random.Generator) -> tuple[Any, Any]:
    """Each task's sustained turns of both models, whose totals differ by the effect times the number of tasks."""
    tasks, agenda, drawn = draw_tasks(size, luck), int(luck.integers(2**32)), int(luck.integers(2**32))

    def one(harder: float, private: int) -> Any:
        common, own = np.random.default_rng(drawn), np.random.default_rng(private)

        def fate(shape: tuple[int, ...]) -> Any:  # half of the turns share their luck
            shared, alone = common.random(shape), own.random(shape)
            return np.where(common.random(shape) < 0.5, shared, alone)

        return sustained(dialogues(tasks, 1, (harder, 0.0), np.random.default_rng(agenda), fate)[0])

    a, b = one(1.0, int(luck.integers(2**32))), one(worse, int(luck.integers(2**32)))
    left = round(effect * size) - int(a.sum() - b.sum())
    while left:
        able = np.flatnonzero(b > 1) if left > 0 else np.flatnonzero(b < TURNS)
        moved = luck.permutation(able)[: abs(left)]
        b[moved] -= int(np.sign(left))
        left -= int(np.sign(left)) * len(moved)
    return a, b


def worse_by(effect: float) -> float:
    """How much more often the second model has to break code, for about this effect."""
    tasks = draw_tasks(4_000, np.random.default_rng(1))

    def mean(worse: float) -> float:
        luck = np.random.default_rng(3).random
        return float(sustained(dialogues(tasks, 1, (worse, 0.0), np.random.default_rng(2), luck)[0]).mean())

    best, rates = mean(1.0), [1 + step / 40 for step in range(41)]
    return min(rates, key=lambda worse: abs(best - mean(worse) - effect))


def simulated(size: int, effect: float, studies: int, seed: int) -> tuple[Saved, Any]:
    """Studies of one effect, and the first model's numbers in the order of their tasks, by study."""
    luck = np.random.default_rng([seed, size, round(10 * effect)])
    worse = worse_by(effect)
    both = np.array([study(size, effect, worse, luck) for _ in range(studies)])
    order = np.argsort(luck.random((studies, size)), axis=1)
    a, b = (np.take_along_axis(both[:, place], order, axis=1) for place in (0, 1))
    shifted, whole = TURNS + a - b, np.full(studies, 2 * TURNS * size)
    seen = np.array(checkpoints(size)) - 1
    level = np.full(studies, TURNS * size)
    above = np.maximum.accumulate(log_capital(shifted, level, size) >= WON, axis=1)[:, seen]
    below = np.maximum.accumulate(log_capital(2 * TURNS - shifted, whole - level, size) >= WON, axis=1)[:, seen]
    decided = above | below
    ended = np.where(decided.any(axis=1), seen[decided.argmax(axis=1)] + 1, size)
    early = ended < size
    first = decided.argmax(axis=1)
    says = above[np.arange(studies), first].astype(int) - below[np.arange(studies), first].astype(int)
    wrong = early & (says != np.sign(effect))
    missed = [misses(shifted, 2 * TURNS, size), misses(a, TURNS, size)]
    return Saved(
        1 - ended.mean() / size, early.mean(), wrong.mean(), missed[0].mean(), missed[1].mean(), (a - b).std()
    ), a


def misses(values: Any, top: int, size: int) -> Any:
    """Whether a study's interval ever leaves out the mean of all its tasks."""
    total = values.sum(axis=1)
    up = log_capital(values, total, size).max(axis=1) >= WON
    down = log_capital(top - values, top * size - total, size).max(axis=1) >= WON
    return up | down


def by_width(a: Any, size: int, width: float) -> Iterator[int]:
    """By study, after how many sessions the interval of the first model's MST is no wider."""
    for values in a:
        for checkpoint in checkpoints(size):
            low, high = mean_interval(values[:checkpoint].tolist(), TURNS, size)
            if high - low <= width:
                yield checkpoint
                break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| tasks | effect | deviation | sessions saved | ended early | wrong | difference missed | MST missed |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for effect in EFFECTS:
        saved = []
        for size in SIZES:
            found, a = simulated(size, effect, given.studies, given.seed)
            saved.append(found.sessions * size)
            print(
                f"| {size} | {effect:g} | {found.deviation:.2f} | {found.sessions:.1%} | {found.ended_early:.1%} | "
                f"{found.wrong:.2%} | {found.missed_difference:.2%} | {found.missed_mst:.2%} |",
                flush=True,
            )
        print(f"| both | {effect:g} | | {sum(saved) / sum(SIZES):.1%} | | | | |", flush=True)
    print(f"\n| tasks | sessions saved by stop.width={given.width:g} |\n| ---: | ---: |")
    for size in SIZES:
        _, a = simulated(size, 0.3, 50, given.seed)
        ended = list(by_width(a, size, given.width))
        print(f"| {size} | {1 - sum(ended) / (len(a) * size):.1%} |", flush=True)


if __name__ == "__main__":
    main()
