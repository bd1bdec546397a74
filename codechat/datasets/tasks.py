"""Tasks: the problem of a session, and the tests of its answers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from codechat.base.domain import Target
from codechat.sandbox.languages import file_for
from codechat.sandbox.suites import Suite


@dataclass(frozen=True, slots=True)
class Requirement:
    """A verifiable instruction: its text, and the suite that checks whether code meets it.

    `strategy` is the type. `accumulates` is False if the requirement counts only at its turn, as a functionality
    extension does. `asked` is False if it is not part of the dataset's conversation: then only protocols that ask every
    requirement separately ask it.
    """

    id: str
    strategy: str
    text: str
    suite: Suite
    accumulates: bool = True
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Workspace:
    """The repository that a session works in: the path of a clone or mirror on this machine, and the commit.

    `dockerfile` is the text of the dataset's own Dockerfile, `test` its command that tests the repository in the image.
    """

    repository: str
    commit: str
    dockerfile: str | None = None
    test: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Where a coding agent begins: the path of its file for code; `pack` makes a tar archive of the folder's files.

    `pack` may take seconds for a repository, and raises `UserError`; None: the folder is empty.
    """

    file: str
    pack: Callable[[], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Only id and prompt are required; a study with further material has a subclass (`studies/`).

    `prompt` is the dataset's problem text, `target` the requirements on an answer, `suite` the task's tests.
    `reference` is a complete right program, shown to baselines and to the sandbox, never to a model under test.
    `requirements` are asked after the prompt, in order, if the dataset has a conversation. `level` is the dataset's
    grading. `workspace` is the repository in which commands run. `contract` is a whole program whose entry point raises
    `AssertionError` for arguments that the task does not allow.
    """

    task_id: str
    prompt: str
    target: Target = field(default_factory=Target)
    suite: Suite | None = None
    reference: str | None = None
    requirements: tuple[Requirement, ...] = ()
    level: str | None = None
    workspace: Workspace | None = None
    contract: str | None = None

    plural: ClassVar[str] = "programming tasks"
    """The name of tasks of this kind in messages."""
    needs_libraries: ClassVar[bool] = False
    """Whether a cell is refused if programs cannot import what the tests and references import."""
    fitting_versions: ClassVar[Mapping[str, str]] = {}
    """By package, the version that the tests are known to fit."""

    @property
    def asks_judge(self) -> bool:
        """Whether the task has a constraint that only a judge can decide."""
        return False

    def undecidable(self) -> Iterator[str]:
        """The demands of the task that stay undecided for any code, and why; shown at the start."""
        return iter(())

    @property
    def suites(self) -> tuple[Suite, ...]:
        """The task's suite, if there is one, and the suites of its requirements."""
        own = (self.suite,) if self.suite is not None else ()
        return (*own, *(requirement.suite for requirement in self.requirements))

    def solutions(self) -> Iterator[tuple[str, str | None, Suite]]:
        """The task's suites, each after a name and the program that should pass it."""
        if self.suite is not None:
            yield "", self.reference, self.suite

    def reference_at(self, turn: int) -> str | None:
        """The right answer to a turn, counted from 0, if the task has an answer for each turn."""
        return None

    def lengths(self) -> Iterator[tuple[str, str, str]]:
        """Question, code and tests of each turn, if the benchmark's paper gives their lengths; here none."""
        yield from ()

    def start(self) -> Start:
        """Where a coding agent begins. The folder holds no reference and no test that decides."""
        return Start(file_for(self.target.language))

    def texts(self) -> Iterator[str]:
        """Every text of the task that can reach a model, a record or a table."""
        target = self.target
        yield from (self.prompt, target.language, target.entry_point, target.signature, self.level or "")
        for each in self.requirements:
            yield from (each.id, each.strategy, each.text)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in order, with the hash of their whole content.

    `places` has the place of each task as `FILE:LINE`. `own` marks the user's own tasks: a cell refuses tasks whose
    tests cannot be passed, while a published dataset keeps its known defects. `remark` is a note on the tasks for the
    user, `details` are further lines for `codechat verify`; `departure` says how the tasks differ from the benchmark
    of the same name.
    """

    name: str
    tasks: tuple[Task, ...]
    content_hash: str
    places: Mapping[str, str] = field(default_factory=dict)
    own: bool = False
    remark: str = ""
    details: tuple[str, ...] = ()
    departure: str = ""
