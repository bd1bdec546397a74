"""`--help`."""

from collections.abc import Iterable, Mapping

from rich.markup import escape
from rich.table import Table

from codechat.cli.command import Command
from codechat.cli.commands.listing import fixed_keys, options_of
from codechat.cli.terminal import out
from codechat.engine.settings.config import GROUPS
from codechat.importing import FORMATS
from codechat.launchers import LAUNCHERS

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


def print_help(commands: Mapping[str, Command]) -> int:
    """Print usage, the commands, the groups with their options, and the fixed keys."""
    out.print("[bold]codechat[/bold]: does a model keep code working while a developer keeps asking for changes?\n")
    out.print(_explained((f"python -m codechat {words}", meaning) for words, meaning in USAGE.items()))
    out.print(ENDING)
    out.print("[bold]Commands[/bold]")
    formats = "|".join(each.name for each in FORMATS)
    usages = {name: command.usage.replace("FORMAT", formats) for name, command in commands.items()}
    out.print(_explained((f"{name} {usages[name]}", command.summary) for name, command in commands.items()))
    out.print("\n[bold]Groups[/bold] (group=option; `list GROUP` describes them and their keys)")
    out.print(_explained((group, ", ".join(options_of(group))) for group in (*GROUPS, LAUNCHERS.group)))
    out.print("\n[bold]Keys[/bold]")
    out.print(fixed_keys())
    return 0


def _explained(rows: Iterable[tuple[str, str]]) -> Table:
    """What can be written, and what it means: each in a column that wraps, so that the other stays readable."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 2))
    table.add_column(style="cyan", max_width=WIDEST)
    table.add_column()
    for words, meaning in rows:
        table.add_row(escape(words), escape(meaning))
    return table
