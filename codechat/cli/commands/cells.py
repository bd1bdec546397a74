"""`codechat cells file=FILE element=N`: the cells of one element of a sweep on a cluster, one after the other."""

from collections.abc import Sequence
from pathlib import Path

from codechat.base.environment import shell_command
from codechat.base.errors import UserError
from codechat.cli.interruption import termination_as_interrupt
from codechat.cli.launching import run_job
from codechat.cli.sweep_view import SweepView
from codechat.cli.words import parse_words
from codechat.models.serving import Fleet
from codechat.run.launchers import Job
from codechat.run.launchers.slurm import Array, requeue
from codechat.run.run import DONE, INTERRUPTED
from codechat.run.settings.compose import compose

SETTINGS = {"file": "cells.txt in the folder of the sweep", "element": "the number of the array's element"}


def run_cells(words: Sequence[str]) -> int:
    """Run the cells of an element; returns the highest of their exit statuses. Raises `UserError`."""
    values = parse_words(words, SETTINGS, required=tuple(SETTINGS))
    array, element = Array(Path(values["file"]).parent), values["element"]
    elements = {str(number): cells for number, cells in enumerate(array.elements(), 1)}
    if element not in elements:
        raise UserError(f"{values['file']} has no element {element}", f"it has the elements 1 to {len(elements)}")
    try:
        with termination_as_interrupt(), Fleet():  # the cells of an element share its model servers
            return _run(array, int(element), elements[element])
    except KeyboardInterrupt:
        requeue()
        raise


def _run(array: Array, element: int, cells: Sequence[Sequence[str]]) -> int:
    name = array.folder.absolute().name
    jobs = [Job(at, compose(cell), name, (shell_command("codechat"), *cell)) for at, cell in enumerate(cells)]
    view, statuses = SweepView(len(jobs)), list[int]()
    for job in jobs:
        view.begins(job)
        status = run_job(job).status
        statuses.append(DONE if status is None else status)
        array.leave(element, statuses)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
    return max(statuses)
