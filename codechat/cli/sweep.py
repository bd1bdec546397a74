"""Run a sweep: one cell per combination of values; a failed cell does not stop the others."""

import hashlib
import itertools
import shlex
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.markup import escape
from rich.table import Table

from codechat.cli.estimate import show_assumptions, show_sum
from codechat.cli.run import run_cell
from codechat.cli.terminal import err, out
from codechat.config import Config
from codechat.engine.cell import Composed
from codechat.engine.compose import compose, compose_values
from codechat.engine.config import GROUPS
from codechat.engine.estimate import total
from codechat.engine.overrides import parse_word
from codechat.engine.owners import has_key
from codechat.engine.run import BUG, DONE, INTERRUPTED, MISTAKE, TOO_MANY_ERRORS, Outcome
from codechat.environment import data_folder, shell_command
from codechat.errors import UserError, nearest
from codechat.metrics.measures import measures_in, value_of
from codechat.template import counted

STATES = {DONE: "done", BUG: "bug", MISTAKE: "not run", TOO_MANY_ERRORS: "errors", INTERRUPTED: "interrupted"}


class Recipe(BaseModel):
    """A file in sweeps/: the question it answers, and grids of overrides whose union is the sweep."""

    model_config = ConfigDict(extra="forbid")

    question: str
    grids: list[dict[str, Any]]


@dataclass(frozen=True)
class _Planned:
    overrides: tuple[str, ...]
    composed: Composed


def run_sweep(words: Sequence[str]) -> int:
    """Run all cells; returns the highest of their exit statuses. Raises `UserError` before the first cell runs."""
    names = [word.removeprefix("+sweep=") for word in words if word.startswith("+sweep=")]
    settings = [word for word in words if not word.startswith("+sweep=")]
    if len(names) > 1:
        raise UserError("a sweep has one recipe", f"choose one of {', '.join(names)}")
    grids = [[*_grid(grid, settings), *settings] for grid in read_recipe(names[0]).grids] if names else [settings]
    name = names[0] if names else "adhoc-" + hashlib.sha256("\n".join(settings).encode()).hexdigest()[:8]
    # Every cell is composed and validated before the first one runs.
    combinations, dropped = fitting([overrides for grid in grids for overrides in expand(grid)])
    planned = [_Planned(overrides, compose(overrides)) for overrides in combinations]
    out.print(f"[bold]sweep {escape(name)}[/bold]: {counted(len(planned), 'cell')}")
    for word in dropped:
        out.print(f"only in the cells whose options have it: {word}", markup=False, soft_wrap=True)
    outcomes: list[tuple[_Planned, int, Outcome | None]] = []
    for number, cell in enumerate(planned, 1):
        out.print(f"\n[dim]cell {number} of {len(planned)}: {escape(' '.join(cell.overrides))}[/dim]")
        status, outcome = _run_one(cell, [shell_command("codechat"), "-m", *words], name)
        outcomes.append((cell, status, outcome))
        if status == INTERRUPTED:
            break
    estimates = [outcome.estimate for _, _, outcome in outcomes if outcome and outcome.estimate]
    if estimates:
        show_sum(total(estimates), f"\nsweep {name}: {counted(len(estimates), 'cell')}, each as if run alone")
        show_assumptions()
        return max(status for _, status, _ in outcomes)
    shared = set.intersection(*(set(cell.overrides) for cell in planned)) if len(planned) > 1 else set()
    keys = [word.partition("=")[0] for word in dropped]
    same = {word for word, key in zip(dropped, keys, strict=True) if keys.count(key) == 1}
    out.print(_table(name, shared | same, outcomes))
    if len(outcomes) < len(planned):
        out.print(f"\n{counted(len(planned) - len(outcomes), 'cell was', 'cells were')} not begun")
    folders = [str(outcome.cell.folder) for _, _, outcome in outcomes if outcome and outcome.metrics]
    if folders:
        compare = [shell_command("codechat"), "report", f"runs={','.join(folders)}", f"out=report-{name}"]
        out.print(f"\ncompare  {shlex.join(compare)}", markup=False)
    return max(status for _, status, _ in outcomes)


def _run_one(cell: _Planned, command: list[str], sweep: str) -> tuple[int, Outcome | None]:
    try:
        outcome = run_cell(cell.composed, command, sweep)
    except UserError as mistake:
        err.print(f"error: {mistake}", markup=False)
        return MISTAKE, None
    except KeyboardInterrupt:
        err.print(f"interrupted. Resume: {shlex.join(command)}", markup=False)
        return INTERRUPTED, None
    except Exception:  # noqa: BLE001  a bug in one cell is shown with its traceback, and the other cells still run
        err.print(traceback.format_exc(), markup=False)
        return BUG, None
    return outcome.status, outcome


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


def fitting(combinations: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The different combinations, without the words that some option of the sweep has and the combination's has not.

    With `judge=rules,llm`, a key of the judging models is for the cells of `judge=llm` alone. A key that no option of
    the sweep has stays, so that it is refused. Second, the words that were left out somewhere.
    """
    kinds: dict[tuple[str, str | None], type[Config]] = {}

    def fits(word: str, words: tuple[str, ...]) -> bool:
        group, _, rest = word.partition("=")[0].rpartition("@")[2].partition(".")
        if group not in GROUPS or not rest or word.startswith(("+", "~")):
            return True
        choice = next((each for each in reversed(words) if each.startswith(f"{group}=")), None)
        if (group, choice) not in kinds:
            values = compose_values([choice] if choice else [])[0][group]
            kinds[group, choice] = GROUPS[group].chosen_by(values).config
        return has_key(kinds[group, choice], rest.split("."))

    used = {word for words in combinations for word in words if fits(word, words)}
    kept = [tuple(word for word in words if word not in used or fits(word, words)) for words in combinations]
    lost = [word for before, after in zip(combinations, kept, strict=True) for word in before if word not in after]
    return list(dict.fromkeys(kept)), list(dict.fromkeys(lost))


def read_recipe(name: str) -> Recipe:
    """A recipe by name: in the working folder's sweeps/, else one of codechat's own. Raises `UserError`."""
    folders = [Path("sweeps"), data_folder("sweeps")]
    for folder in folders:
        path = folder / f"{name}.yaml"
        if path.is_file():
            try:
                return Recipe.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
            except (yaml.YAMLError, ValidationError) as error:
                raise UserError(f"{path} is no recipe: {error}", "it needs `question` and `grids`") from error
    known = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    raise UserError(f"there is no sweep '{name}'", nearest(name, known))


def _grid(grid: dict[str, Any], settings: Sequence[str]) -> list[str]:
    """A grid's overrides: a list sweeps over its values. Settings of the command line replace those of the recipe."""
    given = {word.partition("=")[0] for word in settings}
    texts = {key: ",".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in grid.items()}
    return [f"{key}={text}" for key, text in texts.items() if key not in given]


@dataclass(frozen=True)
class _Headline:
    """Both ends of a protocol's first series, and its first final."""

    labels: tuple[str, str, str]
    values: tuple[float | None, float | None, float | None]


def _headline(metrics: Mapping[str, Any]) -> _Headline:
    measures = measures_in(metrics)
    if measures is None:
        raise ValueError("these metrics do not say what they are")
    series, final = measures.series[0], measures.finals[0]
    curve = value_of(metrics, series) or [None]
    return _Headline((f"{series.label} first", "last", final.label), (curve[0], curve[-1], value_of(metrics, final)))


def _table(name: str, constant: set[str], outcomes: list[tuple[_Planned, int, Outcome | None]]) -> Table:
    """A row for every cell, named by all its overrides except the `constant` ones."""
    table = Table(title=f"\nsweep {escape(name)}", title_justify="left", box=None, padding=(0, 2, 0, 0))
    headlines = [_headline(outcome.metrics) for _, _, outcome in outcomes if outcome and outcome.metrics]
    labels = {headline.labels for headline in headlines}
    own = labels.pop() if len(labels) == 1 else ("first turn", "last", "in all")  # cells of several protocols
    for header in ("cell", "state", *own, "folder"):
        table.add_column(header, overflow="fold")
    for cell, status, outcome in outcomes:
        varies = " ".join(word for word in cell.overrides if word not in constant)
        values = _headline(outcome.metrics).values if outcome and outcome.metrics else (None,) * 3
        shown = ["—" if value is None else f"{value:.3f}" for value in values]
        folder = str(outcome.cell.folder) if outcome else ""
        table.add_row(escape(varies), STATES[status], *shown, escape(folder))
    return table
