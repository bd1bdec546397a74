"""The files of a sweep on SLURM: the cells of each array element, the job's script, what the elements left."""

import json
import shlex
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codechat.files import write_atomically
from codechat.launchers import Job

Words = tuple[str, ...]
"""A cell as its words."""
LOGS = "logs"
STOP_S = 120
"""So many seconds before its time limit an element is asked to end; SLURM may do it a minute earlier."""

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --chdir={folder}
#SBATCH --output={log}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:TERM@{stop_s}
{options}
# Element N of the array runs the cells in line N of cells.txt.

cd {here} || exit 1
{setup}

element="${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"  # the last one's SLURM_JOB_ID stands for the whole array, too
{command} cells file={cells} element="$SLURM_ARRAY_TASK_ID" &
cell=$!

# SLURM tells this shell alone that the time is nearly over. It tells cancelled jobs too, which then are no longer
# RUNNING: these must not come back.
state=
end() {{
    kill -TERM "$cell" 2>/dev/null
    state=${{state:-$(squeue --noheader --jobs="$element" --format=%T)}}
}}
trap end TERM USR1 USR2

while :; do
    wait "$cell"
    status=$?
    kill -0 "$cell" 2>/dev/null || break
done
if [ "$state" = RUNNING ] && {{ [ "$status" = 130 ] || [ "$status" = 143 ]; }}; then
    trap '' TERM
    scontrol requeue "$element"
fi
exit "$status"
"""


@dataclass(frozen=True)
class Array:
    """The files in a sweep's folder.

    Line N of cells.txt holds the cells of element N. Lines are only added, so that an element that waits in the queue
    keeps its cells whatever is submitted meanwhile.
    """

    folder: Path

    @property
    def cells(self) -> Path:
        """The cells of all elements that were ever submitted."""
        return self.folder / "cells.txt"

    @property
    def job(self) -> Path:
        """The script of the job."""
        return self.folder / "job.sh"

    @property
    def logs(self) -> Path:
        """The folder of what elements print."""
        return self.folder / LOGS

    def elements(self) -> dict[int, list[Words]]:
        """The cells of every element, by its number."""
        lines = self.cells.read_text(encoding="utf-8").splitlines() if self.cells.exists() else []
        return {number: [tuple(words) for words in json.loads(line)] for number, line in enumerate(lines, 1)}

    def add(self, groups: Sequence[Sequence[Words]]) -> list[int]:
        """Write down the cells of new elements; equal ones of earlier submissions keep their numbers."""
        elements = self.elements()
        numbers: list[int] = []
        for group in groups:
            known = [number for number, cells in elements.items() if cells == list(group)]
            number = known[0] if known else len(elements) + 1
            elements[number] = list(group)
            numbers.append(number)
        lines = (json.dumps(cells, ensure_ascii=False) + "\n" for cells in elements.values())
        write_atomically(self.cells, lines)
        for number in numbers:
            self._status(number).unlink(missing_ok=True)
        return sorted(numbers)

    def write_script(self, text: str) -> None:
        """Write the job's script, and make the folder for what its elements print."""
        self.logs.mkdir(parents=True, exist_ok=True)
        write_atomically(self.job, text)

    def leave(self, number: int, statuses: Sequence[int]) -> None:
        """Note the exit statuses of an element's cells, as far as they ran."""
        write_atomically(self._status(number), json.dumps(list(statuses)) + "\n")

    def status_of(self, words: Words) -> int | None:
        """The exit status of a cell's last run; None if it left none."""
        for number, cells in reversed(self.elements().items()):
            path = self._status(number)
            if words in cells and path.exists():
                statuses: list[int] = json.loads(path.read_text())
                return dict(zip(cells, statuses, strict=False)).get(words)
        return None

    def _status(self, number: int) -> Path:
        return self.folder / "ended" / str(number)


def grouped(jobs: Sequence[Job]) -> list[list[Job]]:
    """The cells by array element: those that need the same servers together, and each that needs none by itself."""
    groups: dict[Hashable, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.servers or job.number, []).append(job)
    return list(groups.values())


def script(folder: Path, name: str, options: Mapping[str, str | None], setup: str | None) -> str:
    """The job's script: it runs in the folder where codechat was called, with the same Python."""
    lines = [f"#SBATCH --{key}={value}" for key, value in options.items() if value is not None]
    return SCRIPT.format(
        name=shlex.quote(f"codechat-{name}"),
        folder=shlex.quote(str(folder)),
        log=shlex.quote(str(folder / LOGS).replace("%", "%%") + "/%a.log"),
        stop_s=STOP_S,
        options="\n".join(lines),
        here=shlex.quote(str(Path.cwd())),
        setup=setup or "",
        command=shlex.join([sys.executable, "-m", "codechat"]),
        cells=shlex.quote(str(folder / "cells.txt")),
    )
