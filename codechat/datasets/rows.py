"""EvalPlus's row format: one JSON object a line, plain or gzip, read into tasks (docs/datasets.md)."""

import difflib
import gzip
import json
import keyword
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from codechat.domain import AssertionTests, Dataset, InputOutputTests, Requirement, Task
from codechat.errors import UserError
from codechat.files import content_hash
from codechat.languages.python.assembly import assemble, signature_of

Oracle = Literal[
    "equal", "set_equal", "not_none", "anything", "equal_or_zero", "polynomial_root", "surface_area", "digit_distance"
]
ORACLE_NAMES: tuple[Oracle, ...] = get_args(Oracle)

_EVALPLUS = frozenset({"contract", "test", "assertion"})  # its fields that are not used here
RESERVED = "task"  # the id of the task's own tests
REMEDY = (
    "a line is one JSON object with task_id, prompt, entry_point, canonical_solution, and base_input or tests; "
    "optional: plus_input, atol, oracle, base_output, plus_output, requirements"
)


def _identifier(name: str) -> str:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError("is not a Python name")
    return name


def _no_calls(value: Any) -> Any:
    return [] if value == {} else value  # how MBPP+ v0.2.0 writes a task without plus inputs


Calls = Annotated[list[list[Any]], BeforeValidator(_no_calls)]


def several(value: Any) -> Any:
    """A list of texts, where a single one stands for itself."""
    return [value] if isinstance(value, str) else value


Snippets = Annotated[list[str], BeforeValidator(several)]


class RequirementRow(BaseModel):
    """A verifiable instruction of the user's own: what is asked, and the Python snippets that say whether it is met.

    `type` is whatever the figures are to be told apart by; `accumulates` false: later code need not keep it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str | None = Field(None, min_length=1)
    type: str = Field(min_length=1)
    text: str = Field(min_length=1)
    tests: Snippets = Field(min_length=1)
    accumulates: bool = True


class TaskRow(BaseModel):
    """One line. Other fields are ignored, as EvalPlus has some, unless they look like a misspelling of these."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    task_id: str = Field(min_length=1)
    prompt: str
    entry_point: Annotated[str, AfterValidator(_identifier)]
    canonical_solution: str | None = None
    base_input: Calls = []
    plus_input: Calls = []
    atol: float = Field(0.0, ge=0, allow_inf_nan=False)
    oracle: Oracle = "equal"
    base_output: list[Any] | None = None
    plus_output: list[Any] | None = None
    tests: Snippets = []
    requirements: list[RequirementRow] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in set(self.model_extra or {}) - _EVALPLUS:
            for meant in difflib.get_close_matches(name, type(self).model_fields, n=1, cutoff=0.8):
                raise ValueError(f"unknown field '{name}': did you mean '{meant}'?")
        if bool(self.base_input) == bool(self.tests):
            raise ValueError("give base_input (calls to compare) or tests (assertions), one of them and not both")
        if self.tests and self.plus_input:
            raise ValueError("plus_input goes with base_input, not with tests")
        ids = [each.id for each in self.named_requirements()]
        for name in ids:
            if name == RESERVED or ids.count(name) > 1:
                raise ValueError(f"requirements: the id '{name}' is taken; give each an id of its own")
        for name, calls, results in (
            ("base_output", self.base_input, self.base_output),
            ("plus_output", self.plus_input, self.plus_output),
        ):
            if results is not None and len(results) != len(calls):
                raise ValueError(f"{name} has {len(results)} results for {len(calls)} inputs")
            if results is None and calls and self.canonical_solution is None:
                raise ValueError(f"give canonical_solution or {name}: without them no result is right")
        return self

    def named_requirements(self) -> list[Requirement]:
        """The requirements in order; one without an id is called by its number, from 1."""
        return [
            Requirement(
                each.id or str(number), each.type, each.text, AssertionTests(tuple(each.tests)), each.accumulates
            )
            for number, each in enumerate(self.requirements, 1)
        ]


Adapt = Callable[[Task], Task]


def load_rows(name: str, path: Path, adapt: Adapt = lambda task: task) -> Dataset:
    """The dataset in a file, plain or gzip. `adapt` finishes a task (argument types, comparison).

    The content hash is over the parsed rows: compression, path, spacing and unused fields do not matter, the order of
    the tasks does. Raises `UserError` that names the file, and the line where one is malformed.
    """
    rows: list[TaskRow] = []
    tasks: dict[str, Task] = {}
    for line, text in lines_of(path):
        try:
            row = _row(text)
            if row.task_id in tasks:
                raise ValueError(f"task_id '{row.task_id}' is there twice")
            tasks[row.task_id] = adapt(task_from(row))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}:{line}: {problem_of(error)}", REMEDY) from error
        rows.append(row)
    if not rows:
        raise UserError(f"{path} holds no task", REMEDY)
    return Dataset(name, tuple(tasks.values()), hash_rows(rows))


def task_from(row: TaskRow) -> Task:
    """The task that a row describes. Raises `ValueError` where its texts make no program or show no signature."""
    reference = None
    if row.canonical_solution is not None:
        reference = assemble(row.prompt, row.canonical_solution, row.entry_point)
    signature = signature_of(reference or row.prompt, row.entry_point)
    if signature is None:
        raise ValueError(f"prompt: without canonical_solution it must show the line 'def {row.entry_point}(...):'")
    tests = InputOutputTests(
        base=tuple(tuple(call) for call in row.base_input),
        plus=tuple(tuple(call) for call in row.plus_input),
        atol=row.atol,
        oracle=row.oracle,
        expected_base=None if row.base_output is None else tuple(row.base_output),
        expected_plus=None if row.plus_output is None else tuple(row.plus_output),
    )
    return Task(
        row.task_id,
        row.prompt,
        row.entry_point,
        signature,
        reference,
        tests,
        assertions=AssertionTests(tuple(row.tests)) if row.tests else None,
        requirements=tuple(row.named_requirements()),
    )


def hash_rows(rows: list[TaskRow]) -> str:
    """The hash of the fields that a task is made of, in task order.

    What came to the format later counts only where a row has it, so that older files keep their hash.
    """
    return content_hash([row.model_dump(include=set(TaskRow.model_fields), exclude=_unused(row)) for row in rows])


def _unused(row: TaskRow) -> set[str]:
    return {name for name in ("tests", "requirements") if not getattr(row, name)}


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1."""
    try:
        blob = path.read_bytes()
        if blob.startswith(b"\x1f\x8b"):
            blob = gzip.decompress(blob)
    except FileNotFoundError as error:
        raise UserError(f"dataset.path: there is no file {path}", "give a .jsonl or .jsonl.gz file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"dataset.path: cannot read {path}: {error}", "give a .jsonl or .jsonl.gz file") from error
    for number, line in enumerate(blob.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def _row(text: bytes) -> TaskRow:
    value = json.loads(text.decode("utf-8-sig"))
    if not isinstance(value, dict):
        raise ValueError("the line is not a JSON object")
    return TaskRow.model_validate(value)


def problem_of(error: Exception) -> str:
    """One line that says what is wrong, with the field where it is known."""
    match error:
        case ValidationError():
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            return f"{field}: {first['msg']}" if field else first["msg"].removeprefix("Value error, ")
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} (column {error.colno})"
        case UnicodeDecodeError():
            return f"not UTF-8 (byte {error.start})"
        case RecursionError():
            return "nested too deeply"
        case _:
            return str(error)
