"""`codechat list [GROUP]` and `--help`: every option with its one-line description."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.base.config import Config
from codechat.base.domain import CHANGES, SCOPES
from codechat.base.environment import data_folder
from codechat.base.errors import UserError, nearest
from codechat.base.registry import Registry
from codechat.cli.app import COMMANDS
from codechat.cli.terminal import out, plain_table
from codechat.cli.words import SAMPLES_MEANING
from codechat.datasets.importing import FORMATS
from codechat.models import MODELS
from codechat.models.roles import presets_in
from codechat.run.construct.config import ROOT
from codechat.run.construct.recipe import RECIPES
from codechat.run.launchers import LAUNCHERS
from codechat.run.run import MISTAKE
from codechat.run.settings.compose import CELL, compose_values
from codechat.run.settings.config import GROUPS, CellConfig
from codechat.run.settings.words import PROMPTS, SAMPLES, presets_of
from codechat.sandbox.languages import languages
from codechat.sandbox.suites import SUITES
from codechat.studies.multicodeif.constraints import constraint_types
from codechat.studies.refine.instructions import INSTRUCTIONS, Pool, WrongPool

LISTED: Mapping[str, Registry[Any, Any]] = {
    **GROUPS, LAUNCHERS.group: LAUNCHERS, RECIPES.group: RECIPES, SUITES.group: SUITES
}  # fmt: skip
SHOWN = (*GROUPS, LAUNCHERS.group, RECIPES.group)
BESIDE = {
    RECIPES.group: "how `codechat construct recipe=…` makes tasks",
    LAUNCHERS.group: "where the cells of a sweep run, and how many at once; in no cell's config or id",
    SUITES.group: "the kinds of tests that a row of dataset=jsonl can name: suite: {kind: …}",
}
"""Descriptions of the groups that are no part of a cell's config."""
CONSTRAINTS = "constraints"


def options_of(group: str) -> dict[str, str]:
    """The options of a config group with their one-line descriptions: registered kinds and presets."""
    registry = LISTED[group]
    options = {component.name: component.summary for component in registry}
    for path in sorted((data_folder("conf") / group).glob("*.yaml")):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        if first.startswith("#"):
            options[path.stem] = first.lstrip("# ").rstrip(".")
        else:
            options.setdefault(path.stem, "")
    return dict(sorted(options.items()))


def list_components(arguments: list[str]) -> int:
    """Print the groups, or one group's options and the keys of each of its kinds.

    `instructions` takes settings too, and shows the instructions of the pool that they name.
    """
    settings = [word for word in arguments if "=" in word]
    if arguments == [CONSTRAINTS]:
        return _list_constraints()
    if len(arguments) - len(settings) > 1:
        raise UserError("list takes one group at most", f"one of {', '.join(LISTED)}")
    if settings:
        if arguments[0] != "instructions":
            raise UserError(
                "list takes settings only for the pool", "codechat list instructions instructions.path=FILE"
            )
        return _list_pool(settings)
    if not arguments:
        for group in SHOWN:
            _print_options(group)
        return 0
    group = arguments[0]
    if group not in LISTED:
        raise UserError(f"there is no group '{group}'", nearest(group, (*LISTED, CONSTRAINTS)))
    _print_options(group)
    models: dict[type[Config], list[str]] = {}
    for component in LISTED[group]:
        models.setdefault(component.config, []).append(component.name)
    for model, names in models.items():
        out.print(f"\n[bold]keys of {group}={'|'.join(names)}[/bold]")
        composed = _composed(group, names[0]) if any(presets_in(model)) else {}
        out.print(_table((f"{group}.{key}", default, text) for key, default, text in _fields(model, composed)))
    if group == "instructions":
        print_pool(INSTRUCTIONS.build(INSTRUCTIONS.validate({"kind": "default"})))
    return 0


def _composed(group: str, name: str) -> Mapping[str, Any]:
    """The values of an option of a group, with the models of its roles."""
    values, _ = compose_values([f"{group}={name}"], ROOT if group == RECIPES.group else CELL)
    found: Mapping[str, Any] = values[group]
    return found


def _list_constraints() -> int:
    """Print the types of constraints: the form of an answer, examples, and what decides it in which languages."""
    for kind in constraint_types():
        read = [language.names[0] for language in languages() if kind.reads(language.names[0])]
        decider = "judge=llm, in any language" if kind.by == "judge" else f"a {kind.by}, for {', '.join(read)}"
        out.print(f"\n[bold]{kind.name}[/bold] ({kind.category})", highlight=False)
        rows = (("answer", kind.form), ("example", " or ".join(kind.examples)), ("decided by", decider))
        out.print(_explained(row for row in rows if row[1]))
    return 0


def _list_pool(settings: list[str]) -> int:
    """Print the readable instructions of a pool, with all mistakes of its file. Returns the exit status."""
    values, _ = compose_values(settings)
    try:
        print_pool(INSTRUCTIONS.build(INSTRUCTIONS.validate(values["instructions"])))
    except WrongPool as wrong:
        print_pool(wrong.understood, wrong.mistakes)
        return MISTAKE
    return 0


def _print_options(group: str) -> None:
    out.print(f"\n[bold]{group}[/bold]: {BESIDE.get(group) or CellConfig.whole().model_fields[group].description}")
    out.print(_table((name, "", text) for name, text in options_of(group).items()))


def _fields(model: type[Config], values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """The keys below a config, with their defaults and descriptions; `values` hold the models of its roles."""
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
            yield (
                prefix + name,
                "required" if field.is_required() else _show(field.get_default(call_default_factory=True)),
                field.description or "",
            )


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


def print_pool(pool: Pool, mistakes: Sequence[UserError] = ()) -> None:
    """Print the accepted instructions by kind, their distribution, the rejected ones, warnings, and mistakes."""
    accepted = sorted(pool.instructions, key=lambda each: (SCOPES.index(each.scope), CHANGES.index(each.change)))
    table = plain_table("", "scope", "change", "decided by", "instruction", "id")
    for number, each in enumerate(accepted, 1):
        by = "rules" if each.rule is not None else "LLM"
        table.add_row(str(number), each.scope, each.change, by, escape(each.text), each.id)
    out.print(table)
    ruled = sum(each.rule is not None for each in accepted)
    decided = f"decided by their rules: {ruled}; without a rule, for an LLM: {len(accepted) - ruled}"
    out.print(f"\n[bold]distribution[/bold] of {len(accepted)} accepted instructions ({decided})")
    out.print(_distribution(pool))
    if pool.others:
        out.print(f"\n[bold]for other languages[/bold] than Python alone: {len(pool.others)}")
        further = plain_table("languages", "scope", "change", "instruction", "id")
        for each in pool.others:
            languages_of = ", ".join(sorted(pool.languages[each.id]))
            further.add_row(escape(languages_of), each.scope, each.change, escape(each.text), each.id)
        out.print(further)
    if pool.rejected:
        out.print(f"\n[bold]rejected[/bold] by curation: {len(pool.rejected)}, never drawn")
        refused = plain_table("scope", "instruction", "why")
        for candidate in pool.rejected:
            refused.add_row(candidate.scope, escape(candidate.text), escape(candidate.reason))
        out.print(refused)
    if pool.warnings:
        out.print(f"\n[bold]warnings[/bold]: {len(pool.warnings)}")
        for warning in pool.warnings:
            out.print(warning, markup=False)
    if mistakes:
        out.print(f"\n[bold]mistakes[/bold]: {len(mistakes)}; no cell runs with this file until they are mended")
        for mistake in mistakes:
            out.print(str(mistake).replace("\n", "; "), markup=False)


def _distribution(pool: Pool) -> Table:
    cells = Counter((each.scope, each.change) for each in pool.instructions)
    table = plain_table("scope", *CHANGES, "all", "share")
    for scope in SCOPES:
        row = [cells[scope, change] for change in CHANGES]
        table.add_row(scope, *map(str, row), str(sum(row)), _share(sum(row), cells.total()))
    columns = [sum(cells[scope, change] for scope in SCOPES) for change in CHANGES]
    table.add_row("all", *map(str, columns), str(cells.total()), "")
    table.add_row("share", *(_share(count, cells.total()) for count in columns), "", "")
    return table


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "—"


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
    """Words and their meaning, each in a column that wraps, so that the other stays readable."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
    table.add_column(style="cyan", max_width=WIDEST)
    table.add_column()
    for words, meaning in rows:
        table.add_row(escape(words), escape(meaning))
    return table
