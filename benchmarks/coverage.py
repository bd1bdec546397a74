"""How often the intervals of a report cover the truth: simulated studies of the drifter's process at known rates.

    python benchmarks/coverage.py [--studies 2000] [--tasks 100] [--picture docs/coverage.png]

The drifter breaks passing code at a turn with the probability of its scope and mends failing code with another
(codechat/studies/refine), over agendas of three turns of each scope in random order. What is expected of
MST, Δ and the regression rate follows from these rates, here by summing over all orders. Sessions are drawn from that
process without running any cell, and measured by the functions that measure cells. `even`: every task has the same
rates, as for the drifter. `uneven`: half of the tasks have 0.3 times the rates and half 1.7 times, so that samples of a
task are alike. Beside the intervals of a report, which resample tasks with all their samples, stand those which
resample sessions as if each were a task of its own.
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from codechat.report.metrics.statistics import TaskBootstrap, TaskRatio, percent_change, percentile_interval

RATES = (0.08, 0.13, 0.22)  # of a defect in a cosmetic, structural and semantic turn: the drifter's defaults
MENDS = 0.08
REPEATS = 3  # of each scope in an agenda of ten turns
TURNS = 1 + REPEATS * len(RATES)
PROCESSES = {"even": (1.0,), "uneven": (0.3, 1.7)}
SAMPLES = (1, 3, 5)
FIGURES = ("MST", "Δ", "regression")
POOL = 40  # different resamplings that the studies take turns with: drawing them takes most of the time


def truth(factor: float) -> tuple[float, float, float, float]:
    """Expected of one session: sustained turns, Pass@1 at the end, turns that break code, turns after passing code."""
    states = {(0, 0, 0): (1.0, 1.0, 1.0)}  # scopes used → chance, chance and passing, chance and never broken
    sustained, broken, passing = 1.0, 0.0, 0.0
    for _ in range(TURNS - 1):
        following: dict[Any, tuple[float, float, float]] = defaultdict(lambda: (0.0, 0.0, 0.0))
        for used, (chance, passes, alive) in states.items():
            left = REPEATS * len(RATES) - sum(used)
            for scope, rate in enumerate(RATES):
                share = (REPEATS - used[scope]) / left
                if not share:
                    continue
                breaks = min(1.0, factor * rate)
                after = tuple(count + (place == scope) for place, count in enumerate(used))
                old = following[after]
                mended = (chance - passes) * MENDS
                following[after] = (
                    old[0] + share * chance,
                    old[1] + share * (passes * (1 - breaks) + mended),
                    old[2] + share * alive * (1 - breaks),
                )
                broken, passing = broken + share * passes * breaks, passing + share * passes
        states = dict(following)
        sustained += sum(alive for _, _, alive in states.values())
    return sustained, sum(passes for _, passes, _ in states.values()), broken, passing


def truths(process: str) -> dict[str, float]:
    """MST, Δ in per cent and the regression rate of a population of tasks."""
    sustained, last, broken, passing = np.mean([truth(factor) for factor in PROCESSES[process]], axis=0)
    return {"MST": sustained, "Δ": 100 * (last - 1), "regression": broken / passing}


def study(process: str, tasks: int, samples: int, luck: np.random.Generator) -> dict[str, Any]:
    """What is counted of every session of a study, as arrays of shape (tasks, samples)."""
    shape = (tasks, samples)
    scopes = np.tile(np.repeat(np.arange(len(RATES)), REPEATS), (*shape, 1))
    agendas = luck.permuted(scopes, axis=-1)
    factors = luck.choice(PROCESSES[process], size=(tasks, 1))
    passed, alive = np.ones(shape, bool), np.ones(shape, bool)
    sustained, broken, passing = np.ones(shape, int), np.zeros(shape, int), np.zeros(shape, int)
    for turn in range(TURNS - 1):
        breaks = np.minimum(1.0, factors * np.array(RATES)[agendas[..., turn]])
        fate = luck.random(shape)
        breaking = passed & (fate < breaks)
        mended = ~passed & (breaks <= fate) & (fate < breaks + MENDS)
        passing, broken = passing + passed, broken + breaking
        passed = (passed & ~breaking) | mended
        alive &= passed
        sustained = sustained + alive
    return {"sustained": sustained, "last": passed.astype(int), "broken": broken, "passing": passing}


def intervals(counts: dict[str, Any], bootstrap: TaskBootstrap) -> dict[str, tuple[float, float] | None]:
    """The 95 % intervals of a report; the arrays of `counts` hold a row for each thing that is resampled."""

    def figure(hits: Any, total: Any) -> TaskRatio:
        pairs = zip(hits.sum(axis=1).tolist(), total.sum(axis=1).tolist(), strict=True)
        return TaskRatio({f"{number:05d}": pair for number, pair in enumerate(pairs)})

    ones = np.ones_like(counts["last"])
    ends = [bootstrap.ratios(figure(each, ones)) for each in (ones, counts["last"])]
    return {
        "MST": bootstrap.interval(figure(counts["sustained"], ones)),
        "Δ": percentile_interval(percent_change(*pair) for pair in zip(*ends, strict=True)),
        "regression": bootstrap.interval(figure(counts["broken"], counts["passing"])),
    }


def bootstraps(tasks: int) -> list[TaskBootstrap]:
    """Different resamplings of so many tasks."""
    return [TaskBootstrap([f"{number:05d}" for number in range(tasks)], seed) for seed in range(POOL)]


def coverage(process: str, tasks: int, samples: int, studies: int) -> dict[str, dict[str, float]]:
    """By figure, for both ways to resample: the share of the studies whose interval covers the truth."""
    expected = truths(process)
    ways = {"by task": bootstraps(tasks), "by session": bootstraps(tasks * samples)}
    covered: dict[str, dict[str, int]] = {figure: dict.fromkeys(ways, 0) for figure in FIGURES}
    for number in range(studies):
        luck = np.random.default_rng([number, samples, tasks, len(PROCESSES[process])])
        counts = study(process, tasks, samples, luck)
        for way, drawn in ways.items():
            alone = {name: each if way == "by task" else each.reshape(-1, 1) for name, each in counts.items()}
            for figure, ends in intervals(alone, drawn[number % POOL]).items():
                covered[figure][way] += ends is not None and ends[0] <= expected[figure] <= ends[1]
    return {figure: {way: hits / studies for way, hits in each.items()} for figure, each in covered.items()}


def draw(rows: list[tuple[str, int, str, dict[str, float]]], path: Path) -> None:
    """A panel per process and figure: coverage against the number of samples."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9, 5), layout="constrained")
    axes = canvas.subplots(len(PROCESSES), len(FIGURES), sharex=True, sharey=True)
    looks = {"by task": ("#0072B2", "o"), "by session": ("#D55E00", "s")}
    for row, process in zip(axes, PROCESSES, strict=True):
        for panel, figure in zip(row, FIGURES, strict=True):
            panel.axhspan(93, 97, color="#EEF3F7")
            panel.axhline(95, color="#888888", linewidth=0.8)
            for way, (colour, marker) in looks.items():
                shown = [
                    (samples, 100 * found[way]) for kind, samples, of, found in rows if (kind, of) == (process, figure)
                ]
                panel.plot(*zip(*shown, strict=True), color=colour, marker=marker, label=f"resampled {way}")
            panel.set_title(f"{figure}, {process} tasks", loc="left", fontsize=10)
            panel.set_xticks(SAMPLES)
    for panel in axes[-1]:
        panel.set_xlabel("Samples of each task")
    for row in axes:
        row[0].set_ylabel("Intervals that cover, %")
    canvas.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    canvas.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Print the table, and draw the picture if one is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    rows = []
    print("| tasks | samples | figure | truth | by task | by session |\n| --- | --- | --- | ---: | ---: | ---: |")
    for process in PROCESSES:
        for samples in SAMPLES:
            for figure, found in coverage(process, chosen.tasks, samples, chosen.studies).items():
                rows.append((process, samples, figure, found))
                value = truths(process)[figure]
                shares = " | ".join(f"{100 * found[way]:.1f} %" for way in ("by task", "by session"))
                print(f"| {process} | {samples} | {figure} | {value:.4g} | {shares} |", flush=True)
    if chosen.picture:
        draw(rows, chosen.picture)


if __name__ == "__main__":
    main()
