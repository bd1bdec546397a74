"""`codechat probe`: recorded code on fresh valid inputs, for changes that the tests of its task do not see."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from codechat.base.errors import UserError
from codechat.cli.commands.verify import View
from codechat.cli.progress import FactsBar
from codechat.cli.terminal import out, parse_words
from codechat.models.hardware import HARDWARE
from codechat.run.extensions import Probing, extensions
from codechat.run.running.sessions import unwrap_group
from codechat.run.settings.compose import compose
from codechat.sandbox import SandboxConfig

KEYS = {
    "runs": "finished cells: folders of cells, or folders that hold such, separated by commas",
    "out": "the folder for the results; the same command resumes there",
    "n": "fresh inputs a task, 200 unless given",
    "seed": "the seed of the inputs, 0 unless given",
    "from": "the inputs of a task that are changed into fresh ones: all (default) or base",
    "inputs": "the inputs folder of an earlier probe, so that other models meet the same inputs",
}
GROUPS = ("sandbox", "hardware")


def run_probe(words: Sequence[str]) -> int:
    """`probe runs=DIR[,DIR] out=DIR [n=200 seed=0 from=all|base inputs=DIR]`; returns 0. Raises `UserError`."""
    settings = [word for word in words if word.partition("=")[0].split(".")[0] in GROUPS]
    given = [word for word in words if word not in settings]
    known = {**KEYS, **dict.fromkeys(GROUPS, "a config group")}
    values, config = parse_words(given, known, required=("runs", "out")), compose(settings).config
    asked = _asked(values, config.sandbox, HARDWARE.build(config.hardware).workers)
    view = View("tasks")

    async def work() -> None:
        for prober in extensions().probers.values():
            lines.extend(await prober(asked, view))

    lines: list[str] = []
    with FactsBar(view.state):
        asyncio.run(unwrap_group(work()))
    for line in [*lines, f"written to {asked.out}"]:
        out.print(line, markup=False)
    return 0


def _asked(values: Mapping[str, str], sandbox: SandboxConfig, workers: int) -> Probing:
    source = values.get("from", "all")
    if source not in ("all", "base"):
        raise UserError(f"cannot read from={source}", KEYS["from"])
    inputs = Path(values["inputs"]) if "inputs" in values else None
    if inputs is not None and not inputs.is_dir():
        raise UserError(f"there is no folder {inputs}", f"inputs: {KEYS['inputs']}")
    cells = [Path(name) for name in values["runs"].split(",") if name]
    count, seed = _number(values, "n", 200, least=1), _number(values, "seed", 0, least=0)
    return Probing(cells, Path(values["out"]), count, seed, cast(Any, source), inputs, sandbox, workers)


def _number(values: Mapping[str, str], key: str, default: int, *, least: int) -> int:
    text = values.get(key, str(default))
    if not (text.isascii() and text.isdecimal()) or int(text) < least:
        raise UserError(f"cannot read {key}={text}", f"a whole number from {least} on: {KEYS[key]}")
    return int(text)
