"""Is the power that `codechat plan` promises the power that comparisons have? Simulated comparisons of two models.

    python benchmarks/power.py [--studies 2000] [--tasks 100] [--picture docs/power.png]

Two models hold dialogues by the drifter's process over uneven tasks (benchmarks/coverage.py); the second breaks code
somewhat more often, and follows somewhat fewer instructions. With *seeds* equal samples also have the same agenda and,
at half of their turns, the same luck; with *tasks* the models share only the tasks. A comparison finds the difference
if the 95 % interval of a report's paired bootstrap, or for different tasks that of two bootstraps, leaves out 0.
`planned` is the mean power that as many pilots, of as many tasks with three samples, promise for the true difference,
which is the mean over all studies.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from coverage import MENDS, POOL, RATES, REPEATS, TURNS, bootstraps

from codechat.report.metrics.outline import SessionOutline, TurnOutline
from codechat.report.metrics.power import FIGURES, Seeds, Spread, parts_of, spread_of
from codechat.report.metrics.statistics import TaskRatio, percent_change, percentile_interval

# by samples, and by what both models share: how much more often the second breaks, how much less it follows
WORSE = {
    1: {"seeds": (1.3, 0.035), "tasks": (1.45, 0.06), "nothing": (1.45, 0.06)},
    3: {"seeds": (1.16, 0.02), "tasks": (1.25, 0.05), "nothing": (1.25, 0.05)},
}


Luck = Callable[[Any], Any]  # uniform numbers of a shape


def dialogues(tasks: Any, samples: int, worse: tuple[float, float], agenda: Any, luck: Luck) -> tuple[Any, Any]:
    """Whether each turn passes, and whether each follow-up is followed; `tasks` holds each task's factor and rate."""
    shape = (len(tasks), samples)
    agendas = agenda.permuted(np.tile(np.repeat(np.arange(len(RATES)), REPEATS), (*shape, 1)), axis=-1)
    passed = np.ones((*shape, TURNS), bool)
    for turn in range(1, TURNS):
        breaks = np.minimum(1.0, tasks[:, :1] * worse[0] * np.array(RATES)[agendas[..., turn - 1]])
        fate, before = luck(shape), passed[..., turn - 1]
        passed[..., turn] = np.where(before, fate >= breaks, (breaks <= fate) & (fate < breaks + MENDS))
    followed = luck((*shape, TURNS - 1)) < (tasks[:, 1] - worse[1])[:, None, None]
    return passed, followed


def draw_tasks(number: int, luck: np.random.Generator) -> Any:
    """Each task's factor of the rates, and the share of instructions that are followed."""
    return np.column_stack([luck.choice((0.3, 1.7), number), luck.choice((0.75, 0.95), number)])


def counted(passed: Any, followed: Any) -> dict[str, TaskRatio]:
    """The figures of a cell, by task."""
    alive = np.logical_and.accumulate(passed, axis=-1).sum(axis=(1, 2))
    one = np.full(len(passed), passed.shape[1])
    broken = (passed[..., :-1] & ~passed[..., 1:]).sum(axis=(1, 2))
    sums = {
        "mst": (alive, one), "first": (passed[..., 0].sum(axis=1), one), "last": (passed[..., -1].sum(axis=1), one),
        "adherence": (followed.sum(axis=(1, 2)), one * (TURNS - 1)),
        "regression": (broken, passed[..., :-1].sum(axis=(1, 2))),
    }  # fmt: skip
    return {
        name: TaskRatio({f"{n:05d}": pair for n, pair in enumerate(zip(hits.tolist(), totals.tolist(), strict=True))})
        for name, (hits, totals) in sums.items()
    }


def values(figures: dict[str, TaskRatio], drawn: Any) -> dict[str, tuple[float, list[float]]]:
    """Each figure's value, and its values in the resamples."""
    found = {name: (figure.rate or 0.0, drawn.ratios(figure)) for name, figure in figures.items()}
    (first, firsts), (last, lasts) = found.pop("first"), found.pop("last")
    resampled = [percent_change(*pair) for pair in zip(firsts, lasts, strict=True)]
    return found | {"delta": (percent_change(first, last) or 0.0, resampled)}


def compare(a: dict[str, Any], b: dict[str, Any]) -> dict[str, tuple[float, bool]]:
    """By figure the difference, and whether it is found."""
    found = {}
    for name in FIGURES:
        (mine, ours), (its, theirs) = a[name], b[name]
        low, high = percentile_interval(x - y for x, y in zip(ours, theirs, strict=True)) or (0.0, 0.0)
        found[name] = (mine - its, low > 0 or high < 0)
    return found


def outlines(passed: Any, followed: Any) -> dict[Seeds, list[SessionOutline]]:
    """The sessions of each sample as metrics see them."""
    return {sample: [
        SessionOutline(
            f"{task}",
            tuple(
                TurnOutline("pass" if verdict else "fail", bool(verdict), False, True,
                            None if not turn else "adhered" if followed[task, sample, turn - 1] else "violated", None)
                for turn, verdict in enumerate(passed[task, sample])
            ),
        )
        for task in range(passed.shape[0])
    ] for sample in range(passed.shape[1])}  # fmt: skip


def pilot(tasks: int, kind: str, worse: tuple[float, float], number: int) -> dict[str, Spread]:
    """The spread of every figure in two pilot cells with three samples."""
    luck = np.random.default_rng([number, len(kind)])
    shared = draw_tasks(tasks, luck)
    cells = [parts_of(outlines(*both)) for both in pair_of([shared, shared], 3, kind, worse, luck)]
    spreads = {name: spread_of([cell[name] for cell in cells]) for name in FIGURES}
    return {name: spread for name, spread in spreads.items() if spread is not None}


def pair_of(tasks: list[Any], samples: int, kind: str, worse: tuple[float, float], luck: Any) -> list[Any]:
    """The dialogues of both models over each one's tasks."""
    seed, found = int(luck.integers(2**32)), []
    for place, (own, how) in enumerate(zip(tasks, ((1.0, 0.0), worse), strict=True)):
        common = np.random.default_rng([seed, place * (kind != "seeds")])
        alone = np.random.default_rng([seed, 2 + place])

        def drawn(shape: Any, common: Any = common, alone: Any = alone) -> Any:
            shared = common.random(shape)
            return np.where(common.random(shape) < 0.5, shared, alone.random(shape))

        found.append(dialogues(own, samples, how, common, drawn))
    return found


def draw(rows: list[tuple[int, str, str, float, float]], path: Path) -> None:
    """The simulated power against the planned one, four points to either side shaded, by kind of tasks."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(11, 4.4), layout="constrained")
    kinds = list(dict.fromkeys(kind for _, kind, *_ in rows))
    colours = dict(zip(FIGURES, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=True))
    for panel, kind in zip(canvas.subplots(1, len(kinds), sharey=True), kinds, strict=True):
        panel.fill_between([0, 100], [-4, 96], [4, 104], color="#EEF3F7")
        panel.plot([0, 100], [0, 100], color="#888888", linewidth=0.8)
        for samples, of, name, power, share in rows:
            if of == kind:
                marker = "o" if samples == 1 else "s"
                label = f"{name}, {samples} sample{'s' * (samples > 1)}"
                panel.plot([100 * power], [100 * share], marker, color=colours[name], label=label)
        panel.set(xlim=(0, 102), ylim=(0, 102), xlabel="Power as planned, %")
        panel.set_title(f"shared: {kind}", loc="left", fontsize=10)
    canvas.axes[0].set_ylabel("Comparisons that find the difference, %")
    canvas.legend(*canvas.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=8)
    canvas.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Print the table, and draw the picture if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    drawn = bootstraps(chosen.tasks)
    print("| samples | shared | figure | difference | planned | simulated |\n| --- | --- | --- | ---: | ---: | ---: |")
    rows = []
    for samples, kinds in WORSE.items():
        for kind, worse in kinds.items():
            results, spreads = [], []
            for number in range(chosen.studies):
                luck = np.random.default_rng([number, samples, len(kind)])
                of_a = draw_tasks(chosen.tasks, luck)
                of_b = draw_tasks(chosen.tasks, luck) if kind == "nothing" else of_a
                both = [counted(*cell) for cell in pair_of([of_a, of_b], samples, kind, worse, luck)]
                other = drawn[(number + POOL // 2 * (kind == "nothing")) % POOL]
                results.append(compare(values(both[0], drawn[number % POOL]), values(both[1], other)))
                spreads.append(pilot(chosen.tasks, kind, worse, number))
            for name in FIGURES:
                difference = fmean(each[name][0] for each in results)
                share = fmean(each[name][1] for each in results)
                powers = [each[name].power(difference, chosen.tasks, samples, paired=kind != "nothing")
                          for each in spreads if name in each]  # fmt: skip
                power = fmean(each or 0.0 for each in powers)
                rows.append((samples, kind, name, power, share))
                words = f"{samples} | {kind} | {name} | {difference:.3g} | {100 * power:.1f} % | {100 * share:.1f} %"
                print(f"| {words} |", flush=True)
    if chosen.picture:
        draw(rows, chosen.picture)


if __name__ == "__main__":
    main()
