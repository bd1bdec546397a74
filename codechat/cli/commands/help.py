"""`--help`."""

from collections.abc import Mapping

from rich.markup import escape

from codechat.cli.command import Command
from codechat.cli.commands.listing import fixed_keys, options_of
from codechat.cli.terminal import out
from codechat.engine.config import GROUPS
from codechat.launchers import LAUNCHERS

USAGE = """\
[bold]codechat[/bold]: does a model keep code working while a developer keeps asking for changes?

  python -m codechat \\[group=option ...] \\[key=value ...]     run one cell (no arguments: the offline default)
  python -m codechat samples=3 ...                           run a cell with three seeds, which reports pool
  python -m codechat -m key=a,b ...                          run a sweep: one cell per combination
  python -m codechat -m +sweep=NAME                          run the recipe sweeps/NAME.yaml
  python -m codechat -m … launcher=joblib|slurm|ray          run its cells at once, here or on a cluster
  python -m codechat --cfg \\[...]                            show the composed config and run nothing
  python -m codechat COMMAND …                               one of the commands below

The same command run again resumes: it does only what is missing.
Exit status: 0 done, 1 bug, 2 your mistake, 3 too many errored sessions or a budget reached, 130 interrupted.
"""


def print_help(commands: Mapping[str, Command]) -> int:
    """Print usage, the commands, the groups with their options, and the fixed keys."""
    out.print(USAGE)
    out.print("[bold]Commands[/bold]")
    for name, command in commands.items():
        words = escape(f"{name} {command.usage}")
        out.print(f"  [cyan]{words:<48}[/cyan] {command.summary}")
    out.print()
    out.print("[bold]Groups[/bold] (group=option; `list GROUP` describes them and their keys)")
    for group in (*GROUPS, LAUNCHERS.group):
        out.print(f"  [cyan]{group:<13}[/cyan] {', '.join(options_of(group))}")
    out.print("\n[bold]Keys[/bold]")
    out.print(fixed_keys())
    return 0
