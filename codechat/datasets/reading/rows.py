"""EvalPlus's row format: one JSON object a line, plain or gzip, read into tasks (docs/datasets.md)."""

import difflib
import inspect
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)

from codechat.base.config import Config
from codechat.base.domain import Target
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.base.plugins import import_all
from codechat.datasets.reading.lines import read_tasks
from codechat.datasets.tasks import Dataset, Requirement, Task
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.python.syntax import assemble, signature_of
from codechat.sandbox.suites import SUITES, SingleLanguage, Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls, Driven, only_expressible, require_results
from codechat.sandbox.suites.calls.oracle import Oracle

PYTHON = "python"
_EVALPLUS = frozenset({"test", "assertion"})  # its fields that are not used here
RESERVED = "task"  # the id of the task's own tests
REMEDY = (
    "a line is one JSON object with task_id, prompt, entry_point, canonical_solution, and base_input, tests or suite; "
    "optional: plus_input, atol, oracle, base_output, plus_output, requirements, language, signature"
)


# MBPP+ v0.2.0 writes {} for a task without plus inputs
Inputs = Annotated[list[list[Any]], BeforeValidator(lambda value: [] if value == {} else value)]


def as_list(value: Any) -> Any:
    """A list of texts; a single text becomes a list of one."""
    return [value] if isinstance(value, str) else value


Snippets = Annotated[list[str], BeforeValidator(as_list)]


def _suite_config(value: Any) -> Any:
    """The validated fields of a suite, by its kind."""
    if not isinstance(value, dict):
        return value
    try:
        return SUITES.validate(value, "suite")
    except UserError as error:
        raise ValueError(", ".join(str(error).splitlines())) from error


GivenSuite = Annotated[
    Config | None, BeforeValidator(_suite_config), PlainSerializer(lambda suite: suite and suite.identity())
]


def make_suite(config: Config, name: str) -> Suite:
    """The suite of a row; `name` is the task's name in messages."""
    if "name" in type(config).model_fields and "name" not in config.model_fields_set:
        config = config.model_copy(update={"name": name})
    return SUITES.build(config)


class RequirementRow(BaseModel):
    """A user's verifiable instruction with either `tests` (Python snippets) or a `suite` (tests of any kind). Figures
    are grouped by `type`; if `accumulates` is false, later code need not keep the requirement."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str | None = Field(None, min_length=1)
    type: str = Field(min_length=1)
    text: str = Field(min_length=1)
    suite: GivenSuite = None
    tests: Snippets = Field([], validate_default=True)
    accumulates: bool = True

    @field_validator("tests")
    @classmethod
    def _one_of_two(cls, tests: list[str], info: ValidationInfo) -> list[str]:
        if bool(tests) == (info.data.get("suite") is not None):
            raise ValueError("give tests or suite, not both" if tests else "Field required")
        return tests


class TaskRow(BaseModel):
    """One line of the file. Further fields are ignored, because EvalPlus has some, unless they look like a misspelling
    of these. The texts are parsed as Python only if the `language` is Python."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    task_id: str = Field(min_length=1)
    prompt: str = ""
    language: str = Field(PYTHON, min_length=1)
    entry_point: str = ""
    signature: str = ""
    canonical_solution: str | None = None
    base_input: Inputs = []
    plus_input: Inputs = []
    atol: float = Field(0.0, ge=0, allow_inf_nan=False)
    oracle: Oracle = "equal"
    base_output: list[Any] | None = None
    plus_output: list[Any] | None = None
    tests: Snippets = []
    suite: GivenSuite = None
    requirements: list[RequirementRow] = []
    contract: str | None = None

    @field_validator("entry_point")
    @classmethod
    def _identifier(cls, name: str, info: ValidationInfo) -> str:
        if info.data.get("language") == PYTHON and (not name.isidentifier() or keyword.iskeyword(name)):
            raise ValueError("is not a Python name")
        return name

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in set(self.model_extra or {}) - _EVALPLUS - forms().keys():
            for meant in difflib.get_close_matches(name, (*type(self).model_fields, *forms()), n=1, cutoff=0.8):
                raise ValueError(f"unknown field '{name}': did you mean '{meant}'?")
        self.check()
        return self

    def check(self) -> None:
        """Raises `ValueError` if the fields contradict each other or the language."""
        if "prompt" not in self.model_fields_set:
            raise ValueError("prompt: Field required")
        self._one_suite()
        ids = [each.id for each in self.named_requirements()]
        for name in ids:
            if name == RESERVED or ids.count(name) > 1:
                raise ValueError(f"requirements: the id '{name}' is taken; give each a unique id")
        reference = self.canonical_solution
        require_results("base_output", self.base_input, self.base_output, "canonical_solution", reference)
        require_results("plus_output", self.plus_input, self.plus_output, "canonical_solution", reference)

    @property
    def driven(self) -> bool:
        """Whether a driver calls the programs."""
        return self.language != PYTHON and bool(self.base_input)

    def filled_fields(self) -> set[str]:
        """The names of the fields that are not empty, with the fields of other forms."""
        names = {*type(self).model_fields, *forms()} & self.model_fields_set
        return {name for name in names if getattr(self, name, None)}

    def _one_suite(self) -> None:
        """Refuse tests that contradict each other or the language."""
        calls, snippets = bool(self.base_input), bool(self.tests)
        if (calls and snippets) or (self.plus_input and not calls and not snippets):
            raise ValueError("give base_input (calls to compare) or tests (assertions), one of them and not both")
        if snippets and self.plus_input:
            raise ValueError("plus_input goes with base_input, not with tests")
        if (calls or snippets) and self.suite is not None:
            raise ValueError("give suite alone, without base_input and tests")
        if snippets and self.language != PYTHON:
            raise ValueError(f"tests are for Python: give base_input or suite for {self.language}")
        if calls and not self.entry_point:
            raise ValueError("entry_point: Field required")

    def named_requirements(self, reference: str | None = None) -> list[Requirement]:
        """The requirements in order; one without an id gets its number, from 1."""
        found = []
        for number, each in enumerate(self.requirements, 1):
            suite = self._assess(each.suite, each.tests, reference)
            found.append(Requirement(each.id or str(number), each.type, each.text, suite, each.accumulates))
        return found

    def task(self, adapt: "Adapt") -> Task:
        """The task that the row describes. Raises `ValueError` if its texts make no program or show no signature."""
        reference, signature = self.canonical_solution, self.signature if self.driven else ""
        if self.language == PYTHON and self.entry_point:
            if reference is not None:
                reference = assemble(self.prompt, reference, self.entry_point)
            signature = signature_of(reference or self.prompt, self.entry_point) or ""
            if not signature and (self.base_input or self.tests):
                line = f"def {self.entry_point}(...):"
                raise ValueError(f"prompt: without canonical_solution it must show the line '{line}'")
        target = Target(self.language, self.entry_point, signature)
        suite = self._suite(reference, adapt)
        requirements = tuple(self.named_requirements(reference))
        asserts = (self.contract or "").rstrip()
        contract = f"{reference}\n\n\n{signature}\n{asserts}\n" if reference and signature and asserts else None
        return Task(self.task_id, self.prompt, target, suite, reference, requirements, contract=contract)

    def _assess(self, suite: Any, tests: Sequence[str], reference: str | None) -> Suite:
        """The given suite, or else assertions; assertions get the task's reference."""
        made = Assertions(tuple(tests)) if suite is None else make_suite(suite, self.task_id)
        return replace(made, reference=reference) if isinstance(made, Assertions) else made

    def _suite(self, reference: str | None, adapt: "Adapt") -> Suite | None:
        """The task's own tests; None if it has none."""
        if self.suite is not None or self.tests:
            return self._assess(self.suite, self.tests, reference)
        if not self.base_input:
            return None
        expected = {"base": self.base_output, "plus": self.plus_output}
        calls = Calls(
            self.entry_point,
            reference,
            base=tuple(map(tuple, self.base_input)),
            plus=tuple(map(tuple, self.plus_input)),
            atol=self.atol,
            oracle=self.oracle,
            name=self.task_id,
            **{f"expected_{part}": tuple(outputs) for part, outputs in expected.items() if outputs is not None},
        )
        if self.language == PYTHON:
            return adapt(calls)
        try:
            return only_expressible(Driven.of(calls, self.language, self.signature), "input")
        except UserError as error:
            raise ValueError(f"language: {error.message}") from error


Adapt = Callable[[Calls], Calls]
_FORMS: dict[str, type[TaskRow]] = {}
F = TypeVar("F", bound=type[TaskRow])


def register_form(field: str) -> Callable[[F], F]:
    """Decorator for a further form of row, for tasks of another kind: rows in which `field` is not empty. A study
    registers its form in its file `rows.py`. The last line of the form's docstring lists the fields of a row."""

    def remember(form: F) -> F:
        _FORMS[field] = form
        return form

    return remember


@cache
def forms() -> Mapping[str, type[TaskRow]]:
    """The further forms by their fields."""
    import_all("codechat.datasets.reading", "rows")
    return _FORMS


def load_rows(name: str, path: Path, adapt: Adapt = lambda calls: calls) -> Dataset:
    """The dataset in a file, plain or gzip. `adapt` finishes a task's calls (argument types, comparison).

    The content hash is over the parsed rows in order, without compression, path, spacing and unused fields. Raises
    `UserError` that names the file and the malformed line.
    """

    def parse(value: dict[str, Any]) -> tuple[TaskRow, Task]:
        form = next((form for field, form in forms().items() if value.get(field, []) != []), TaskRow)
        row = form.model_validate(value)
        return row, task_from(row, adapt)

    remedies = (REMEDY, *((inspect.getdoc(form) or "").splitlines()[-1] for form in forms().values()))
    read = read_tasks(path, parse, "; or ".join(remedies))
    return read.dataset(name, hash_rows(read.rows))


def task_from(row: TaskRow, adapt: Adapt = lambda calls: calls) -> Task:
    """The task of a row. Raises `ValueError`, also if some tests could not run."""
    task = row.task(adapt)
    for suite in task.suites:
        if isinstance(suite, SingleLanguage) and language_of(suite.language) != language_of(row.language):
            raise ValueError(f"tests of kind {suite.kind} are for {suite.language}: give suite for {row.language}")
        if isinstance(suite, Assertions):
            suite.names_used(row.entry_point)
    return task


def hash_rows(rows: list[TaskRow]) -> str:
    """The hash of the fields that make a task, in task order. Fields that are newer than the format count only if a row
    has them, so that older files keep their hash."""
    return content_hash([row.model_dump(include=set(type(row).model_fields), exclude=_unused(row)) for row in rows])


def _unused(row: TaskRow) -> dict[str, Any]:
    newer = {name: bool(getattr(row, name)) for name in ("tests", "suite", "requirements")}
    newer |= {"language": row.language != PYTHON, "signature": row.driven}
    newer["contract"] = False  # it decides no verdict
    unused: dict[str, Any] = {name: True for name, used in newer.items() if not used}
    if row.requirements:
        unused["requirements"] = {i: {"suite"} for i, each in enumerate(row.requirements) if each.suite is None}
    return unused
