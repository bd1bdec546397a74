"""Finished cells, read from their folders: the input of every table, figure and page.

Datasets of one name with several contents get a name each, and cells that differ in the seed alone become one entrant.
What sets cells apart is given in `key=value` words of the command line, as few as possible.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from codechat.base.config import Config, is_identity, part_of
from codechat.base.environment import data_folder
from codechat.base.errors import UserError
from codechat.base.files import content_hash, from_yaml
from codechat.base.records import GROUP_TAG, SessionRecord, dataset_in, read_sessions, tags_in
from codechat.base.seal import edited
from codechat.base.texts import read_json
from codechat.report.chapters import chapter_of
from codechat.report.comparison import REPLAYED, RESCORED, LoadedCell
from codechat.report.metrics.agents import AgentSums
from codechat.report.metrics.counts import DECIDED, EXAMINED, LOADED, REPLIES, UNREAD, judged_in, unreadable_by_role
from codechat.report.metrics.measures import FIELD, infinite_in, measures_in, value_of
from codechat.report.metrics.statistics import STOPPED

HASH = re.compile(r"[0-9a-f]{64}")
PARTS = ("part", "level")  # options by which a dataset has several contents
FILES = ("config.yaml", "metrics.json", "sessions.jsonl")
ANEW = "run the cell again: it is rewritten"
ADDED = ("retries", "rate_limited", "cached_replies", "wall_s")
PAID = ("cost_usd", "spent_usd")
Measure = Callable[[Mapping[str, Any], Iterable[SessionRecord]], Mapping[str, Any] | None]
"""The metrics of sessions, by the content of a config.yaml; None if the protocol or an option of it is unknown."""
Options = Callable[[str, Mapping[str, Any]], type[Config] | None]
"""The option model of a config's part: `""` is the whole, `model` a group; None if it is unknown.

The model says which options can change a result. Without a model, every option counts.
"""
LONGEST = 40
UNNAMED = {"model", "protocol", "agenda", "dataset"}  # groups that are left out of a key
PROMPTS = ".prompts."
# Options that change no result by themselves, but select the tasks.
SELECTION = {"dataset.limit", "dataset.tasks", "dataset.languages", "dataset.kind", "dataset.build"}
CHOICES = "choices"  # of config.yaml: the chosen option of every group
RECORDED = "recorded_model"  # of a replaying cell's config.yaml: the model whose replies it holds
OWN = {"model", "dataset"}  # groups in which the cells of one comparison may differ
SEED = "seed"


class Named(NamedTuple):
    """A cell by its model and dataset, the content of its config.yaml, and its id."""

    model: str
    dataset: str
    config: Mapping[str, Any]
    cell_id: str = ""


def load_cells(
    folders: Sequence[Path], options: Options = lambda *_: None, measure: Measure | None = None
) -> tuple[LoadedCell, ...]:
    """The finished cells of the folders, by dataset, model, agenda, turns and seed; each once.

    Only `options` that can change a result are named in a cell's variant. With `measure`, cells that differ in the seed
    alone are pooled; then no variant names a seed. Raises `UserError` if a folder holds no finished cell, a file cannot
    be read or is not what the run wrote, or two folders hold the same cell.
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
    for cell in cells:  # a cell given twice would count twice; a rescored cell differs from the recorded one
        other = seen.setdefault((cell.cell_id, cell.config.get(RESCORED)), cell)
        if other is not cell:
            raise UserError(f"{other.folder} and {cell.folder} hold the same cell", "leave one of them out")
    if measure is not None:
        cells = pool_repeats(cells, options, measure)
    named: dict[Path, LoadedCell] = {}
    for protocol in {cell.protocol for cell in cells}:
        named |= _named([cell for cell in cells if cell.protocol == protocol], options)
    return tuple(named[cell.folder] for cell in cells)


def cell_folders(folder: Path) -> tuple[list[Path], list[Path]]:
    """The finished and the unfinished cells at a path, which is a cell's folder or contains such folders. Raises
    `UserError` if there are none."""
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", "give the folder of a cell, or one that holds such folders")
    places = [folder] if (folder / FILES[0]).is_file() else sorted(folder.iterdir())
    cells = [path for path in places if (path / FILES[0]).is_file()]
    if not cells:
        raise UserError(f"{folder} holds no cell", "a cell's folder has a config.yaml and a sessions.jsonl")
    finished = [path for path in cells if all((path / name).is_file() for name in FILES)]
    return finished, [path for path in cells if path not in finished]


def _load(folder: Path) -> LoadedCell:
    config, metrics = _mapping(folder / "config.yaml"), _mapping(folder / "metrics.json")
    first = next(read_sessions(folder / "sessions.jsonl"), None)
    if first is None:
        raise UserError(f"{folder / 'sessions.jsonl'} holds no session", "run the cell again, or leave its folder out")
    described = measures_in(metrics)
    protocol = described.protocol if described is not None else first.protocol  # cells can measure as another protocol
    chapter = chapter_of(protocol)
    measures = described or chapter.measures
    if measures is not None:
        metrics = dict(chapter.checked(metrics, folder / "metrics.json"))
    choices, judge, dataset, model = (config.get(name) or {} for name in (CHOICES, "judge", "dataset", "model"))
    series = measures.series if measures is not None else ()
    ends = [each.first_turn + len(value_of(metrics, each) or ()) for each in series]  # turn 0 included
    recorded, kept = config.get(RECORDED), dataset_in(folder)
    replays = recorded and first.model == model.get("kind")  # recorded replies keep the name of their model
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
        content = _finite(text) if path.suffix == ".json" else from_yaml(text)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "a finished cell has " + ", ".join(FILES)) from error
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} is damaged: {str(error).splitlines()[0]}", ANEW) from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is damaged: it holds no mapping", ANEW)
    return content


def _finite(text: str) -> Any:
    """The value of a JSON text without NaN and infinity, which no figure can show. Raises `ValueError`."""
    value = read_json(text)
    for place, number in infinite_in(value):
        raise ValueError(f"it has {number} at '{place}', which is no finite number")
    return value


def tell_apart(cells: Sequence[LoadedCell]) -> list[LoadedCell]:
    """The cells, with a mark after the dataset's name if it stands for several contents, or for other tasks.

    The mark is the part of the dataset if this part has one content, and else the beginning of the content's hash.
    Raises `UserError` if several names stand for one content, whose tasks would count several times.
    """
    names: dict[str, LoadedCell] = {}
    contents: dict[tuple[str, ...], set[str]] = defaultdict(set)
    parts = []
    for cell in cells:
        other = names.setdefault(cell.content or cell.dataset, cell)
        if other.dataset != cell.dataset:
            raise UserError(
                f"{other.folder} and {cell.folder} hold the same tasks under two names, {other.dataset} and "
                f"{cell.dataset}: they would count twice",
                "leave one of them out, or run it again with the other's dataset.name: no model is called",
            )
        values = cell.config.get("dataset") or {}
        part = ", ".join(str(values[name]) for name in PARTS if values.get(name) is not None)
        contents[(cell.dataset,)].add(cell.content)
        contents[cell.dataset, part].add(cell.content)
        parts.append(part)
    found = []
    for cell, part in zip(cells, parts, strict=True):
        mark = cell.content[:8] if HASH.fullmatch(cell.content) else cell.content or "content unknown"
        if cell.departure:
            mark = f"{mark}, not as published"
        elif part and len(contents[cell.dataset, part]) == 1:
            mark = part
        marked = cell.departure or len(contents[(cell.dataset,)]) > 1
        found.append(replace(cell, dataset=f"{cell.dataset} ({mark})", mark=mark) if marked else cell)
    return found


def content_notes(cells: Sequence[LoadedCell]) -> Iterator[str]:
    """A sentence for every cell whose files were edited, and for every name that stands for several contents."""
    yield from (f"{part.folder}: {part.edited}." for cell in cells for part in cell.parts if part.edited)
    named: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.mark:
            named[cell.dataset.removesuffix(f" ({cell.mark})")][cell.dataset].append(cell.folder.name)
    for name, found in named.items():
        if len(found) > 1:  # a single one is a departure, which is in the cell's caution
            listed = "; ".join(f"{dataset}: {', '.join(folders)}" for dataset, folders in found.items())
            yield (
                f"Different tasks are called {name}, and nothing is compared or averaged across them: {listed}. "
                "Tasks of your own get a name by dataset.name=NAME."
            )


def pool_repeats(cells: Sequence[LoadedCell], options: Options, measure: Measure) -> list[LoadedCell]:
    """The entrants: each group of repeats as one cell at the place of its first, and every other cell unchanged."""
    first = {group[0].folder: group for group in repeats_in(cells, options)}
    later = {cell.folder for group in first.values() for cell in group[1:]}
    found: list[LoadedCell] = []
    for cell in (cell for cell in cells if cell.folder not in later):
        entrant = _pooled(first[cell.folder], measure) if cell.folder in first else None
        found += [entrant] if entrant is not None else first.get(cell.folder, [cell])
    return found


def repeats_in(cells: Sequence[LoadedCell], options: Options) -> list[list[LoadedCell]]:
    """The groups of two or more cells that differ only in the seed, or the agenda's seed; by seed. Cells with equal
    seeds are not pooled, because repeats are ambiguous then."""
    alike: dict[Hashable, list[LoadedCell]] = defaultdict(list)
    for cell in cells:
        if cell.protocol != STOPPED:  # cells with `stop.*` each ended at different tasks
            settings = settings_text(without_seed(cell.config), options)
            place = (cell.protocol, cell.model, cell.dataset, cell.agenda, settings, RESCORED in cell.config)
            alike[place, tags_in(cell.folder).get("codechat.pool_hash", "")].append(cell)
    groups = [group for members in alike.values() for group in _by_tag(members)]
    return [
        sorted(group, key=lambda cell: (cell.draw, cell.seed))
        for group in groups
        if 1 < len(group) == len({(cell.seed, cell.draw) for cell in group})
    ]


def _by_tag(cells: Sequence[LoadedCell]) -> list[list[LoadedCell]]:
    """Cells separated by their group tags, such as the version of the rules; a cell without a tag belongs to all."""
    tags = [tags_in(cell.folder).get(GROUP_TAG, "") for cell in cells]
    known = {tag for tag in tags if tag}
    if len(known) < 2:
        return [list(cells)]
    return [[cell for cell, other in zip(cells, tags, strict=True) if other == tag] for tag in known]


def _pooled(group: Sequence[LoadedCell], measure: Measure) -> LoadedCell | None:
    """The entrant of some repeats, measured over all their sessions; None if the cells cannot be measured."""
    first, every = group[0], [cell.metrics for cell in group]
    if any(cell.measures is None for cell in group):
        return None
    agents = AgentSums()
    measured = measure(first.config, (agents.add(session) for cell in group for session in cell.sessions()))
    if measured is None:
        return None
    metrics = {
        **measured,
        **agents.content(first.seed),
        **{key: sum(each.get(key) or 0 for each in every) for key in ADDED},
    }
    metrics |= {key: _dollars([each.get(key) or {} for each in every]) for key in PAID}
    for key in (DECIDED, REPLIES):
        if all(key in each for each in every):
            names = dict.fromkeys(name for each in every for name in each[key])
            metrics[key] = {name: sum(each[key].get(name, 0) for each in every) for name in names}
    if any(UNREAD in each for each in every):
        metrics[UNREAD] = unreadable_by_role(
            Counter(each for cell in group for session in cell.sessions() for each in judged_in(session))
        )
    metrics |= {key: every[0][key] for key in (LOADED, FIELD, EXAMINED) if key in every[0]}
    checked = dict(chapter_of(first.protocol).checked(metrics, first.folder / "metrics.json"))
    return replace(first, metrics=checked, turns=max(cell.turns for cell in group), edited="", repeats=tuple(group))


def _dollars(costs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """The sums by payer; None if the cost of a cell is unknown."""
    found: dict[str, float | None] = {}
    for payer in dict.fromkeys(payer for each in costs for payer in each):
        amounts = [each[payer] for each in costs if payer in each]
        known = [amount for amount in amounts if amount is not None]
        found[payer] = sum(known) if len(known) == len(amounts) else None
    return found


def _named(cells: Sequence[LoadedCell], options: Options) -> dict[Path, LoadedCell]:
    """The cells of one protocol by folder, each with its variant; seeds are left out if some cells are pooled."""
    pooled = any(cell.repeats for cell in cells)
    configs = [without_seed(cell.config) if pooled else cell.config for cell in cells]
    rows = [Named(cell.model, cell.dataset, config, cell.cell_id) for cell, config in zip(cells, configs, strict=True)]
    found: dict[Path, LoadedCell] = {}
    for cell, words, config in zip(cells, differences(rows, options), configs, strict=True):
        setup = settings_text(config, options, lambda key: key.partition(".")[0] not in OWN)
        found[cell.folder] = replace(cell, variant=", ".join(words.values()), differences=words, setup=setup)
    return found


def differences(cells: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """For each cell the settings that vary among the report's cells, in words by the option's key.

    An option of model or dataset counts if it varies among the cells of one model and dataset. The keys within an
    option are named only if two cells choose the same option of that group: `agenda=escalating` implies its
    distribution. Cells that are still equal get a further word, such as a file's name.
    """
    settings = [_settings(cell.config, options) for cell in cells]
    # by key the datasets among whose cells it varies
    varying = {
        key: {name for (*_, name), group in _groups(key, cells, settings).items() if _varies(key, group)}
        for found in settings
        for key in found
    }
    named = []
    for cell, found in zip(cells, settings, strict=True):
        shown = {
            key: value
            for key, value in found.items()
            if varying[key] and (not key.startswith("dataset.") or cell.dataset in varying[key])
        }
        named.append(words_of(shown))
    for more in (_rescored, _placed, _numbered):
        twins: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for number, (cell, words) in enumerate(zip(cells, named, strict=True)):
            twins[cell.model, cell.dataset, ", ".join(words.values())].append(number)
        for numbers in twins.values():
            if len(numbers) > 1:
                for number, words in zip(numbers, more([cells[each] for each in numbers], options), strict=True):
                    named[number].update(words)
    return named


def word(key: str, value: Any) -> str:
    """A setting as a word: `judge=llm`, `temperature=0.7`; a long text as the beginning of its hash."""
    group, _, name = key.partition(".")
    text = f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
    shown = text if len(text) <= LONGEST and text.isprintable() else f"#{content_hash(text)[:6]}"
    return f"{name if name and group in UNNAMED else key}={shown}"


def words_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """The words of a cell's settings, by their keys; prompts of one preset are one word: `prompts=plain`."""
    presets = {key: _presets().get(str(settings[key]).strip()) for key in settings if PROMPTS in key}
    shown = {**settings, **{key: preset for key, preset in presets.items() if preset}}
    for owner in {key.partition(PROMPTS)[0] for key in presets}:
        keys = [key for key in presets if key.startswith(owner + PROMPTS)]
        preset = presets[keys[0]]
        if len(keys) > 1 and preset and all(presets[key] == preset for key in keys):
            shown = {key: value for key, value in shown.items() if key not in keys} | {f"{owner}.prompts": preset}
    return {key: word(key, value) for key, value in shown.items()}


@cache
def _presets() -> Mapping[str, str]:
    """The names of codechat's prompt presets, by the prompts' texts."""
    files = (data_folder("conf") / "prompts").glob("*/*/*.md")
    return {path.read_text(encoding="utf-8").strip(): path.parent.name for path in files}


def settings_text(config: Mapping[str, Any], options: Options, wanted: Callable[[str], bool] = lambda key: True) -> str:
    """All wanted keys that can change a result, as a text to compare."""
    found = {key: _text(value) for key, value in _settings(config, options).items() if wanted(key)}
    return json.dumps(found, sort_keys=True)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def without_seed(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config without its seed and without the agenda's seed."""
    found = {name: value for name, value in config.items() if name != SEED}
    agenda = config.get("agenda")
    return {**found, "agenda": {**agenda, SEED: None}} if isinstance(agenda, Mapping) else found


def _groups(
    key: str, cells: Sequence[Named], settings: Sequence[Mapping[str, Any]]
) -> Mapping[tuple[Hashable, ...], list[Mapping[str, Any]]]:
    """The settings of cells among which a key can vary: by dataset, and by model if the key is about it."""
    own = key.partition(".")[0] in OWN
    groups: dict[tuple[Hashable, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for cell, found in zip(cells, settings, strict=True):
        groups[(cell.model, cell.dataset) if own else (cell.dataset,)].append(found)
    return groups


def _varies(key: str, settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether cells differ in a key; a key within an option is compared among the cells that chose this option. A
    further model is chosen by its name, then by its kind: models of two kinds differ in all that one of them has."""
    group, owner = key.partition(".")[0], key.rpartition(".")[0]
    values: dict[tuple[str, ...], set[str | None]] = defaultdict(set)
    for found in settings:
        owners = [] if key in (group, "agenda.turns") else [group]
        for place in (owner, owner.rpartition(".")[0]):
            if f"{place}.name" in found and f"{place}.kind" in found and "." in place:
                names = [f"{place}.name", f"{place}.kind"]
                owners += names[: names.index(key)] if key in names else names
        option = tuple(_text(found[name]) for name in owners if name in found)
        values[option].add(_text(found[key]) if key in found else None)
    return any(len(seen) > 1 for seen in values.values())


def _settings(config: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Everything in a config that can change a result: the chosen option of each group, then single keys."""
    choices = config.get(CHOICES) or {}
    chosen = {
        group: str(choices[group])
        for group, values in config.items()
        if group in choices
        and isinstance(values, Mapping)
        and _counts(options("", config), group)
        and _counts(options(group, values), "kind")
    }
    own = {name: value for name, value in config.items() if name not in (CHOICES, RESCORED, RECORDED)}
    return chosen | dict(_leaves("", own, options, None))


def _counts(model: type[Config] | None, name: str) -> bool:
    """Whether an option can change a result."""
    field = model.model_fields.get(name) if model is not None else None
    return field is None or is_identity(field)


def _leaves(
    prefix: str, values: Mapping[str, Any], options: Options, nested: type[Config] | None
) -> Iterator[tuple[str, Any]]:
    """Single keys; a mapping is one value if an option is declared as such. A missing option has its default."""
    place = "model" if _is_further(prefix.rstrip("."), values) else prefix.rstrip(".")
    model = options(place, values) or nested
    fields = model.model_fields if model is not None else {}
    later = {name: field.default for name, field in fields.items() if name not in values and prefix}
    plain = {name: value for name, value in later.items() if isinstance(value, bool | int | float | str | None)}
    for name, value in {**values, **plain}.items():
        key, field = prefix + name, fields.get(name)
        if not _counts(model, name) and key not in SELECTION:
            continue
        kind = field.annotation if field is not None else None
        inner = kind if isinstance(kind, type) and issubclass(kind, Config) else None
        if isinstance(value, Mapping) and (field is None or inner is not None or _is_further(key, value)):
            yield from _leaves(f"{key}.", value, options, inner)
        else:
            yield key, value


def _is_further(place: str, values: Mapping[str, Any]) -> bool:
    """Whether a role's model has the values at a place."""
    return "." in place and {"kind", "name"} <= values.keys()


def _rescored(twins: Sequence[Named], options: Options) -> list[dict[str, str]]:
    return [{RESCORED: "rescored"} if RESCORED in cell.config else {} for cell in twins]


def _placed(twins: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """Differing places of files and addresses of models; files by their names."""
    places: list[dict[str, str]] = []
    for cell in twins:
        groups = {name: values for name, values in cell.config.items() if isinstance(values, Mapping)}
        models = {name: model for name, values in groups.items() if (model := options(name, values)) is not None}
        places.append({
            f"{group}.{name}": value
            for group, model in models.items()
            for name, field in model.model_fields.items()
            if part_of(field) == "place" and isinstance(value := groups[group].get(name), str)
        })  # fmt: skip
    keys = dict.fromkeys(key for each in places for key in each)
    differing = [key for key in keys if len({each.get(key) for each in places}) > 1]
    return [
        {key: word(key, each[key] if "://" in each[key] else Path(each[key]).name) for key in differing if key in each}
        for each in places
    ]


def _numbered(twins: Sequence[Named], options: Options) -> list[dict[str, str]]:
    """The beginnings of the ids, with which the folders' names end."""
    return [{"cell_id": f"cell={cell.cell_id[:8]}"} for cell in twins]
