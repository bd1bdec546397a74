"""Seeds: finished programs from which steps are made, and the filters of functions of repositories (SR-Eval, 3.1.1)."""

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from codechat.base.domain import Verdict
from codechat.base.errors import UserError
from codechat.datasets.reading.lines import read_values
from codechat.datasets.reading.rows import as_list
from codechat.run.construct import Dropped, Item
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.python.syntax import assemble, parse
from codechat.studies.sreval.construct.algorithm import Place

SETTING = "seeds"
REMEDY = (
    "a line is one JSON object with id, instruction, solution, language and optional tests, entry_point; or a task of "
    "BigCodeBench or HumanEval+; or a function of a repository with id, signature, docstring, body, tests, place"
)
LEAST_LINES = 10  # least lines of code in the body of a repository's function: shorter ones are completed in one go
Tests = Annotated[list[str], BeforeValidator(as_list)]
Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class OwnRow(_Row):
    """A user's own seed; `tests` are for the whole program."""

    id: str = Field(min_length=1)
    instruction: str = Field(min_length=1)
    solution: str = Field(min_length=1)
    tests: Tests = []
    language: Literal["python", "java"]
    entry_point: str = ""

    def data(self) -> dict[str, Any]:
        return self.model_dump(exclude={"id"})


class BigCodeBenchRow(_Row):
    """A task of BigCodeBench: the instruction for a chat model, and tests of unittest."""

    id: str = Field(min_length=1, validation_alias="task_id")
    instruct_prompt: str = Field(min_length=1)
    complete_prompt: str
    code_prompt: str = ""
    canonical_solution: str = Field(min_length=1)
    test: str = Field(min_length=1)
    entry_point: str = Field(min_length=1)

    def data(self) -> dict[str, Any]:
        solution = (self.code_prompt or self.complete_prompt) + self.canonical_solution
        known = {"language": "python", "entry_point": self.entry_point}
        return {"instruction": self.instruct_prompt, "solution": solution, "tests": [self.test], **known}


class HumanEvalRow(_Row):
    """A task of HumanEval's form. Its calls (`base_input`) are no tests, since the reference gives their results."""

    id: str = Field(min_length=1, validation_alias="task_id")
    prompt: str = Field(min_length=1)
    canonical_solution: str = Field(min_length=1)
    entry_point: str = Field(min_length=1)
    test: str = ""
    tests: Tests = []

    def data(self) -> dict[str, Any]:
        solution = assemble(self.prompt, self.canonical_solution, self.entry_point)
        tests = self.tests or ([self.test] if self.test.strip() else [])
        known = {"language": "python", "entry_point": self.entry_point}
        return {"instruction": self.prompt, "solution": solution, "tests": tests, **known}


class Dependencies(BaseModel):
    """Names that a function uses, in DevEval's form: of its class, of its file, and of other files."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    intra_class: list[str] = []
    intra_file: list[str] = []
    cross_file: list[str] = []


class RepositoryRow(_Row):
    """A function of a repository. `place` has the fields of the suite `inserted` (Python) or `maven` (Java).

    `tests` are for the whole function; `place` has none. Without an instruction the converter writes one.
    """

    id: str = Field(min_length=1)
    signature: str = Field(min_length=1)
    docstring: str = ""
    body: str = Field(min_length=1)
    tests: Tests = Field(min_length=1)
    place: dict[str, Any]
    instruction: str = ""
    dependencies: Dependencies | None = None

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        if self.place.get("kind") not in ("inserted", "maven"):
            raise ValueError("place: kind is inserted (a function in Python) or maven (a method in Java)")
        language = "python" if self.place["kind"] == "inserted" else "java"
        Place(language, "", self.place).suite_of("\n".join(self.tests), self.body)
        return self

    def data(self) -> dict[str, Any]:
        python = self.place["kind"] == "inserted"
        head, body = textwrap.dedent(self.signature).strip(), textwrap.dedent(self.body).strip("\n")
        if python:
            solution = f"{head if head.endswith(':') else head + ':'}\n{textwrap.indent(body, '    ')}\n"
        else:
            solution = f"{head} {body}\n" if body.lstrip().startswith("{") else f"{head} {{\n{body}\n}}\n"
        known = {"language": "python" if python else "java", "entry_point": self.place["function"] if python else ""}
        shown = {"signature": self.signature, "docstring": self.docstring, "body": self.body, "place": self.place}
        found = {"dependencies": self.dependencies.model_dump()} if self.dependencies else {}
        return {"instruction": self.instruction, "solution": solution, "tests": self.tests, **known, **shown, **found}


FORMS: Mapping[str, type[OwnRow | BigCodeBenchRow | HumanEvalRow | RepositoryRow]] = {
    "place": RepositoryRow, "instruct_prompt": BigCodeBenchRow, "canonical_solution": HumanEvalRow,
}  # fmt: skip
"""The forms of rows, each by a field that only it has. Other rows are a user's own."""


def read_seeds(path: Path) -> Iterator[Item]:
    """The seeds of a file, `.jsonl` or `.jsonl.gz`, in order, each in one of the four forms.

    Raises `UserError` with file and line for an invalid row, a solution without a function, and a repeated id.
    """
    seen = set[str]()

    def read(value: Mapping[str, Any]) -> Item:
        row = next((form for key, form in FORMS.items() if key in value), OwnRow).model_validate(value)
        if row.id in seen:
            raise ValueError(f"the seed {row.id} is there twice")
        seen.add(row.id)
        data = row.data()
        return Item(row.id, {**data, "entry_point": function_of(data)}, {"seed": row.id})

    found = [item for _, item in read_values(path, read, REMEDY, SETTING)]
    if not found:
        raise UserError(f"{path} holds no seed", REMEDY)
    return iter(found)


def function_of(data: Mapping[str, Any]) -> str:
    """The name that every step must define; empty in Java, and for several. Raises `ValueError` without any."""
    solution, wanted = data["solution"], data["entry_point"]
    if data["language"] == "java":
        if "place" not in data and not language_of("java").defines(solution):
            raise ValueError("the solution declares no class in Java")
        return ""
    tree = parse(solution)
    if tree is None:
        raise ValueError("the solution is not valid Python")
    names = [node.name for node in tree.body if isinstance(node, Function | ast.ClassDef)]
    if wanted and wanted not in names:
        raise ValueError(f"the solution has no function {wanted}")
    if not names:
        raise ValueError("the solution has no function")
    return wanted or (names[0] if len(names) == 1 else "")


def place_of(data: Mapping[str, Any]) -> Place:
    """The place of an item's programs."""
    return Place(data["language"], data["entry_point"], data.get("place"))


def refuse_failing(ends: Iterable[tuple[str, Verdict]]) -> None:
    """Raises `UserError` that names the seeds whose solution fails its own tests."""
    wrong = [(name, verdict) for name, verdict in ends if not verdict.passed]
    if not wrong:
        return
    names = ", ".join(name for name, _ in wrong[:8]) + (f", … ({len(wrong)} in all)" if len(wrong) > 8 else "")
    failure = wrong[0][1].failure
    why = " ".join(filter(None, [failure.reason, failure.exception])) if failure else wrong[0][1].outcome
    words = " ".join(why.split())[-200:]
    raise UserError(f"the solution fails its own tests: {names}\n{wrong[0][0]}: {words}", "mend these seeds")


def lines_of_code(body: str, language: str) -> int:
    """The lines of a body with code: not blank, no brace, comment or docstring alone."""
    marks, lines = ("#",) if language == "python" else ("//", "/*", "*"), body.splitlines()
    tree = parse("def f():\n" + textwrap.indent(textwrap.dedent(body), " ")) if language == "python" else None
    first = next(iter(tree.body[0].body), None) if tree and isinstance(tree.body[0], ast.FunctionDef) else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines = lines[(first.end_lineno or 1) - 1 :]
    return sum(1 for line in lines if line.strip(" \t{}") and not line.lstrip().startswith(marks))


def filtered(data: Mapping[str, Any]) -> Dropped | None:
    """The reason to drop a repository's function that passes its tests in place; None if there is none.

    As in the paper: the body must be long enough and, if its dependencies are given, depend on its class or its file,
    and on no other file.
    """
    lines = lines_of_code(data["body"], data["language"])
    if lines < LEAST_LINES:
        return Dropped("short body", f"{lines} lines of code, and {LEAST_LINES} are the least")
    if "dependencies" not in data:
        return None
    uses = Dependencies.model_validate(data["dependencies"])
    if uses.cross_file:
        return Dropped("needs other files", ", ".join(uses.cross_file))
    return None if uses.intra_class or uses.intra_file else Dropped("stands alone", "it uses nothing of its file")
