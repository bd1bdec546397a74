"""`codechat plan`: from pilot cells, which differences how many tasks and samples detect, and what that costs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from codechat.base.errors import UserError
from codechat.base.records import dataset_in
from codechat.base.template import counted
from codechat.cli.commands.report import options_of
from codechat.cli.terminal import err, out, parse_words, plain_table
from codechat.report.comparison import LoadedCell
from codechat.report.loading import load_cells
from codechat.report.metrics import power
from codechat.report.metrics.outline import outlines_of
from codechat.report.metrics.power import FIGURES, MEASURED, UNITS, Parts, Spread, parts_of, spread_of
from codechat.run.results.measured import remeasure

SAMPLES = (1, 2, 3, 5, 10)
KEYS = {
    "runs": "pilot cells: folders of cells, or folders that hold such, separated by commas",
    "metric": f"with difference: {', '.join(FIGURES)}",
    "difference": "the smallest difference of two models that you want to detect, such as difference=0.5 metric=mst",
    "tasks": "the number of tasks; the pilot's dataset unless given",
}


def run_plan(words: list[str]) -> int:
    """Print the plan; returns the exit status. Raises `UserError`."""
    values = parse_words(words, KEYS, required=("runs",))
    wanted = _wanted(values)
    pilots, dataset = _pilots(values["runs"])
    found = [parts_of({_seeds(part): outlines_of(part.sessions()).completed for part in each.parts}) for each in pilots]
    spreads = _spreads(found)
    tasks = _tasks(values, pilots)
    least = min(cell.samples for cell in pilots)
    names = ", ".join(dict.fromkeys(cell.label for cell in pilots))
    out.print(f"pilot: {names} on {dataset}, {counted(least, 'sample')} of a task; up to {tasks} tasks", markup=False)
    if least == 1:
        err.print("note: a pilot with one sample of a task cannot show the gain of more samples: run samples=2")
    if len(pilots) == 1 and least == 1:
        err.print(
            "note: one model with one sample cannot separate task difficulty from noise: `paired` gains nothing here"
        )
    elif len(pilots) == 1:
        err.print("note: with one model, `paired` assumes that tasks are as hard for the other model as for this one")
    elif not set.intersection(*({*map(_seeds, cell.parts)} for cell in pilots)):
        err.print("note: the pilots have no seed in common: `paired` does not count on equal agendas")
    out.print(_table(spreads, sorted({max(2, tasks // 4), max(2, tasks // 2), tasks})))
    if wanted is not None:
        if wanted[0] not in spreads:
            raise UserError(f"the pilot has no {wanted[0]}", "choose another metric, or run more of the pilot")
        out.print(_cheapest(spreads[wanted[0]], *wanted, tasks, pilots))
    few, fewest = power.FEW_TASKS, min(len(parts) for each in found for parts in each.values())
    caution = f"plans of fewer than {few} tasks are rough: a report's intervals of so few are too short"
    all_rough = f"; so are all plans from this pilot, which has {counted(fewest, 'task')}" if fewest < few else ""
    out.print(f"\ncaution: {caution}{all_rough}")
    return 0


def _seeds(cell: LoadedCell) -> tuple[int, int]:
    """The seeds of a cell and of its agenda, which `agenda.seed` sets apart."""
    return cell.seed, cell.draw


def _spreads(found: Sequence[Mapping[str, Parts]]) -> dict[str, Spread]:
    """The variance of every figure of the pilot; without variance a plan would promise to detect any difference."""
    spreads = {name: spread for name in FIGURES if (spread := spread_of([f[name] for f in found if name in f]))}
    if not spreads:
        raise UserError("the pilot has too few completed sessions", "two tasks at least, better twenty")
    alike = [name for name, spread in spreads.items() if spread.task + (spread.within or 0.0) < power.NOTHING]
    if alike:
        words = f"all sessions of the pilot are alike in {' and '.join(alike)}: their variance cannot be estimated"
        if len(alike) == len(spreads):
            raise UserError(words, "take a pilot of a weaker model, or of a harder dataset")
        err.print(f"note: {words}")
    return {name: spread for name, spread in spreads.items() if name not in alike}


def _wanted(values: Mapping[str, str]) -> tuple[str, float] | None:
    if ("metric" in values) != ("difference" in values):
        raise UserError("metric and difference go together", "such as difference=0.5 metric=mst")
    if "metric" not in values:
        return None
    if values["metric"] not in FIGURES:
        raise UserError(f"there is no metric '{values['metric']}'", f"choose from: {', '.join(FIGURES)}")
    try:
        difference = float(values["difference"])
    except ValueError:
        difference = 0.0
    if not 0 < difference < float("inf"):
        raise UserError(f"cannot read difference={values['difference']}", "a number above 0, such as difference=0.5")
    if UNITS[values["metric"]] == "share" and difference >= 1:
        problem = f"{values['metric']} is a share from 0 to 1, so that no two models differ by {difference:g}"
        raise UserError(problem, f"for {difference:g} percentage points give difference={difference / 100:g}")
    return values["metric"], difference


def _pilots(runs: str) -> tuple[list[LoadedCell], str]:
    """The entrants on the dataset that has most of them."""
    loaded = load_cells([Path(name) for name in runs.split(",") if name], options_of, remeasure)
    by_dataset: dict[str, list[LoadedCell]] = defaultdict(list)
    for cell in loaded:
        if cell.measures is not None and cell.measures.have(*MEASURED):
            by_dataset[cell.dataset].append(cell)
    if not by_dataset:
        raise UserError(f"{runs} holds no pilot", f"give cells of a protocol that measures {', '.join(MEASURED)}")
    dataset = max(sorted(by_dataset), key=lambda name: len(by_dataset[name]))
    if len(by_dataset) > 1:
        err.print(f"note: only cells on {dataset} are used: plan another dataset in a separate call", markup=False)
    return by_dataset[dataset], dataset


def _tasks(values: Mapping[str, str], pilots: Sequence[LoadedCell]) -> int:
    """The number of tasks to choose from."""
    if "tasks" in values:
        if not values["tasks"].isdecimal() or int(values["tasks"]) < 2:
            raise UserError(f"cannot read tasks={values['tasks']}", "a whole number from 2 on")
        return int(values["tasks"])
    parts = [part for cell in pilots for part in cell.parts]
    return max(int(dataset_in(part.folder).get("tasks") or part.metrics["sessions"]) for part in parts)


def _table(spreads: Mapping[str, Spread], sizes: Sequence[int]) -> Table:
    """The smallest detectable differences."""
    title = (
        f"\nsmallest difference of two models that is detected with {100 * power.POWER:.0f} % power (two-sided, 5 %)"
    )
    table = plain_table("metric", "in", "tasks", "samples", "paired", "unpaired", title=title, left=2)
    for name, spread in spreads.items():
        for tasks in sizes:
            for samples in SAMPLES:
                shown = [spread.detectable(tasks, samples, paired=paired) for paired in (True, False)]
                if shown != [None, None]:
                    words = ("not known" if value is None else f"{value:.3g}" for value in shown)
                    table.add_row(name, UNITS[name], str(tasks), str(samples), *words)
    return table


def _cheapest(spread: Spread, metric: str, difference: float, most: int, pilots: Sequence[LoadedCell]) -> Table:
    """The fewest sessions that find the difference, with the calls, tokens and dollars of both models."""
    title = f"\ncheapest for a difference of {difference:g} in {metric} ({UNITS[metric]}), for both models together"
    headers = ("", "tasks", "samples", "sessions", "calls", "tokens", "US dollars")
    table = plain_table(*headers, title=title, left=1)
    for paired in (True, False):
        plans = [(tasks, k) for k in range(1, 51) if (tasks := spread.tasks_for(difference, k, paired=paired))]
        fitting = [plan for plan in plans if plan[0] <= most]
        word = "paired" if paired else "unpaired"
        if not fitting:
            table.add_row(word, f"not within {most} tasks" + (" and 50 samples" if len(plans) > 1 else ""))
            continue
        tasks, samples = min(fitting, key=lambda plan: (plan[0] * plan[1], plan[1]))
        table.add_row(word, str(tasks), str(samples), *_costs(2 * tasks * samples, pilots))
    return table


def _costs(sessions: int, pilots: Sequence[LoadedCell]) -> list[str]:
    """The cost of so many sessions, by the pilot's mean: calls of the model, tokens and dollars of all payers."""
    metrics = [cell.metrics for cell in pilots]
    done = sum(each["completed"] for each in metrics)
    calls = sum(sum(each["outcomes"].values()) for each in metrics)
    used = [tokens for each in metrics for tokens in each["tokens"].values()]
    tokens = sum(each["input_tokens"] + each["output_tokens"] for each in used)
    costs = [(cost, each["tokens"].get(name, {})) for each in metrics for name, cost in each["cost_usd"].items()]
    dollars = [cost for cost, asked in costs if any(asked.values())]
    money = None if not dollars or None in dollars else sum(dollars)
    per = sessions / done
    price = "not known" if money is None else f"{money * per:,.2f}"
    return [f"{sessions:,}", f"{calls * per:,.0f}", f"{tokens * per:,.0f}", price]
