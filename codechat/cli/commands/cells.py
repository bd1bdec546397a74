"""`codechat cells file=FILE element=N`: the cells of one element of a sweep on a cluster, one after the other."""

from collections.abc import Sequence
from pathlib import Path

from codechat.base.environment import shell_command
from codechat.base.errors import UserError
from codechat.cli.launching import run_job
from codechat.cli.sweep_view import SweepView
from codechat.cli.words import parse_words
from codechat.models.serving import Fleet
from codechat.run.launchers import Job
from codechat.run.launchers.slurm import Array
from codechat.run.run import DONE, INTERRUPTED
from codechat.run.settings.compose import compose

SETTINGS = {"file": "cells.txt in the folder of the sweep", "element": "the number of the array's element"}


def run_cells(words: Sequence[str]) -> int:
    """Run the cells of an element; returns the highest of their exit statuses. Raises `UserError`."""
    values = parse_words(words, SETTINGS, required=tuple(SETTINGS))
    array, name = Array(Path(values["file"]).parent), Path(values["file"]).absolute().parent.name
    elements = {str(number): (number, cells) for number, cells in array.elements().items()}
    if values["element"] not in elements:
        raise UserError(
            f"{values['file']} has no element {values['element']}", f"it has the elements 1 to {len(elements)}"
        )
    number, cells = elements[values["element"]]
    composed = [compose(cell) for cell in cells]
    view, statuses = SweepView(len(cells)), list[int]()
    with Fleet():  # the cells of an element share its model servers
        for place, cell in enumerate(composed):
            job = Job(place, cell, name, (shell_command("codechat"), *cell.words))
            view.begins(job)
            status = run_job(job).status
            statuses.append(DONE if status is None else status)
            array.leave(number, statuses)
            if status == INTERRUPTED:
                break
    return max(statuses)
