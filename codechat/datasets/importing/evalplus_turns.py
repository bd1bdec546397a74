"""Samples in EvalPlus's form, of which a task has several: its turns. With results (`eval_results.json`) or without.

A line has `task_id` and `solution`; a field `turn` orders those of a task. Without it, several lines of a task are its
turns only if `lines=turns` says so: they may as well be samples. A verdict is that of the plus tests if there is one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from codechat.base.config import original_option
from codechat.base.domain import Outcome
from codechat.base.errors import UserError
from codechat.datasets.importing import FORMATS, ImportConfig, Imported
from codechat.datasets.importing.dialogues import PublishedTurn, dialogue
from codechat.datasets.reading.lines import rows_of

REMEDY = 'a line is one JSON object with "task_id" and "solution", or the file is EvalPlus\'s eval_results.json'
ORDERS = ("turn", "round", "step", "iteration")
DATASETS = {"HumanEval": "humaneval", "Mbpp": "mbpp"}


class EvalPlusImport(ImportConfig):
    """Options of `evalplus_turns`."""

    format: Literal["evalplus_turns"] = original_option("evalplus_turns", "what the source is")
    lines: Literal["turns"] | None = original_option(
        None, "turns: several lines of a task without a field `turn` are its turns, in the file's order"
    )


@FORMATS.register("evalplus_turns", EvalPlusImport)
def evalplus_turns(config: EvalPlusImport) -> Imported:
    """EvalPlus's samples of several turns. Raises `UserError` naming the first wrong line."""
    path, found, unnumbered = Path(config.source), defaultdict[str, dict[int, PublishedTurn]](dict), set[str]()
    for place, row in _samples(path):
        if not isinstance(row, dict) or not isinstance(row.get("task_id"), str):
            raise UserError(f"{place}: no task_id", REMEDY)
        if not isinstance(row.get("solution"), str):
            raise UserError(f"{place}: no solution; a completion alone lacks its prompt", REMEDY)
        turns, order = (
            found[row["task_id"]],
            next((int(row[name]) for name in ORDERS if str(row.get(name)).isdigit()), None),
        )
        if turns and (order is None) != (row["task_id"] in unnumbered):
            raise UserError(f"{place}: of {row['task_id']} only some lines say their turn", "number all, or none")
        if order is None and turns and config.lines is None:
            raise UserError(
                f"{place}: a second line of {row['task_id']} without a turn", "if these are turns, add lines=turns"
            )
        if order is None:
            unnumbered.add(row["task_id"])
        order = len(turns) if order is None else order
        if order in turns:
            raise UserError(f"{place}: a second line for turn {order} of {row['task_id']}", "import one run at a time")
        turns[order] = _turn(row)
    if not found:
        raise UserError(f"{path} holds no sample", REMEDY)
    model = config.model or path.name.split(".")[0]
    return Imported([
        dialogue(task, DATASETS.get(task.partition("/")[0], "evalplus"), model, [turns[n] for n in sorted(turns)])
        for task, turns in found.items()
    ], [])  # fmt: skip


def _samples(path: Path) -> Iterator[tuple[str, Any]]:
    for place, row in rows_of(path):
        results = row.get("eval") if isinstance(row, dict) else None
        if isinstance(results, Mapping):
            for task, samples in results.items():
                yield from ((f"{place}: {task}", {"task_id": task, **sample}) for sample in samples)
        else:
            yield place, row


def _turn(row: Mapping[str, Any]) -> PublishedTurn:
    said = next((row[name] for name in ("plus_status", "base_status") if isinstance(row.get(name), str)), None)
    flags = [row[name] for name in ("passed", "evalplus_plus", "evalplus_base") if isinstance(row.get(name), bool)]
    passed = said == "pass" if said is not None else flags[0] if flags else None
    outcome: Outcome | None = "timeout" if said == "timeout" else None
    return PublishedTurn(str(row["solution"]), passed, None if passed else said, outcome)
