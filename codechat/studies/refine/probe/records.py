"""The results of a probe: `turns.jsonl`, one line a turn whose code passes its tests."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from codechat.base.files import write_atomically
from codechat.base.records import Record

TURNS = "turns.jsonl"


class Difference(Record):
    """The smallest input on which a code differs, with the other result and its own, as bounded text."""

    input: str
    expected: str
    actual: str


class Comparison(Record):
    """A code on a task's fresh inputs, against another code: the reference, or the session's code of a turn before.

    `inputs` counts inputs on which both gave a result or raised, `differs` inputs with different results. On
    `undecided` ones a code met a limit, which is no difference of behaviour.
    """

    inputs: int
    differs: int
    undecided: int = 0
    smallest: Difference | None = None


class ProbedTurn(Record):
    """A turn whose code passes. `before` compares with the code before it in the session, if that passes too.

    `of_turn` is the turn of that code: at a skipped turn the code is the same, and stands in its turn.
    """

    cell_id: str
    session_id: str
    task_id: str
    turn: int
    reference: Comparison
    before: Comparison | None = None
    of_turn: int | None = None


def write_probed(folder: Path, turns: Iterable[ProbedTurn]) -> None:
    """Write `turns.jsonl` as a whole."""
    write_atomically(folder / TURNS, (turn.model_dump_json() + "\n" for turn in turns))


def read_probed(folder: Path) -> Iterator[ProbedTurn]:
    """The turns of a probe's folder."""
    with (folder / TURNS).open(encoding="utf-8") as stream:
        for line in stream:
            yield ProbedTurn.model_validate_json(line)
