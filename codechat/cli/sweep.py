"""Run a sweep: one cell per combination of values; a failed cell does not stop the others."""

import hashlib
import itertools
import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from codechat.base.config import Config
from codechat.base.environment import data_folder, shell_command
from codechat.base.errors import UserError, nearest
from codechat.base.files import from_yaml
from codechat.base.template import counted
from codechat.cli.cell_view import show_assumptions, show_sum
from codechat.cli.progress import FactsBar, clock, pass_on, termination_as_interrupt
from codechat.cli.run import DEFAULT, Recalling, run_job, runs_apart, split_running, split_samples, with_seeds
from codechat.cli.terminal import err, out, parse_words, plain_table
from codechat.models.serving import Fleet, by_servers
from codechat.report.metrics.measures import measures_in, value_of
from codechat.run.answering.servers import servers_needed
from codechat.run.cell.estimate import assumptions_of, total
from codechat.run.cell.stopping import checkpoint_runs
from codechat.run.launchers import LAUNCHERS, Job, Result, Sweep, TurnCounts
from codechat.run.launchers.slurm import Array, requeue
from codechat.run.results.measured import open_store
from codechat.run.run import BUG, DONE, INTERRUPTED, MISTAKE, TOO_MANY_ERRORS
from codechat.run.settings.compose import Composed, compose, compose_values, has_key, key_of, parse_word
from codechat.run.settings.config import GROUPS

SWEEPS = ".sweeps"
"""The folder, within `runs_dir`, in which launchers keep their files."""
STATES = {DONE: "done", BUG: "bug", MISTAKE: "not run", TOO_MANY_ERRORS: "errors", INTERRUPTED: "interrupted"}
LONGEST = 100  # characters of a word of a cell
ELEMENT = {"file": "cells.txt in the folder of the sweep", "element": "the number of the array's element"}


class Recipe(BaseModel):
    """A file in sweeps/: the question it answers, and grids of overrides whose union is the sweep."""

    model_config = ConfigDict(extra="forbid")

    question: str
    grids: list[dict[str, Any]]


def run_sweep(words: Sequence[str], flag: Sequence[str] = ("-m",)) -> int:
    """Run all cells; returns the highest of their exit statuses. Raises `UserError` before the first cell runs.

    `flag` stands before the words in the command that resumes the sweep.
    """
    launcher, shards, settings = split_running(words, several=True)
    names = [word.removeprefix("+sweep=") for word in settings if word.startswith("+sweep=")]
    settings = [word for word in settings if not word.startswith("+sweep=")]
    if len(names) > 1:
        raise UserError("a sweep has one recipe", f"choose one of {', '.join(names)}")
    recipe = read_recipe(names[0]).grids if names else []
    grids = [[*_grid(grid, settings), *settings] for grid in recipe] if names else [settings]
    # Every cell is composed and validated before the first one runs.
    sampled = [split_samples(grid) for grid in grids]
    chosen = {_key_of(word) for word in settings}
    combinations, dropped = fit_words(
        [words for samples, grid in sampled for each in expand(grid) for words in with_seeds(each, samples)],
        {key for grid in recipe for key in grid if key.removeprefix("+").partition(".")[0] in chosen},
    )
    cells = different([compose(overrides) for overrides in combinations])
    name = names[0] if names else sweep_name(settings, cells)
    out.print(f"[bold]sweep {escape(name)}[/bold]: {counted(len(cells), 'cell')}")
    for word in dropped:
        out.print(f"only in the cells whose options have it: {word}", markup=False, soft_wrap=True)
    if any(cell.config.dry_run for cell in cells):
        # an estimate starts nothing, so it is made here, once for each whole cell
        launcher, shards = LAUNCHERS.validate({LAUNCHERS.key: DEFAULT}), 1
    if runs_apart(launcher):  # its cells would create the stores that they share all at once
        for config in {(cell.config.runs_dir, repr(cell.config.tracking)): cell.config for cell in cells}.values():
            if failure := open_store(config.tracking, Path(config.runs_dir)):
                err.print(f"warning: {failure}\nThe cells run, and try it again.", markup=False)
    sweep, results = _launch(launcher, name, cells, shards, [shell_command("codechat"), *flag, *words])
    show_end(sweep, results, dropped)
    return max((result.status for result in results.values() if result.status is not None), default=DONE)


def _launch(
    launcher: Config, name: str, cells: Sequence[Composed], shards: int, command: Sequence[str]
) -> tuple[Sweep, Mapping[int, Result]]:
    """Run the cells; with `shards` above 1, missing cells by their shards first, then the merging cells.

    Returns the last sweep that was launched (of shards, of a checkpoint, or of the whole cells) and its results.
    """
    with Fleet():
        for batch in checkpoint_runs(cells):
            sweep = plan_sweep(name, batch, command)
            missing = [job.composed for job in sweep.jobs if sweep.recall(job) is None] if shards > 1 else []
            if missing:
                parts = itertools.product(missing, range(shards))
                words = ([*cell.words, f"shard.index={index}", f"shard.count={shards}"] for cell, index in parts)
                of_shards = plan_sweep(name, [compose(each) for each in words], command)
                results = LAUNCHERS.build(launcher).launch(of_shards, SweepView(len(of_shards.jobs)))
                if not _all_done(of_shards, results):
                    return of_shards, results
                launcher = LAUNCHERS.validate({LAUNCHERS.key: DEFAULT})  # merging asks no model
            results = LAUNCHERS.build(launcher).launch(sweep, SweepView(len(sweep.jobs)))
            if not _all_done(sweep, results):
                break
        return sweep, results


def _all_done(sweep: Sweep, results: Mapping[int, Result]) -> bool:
    return all(job.number in results and results[job.number].status == DONE for job in sweep.jobs)


def different(cells: Sequence[Composed]) -> list[Composed]:
    """The cells, each config once: two processes must not run the same cell at the same time."""
    first: dict[str, Composed] = {}
    for cell in cells:
        first.setdefault(repr(cell.config), cell)
    return list(first.values())


def plan_sweep(name: str, cells: Sequence[Composed], command: Sequence[str]) -> Sweep:
    """The sweep of these cells for a launcher: cells that need the same model servers follow each other."""
    numbered = [Job(number, cell, name, (*command,), servers_needed(cell.config)) for number, cell in enumerate(cells)]
    jobs = tuple(itertools.chain(*by_servers(numbered, lambda job: job.servers)))
    folder = Path(cells[0].config.runs_dir) / SWEEPS / name
    return Sweep(name, jobs, folder, run_job, Recalling())


def sweep_name(settings: Sequence[str], cells: Sequence[Composed]) -> str:
    """The name of a sweep without a recipe: equal for equal cells with any run options."""
    naming = [word for word in settings if not any(cell.config.is_run_option(key_of(word)) for cell in cells)]
    return "adhoc-" + hashlib.sha256("\n".join(naming).encode()).hexdigest()[:8]


def expand(settings: Sequence[str]) -> list[tuple[str, ...]]:
    """All combinations of Hydra's sweep syntax (`a,b`, `range(…)`, `choice(…)`), the last key varying fastest."""
    choices: list[list[str]] = []
    for text in settings:
        override = parse_word(text)
        if override is not None and override.is_sweep_override():
            key = override.get_key_element()
            choices.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        else:
            choices.append([text])
    return list(itertools.product(*choices))


def fit_words(
    combinations: Sequence[tuple[str, ...]], replaced: Collection[str] = ()
) -> tuple[list[tuple[str, ...]], list[str]]:
    """The different combinations, each without the words that only options of other cells have; and those words.

    With `judge=rules,llm`, a key of the judging models is for the cells of `judge=llm` alone. Unknown keys are kept so
    that validation rejects them, except `replaced` ones: a recipe's keys of an option that the command line replaced.
    """
    kinds: dict[tuple[str, str | None], type[Config]] = {}

    def fits(word: str, words: tuple[str, ...]) -> bool:
        key = _key_of(word)
        group, _, option = key.removeprefix("+" if key in replaced else "").rpartition("@")[2].partition(".")
        if group not in GROUPS or not option or group.startswith(("+", "~")):
            return True
        choice = next((each for each in reversed(words) if each.startswith(f"{group}=")), None)
        if (group, choice) not in kinds:
            values = compose_values([choice] if choice else [])[0][group]
            kinds[group, choice] = GROUPS[group].chosen_by(values).config
        return has_key(kinds[group, choice], option.split("."))

    used = {word for words in combinations for word in words if _key_of(word) in replaced or fits(word, words)}
    kept = [tuple(word for word in words if word not in used or fits(word, words)) for words in combinations]
    lost = [word for before, after in zip(combinations, kept, strict=True) for word in before if word not in after]
    return list(dict.fromkeys(kept)), list(dict.fromkeys(lost))


def read_recipe(name: str) -> Recipe:
    """A recipe by name: in the working folder's sweeps/, else one of codechat's own. Raises `UserError`."""
    folders = [Path("sweeps"), data_folder("sweeps")]
    for path in (folder / f"{name}.yaml" for folder in folders):
        if path.is_file():
            try:
                return Recipe.model_validate(from_yaml(path.read_text(encoding="utf-8")))
            except (yaml.YAMLError, ValidationError, UnicodeDecodeError, OSError) as error:
                raise UserError(f"{path} is no recipe: {error}", "it needs `question` and `grids`") from error
    known = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    raise UserError(f"there is no sweep '{name}'", nearest(name, known))


def _key_of(word: str) -> str:
    return word.partition("=")[0]


def _grid(grid: dict[str, Any], settings: Sequence[str]) -> list[str]:
    """A grid's overrides: a list sweeps over its values. Settings of the command line replace the recipe's."""
    given = set(map(_key_of, settings))
    texts = {key: ",".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in grid.items()}
    return [f"{key}={text}" for key, text in texts.items() if key not in given]


class SweepView:
    """The sweep at a terminal: a line per cell, and a bar over cells that run in other processes."""

    def __init__(self, cells: int) -> None:
        self._cells, self._ended = cells, 0
        self._bar: FactsBar | None = None

    def begins(self, job: Job) -> None:
        """Name the cell, and its place in the sweep."""
        out.print(f"\n[dim]cell {job.number + 1} of {self._cells}: {escape(_named(job.composed.words))}[/dim]")

    def ended(self, job: Job, result: Result) -> None:
        """Print the output of a cell of another process, now that it has ended."""
        self._ended += 1
        if self._bar is not None:
            self._bar.stop()
        self.begins(job)
        for piece in result.printed:
            (err if piece.error else out).print(piece.text, markup=False, end="")
        if self._bar is not None:
            self._bar.start()

    def note(self, text: str) -> None:
        """Show a remark."""
        err.print(text, markup=False)

    @contextmanager
    def watching(self, tally: Callable[[], TurnCounts]) -> Iterator[None]:
        """Show the progress of all cells."""
        began = time.monotonic()

        def state() -> tuple[int, int, list[str]]:
            counts, facts = tally(), [f"{self._ended}/{self._cells} cells"]
            if counts.planned:
                facts.append(f"{counts.turns:,}/{counts.planned:,} turns of the cells begun")
            if counts.scored:
                facts.append(f"{100 * counts.passed / counts.scored:.0f} % pass")
            return self._ended, self._cells, [*facts, clock(time.monotonic() - began)]

        self._bar = FactsBar(state, redirect=False)
        self._bar.start()
        try:
            yield
        finally:
            self._bar.stop()
            self._bar = None

    def interruptible(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Pass the user's interruption on to the cells."""
        return pass_on(stop)


def show_end(sweep: Sweep, results: Mapping[int, Result], dropped: Sequence[str]) -> None:
    """Print the table of the cells, or the sum of their estimates, and the command that compares them."""
    estimates = [result.estimate for result in results.values() if result.estimate]
    if estimates:
        show_sum(total(estimates), f"\nsweep {sweep.name}: {counted(len(estimates), 'cell')}, each as if run alone")
        show_assumptions(assumptions_of(job.composed.config for job in sweep.jobs))
        return
    words = [set(job.composed.words) for job in sweep.jobs]
    shared = set.intersection(*words) if len(words) > 1 else set()
    keys = list(map(_key_of, dropped))
    same = {word for word, key in zip(dropped, keys, strict=True) if keys.count(key) == 1}
    table = _table(sweep, shared | same, results)
    out.print(table, width=max(out.width, Measurement.get(out, out.options, table).maximum), crop=False)
    if len(results) < len(sweep.jobs):
        out.print(f"\n{counted(len(sweep.jobs) - len(results), 'cell was', 'cells were')} not begun")
    finished = [result for _, result in sorted(results.items()) if result.metrics]
    if finished:
        folders = ",".join(str(result.folder) for result in finished)
        compare = [shell_command("codechat"), "report", f"runs={folders}", f"out=report-{sweep.name}"]
        out.print(f"\ncompare  {shlex.join(compare)}", markup=False)


def _named(words: Sequence[str]) -> str:
    """The words of a cell, long ones cut."""
    return " ".join(word if len(word) <= LONGEST else f"{word[:LONGEST]} …" for word in words) or "the defaults"


def _headline(metrics: Mapping[str, Any]) -> tuple[tuple[str, ...], list[float | None], str]:
    """Labels and values of both ends of a protocol's first series and of its first final, and the unit of turns."""
    measures = measures_in(metrics)
    if measures is None:
        raise ValueError("these metrics do not say what they are")
    series, final = measures.series[0], measures.finals[0]
    curve = value_of(metrics, series) or [None]
    unit = f" of {len(curve)}" if final.key == "mst" else ""
    return (f"{series.label} first", "last", final.label), [curve[0], curve[-1], value_of(metrics, final)], unit


def _table(sweep: Sweep, constant: set[str], results: Mapping[int, Result]) -> Table:
    """A row for every cell that has a result, named by all its overrides except the `constant` ones."""
    headlines = {number: _headline(result.metrics) for number, result in results.items() if result.metrics}
    labels = {label for label, _, _ in headlines.values()}
    heads = labels.pop() if len(labels) == 1 else ("first turn", "last", "in all")  # cells of several protocols
    table = plain_table("cell", "state", *heads, "folder", title=f"\nsweep {escape(sweep.name)}")
    for job in sorted(sweep.jobs, key=lambda each: each.number):
        if (result := results.get(job.number)) is None:
            continue
        varies = _named([word for word in job.composed.words if word not in constant])
        _, values, unit = headlines.get(job.number, ((), [None] * 3, ""))
        shown = ["—" if value is None else f"{value:.3f}" for value in values]
        state = result.state if result.status is None else STATES[result.status]
        state += ", not tracked" if result.untracked else ""
        table.add_row(escape(varies), state, *shown[:2], shown[2] + unit, escape(str(result.folder or "")))
    return table


def run_cells(words: Sequence[str]) -> int:
    """`codechat cells file=FILE element=N`: run the cells of an element of a SLURM array, one after the other.

    Returns the highest of their exit statuses. Raises `UserError`.
    """
    values = parse_words(words, ELEMENT, required=tuple(ELEMENT))
    array, element = Array(Path(values["file"]).parent), values["element"]
    elements = {str(number): cells for number, cells in enumerate(array.elements(), 1)}
    if element not in elements:
        raise UserError(f"{values['file']} has no element {element}", f"it has the elements 1 to {len(elements)}")
    name, statuses = array.folder.absolute().name, list[int]()
    try:
        with termination_as_interrupt(), Fleet():  # the cells of an element share its model servers
            cells = elements[element]
            jobs = [Job(at, compose(cell), name, (shell_command("codechat"), *cell)) for at, cell in enumerate(cells)]
            for job in jobs:
                SweepView(len(jobs)).begins(job)
                status = run_job(job).status
                statuses.append(DONE if status is None else status)
                array.leave(int(element), statuses)
                if status == INTERRUPTED:
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        requeue()
        raise
    return max(statuses)
