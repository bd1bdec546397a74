"""Finished cells, read from their folders: the input of every table, figure and page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from codechat.errors import UserError
from codechat.metrics import REFINE, Measures, RefineMetrics
from codechat.metrics.measures import COMMON, FIELD, measures_in, merged, value_of
from codechat.records import SessionRecord, read_sessions
from codechat.report.labels import variants

FILES = ("config.yaml", "metrics.json", "sessions.jsonl")


@dataclass(frozen=True)
class LoadedCell:
    """One finished cell.

    `config` is the content of config.yaml, `choices` (the option of every group) included. `metrics` has the shape of
    `RefineMetrics` where the protocol is `refine`; for another protocol it is what metrics.json holds. `measures` says
    how to read it; None where metrics.json does not. `model` and `dataset` are as the records name them; `agenda` and
    `judge` are the chosen options, `agenda` empty where the protocol has none. `turns` is the most that a session can
    have. `variant` says what else sets the cell apart from the others of a report and protocol, such as
    `escalating, seed 1`; it is empty where nothing does.
    """

    folder: Path
    cell_id: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    model: str
    dataset: str
    protocol: str
    agenda: str
    turns: int
    seed: int
    judge: str
    variant: str = ""
    measures: Measures | None = REFINE

    @property
    def label(self) -> str:
        """The model, with the variant where there are several."""
        return f"{self.model} ({self.variant})" if self.variant else self.model

    @property
    def settings(self) -> tuple[object, ...]:
        """All but model and dataset. The turns are a setting where an agenda fixes them; else they just come about."""
        return (self.agenda, self.turns if self.agenda else None, self.seed, self.judge, self.variant)

    def sessions(self) -> Iterator[SessionRecord]:
        """The sessions in dataset order, read one at a time."""
        return read_sessions(self.folder / "sessions.jsonl")


def cell_folders(folder: Path) -> tuple[list[Path], list[Path]]:
    """The finished cells at a path, which is a cell's folder or holds such, and those that have not finished.

    Raises `UserError` where there is neither.
    """
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", "give the folder of a cell, or one that holds such folders")
    candidates = [folder] if _is_cell(folder) else sorted(path for path in folder.iterdir() if _is_cell(path))
    if not candidates:
        raise UserError(f"{folder} holds no cell", "a cell's folder has a config.yaml and a sessions.jsonl")
    finished = [path for path in candidates if (path / "metrics.json").is_file() and (path / FILES[2]).is_file()]
    return finished, [path for path in candidates if path not in finished]


def load_cells(folders: Sequence[Path]) -> tuple[LoadedCell, ...]:
    """The finished cells of the folders, by dataset, model, agenda, turns and seed; each once.

    Raises `UserError` where a folder holds no finished cell, a file cannot be read, or two folders hold the same cell.
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
    cells = [_load(path) for path in paths.values()]
    cells.sort(key=lambda cell: (cell.dataset, cell.model, cell.agenda, cell.turns, cell.seed, cell.folder.name))
    _refuse_copies(cells)
    named: dict[int, str] = {}
    for protocol in {cell.protocol for cell in cells}:
        places = [place for place, cell in enumerate(cells) if cell.protocol == protocol]
        told = variants([(cells[place].model, cells[place].dataset, cells[place].config) for place in places])
        named |= dict(zip(places, told, strict=True))
    return tuple(replace(cell, variant=named[place]) for place, cell in enumerate(cells))


def _is_cell(path: Path) -> bool:
    return (path / "config.yaml").is_file()


def _load(folder: Path) -> LoadedCell:
    config, metrics = _mapping(folder / "config.yaml"), _mapping(folder / "metrics.json")
    first = next(read_sessions(folder / "sessions.jsonl"), None)
    if first is None:
        raise UserError(f"{folder / 'sessions.jsonl'} holds no session", "run the cell again, or leave its folder out")
    refined = first.protocol == REFINE.protocol
    measures = REFINE if refined else measures_in(metrics)
    if refined:
        metrics = _refine(metrics, folder / "metrics.json")
    elif measures is not None:
        _check(metrics, folder / "metrics.json")
    choices = config.get("choices") or {}
    agenda, judge = config.get("agenda") or {}, config.get("judge") or {}
    return LoadedCell(
        folder=folder,
        cell_id=first.cell_id,
        config=config,
        metrics=metrics,
        model=first.model,
        dataset=first.dataset,
        protocol=first.protocol,
        agenda=str(choices.get("agenda", "agenda")) if refined or first.agenda else "",
        turns=int(agenda.get("turns") or len(first.agenda) + 1) if refined else _turns(measures, metrics),
        seed=first.seed,
        judge=str(choices.get("judge", judge.get("kind", "judge"))),
        measures=measures,
    )


def measures_of(cells: Sequence[LoadedCell]) -> Measures:
    """What cells of one protocol measure together; at least one of them must say it."""
    return merged(cell.measures for cell in cells if cell.measures is not None)


def _turns(measures: Measures | None, metrics: Mapping[str, Any]) -> int:
    """The turns that the longest series ends at, turn 0 included."""
    series = measures.series if measures is not None else ()
    return max((each.first_turn + len(value_of(metrics, each) or ()) for each in series), default=1)


def _check(metrics: Mapping[str, Any], path: Path) -> None:
    """Refuse a metrics.json that lacks what every protocol's has. Raises `UserError`."""
    missing = [name for name in COMMON if name not in metrics]
    if missing:
        raise UserError(f"{path} has no {missing[0]}", "run the cell again: it calls no model, and writes it anew")


def _mapping(path: Path) -> dict[str, Any]:
    """A JSON or YAML file that holds a mapping."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "a finished cell has " + ", ".join(FILES)) from error
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(
            f"{path} is damaged: {str(error).splitlines()[0]}", "run the cell again: it is rewritten"
        ) from (error)
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: it holds no mapping", "run the cell again: it is rewritten")
    return content


def _refine(metrics: Mapping[str, Any], path: Path) -> dict[str, Any]:
    try:
        values = {name: value for name, value in metrics.items() if name != FIELD}
        return RefineMetrics.model_validate(values).model_dump(mode="json")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(
            f"{path} is not what this version writes: {place}: {first['msg']}",
            "run the cell again: it calls no model, and writes its metrics anew",
        ) from error


def _refuse_copies(cells: Sequence[LoadedCell]) -> None:
    """The same cell twice would count twice. A rescored cell is another one, whatever its id."""
    seen: dict[tuple[str, str | None], LoadedCell] = {}
    for cell in cells:
        other = seen.setdefault((cell.cell_id, cell.config.get("rescored_from")), cell)
        if other is not cell:
            raise UserError(f"{other.folder} and {cell.folder} hold the same cell", "leave one of them out")
