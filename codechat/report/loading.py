"""Finished cells, read from their folders: the input of every table, figure and page.

Datasets of one name and several contents get a name each, and cells that differ in the seed alone become one entrant.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.base.records import GROUP_TAG, SessionRecord, dataset_in, read_sessions, tags_in
from codechat.base.seal import edited
from codechat.report.chapters import chapter_of
from codechat.report.comparison import REPLAYED, LoadedCell
from codechat.report.metrics.counts import DECIDED, LOADED, REPLIES
from codechat.report.metrics.measures import FIELD, measures_in, value_of
from codechat.report.metrics.sequences import STOPPED
from codechat.report.variants import (
    OWN,
    RECORDED,
    RESCORED,
    Named,
    Options,
    differences,
    settings_text,
    without_seed,
)

HASH = re.compile(r"[0-9a-f]{64}")
PARTS = ("part", "level")  # options by which a dataset has several contents


def tell_apart(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells; where a dataset's name stands for several contents, or wrongly for one, a mark of it follows the name.

    That is the part of the dataset if no other content is of that part, and else the beginning of the content's hash.
    Raises `UserError` if several names stand for one content, whose tasks would count as often.
    """
    names: dict[str, LoadedCell] = {}
    for cell in cells:
        other = names.setdefault(cell.content or cell.dataset, cell)
        if other.dataset != cell.dataset:
            raise UserError(
                f"{other.folder} and {cell.folder} hold the same tasks under two names, {other.dataset} and "
                f"{cell.dataset}: they would count twice",
                "leave one of them out, or run it again with the other's dataset.name: no model is called",
            )
    contents: dict[str, set[str]] = defaultdict(set)
    of_part: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cell in cells:
        contents[cell.dataset].add(cell.content)
        of_part[cell.dataset, _part_of(cell)].add(cell.content)
    found = []
    for cell in cells:
        part = _part_of(cell)
        alone = part and len(of_part[cell.dataset, part]) == 1
        digits = cell.content[:8] if HASH.fullmatch(cell.content) else cell.content or "content unknown"
        mark = part if alone else digits
        mark = f"{digits}, not as published" if cell.departure else mark
        marked = cell.departure or len(contents[cell.dataset]) > 1
        found.append(replace(cell, dataset=f"{cell.dataset} ({mark})", mark=mark) if marked else cell)
    return found


def _part_of(cell: LoadedCell) -> str:
    """The part of the dataset that the cell runs on, in words; empty if it has none."""
    options = cell.config.get("dataset") or {}
    return ", ".join(str(options[name]) for name in PARTS if options.get(name) is not None)


def content_notes(cells: Sequence[LoadedCell]) -> Iterator[str]:
    """A sentence for every cell whose files were edited, and for every name that stands for several contents."""
    yield from (f"{part.folder}: {part.edited}." for cell in cells for part in cell.parts if part.edited)
    named: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.mark:
            named[cell.dataset.removesuffix(f" ({cell.mark})")][cell.dataset].append(cell.folder.name)
    for name, found in named.items():
        if len(found) == 1:  # a departure, which is its cells' caution
            continue
        listed = "; ".join(f"{dataset}: {', '.join(folders)}" for dataset, folders in found.items())
        yield (
            f"Different tasks are called {name}, and nothing is compared or averaged across them: {listed}. "
            "Tasks of your own get a name by dataset.name=NAME."
        )


Measure = Callable[[Mapping[str, Any], Iterable[SessionRecord]], Mapping[str, Any] | None]
"""The metrics of sessions, by the content of a config.yaml; None if its protocol or an option of it is not known."""
ADDED = ("retries", "rate_limited", "cached_replies", "wall_s")
PAID = ("cost_usd", "spent_usd")


def pool_repeats(cells: Sequence[LoadedCell], options: Options, measure: Measure) -> list[LoadedCell]:
    """The entrants: each group of repeats as one cell in the place of its first, and every other cell as it is."""
    first = {group[0].folder: group for group in repeats_in(cells, options)}
    later = {cell.folder for group in first.values() for cell in group[1:]}
    found: list[LoadedCell] = []
    for cell in (cell for cell in cells if cell.folder not in later):
        entrant = _pooled(first[cell.folder], measure) if cell.folder in first else None
        found += [entrant] if entrant is not None else first.get(cell.folder, [cell])
    return found


def repeats_in(cells: Sequence[LoadedCell], options: Options) -> list[list[LoadedCell]]:
    """The groups of two or more cells that differ in the seed, or that of the agenda, alone; by seed.

    Cells of the same seeds that nothing else tells apart stay apart: it is not known which of them is meant.
    """
    alike: dict[Hashable, list[LoadedCell]] = defaultdict(list)
    for cell in cells:
        if cell.protocol == STOPPED:  # each ended at tasks of its own
            continue
        settings, pool = (
            settings_text(without_seed(cell.config), options),
            tags_in(cell.folder).get("codechat.pool_hash", ""),
        )
        rescored = RESCORED in cell.config
        alike[cell.protocol, cell.model, cell.dataset, cell.agenda, settings, pool, rescored].append(cell)
    groups = [group for members in alike.values() for group in _by_tag(members)]
    return [
        sorted(group, key=lambda cell: (cell.draw, cell.seed))
        for group in groups
        if 1 < len(group) == len({(cell.seed, cell.draw) for cell in group})
    ]


def _by_tag(cells: Sequence[LoadedCell]) -> list[list[LoadedCell]]:
    """Told apart by what only their tags say, such as the version of the rules; cells without a tag belong to all."""
    tags = [tags_in(cell.folder).get(GROUP_TAG, "") for cell in cells]
    known = {tag for tag in tags if tag}
    if len(known) < 2:
        return [list(cells)]
    return [[cell for cell, own in zip(cells, tags, strict=True) if own == tag] for tag in known]


def _pooled(group: Sequence[LoadedCell], measure: Measure) -> LoadedCell | None:
    """The entrant of some repeats, measured over all their sessions; None if nothing can measure them."""
    first = group[0]
    if any(cell.measures is None for cell in group):
        return None
    measured = measure(first.config, (session for cell in group for session in cell.sessions()))
    if measured is None:
        return None
    every = [cell.metrics for cell in group]
    metrics = {**measured, **{key: sum(each.get(key) or 0 for each in every) for key in ADDED}}
    metrics |= {key: _dollars([each.get(key) or {} for each in every]) for key in PAID}
    for key in (DECIDED, REPLIES):
        if all(key in each for each in every):
            metrics[key] = {name: sum(each[key][name] for each in every) for name in every[0][key]}
    metrics |= {key: every[0][key] for key in (LOADED, FIELD) if key in every[0]}
    checked = chapter_of(first.protocol).checked(metrics, first.folder / "metrics.json")
    turns = max(cell.turns for cell in group)
    return replace(first, metrics=dict(checked), turns=turns, edited="", repeats=tuple(group))


def _dollars(costs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The sums by payer; None where a cell's is not known."""
    found: dict[str, float | None] = {}
    for payer in dict.fromkeys(payer for each in costs for payer in each):
        amounts = [each[payer] for each in costs if payer in each]
        known = [amount for amount in amounts if amount is not None]
        found[payer] = sum(known) if len(known) == len(amounts) else None
    return found


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
            cell, variant=", ".join(words.values()), differences=words, setup=_setup_of(config, options)
        )
        for cell, words, config in zip(cells, found, configs, strict=True)
    }


def _setup_of(config: Mapping[str, Any], options: Options) -> str:
    """All that can change a result but the model and the dataset, as a text to compare."""
    return settings_text(config, options, lambda key: key.partition(".")[0] not in OWN)


def _is_cell(path: Path) -> bool:
    return (path / "config.yaml").is_file()


def _load(folder: Path) -> LoadedCell:
    config, metrics = _mapping(folder / "config.yaml"), _mapping(folder / "metrics.json")
    first = next(read_sessions(folder / "sessions.jsonl"), None)
    if first is None:
        raise UserError(f"{folder / 'sessions.jsonl'} holds no session", "run the cell again, or leave its folder out")
    said = measures_in(metrics)
    protocol = said.protocol if said is not None else first.protocol  # that measures as another stands in its chapter
    chapter = chapter_of(protocol)
    measures = said or chapter.measures
    if measures is not None:
        metrics = dict(chapter.checked(metrics, folder / "metrics.json"))
    choices = config.get("choices") or {}
    judge = config.get("judge") or {}
    series = measures.series if measures is not None else ()
    ends = [each.first_turn + len(value_of(metrics, each) or ()) for each in series]  # turn 0 included
    recorded, model = config.get(RECORDED), config.get("model") or {}
    replays = recorded and first.model == model.get(
        "kind"
    )  # recorded replies, held again: they keep their model's name
    dataset = config.get("dataset") or {}
    kept = dataset_in(folder)
    own_tasks = str(dataset.get("path", "")) if dataset.get("kind") == "jsonl" else ""
    return LoadedCell(
        folder=folder,
        cell_id=first.cell_id,
        config=config,
        metrics=metrics,
        model=f"{recorded}{REPLAYED}" if replays else first.model,
        dataset=first.dataset,
        protocol=protocol,
        agenda=str(choices.get("agenda", "agenda")) if first.agenda else "",
        turns=max(ends, default=1),
        seed=first.seed,
        judge=str(choices.get("judge", judge.get("kind", "judge"))),
        measures=measures,
        content=kept.get("content_hash") or own_tasks,  # older cells kept no content
        departure=kept.get("departure", ""),
        edited=edited(folder),
    )


def _mapping(path: Path) -> dict[str, Any]:
    """A JSON or YAML file that holds a mapping."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else from_yaml(text)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "a finished cell has " + ", ".join(FILES)) from error
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} is damaged: {str(error).splitlines()[0]}", ANEW) from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: it holds no mapping", ANEW)
    return content
