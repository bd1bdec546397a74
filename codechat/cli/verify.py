"""`verify dataset=D samples=FILE out=FILE`: tests EvalPlus-style samples, no model involved."""

from collections.abc import Sequence
from pathlib import Path

from rich.progress import Progress, TaskID

from codechat.cli.terminal import counting_bar, err, out
from codechat.cli.words import parse_words
from codechat.engine.compose import compose
from codechat.engine.config import GROUPS
from codechat.engine.samples import check_file
from codechat.hardware import HARDWARE

SETTINGS = {
    "samples": "a JSONL file, one {task_id, solution} a line",
    "out": "the JSONL file to write, one verdict a line",
}


class _Bar:
    """Progress of the samples."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task("verifying", total=None)

    def notice(self, text: str) -> None:
        err.print(text, markup=False)

    def progress(self, done: int, of: int) -> None:
        self._bar.update(self._task, completed=done, total=of)


def verify(words: Sequence[str]) -> int:
    """Run the command; returns 0. Raises `UserError`."""
    own = [word for word in words if not _is_setting(word)]
    given = parse_words(own, {**SETTINGS, **dict.fromkeys(GROUPS, "a config group")}, required=SETTINGS)
    config = compose([word for word in words if _is_setting(word)]).config
    resources = HARDWARE.build(config.hardware)
    with counting_bar("samples") as bar:
        summary = check_file(
            config.dataset,
            config.sandbox,
            Path(given["samples"]),
            Path(given["out"]),
            workers=resources.workers,
            view=_Bar(bar),
        )
    for line in summary.lines():
        out.print(line, markup=False)
    out.print(f"written to {given['out']}", markup=False)
    return 0


def _is_setting(word: str) -> bool:
    """Whether a word sets a part of the configuration, not a file of the command."""
    return word.partition("=")[0].split(".")[0] in ("dataset", "sandbox", "hardware")
