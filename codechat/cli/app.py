"""The entry point: runs a command and reports its failures."""

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from codechat.base.environment import VERSION, collect_seldom, leave_uncollected, shell_command, silence
from codechat.base.errors import InfrastructureError, UserError, nearest
from codechat.base.texts import visible, writable
from codechat.cli.terminal import err, out

MISTAKE, FAILED, INTERRUPTED = 2, 3, 130


def entry() -> None:
    """The console script, and `python -m codechat`: the process ends with it."""
    with collect_seldom():
        status = main(sys.argv[1:])
        leave_uncollected()
    sys.exit(status)


def main(argv: Sequence[str]) -> int:
    """Run a command line; returns the exit status (contract, section 1). A bug raises."""
    silence(os.environ)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # print question marks for characters that its encoding lacks
            stream.reconfigure(errors="replace")
    try:
        return _dispatch(list(argv))
    except UserError as mistake:
        err.print(f"error: {mistake}", markup=False)
        return MISTAKE
    except InfrastructureError as failure:
        err.print(f"error: {failure}\nNothing that was finished is lost: run the same command again.", markup=False)
        return FAILED
    except KeyboardInterrupt:
        err.print("interrupted; the same command resumes it", markup=False)
        return INTERRUPTED


def _dispatch(argv: list[str]) -> int:
    if sys.flags.optimize > 1:
        problem = "Python runs without docstrings (-OO), and codechat describes its options by them"
        raise UserError(problem, "leave out -OO, and PYTHONOPTIMIZE=2")
    for word in argv:
        if writable(word) is not word:  # the system passes bytes that are no UTF-8 as halves of surrogate pairs
            raise UserError(f"'{visible(word)}' is not UTF-8", "give names and paths in UTF-8: records hold them")
    if any(flag in argv for flag in ("-h", "--help")):
        from codechat.cli.commands.listing import print_help

        return print_help()
    if "--version" in argv:
        out.print(f"codechat {VERSION}", markup=False)
        return 0
    if not argv or "=" in argv[0] or argv[0].startswith(("-", "+", "~")):
        return _run(argv)
    name = argv[0]
    if name not in COMMANDS:
        raise UserError(f"there is no command '{name}'", f"{nearest(name, COMMANDS)} (settings are written key=value)")
    module, _, function = COMMANDS[name].function.partition(":")
    status: int = getattr(importlib.import_module(f"codechat.cli.{module}"), function)(argv[1:])
    return status


class Command(NamedTuple):
    """A command other than a run. It is imported only when called, so that each loads only its own libraries."""

    function: str  # module:function within this room; it takes the words after the command and returns the exit status
    usage: str
    summary: str


COMMANDS = {
    "list": Command(
        "commands.listing:list_components",
        "[GROUP] [instructions.path=FILE]",
        "describe options and keys, or your pool",
    ),
    "verify": Command(
        "commands.verify:verify",
        "dataset=D [samples=FILE out=FILE]",
        "test EvalPlus-style samples, or the dataset's references; no model",
    ),
    "requirements": Command(
        "commands.verify:print_requirements",
        "dataset=D [versions=newest]",
        "what to install for the tests of tasks, as lines for pip (sandbox.python)",
    ),
    "report": Command(
        "commands.report:run_report",
        "runs=DIR[,DIR]|experiment=NAME [audit=DIR probe=DIR] out=DIR",
        "tables, figures and one page that compare cells",
    ),
    "plan": Command(
        "commands.plan:run_plan",
        "runs=DIR [difference=0.5 metric=mst tasks=N]",
        "from pilot cells: which differences so many tasks and samples detect, and what that costs",
    ),
    "construct": Command(
        "commands.construct:run_construct",
        "recipe=RECIPE out=DIR [seeds=FILE …]",
        "make tasks from seeds, by agents, tests and people",
    ),
    "rescore": Command(
        "commands.rescore:run_rescore", "run=DIR [judge=J] out=DIR", "test and judge recorded replies again"
    ),
    "probe": Command(
        "commands.probe:run_probe",
        "runs=DIR[,DIR] out=DIR [n=200 seed=0 from=all|base inputs=DIR]",
        "run passing code of finished cells on fresh valid inputs: changes that the tests do not see; no model",
    ),
    "audit": Command(
        "commands.audit:run_audit",
        "export|score …",
        "draw decisions to label (n=100, or as the paper: applicability=100 adherence=100); score labels",
    ),
    "upload": Command("commands.upload:upload", "run=DIR", "send a finished cell to MLflow"),
    "export": Command(
        "commands.export:run_export",
        "run=DIR|runs=DIR[,DIR] [probe=DIR] [format=inspect|evalplus turn=T] out=FILE",
        "the turns as Parquet or CSV, one a row; or a cell for Inspect's viewer or EvalPlus",
    ),
    "import": Command(
        "commands.importing:run_import",
        "format=FORMAT source=FILE out=FILE",
        "published completions as a sessions.jsonl for model=replay",
    ),
    "cells": Command(
        "sweep:run_cells", "file=FILE element=N", "run the cells of one element of launcher=slurm, as its jobs do"
    ),
    "cache": Command("commands.cache:run_cache", "[clear]", "show or clear the response cache"),
}


def _run(argv: list[str]) -> int:
    settings = [word for word in argv if word not in ("-m", "--multirun", "--cfg")]
    for word in settings:
        if word.startswith("-"):
            flags = "the flags are -m (sweep), --cfg (show the config), --help, --version"
            raise UserError(f"there is no flag {word}", flags)
        if word.lstrip("+~").startswith("hydra"):
            raise UserError(f"codechat does not take Hydra's own settings ({word})", "leave it out")
    if {"-m", "--multirun"} & set(argv) and "--cfg" not in argv:
        from codechat.cli.sweep import run_sweep

        return run_sweep(settings)
    return _run_one(settings, show="--cfg" in argv)


def _run_one(words: list[str], *, show: bool) -> int:
    """Run a single cell, or show its config.

    A cell with `samples=k`, or under a launcher other than the default, runs as a sweep: of k seeds, or of one cell.
    """
    from codechat.cli.run import run_cell, runs_apart, split_running, split_samples
    from codechat.run.cell import as_yaml
    from codechat.run.settings.compose import compose

    launcher, _, settings = split_running(words, several=False)
    samples, settings = split_samples(settings)
    if not show and any(word.startswith("+sweep=") for word in settings):
        remedy = "put -m in front: python -m codechat -m " + " ".join(words)
        raise UserError("+sweep names a recipe of several cells", remedy)
    cell = compose(settings)
    if show:
        out.print(as_yaml(cell.config.values()), markup=False, end="")
        return 0
    if samples > 1 or (runs_apart(launcher) and not cell.config.dry_run):
        from codechat.cli.sweep import run_sweep

        return run_sweep(words, flag=["-m"] if samples == 1 else [])
    leave_uncollected()
    return run_cell(cell, [shell_command("codechat"), *settings], sweep=None).status
