"""`verify dataset=D [samples=FILE out=FILE]`: tests EvalPlus-style samples, or the dataset's own references.

No model is involved.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.progress import Progress, TaskID

from codechat.cli.terminal import counting_bar, err, out
from codechat.cli.words import parse_words
from codechat.models.hardware import HARDWARE
from codechat.run.results.samples import check_file, check_references
from codechat.run.settings.compose import compose
from codechat.run.settings.config import GROUPS, CellConfig

SETTINGS = {
    "samples": "a JSONL file, one {task_id, solution} a line; without it the dataset's own references are checked",
    "out": "with samples: the JSONL file to write, one verdict a line",
}
DONE, MISTAKE = 0, 2


class _Bar:
    """Progress of the samples or references."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task("verifying", total=None)

    def notice(self, text: str) -> None:
        err.print(text, markup=False)

    def progress(self, done: int, of: int) -> None:
        self._bar.update(self._task, completed=done, total=of)


def verify(words: Sequence[str]) -> int:
    """Run the command; returns the exit status. Raises `UserError`."""
    own = [word for word in words if not _is_setting(word)]
    known = {**SETTINGS, **dict.fromkeys(GROUPS, "a config group")}
    given = parse_words(own, known, required=SETTINGS if own else ())
    config = compose([word for word in words if _is_setting(word)]).config
    return _samples(config, given) if given else _references(config)


def _samples(config: CellConfig, given: Mapping[str, str]) -> int:
    workers = HARDWARE.build(config.hardware).workers
    samples, target = Path(given["samples"]), Path(given["out"])
    with counting_bar("samples") as bar:
        summary = check_file(config.dataset, config.sandbox, samples, target, workers=workers, view=_Bar(bar))
    for line in summary.lines():
        out.print(line, markup=False)
    out.print(f"written to {target}", markup=False)
    return DONE


def _references(config: CellConfig) -> int:
    """List all tests that cannot be passed. In tasks of the user's own they are a mistake."""
    workers = HARDWARE.build(config.hardware).workers
    with counting_bar("references") as bar:
        defects, own, summary = check_references(config.dataset, config.sandbox, workers=workers, view=_Bar(bar))
    for line in (*map(str, defects), summary):
        out.print(line, markup=False)
    return MISTAKE if own and defects else DONE


def _is_setting(word: str) -> bool:
    """Whether a word sets a part of the configuration, not a file of the command."""
    return word.partition("=")[0].split(".")[0] in ("dataset", "sandbox", "hardware")
