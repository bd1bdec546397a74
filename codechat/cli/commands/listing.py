"""`codechat list [GROUP]` and `--help`: every option with its one-line description."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.base.config import Config
from codechat.base.environment import conf_folders
from codechat.base.errors import UserError, nearest
from codechat.base.registry import Registry
from codechat.cli.app import COMMANDS
from codechat.cli.terminal import SAMPLES_MEANING, out, plain_table
from codechat.datasets.importing import FORMATS
from codechat.models import MODELS
from codechat.models.roles import presets_in
from codechat.run.construct.recipe import RECIPES, ROOT
from codechat.run.extensions import Listing, extensions
from codechat.run.launchers import LAUNCHERS
from codechat.run.run import MISTAKE
from codechat.run.settings.compose import CELL, PROMPTS, SAMPLES, compose_values, presets_of
from codechat.run.settings.config import GROUPS, CellConfig
from codechat.sandbox.suites import SUITES

LISTED: Mapping[str, Registry[Any, Any]] = {
    **GROUPS, LAUNCHERS.group: LAUNCHERS, RECIPES.group: RECIPES, SUITES.group: SUITES
}  # fmt: skip
SHOWN = (*GROUPS, LAUNCHERS.group, RECIPES.group)
NOT_IN_CELLS = {
    RECIPES.group: "how `codechat construct recipe=…` makes tasks",
    LAUNCHERS.group: "where the cells of a sweep run, and how many at once; in no cell's config or id",
    SUITES.group: "the kinds of tests that a row of dataset=jsonl can name: suite: {kind: …}",
}
"""Descriptions of the groups that are not in a cell's config."""


def options_of(group: str) -> dict[str, str]:
    """The options of a config group with their one-line descriptions: registered kinds and presets."""
    registry = LISTED[group]
    options = {component.name: component.summary for component in registry}
    for path in sorted(path for folder in conf_folders() for path in (folder / group).glob("*.yaml")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        if first.startswith("#"):
            options[path.stem] = first.lstrip("# ").rstrip(".")
        else:
            options.setdefault(path.stem, "")
    return dict(sorted(options.items()))


def list_components(arguments: list[str]) -> int:
    """Print the groups, or one group's options and the keys of each of its kinds, or a topic of a study.

    A topic that belongs to a group, such as `instructions`, takes settings.
    """
    settings, topics = [word for word in arguments if "=" in word], extensions().topics
    if len(arguments) == 1 and arguments[0] in topics.keys() - LISTED.keys():
        return _print_listing(topics[arguments[0]](None))
    if len(arguments) - len(settings) > 1:
        raise UserError("list takes one group at most", f"one of {', '.join(LISTED)}")
    if settings:
        if arguments[0] not in topics.keys() & LISTED.keys():
            able = " or ".join(sorted(topics.keys() & LISTED.keys()))
            raise UserError(f"list takes settings only for {able}", "codechat list GROUP GROUP.path=FILE")
        return _print_listing(topics[arguments[0]](compose_values(settings)[0]))
    if not arguments:
        for group in SHOWN:
            _print_options(group)
        return 0
    group = arguments[0]
    if group not in LISTED:
        raise UserError(f"there is no group '{group}'", nearest(group, (*LISTED, *topics)))
    _print_options(group)
    models: dict[type[Config], list[str]] = {}
    for component in LISTED[group]:
        models.setdefault(component.config, []).append(component.name)
    for model, names in models.items():
        out.print(f"\n[bold]keys of {group}={'|'.join(names)}[/bold]")
        composed = _composed(group, names[0]) if any(presets_in(model)) else {}
        out.print(_table((f"{group}.{key}", default, text) for key, default, text in _fields(model, composed)))
    if group in topics:
        _print_listing(topics[group](None))
    return 0


def _composed(group: str, name: str) -> Mapping[str, Any]:
    """The values of an option of a group, with the models of its roles."""
    values, _ = compose_values([f"{group}={name}"], ROOT if group == RECIPES.group else CELL)
    found: Mapping[str, Any] = values[group]
    return found


def _print_listing(listing: Listing) -> int:
    """Print the sections of a topic. Returns the exit status."""
    for section in listing.sections:
        if section.heading:
            gap = "" if section.words.startswith(":") else " "
            out.print(f"\n[bold]{escape(section.heading)}[/bold]{gap}{escape(section.words)}", highlight=False)
        if section.columns:
            table = plain_table(*section.columns)
            for row in section.rows:
                table.add_row(*map(escape, row))
            out.print(table)
        elif section.rows:
            out.print(_explained((name, text) for name, text in section.rows))
        for line in section.lines:
            out.print(line, markup=False)
    return MISTAKE if listing.faulty else 0


def _print_options(group: str) -> None:
    out.print(
        f"\n[bold]{group}[/bold]: {NOT_IN_CELLS.get(group) or CellConfig.whole().model_fields[group].description}"
    )
    out.print(_table((name, "", text) for name, text in options_of(group).items()))


def _fields(model: type[Config], values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """The keys below a config, with their defaults and descriptions; `values` has the models of its roles."""
    roles = dict(presets_in(model))
    for name, field in model.model_fields.items():
        kind, inner = field.annotation, values.get(name)
        if name in roles and isinstance(inner, Mapping):
            yield prefix + name, f"model={roles[name]}", field.description or ""
            for key, default, text in _fields(MODELS[str(inner[MODELS.key])].config, {}, f"{prefix}{name}."):
                option = key.removeprefix(f"{prefix}{name}.")
                yield key, _show(inner[option]) if option in inner else default, text
        elif isinstance(kind, type) and issubclass(kind, Config):
            if name == PROMPTS and (presets := presets_of(str(model.model_fields["kind"].default))):
                yield prefix + name, "", f"all prompts at once: {' or '.join(presets)}"
            yield from _fields(kind, inner if isinstance(inner, Mapping) else {}, f"{prefix}{name}.")
        else:
            default = "required" if field.is_required() else _show(field.get_default(call_default_factory=True))
            yield prefix + name, default, field.description or ""


def _show(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _table(rows: Any) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


USAGE = {
    "[group=option …] [key=value …]": "run one cell (no arguments: the offline default)",
    "samples=3 …": "run a cell with three seeds, which reports pool",
    "-m key=a,b …": "run a sweep: one cell per combination",
    "-m +sweep=NAME": "run the recipe sweeps/NAME.yaml",
    "-m … launcher=joblib|slurm|ray": "run its cells at once, here or on a cluster",
    "--cfg […]": "show the composed config and run nothing",
    "COMMAND …": "one of the commands below",
}
ENDING = """
The same command run again resumes: it does only what is missing.
Exit status: 0 done, 1 bug, 2 your mistake, 3 too many errored sessions or a budget reached, 130 interrupted.
"""
WIDEST = 50
"""Characters of a command or a usage in a line."""


def print_help() -> int:
    """Print usage, the commands, the groups with their options, and the fixed keys."""
    out.print("[bold]codechat[/bold]: does a model keep code working while a developer keeps asking for changes?\n")
    out.print(_explained((f"python -m codechat {words}", meaning) for words, meaning in USAGE.items()))
    out.print(ENDING)
    out.print("[bold]Commands[/bold]")
    formats = "|".join(each.name for each in FORMATS)
    lines = ((f"{name} {each.usage.replace('FORMAT', formats)}", each.summary) for name, each in COMMANDS.items())
    out.print(_explained(lines))
    out.print("\n[bold]Groups[/bold] (group=option; `list GROUP` describes them and their keys)")
    out.print(_explained((group, ", ".join(options_of(group))) for group in SHOWN))
    out.print("\n[bold]Keys[/bold]")
    own = [row for row in _fields(CellConfig.whole(), {}) if row[0].partition(".")[0] not in GROUPS]
    out.print(_table([*own, (SAMPLES, "1", SAMPLES_MEANING)]))
    return 0


def _explained(rows: Iterable[tuple[str, str]]) -> Table:
    """Words and their meaning, in two columns that wrap."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
    table.add_column(style="cyan", max_width=WIDEST)
    table.add_column()
    for words, meaning in rows:
        table.add_row(escape(words), escape(meaning))
    return table
