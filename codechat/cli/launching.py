"""How cells are run: the words that say it (launcher, shards, samples), and the function that runs one cell."""

import json
import shlex
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from codechat.base.config import Config
from codechat.base.errors import UserError
from codechat.base.seal import SEAL, edited
from codechat.cli.interruption import termination_as_interrupt
from codechat.cli.run import run_cell
from codechat.cli.terminal import err
from codechat.run.cell import Cell, build_cell
from codechat.run.launchers import LAUNCHERS, Job, Report, Result
from codechat.run.run import BUG, DONE, INTERRUPTED, MISTAKE
from codechat.run.running.shards import Shard, errors_in
from codechat.run.settings.compose import key_of
from codechat.run.settings.words import SAMPLES, parse_word

GROUP = LAUNCHERS.group
DEFAULT = "serial"
FIRST = 0  # the seed of a cell whose words name none


def split_samples(words: Sequence[str]) -> tuple[int, list[str]]:
    """The number of seeds that the words ask for, and the other words. Raises `UserError`."""
    own = [word for word in words if key_of(word) == SAMPLES]
    numbers = {word.partition("=")[2] for word in own}
    if not own:
        return 1, list(words)
    if len(numbers) > 1 or not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise UserError(f"cannot read {' '.join(own)}", f"{SAMPLES} is one whole number from 1 on: {SAMPLES}=3")
    return int(numbers.pop()), [word for word in words if word not in own]


def with_seeds(combination: tuple[str, ...], samples: int) -> Iterator[tuple[str, ...]]:
    """The combination with its seed and with each of the `samples` - 1 that follow it."""
    seed = next((word.partition("=")[2] for word in reversed(combination) if key_of(word) == "seed"), str(FIRST))
    if samples == 1 or not seed.lstrip("-").isdecimal():  # what is no number is refused when the words are composed
        yield combination
        return
    others = tuple(word for word in combination if key_of(word) != "seed")
    yield from ((*others, f"seed={int(seed) + number}") for number in range(samples))


def split_running(words: Sequence[str], *, several: bool) -> tuple[Config, int, list[str]]:
    """The launcher that the words choose, the shards of every cell, and the words that describe cells.

    A single cell, which is not a sweep of `several`, has shards only under a launcher that runs cells apart from this
    process. Raises `UserError`.
    """
    launcher, others = split_launcher(words)
    shards, cells = split_shards(others) if several or runs_apart(launcher) else (1, others)
    return launcher, shards, cells


def runs_apart(launcher: Config) -> bool:
    """Whether the launcher runs cells apart from this process."""
    return LAUNCHERS.of(launcher).traits.apart


def split_launcher(words: Sequence[str]) -> tuple[Config, list[str]]:
    """The launcher that the words choose, and the words that describe cells. Raises `UserError`.

    The last word for a key counts. Values are texts, so that commas and colons of SLURM's need no quotes.
    """
    own = [word for word in words if _key(word).partition(".")[0] == GROUP]
    values: dict[str, Any] = {}
    for word in own:
        if "=" not in word or word.startswith("~"):
            raise UserError(f"cannot read '{word}'", f"write {GROUP}=NAME or {GROUP}.KEY=VALUE")
        values[_key(word).removeprefix(GROUP).lstrip(".") or LAUNCHERS.key] = _text(word)
    component = LAUNCHERS[values.setdefault(LAUNCHERS.key, DEFAULT)]
    for key in values:
        able = [each.name for each in LAUNCHERS if key in each.config.model_fields]
        if key not in component.config.model_fields and able:
            raise UserError(
                f"{GROUP}={component.name} has no option {GROUP}.{key}",
                f"{', '.join(f'{GROUP}={name}' for name in able)} {'has' if len(able) == 1 else 'have'} it",
            )
    return LAUNCHERS.validate(values), [word for word in words if word not in own]


def split_shards(words: Sequence[str]) -> tuple[int, list[str]]:
    """The shards by which every cell is to be run, 1 if none, and the other words.

    Only `shard.count=N` alone asks for shards: beside `shard.index` the words choose one, or several in a row.
    """
    keys = [_key(word) for word in words]
    counts = [word for word, key in zip(words, keys, strict=True) if key == "shard.count"]
    number = counts[-1].partition("=")[2] if counts else ""
    if "shard.index" in keys or not number.isdecimal() or int(number) < 1:
        return 1, list(words)
    return int(number), [word for word in words if word not in counts]


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]


def _text(word: str) -> str | None:
    """The value as a text: without the quotes of Hydra's grammar, and None for its null."""
    override, written = parse_word(word), word.partition("=")[2]
    if override is None or override.is_sweep_override():
        return written
    value = override.value()
    if value is None:
        return None
    return value if isinstance(value, str) else written


def run_job(job: Job, report: Report | None = None) -> Result:
    """Run a cell, printing its messages. A mistake, a bug and an interruption are printed and become its status."""
    resume = shlex.join(job.command)
    try:
        with termination_as_interrupt():
            outcome = run_cell(job.composed, job.command, job.sweep, report)
    except UserError as mistake:
        err.print(f"error: {mistake}", markup=False)
        return Result(MISTAKE)
    except KeyboardInterrupt:
        err.print(f"interrupted. Resume: {resume}", markup=False)
        return Result(INTERRUPTED)
    except Exception:  # noqa: BLE001  a bug in one cell is shown with its traceback, and the other cells still run
        err.print(traceback.format_exc(), markup=False)
        return Result(BUG)
    return Result(
        outcome.status,
        folder=outcome.folder,
        metrics=outcome.metrics,
        estimate=outcome.estimate,
        untracked=outcome.tracking.failure,
    )


class Recalling:
    """Finds the results of cells that have finished. Each cell is built once, since that reads its data."""

    def __init__(self) -> None:
        self._cells: dict[int, Cell] = {}

    def __call__(self, job: Job) -> Result | None:
        """The result, read from the cell's folder; None if something is missing in it. Raises `UserError`."""
        cell = self._cells.get(job.number) or build_cell(job.composed)
        self._cells[job.number] = cell
        shard, until = Shard.of(cell.config.shard), cell.config.stop.until or 0
        if shard is not None:
            errors = errors_in(cell, shard)
            ended = errors is not None and errors <= cell.config.max_errors
            return Result(DONE, folder=shard.part_of(cell).folder) if ended else None
        path = cell.folder / "metrics.json"
        # the journal stays closed: the cell may be running on another machine
        if not (cell.folder / SEAL).is_file() or edited(cell.folder) or not path.is_file():
            return None
        metrics = json.loads(path.read_text(encoding="utf-8"))
        if metrics["errored"] > cell.config.max_errors or metrics["sessions"] < until:
            return None
        return Result(DONE, folder=cell.folder, metrics=metrics)
