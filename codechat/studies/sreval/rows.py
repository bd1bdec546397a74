"""Tasks whose requirements come step by step, also in a user's own file: `turns` of a row (docs/datasets.md)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codechat.base.domain import Extraction, Reply, Target, Trajectory
from codechat.datasets.reading.rows import PYTHON, Adapt, GivenSuite, Snippets, TaskRow, make_suite, register_form
from codechat.datasets.tasks import Start, Task
from codechat.sandbox.languages import no_code
from codechat.sandbox.languages.python.syntax import signature_of
from codechat.sandbox.suites import Suite
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.repository import Gap

# Newer versions of pandas, matplotlib and keras fail about 20 right turns. The references were checked with all of
# these together, on Python 3.11 (docs/sreval.md).
PINNED: Mapping[str, str] = {
    "beautifulsoup4": "4.15.0", "chardet": "7.7.0", "cryptography": "50.0.2", "flask": "3.1.3",
    "flask-login": "0.6.3", "flask-mail": "0.10.0", "flask-wtf": "1.3.0", "gensim": "4.4.0", "geopandas": "1.1.4",
    "keras": "2.15.0", "levenshtein": "0.27.5", "librosa": "0.11.0", "lxml": "4.9.4", "matplotlib": "3.7.5",
    "nltk": "3.8.1", "numpy": "1.26.4", "opencv-python-headless": "4.10.0.84", "openpyxl": "3.1.5",
    "pandas": "2.0.3", "pillow": "13.0.0", "psutil": "7.2.2", "pycryptodome": "4.4.0", "pyquery": "2.1.0",
    "pytesseract": "0.3.13", "python-docx": "1.2.0", "pytz": "2026.6", "regex": "2026.11.15", "requests": "2.34.2",
    "rsa": "4.9.1", "scikit-learn": "1.3.1", "scipy": "1.11.4", "seaborn": "0.13.2", "shapely": "2.2.0",
    "soundfile": "0.14.0", "statsmodels": "0.14.1", "tensorflow-cpu": "2.15.1", "werkzeug": "3.1.9",
    "wordcloud": "1.9.6", "wtforms": "3.3.2", "xlwt": "1.3.0",
}  # fmt: skip


@runtime_checkable
class OfFile(Protocol):
    """A suite of a function in a repository's file. Its program is the function; the whole file if `whole` is set."""

    def gap(self) -> Gap:
        """The repository without the function: in its place is its signature and a body that raises an error."""

    def holds_function(self, text: str) -> bool:
        """Whether the text of a file defines the function."""


def suite_for(reply: Reply, suite: Suite) -> Suite:
    """The suite for the code of a reply: a coding agent writes a repository's whole file."""
    if reply.trajectory is not None and isinstance(suite, OfFile):
        return replace(suite, whole=True)  # type: ignore[type-var]
    return suite


def file_of(trajectory: Trajectory, suite: OfFile) -> Extraction:
    """The file of a coding agent, if it still defines the function. Whether it compiles is for its tests to find."""
    text = trajectory.file
    if not text or not text.strip():
        return no_code("the function's file is missing or empty")
    if not suite.holds_function(text):
        return no_code("the function's file no longer defines it", lacks_name=True)
    return Extraction(text, text, None, "the function's file")


@dataclass(frozen=True, slots=True)
class Step:
    """A requirement of a task that grows: its text, the suite for it alone, and a right program.

    A later step may contradict an earlier one, so the suites need not hold together. `tests` is the text of the tests
    as they were published, empty if there is none.
    """

    instruction: str
    suite: Suite
    reference: str | None
    tests: str = ""


@dataclass(frozen=True, slots=True)
class StepTask(Task):
    """A task whose requirements come step by step: `prompt` is the first one, `reference` the last right program.

    `above` is the code above the function in a repository's file, empty if the program stands alone.
    """

    steps: tuple[Step, ...] = ()
    above: str = ""

    needs_libraries: ClassVar[bool] = True
    fitting_versions: ClassVar[Mapping[str, str]] = PINNED
    plural: ClassVar[str] = "tasks whose requirements come step by step"

    @property
    def suites(self) -> tuple[Suite, ...]:
        return tuple(step.suite for step in self.steps)

    def solutions(self) -> Iterator[tuple[str, str | None, Suite]]:
        """The steps' suites, each with its own program."""
        for number, step in enumerate(self.steps, 1):
            yield f"turn {number}", step.reference, step.suite

    def reference_at(self, turn: int) -> str | None:
        """The program of the turn's step."""
        return self.steps[turn].reference

    def start(self) -> Start:
        """The repository without the function, its tests and any copy of a reference, if there is a repository."""
        gaps = [step.suite.gap() for step in self.steps if isinstance(step.suite, OfFile)]
        if not gaps:
            return super(StepTask, self).start()
        references = [step.reference for step in self.steps if step.reference]
        return Start(gaps[0].file, lambda: gaps[0].packed([*references, *(gap.new_tests for gap in gaps)]))

    def lengths(self) -> Iterator[tuple[str, str, str]]:
        """The question (with the code above the function), the reference and the tests of each step."""
        for step in self.steps:
            question = "\n\n".join(part for part in (self.above, step.instruction) if part)
            yield question, step.reference or "", step.tests

    def texts(self) -> Iterator[str]:
        """The texts of any task, the code above the function, and the steps' instructions."""
        yield from super(StepTask, self).texts()
        yield self.above
        yield from (step.instruction for step in self.steps)


WITH_TURNS = frozenset({"task_id", "turns", "language", "entry_point"})


class StepRow(BaseModel):
    """One turn: what is asked, a right program for it, and its own tests, as snippets or as a suite of any kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    instruction: str = Field(min_length=1)
    solution: str | None = None
    suite: GivenSuite = None
    tests: Snippets = []

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if bool(self.tests) == (self.suite is not None):
            raise ValueError("give tests or suite, one of them and not both")
        return self


@register_form("turns")
class TurnsRow(TaskRow):
    """A task that grows by one requirement a turn.

    task_id and turns
    """

    turns: list[StepRow]

    def check(self) -> None:
        """Raises `ValueError` if the row has fields that only a task of one turn has."""
        more = sorted(self.filled_fields() - WITH_TURNS)
        if more:
            raise ValueError(f"turns: each has its own instruction, solution and tests; leave out {', '.join(more)}")

    def task(self, adapt: Adapt) -> Task:
        """The task, whose reference is the last turn's solution."""
        reference = self.turns[-1].solution
        signature = ""
        if self.language == PYTHON and self.entry_point:
            signature = signature_of(reference or self.prompt, self.entry_point) or ""
        target = Target(self.language, self.entry_point, signature)
        steps = tuple(step_of(turn, self.task_id) for turn in self.turns)
        return StepTask(self.task_id, self.turns[0].instruction, target, None, reference, steps=steps)


def step_of(row: StepRow, task_id: str) -> Step:
    """The step that a turn describes."""
    suite = make_suite(row.suite, task_id) if row.suite else Assertions(tuple(row.tests), reference=row.solution)
    return Step(row.instruction, suite, row.solution)
