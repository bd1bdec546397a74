"""`codechat list [GROUP]` and the groups in `--help`: every option with its one-line description."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.markup import escape
from rich.table import Table

from codechat.cli.commands.pool_table import print_pool
from codechat.cli.samples import KEY as SAMPLES
from codechat.cli.samples import MEANING
from codechat.cli.terminal import out
from codechat.config import Config
from codechat.engine.run import MISTAKE
from codechat.engine.settings.compose import compose_values
from codechat.engine.settings.config import GROUPS, CellConfig
from codechat.engine.settings.words import PROMPTS, presets_of
from codechat.environment import data_folder
from codechat.errors import UserError, nearest
from codechat.instructions import INSTRUCTIONS, WrongPool
from codechat.launchers import LAUNCHERS
from codechat.models import MODELS
from codechat.models.roles import presets_in
from codechat.registry import Registry
from codechat.suites import SUITES

LISTED: Mapping[str, Registry[Any, Any]] = {**GROUPS, LAUNCHERS.group: LAUNCHERS, SUITES.group: SUITES}
BESIDE = {
    LAUNCHERS.group: "where the cells of a sweep run, and how many at once; in no cell's config or id",
    SUITES.group: "the kinds of tests that a row of dataset=jsonl can name: suite: {kind: …}",
}
"""What the groups are that are no part of a cell's config."""


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

    `instructions` takes settings too, and shows what is understood of the pool that they name.
    """
    settings = [word for word in arguments if "=" in word]
    if len(arguments) - len(settings) > 1:
        raise UserError("list takes one group at most", f"one of {', '.join(LISTED)}")
    if settings:
        if arguments[0] != "instructions":
            raise UserError(
                "list takes settings only for the pool", "codechat list instructions instructions.path=FILE"
            )
        return list_pool(settings)
    if not arguments:
        for group in (*GROUPS, LAUNCHERS.group):
            _print_options(group)
        return 0
    group = arguments[0]
    if group not in LISTED:
        raise UserError(f"there is no group '{group}'", nearest(group, LISTED))
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


def list_pool(settings: list[str]) -> int:
    """Print what is understood of a pool, with all mistakes of its file. Returns the exit status."""
    values, _ = compose_values(settings)
    try:
        print_pool(INSTRUCTIONS.build(INSTRUCTIONS.validate(values["instructions"])))
    except WrongPool as wrong:
        print_pool(wrong.understood, wrong.mistakes)
        return MISTAKE
    return 0


def fixed_keys() -> Table:
    """The keys that belong to no group."""
    own = [row for row in _fields(CellConfig, {}) if row[0].partition(".")[0] not in GROUPS]
    return _table([*own, (SAMPLES, "1", MEANING)])


def _print_options(group: str) -> None:
    out.print(f"\n[bold]{group}[/bold]: {BESIDE.get(group) or CellConfig.model_fields[group].description}")
    out.print(_table((name, "", text) for name, text in options_of(group).items()))


def _composed(group: str, option: str) -> Mapping[str, Any]:
    """An option's values with the presets of its roles."""
    values: Mapping[str, Any] = compose_values([f"{group}={option}"])[0][group]
    return values


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
