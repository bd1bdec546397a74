"""Run a sweep: one cell per combination of values; a failed cell does not stop the others."""

import hashlib
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from rich.markup import escape

from codechat.base.config import Config
from codechat.base.environment import data_folder, shell_command
from codechat.base.errors import UserError, nearest
from codechat.base.files import from_yaml
from codechat.base.template import counted
from codechat.cli.launching import DEFAULT, Recalling, run_job, runs_apart, split_running, split_samples, with_seeds
from codechat.cli.sweep_view import SweepView, show_end
from codechat.cli.terminal import err, out
from codechat.models.serving import Fleet, by_servers
from codechat.run.answering.servers import servers_needed
from codechat.run.cell.stopping import checkpoint_runs
from codechat.run.launchers import LAUNCHERS, Job, Result, Sweep
from codechat.run.results.tracked import open_store
from codechat.run.run import DONE
from codechat.run.settings.compose import Composed, compose, compose_values, has_key, key_of
from codechat.run.settings.config import GROUPS
from codechat.run.settings.words import parse_word

SWEEPS = ".sweeps"
"""The folder, beside those of cells, in which launchers keep their files."""


class Recipe(BaseModel):
    """A file in sweeps/: the question it answers, and grids of overrides whose union is the sweep."""

    model_config = ConfigDict(extra="forbid")

    question: str
    grids: list[dict[str, Any]]


def run_sweep(words: Sequence[str], flag: Sequence[str] = ("-m",)) -> int:
    """Run all cells; returns the highest of their exit statuses. Raises `UserError` before the first cell runs.

    `flag` stands before the words in the command that resumes the sweep.
    """
    chosen, shards, own = split_running(words, several=True)
    names = [word.removeprefix("+sweep=") for word in own if word.startswith("+sweep=")]
    settings = [word for word in own if not word.startswith("+sweep=")]
    if len(names) > 1:
        raise UserError("a sweep has one recipe", f"choose one of {', '.join(names)}")
    recipe = read_recipe(names[0]).grids if names else []
    grids = [[*_grid(grid, settings), *settings] for grid in recipe] if names else [settings]
    # Every cell is composed and validated before the first one runs.
    sampled = [split_samples(grid) for grid in grids]
    combinations, dropped = fit_words(
        [words for samples, grid in sampled for each in expand(grid) for words in with_seeds(each, samples)],
        {key for grid in recipe for key in grid if _group_of(key) in {_key_of(word) for word in settings}},
    )
    cells = different([compose(overrides) for overrides in combinations])
    name = names[0] if names else sweep_name(settings, cells)
    out.print(f"[bold]sweep {escape(name)}[/bold]: {counted(len(cells), 'cell')}")
    for word in dropped:
        out.print(f"only in the cells whose options have it: {word}", markup=False, soft_wrap=True)
    if any(cell.config.dry_run for cell in cells):
        # an estimate starts nothing, so it is made here, once for each whole cell
        chosen, shards = LAUNCHERS.validate({LAUNCHERS.key: DEFAULT}), 1
    if runs_apart(chosen):  # its cells would create the stores that they share all at once
        for config in {(cell.config.runs_dir, repr(cell.config.tracking)): cell.config for cell in cells}.values():
            if failure := open_store(config.tracking, Path(config.runs_dir)):
                err.print(f"warning: {failure}\nThe cells run, and try it again.", markup=False)
    sweep, results = _launch(chosen, name, cells, shards, [shell_command("codechat"), *flag, *words])
    show_end(sweep, results, dropped)
    return max((result.status for result in results.values() if result.status is not None), default=DONE)


def _launch(
    chosen: Config, name: str, cells: Sequence[Composed], shards: int, command: Sequence[str]
) -> tuple[Sweep, Mapping[int, Result]]:
    """Run the cells; those that are to be run in shards, and are missing, by their shards first.

    Until all shards, or the cells of a checkpoint, have come to their end, the sweep and the results are theirs.
    """
    with Fleet():
        for due in checkpoint_runs(cells):
            whole = plan_sweep(name, due, command)
            missing = [job.composed for job in whole.jobs if whole.recall(job) is None] if shards > 1 else []
            if missing:
                count = f"shard.count={shards}"
                pieces = [
                    compose([*cell.words, f"shard.index={at}", count]) for cell in missing for at in range(shards)
                ]
                parts = plan_sweep(name, pieces, command)
                results = LAUNCHERS.build(chosen).launch(parts, SweepView(len(parts.jobs)))
                if not _all_done(parts, results):
                    return parts, results
                chosen = LAUNCHERS.validate({LAUNCHERS.key: DEFAULT})  # merging asks nobody
            results = LAUNCHERS.build(chosen).launch(whole, SweepView(len(whole.jobs)))
            if not _all_done(whole, results):
                break
        return whole, results


def _all_done(sweep: Sweep, results: Mapping[int, Result]) -> bool:
    return all(job.number in results and results[job.number].status == DONE for job in sweep.jobs)


def different(cells: Sequence[Composed]) -> list[Composed]:
    """The cells, each config once: two processes must not run the same cell at the same time."""
    first: dict[str, Composed] = {}
    for cell in cells:
        first.setdefault(repr(cell.config), cell)
    return list(first.values())


def plan_sweep(name: str, cells: Sequence[Composed], command: Sequence[str]) -> Sweep:
    """The sweep of these cells, as a launcher takes it: those that need the same model servers follow each other."""
    numbered = [
        Job(number, cell, name, tuple(command), servers_needed(cell.config)) for number, cell in enumerate(cells)
    ]
    jobs = tuple(itertools.chain(*by_servers(numbered, lambda job: job.servers)))
    folder = Path(cells[0].config.runs_dir) / SWEEPS / name
    return Sweep(name, jobs, folder, run_job, Recalling())


def sweep_name(settings: Sequence[str], cells: Sequence[Composed]) -> str:
    """The name of a sweep without a recipe: equal for equal cells, wherever and however fast they run."""
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

    With `judge=rules,llm`, a key of the judging models is for the cells of `judge=llm` alone. A key that no option of
    the sweep has stays, so that it is refused, unless it is one of `replaced`: a recipe's, for an option in whose place
    the command line chose another.
    """
    kinds: dict[tuple[str, str | None], type[Config]] = {}

    def fits(word: str, words: tuple[str, ...]) -> bool:
        key = _key_of(word)
        group, _, rest = key.removeprefix("+" if key in replaced else "").rpartition("@")[2].partition(".")
        if group not in GROUPS or not rest or group.startswith(("+", "~")):
            return True
        choice = next((each for each in reversed(words) if each.startswith(f"{group}=")), None)
        if (group, choice) not in kinds:
            values = compose_values([choice] if choice else [])[0][group]
            kinds[group, choice] = GROUPS[group].chosen_by(values).config
        return has_key(kinds[group, choice], rest.split("."))

    used = {word for words in combinations for word in words if _key_of(word) in replaced or fits(word, words)}
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
                return Recipe.model_validate(from_yaml(path.read_text(encoding="utf-8")))
            except (yaml.YAMLError, ValidationError) as error:
                raise UserError(f"{path} is no recipe: {error}", "it needs `question` and `grids`") from error
    known = {path.stem for folder in folders for path in folder.glob("*.yaml")}
    raise UserError(f"there is no sweep '{name}'", nearest(name, known))


def _key_of(word: str) -> str:
    return word.partition("=")[0]


def _group_of(key: str) -> str:
    """The group that a key such as `+model.extra_body.top_p` is of."""
    return key.removeprefix("+").partition(".")[0]


def _grid(grid: dict[str, Any], settings: Sequence[str]) -> list[str]:
    """A grid's overrides: a list sweeps over its values. Settings of the command line replace those of the recipe."""
    given = {word.partition("=")[0] for word in settings}
    texts = {key: ",".join(map(str, value)) if isinstance(value, list) else str(value) for key, value in grid.items()}
    return [f"{key}={text}" for key, text in texts.items() if key not in given]
