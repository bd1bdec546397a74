"""Fresh valid inputs of tasks, in a file for each content of a dataset, so that all models meet the same inputs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from codechat.base.errors import UserError
from codechat.base.files import read_lines, write_atomically
from codechat.base.records import Record
from codechat.base.seeding import generator
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.suites.calls import Calls
from codechat.studies.refine.probe.comparing import differing, is_comparable, tolerance
from codechat.studies.refine.probe.mutating import (
    LONGEST,
    NUMBERS,
    Arguments,
    Mutator,
    Shape,
    is_bounded,
    nudged,
    text_of,
    value_of,
)
from codechat.studies.refine.probe.running import TOTAL_S, Runner

ROUNDS, DRAWS, ENOUGH = 5, 40, 2  # of drawing and filtering; draws in a round, and inputs to choose from, for each
NUDGES = ("a", "b", "c", "d")
REFERENCE_S = 0.05  # CPU seconds that any reference may take for an input


class FreshInputs(Record):
    """The inputs of a task as literals of their arguments, the shortest first, and how they were made.

    `source` names the task's inputs that were changed (`all` or `base`). Of `made` candidates, `refused` break the
    contract; on `undefined` ones the reference raises, takes long, or gives no result that two runs agree on.
    """

    task_id: str
    count: int
    seed: int
    source: str
    made: int
    refused: int
    undefined: int
    inputs: list[str]

    def arguments(self) -> list[Arguments]:
        """The inputs. Raises `UserError` if one is no literal."""
        try:
            return [tuple(value_of(text)) for text in self.inputs]
        except (ValueError, TypeError) as error:
            problem = f"an input of {self.task_id} is no literal of a tuple: {error}"
            raise UserError(problem, "leave that line out: the inputs are made again") from error


def is_probeable(task: Task) -> bool:
    """Whether a task's tests are calls of Python whose results a reference gives; a subclass has another language."""
    return type(task.suite) is Calls and task.suite.reference is not None


def file_of(folder: Path, dataset: Dataset) -> Path:
    """The file with the inputs of a dataset."""
    name = re.sub(r"[^\w.-]", "-", dataset.name)  # a user's name may have any character
    return folder / f"{name}-{dataset.content_hash[:8]}.jsonl"


def read_inputs(path: Path) -> dict[str, FreshInputs]:
    """The inputs in a file by task; none without a file. Raises `UserError`."""
    found = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            each = FreshInputs.model_validate_json(line)
        except ValidationError as error:
            raise UserError(
                f"{path}:{number} holds no inputs of a task", "remove the file: it is made again"
            ) from error
        found[each.task_id] = each
    return found


def write_inputs(path: Path, inputs: Iterable[FreshInputs]) -> None:
    """Write a file as a whole."""
    write_atomically(path, (each.model_dump_json() + "\n" for each in inputs))


async def make_inputs(task: Task, runner: Runner, *, count: int, seed: int, source: str) -> FreshInputs:
    """Up to `count` fresh inputs. Raises `InfrastructureError` if the sandbox fails."""
    calls = runner.calls
    given = calls.base if source == "base" else calls.inputs
    mutator = Mutator(given, generator(seed, task.task_id, "probe"))
    shape, seen = Shape(given, contract=task.contract is not None), {text_of(each) for each in given}
    found: dict[str, Arguments] = {}
    made = refused = undefined = 0
    for _ in range(ROUNDS):
        drawn = dict(_draw(mutator, shape, seen, 2 * count, DRAWS * count))
        valid = await _valid(task, runner, drawn)
        defined = await _defined(runner, valid, TOTAL_S / count)
        made, refused = made + len(drawn), refused + len(drawn) - len(valid)
        undefined += len(valid) - len(defined)
        mutator.feed(defined.values())
        found |= defined
        if len(found) >= ENOUGH * count or not drawn:
            break
    kept = dict(sorted(islice(_varied(found), count), key=_length))
    same = await _same_again(runner, list(kept.values()))
    inputs = [text for text, agrees in zip(kept, same, strict=True) if agrees]
    undefined += len(kept) - len(inputs)
    return FreshInputs(
        task_id=task.task_id, count=count, seed=seed, source=source,
        made=made, refused=refused, undefined=undefined, inputs=inputs,
    )  # fmt: skip


def _varied(found: dict[str, Arguments]) -> Iterator[tuple[str, Arguments]]:
    """All inputs, first the ones with an argument of a size that none before has."""
    sizes, others = set[tuple[int, int]](), list[tuple[str, Arguments]]()
    for text, arguments in found.items():
        own = set(map(_size, range(len(arguments)), arguments))
        if own <= sizes:
            others.append((text, arguments))
        else:
            sizes |= own
            yield text, arguments
    yield from others


def _size(place: int, value: Any) -> tuple[int, int]:
    """An argument's place, and its length or whole part."""
    return place, len(value) if hasattr(value, "__len__") else int(abs(value)) if isinstance(value, NUMBERS) else 0


def _length(pair: tuple[str, Arguments]) -> tuple[int, str]:
    return len(pair[0]), pair[0]


def _draw(mutator: Mutator, shape: Shape, seen: set[str], most: int, draws: int) -> Iterator[tuple[str, Arguments]]:
    """New arguments in the tests' shape and within the bounds, by their text, which reads back as the same."""
    for _ in range(draws):
        arguments = mutator.draw()
        text = text_of(arguments)
        if text in seen or len(text) > LONGEST:
            continue
        seen.add(text)
        if is_bounded(arguments) and shape.fits(arguments) and _reads_back(text):
            yield text, arguments
            most -= 1
            if most == 0:
                return


def _reads_back(text: str) -> bool:
    try:
        return text_of(value_of(text)) == text
    except ValueError:
        return False


async def _valid(task: Task, runner: Runner, drawn: dict[str, Arguments]) -> dict[str, Arguments]:
    if task.contract is None or not drawn:
        return drawn
    results = await runner.run(task.contract, list(drawn.values()), runner.sandbox.config.min_cpu_s)
    return {text: drawn[text] for text, result in zip(drawn, results, strict=True) if result.kind == "value"}


async def _defined(runner: Runner, valid: dict[str, Arguments], share_s: float) -> dict[str, Arguments]:
    """Inputs on which the reference gives a comparable result, in a part of the time that programs may take."""
    config = runner.sandbox.config
    longest_s = max(REFERENCE_S, min(config.min_cpu_s, share_s) / config.cpu_factor)
    by_length = sorted(valid.items(), key=_length)  # the long ones may end the process
    inputs = [arguments for _, arguments in by_length]
    results = await runner.run(runner.calls.reference or "", inputs, longest_s, timed=True)
    good = {
        text
        for (text, _), result in zip(by_length, results, strict=True)
        if is_comparable(result) and result.cpu_s <= longest_s
    }
    return {text: arguments for text, arguments in valid.items() if text in good}


async def _same_again(runner: Runner, inputs: Sequence[Arguments]) -> list[bool]:
    """For each input, whether the reference gives the same in another order, with other hashes of texts, and on floats
    that differ by rounding."""
    if not inputs:
        return []
    reference, limit_s = runner.calls.reference or "", runner.sandbox.config.min_cpu_s
    first = await runner.run(reference, inputs, limit_s)
    others = [
        list(reversed(await runner.run(reference, inputs[::-1], limit_s))),
        await runner.run_again(reference, inputs),
    ]
    for salt in NUDGES:
        moved = [nudged(arguments, salt) for arguments in inputs]
        if moved != list(inputs):
            others.append(await runner.run(reference, moved, limit_s))
    atol = tolerance(runner.calls, first)
    other = {number for each in others for number in differing(runner.calls, atol, inputs, first, each)}
    decided = [all(is_comparable(each) for each in several) for several in zip(first, *others, strict=True)]
    return [whole and number not in other for number, whole in enumerate(decided)]
