"""Tests of a dataset without a model: `codechat verify` runs them, `codechat requirements` lists what they import."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codechat.base.errors import UserError
from codechat.base.template import counted
from codechat.cli.progress import FactsBar, clock
from codechat.cli.terminal import err, out, parse_words
from codechat.datasets import DATASETS, select
from codechat.models.hardware import HARDWARE
from codechat.run.cell.references import packages_by_task
from codechat.run.results.samples import check_file, check_references
from codechat.run.settings.compose import compose
from codechat.run.settings.config import GROUPS
from codechat.sandbox.languages.python.syntax import requirements

SETTINGS = {
    "samples": "a JSONL file, one {task_id, solution} a line; without it the dataset's own references are checked",
    "out": "with samples: the JSONL file to write, one verdict a line",
}
DONE, MISTAKE = 0, 2
VERSIONS = ("fitting", "newest")
VERSIONS_MEANING = f"{' or '.join(VERSIONS)}: the versions that the tests are known to fit, or none"


class View:
    """Progress of samples, references or tasks."""

    def __init__(self, unit: str) -> None:
        self._unit, self._done, self._of, self._began = unit, 0, 0, time.monotonic()

    def state(self) -> tuple[int, int, list[str]]:
        """The counts, and the same in words."""
        elapsed, facts = time.monotonic() - self._began, [f"{self._done:,}/{self._of:,} {self._unit}"]
        if 0 < self._done < self._of:
            facts.append(f"{clock(elapsed / self._done * (self._of - self._done))} left")
        return self._done, self._of, [*facts, clock(elapsed)]

    def notice(self, text: str) -> None:
        err.print(text, markup=False)

    def progress(self, done: int, of: int) -> None:
        self._done, self._of = done, of


def verify(words: Sequence[str]) -> int:
    """`verify dataset=D [samples=FILE out=FILE]`: test EvalPlus-style samples, or the dataset's own references.

    Returns the exit status; a reference of the user's own tasks that fails is a mistake. Raises `UserError`.
    """
    groups = ("dataset", "sandbox", "hardware")
    settings = [word for word in words if word.partition("=")[0].split(".")[0] in groups]
    files = [word for word in words if word not in settings]
    known = {**SETTINGS, **dict.fromkeys(GROUPS, "a config group")}
    given = parse_words(files, known, required=SETTINGS if files else ())
    config = compose(settings).config
    workers = HARDWARE.build(config.hardware).workers
    view = View("samples" if given else "references")
    with FactsBar(view.state):
        common: Any = {"workers": workers, "view": view}
        if given:
            target = Path(given["out"])
            summary = check_file(config.dataset, config.sandbox, Path(given["samples"]), target, **common)
            lines, status = [*summary.lines(), f"written to {target}"], DONE
        else:
            defects, own, checked = check_references(config.dataset, config.sandbox, **common)
            lines, status = [*map(str, defects), checked], MISTAKE if own and defects else DONE
    for line in lines:
        out.print(line, markup=False)
    return status


def print_requirements(words: Sequence[str]) -> int:
    """`requirements dataset=D [versions=newest]`: print a line for pip a package. Returns 0. Raises `UserError`."""
    settings = [word for word in words if word.partition("=")[0].partition(".")[0] == "dataset"]
    known = {"versions": VERSIONS_MEANING, "dataset": "the tasks"}
    versions = parse_words([word for word in words if word not in settings], known).get("versions", VERSIONS[0])
    if versions not in VERSIONS:
        raise UserError(f"there are no versions '{versions}'", VERSIONS_MEANING)
    if not settings:
        raise UserError("dataset is required", "codechat requirements dataset=NAME dataset.path=FILE")
    config = compose(settings).config.dataset
    tasks = select(DATASETS.build(config), config)
    wanted = packages_by_task(tasks, certain=False)
    fitting = {} if versions == "newest" else {p: v for task in tasks for p, v in task.fitting_versions.items()}
    for line in requirements(wanted, fitting):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    touched = {task_id for ids in wanted.values() for task_id in ids}
    others = sorted({task.target.language for task in tasks} - {"python"})
    if others:
        out.print(f"# only Python's packages are known: what {', '.join(others)} needs, the docs say", markup=False)
    if touched:
        out.print(f"# for {len(touched)} of {len(tasks)} tasks; the others need none of them", markup=False)
    elif not others:
        out.print(f"# nothing to install for {counted(len(tasks), 'task')}", markup=False)
    return 0
