"""Finished cells, read from their folders: the input of every table, figure and page."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from codechat.errors import UserError
from codechat.metrics import Measures
from codechat.metrics.measures import measures_in, value_of
from codechat.records import content_of, read_sessions
from codechat.report.chapters import chapter_of
from codechat.report.contents import tell_apart
from codechat.report.repeats import Measure, pool_repeats
from codechat.report.study import REPLAYED, LoadedCell
from codechat.report.variants import RECORDED, Named, Options, differences, setup_of, without_seed
from codechat.seal import edited

FILES = ("config.yaml", "metrics.json", "sessions.jsonl")
ANEW = "run the cell again: it is rewritten"


def cell_folders(folder: Path) -> tuple[list[Path], list[Path]]:
    """The finished cells at a path, which is a cell's folder or holds such, and those that have not finished.

    Raises `UserError` if there is neither.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", "give the folder of a cell, or one that holds such folders")
    candidates = [folder] if _is_cell(folder) else sorted(path for path in folder.iterdir() if _is_cell(path))
    if not candidates:
        raise UserError(f"{folder} holds no cell", "a cell's folder has a config.yaml and a sessions.jsonl")
    finished = [path for path in candidates if (path / "metrics.json").is_file() and (path / FILES[2]).is_file()]
    return finished, [path for path in candidates if path not in finished]


def load_cells(
    folders: Sequence[Path], options: Options = lambda *_: None, measure: Measure | None = None
) -> tuple[LoadedCell, ...]:
    """The finished cells of the folders, by dataset, model, agenda, turns and seed; each once.

    `options` knows which options can change a result: only those are named in a cell's variant. With `measure`, cells
    that differ in the seed alone are pooled; then no variant names a seed.
    Raises `UserError` if a folder holds no finished cell, a file cannot be read or is not what the run
    wrote, or two folders hold the same cell.
    """
    paths: dict[Path, Path] = {}
    for folder in folders:
        finished, unfinished = cell_folders(folder)
        if not finished:
            raise UserError(
                f"no cell in {folder} has finished: {unfinished[0].name} has no metrics.json",
                "run the same command again: it does only what is missing",
            )
        paths |= {path.resolve(): path for path in finished}
    cells = tell_apart([_load(path) for path in paths.values()])
    cells.sort(key=lambda cell: (cell.dataset, cell.model, cell.agenda, cell.turns, cell.seed, cell.folder.name))
    seen: dict[tuple[str, str | None], LoadedCell] = {}
    for cell in cells:  # the same cell twice would count twice; a rescored cell is another one, whatever its id
        other = seen.setdefault((cell.cell_id, cell.config.get("rescored_from")), cell)
        if other is not cell:
            raise UserError(f"{other.folder} and {cell.folder} hold the same cell", "leave one of them out")
    if measure is not None:
        cells = pool_repeats(cells, options, measure)
    named = {name: _named([cell for cell in cells if cell.protocol == name], options)
             for name in {cell.protocol for cell in cells}}  # fmt: skip
    return tuple(named[cell.protocol][cell.folder] for cell in cells)


def _named(cells: Sequence[LoadedCell], options: Options) -> dict[Path, LoadedCell]:
    """The cells of one protocol by folder, with what sets each apart; seeds set none apart if some are pooled."""
    pooled = any(cell.repeats for cell in cells)
    configs = [without_seed(cell.config) if pooled else cell.config for cell in cells]
    found = differences(
        [Named(cell.model, cell.dataset, config, cell.cell_id) for cell, config in zip(cells, configs, strict=True)],
        options,
    )
    return {
        cell.folder: replace(
            cell, variant=", ".join(words.values()), differences=words, setup=setup_of(config, options)
        )
        for cell, words, config in zip(cells, found, configs, strict=True)
    }


def _is_cell(path: Path) -> bool:
    return (path / "config.yaml").is_file()


def _load(folder: Path) -> LoadedCell:
    config, metrics = _mapping(folder / "config.yaml"), _mapping(folder / "metrics.json")
    first = next(read_sessions(folder / "sessions.jsonl"), None)
    if first is None:
        raise UserError(f"{folder / 'sessions.jsonl'} holds no session", "run the cell again, or leave its folder out")
    chapter = chapter_of(first.protocol)
    measures = measures_in(metrics) or chapter.measures
    if measures is not None:
        metrics = dict(chapter.checked(metrics, folder / "metrics.json"))
    choices = config.get("choices") or {}
    judge = config.get("judge") or {}
    return LoadedCell(
        folder=folder,
        cell_id=first.cell_id,
        config=config,
        metrics=metrics,
        model=_model(config, first.model),
        dataset=first.dataset,
        protocol=first.protocol,
        agenda=str(choices.get("agenda", "agenda")) if first.agenda else "",
        turns=_turns(measures, metrics),
        seed=first.seed,
        judge=str(choices.get("judge", judge.get("kind", "judge"))),
        measures=measures,
        content=content_of(folder) or _file_of(config),
        edited=edited(folder),
    )


def _file_of(config: Mapping[str, Any]) -> str:
    """The file of the user's own tasks, for a cell of a time when no content was kept; empty for published ones."""
    dataset = config.get("dataset") or {}
    return str(dataset.get("path", "")) if dataset.get("kind") == "jsonl" else ""


def _model(config: Mapping[str, Any], name: str) -> str:
    """The model as the records name it; one whose recorded replies are held again keeps its name."""
    replays = config.get("model") or {}
    recorded = config.get(RECORDED)
    return f"{recorded}{REPLAYED}" if recorded and name == replays.get("kind") else name


def _turns(measures: Measures | None, metrics: Mapping[str, Any]) -> int:
    """The turns that the longest series ends at, turn 0 included."""
    series = measures.series if measures is not None else ()
    return max((each.first_turn + len(value_of(metrics, each) or ()) for each in series), default=1)


def _mapping(path: Path) -> dict[str, Any]:
    """A JSON or YAML file that holds a mapping."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "a finished cell has " + ", ".join(FILES)) from error
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} is damaged: {str(error).splitlines()[0]}", ANEW) from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: it holds no mapping", ANEW)
    return content
