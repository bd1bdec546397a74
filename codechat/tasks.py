"""Tasks: the problem of a session, and the tests of its answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from codechat.constraints import Constraint
from codechat.domain import Target
from codechat.suites import Suite


@dataclass(frozen=True, slots=True)
class Requirement:
    """A verifiable instruction: its text, and the suite that checks whether code meets it.

    `strategy` is its type (CodeIF-Bench, Table 1). `accumulates` is False if later code need not keep it, as for a
    functionality extension: it counts only at its own turn. `asked` is False if the dataset leaves it out of its
    conversation: it is then asked only in protocols that ask every requirement by itself.
    """

    id: str
    strategy: str
    text: str
    suite: Suite
    accumulates: bool = True
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Only its id and its prompt are required; a dataset with further material subclasses it.

    `prompt` is the dataset's problem text, `target` the requirements on an answer, `suite` the task's own tests.
    `reference` is a complete right program, shown to baselines and to the sandbox, never to a model under test.
    `requirements` are asked after the prompt, in order, if the dataset has its own conversation. `level` is the
    dataset's own grading.
    """

    task_id: str
    prompt: str
    target: Target = field(default_factory=Target)
    suite: Suite | None = None
    reference: str | None = None
    requirements: tuple[Requirement, ...] = ()
    level: str | None = None

    told: ClassVar[str] = "programming tasks"
    """What tasks of this kind are called in messages."""

    @property
    def suites(self) -> tuple[Suite, ...]:
        """The task's own suite, if it has one, and those of its requirements."""
        own = (self.suite,) if self.suite is not None else ()
        return (*own, *(requirement.suite for requirement in self.requirements))

    def solutions(self) -> Iterator[tuple[str, str | None, Suite]]:
        """The suites of the task's own, each with the program that is to pass it and with what it belongs to."""
        if self.suite is not None:
            yield "", self.reference, self.suite


@dataclass(frozen=True, slots=True)
class Step:
    """A requirement of a task that grows: its text, the suite of it alone, and a right program for it.

    A later step may contradict an earlier one, so the suites need not hold together.
    """

    instruction: str
    suite: Suite
    reference: str | None


@dataclass(frozen=True, slots=True)
class StepTask(Task):
    """A task whose requirements come step by step: `prompt` is the first one, `reference` the last right program.

    `above` is the code above the function in a repository's file, empty if the program stands alone.
    """

    steps: tuple[Step, ...] = ()
    above: str = ""

    told: ClassVar[str] = "tasks whose requirements come step by step"

    @property
    def suites(self) -> tuple[Suite, ...]:
        """The suites of the steps."""
        return tuple(step.suite for step in self.steps)

    def solutions(self) -> Iterator[tuple[str, str | None, Suite]]:
        """The steps' suites, each with its own program."""
        for number, step in enumerate(self.steps, 1):
            yield f"turn {number}", step.reference, step.suite


@dataclass(frozen=True, slots=True)
class Level:
    """A level of a task with constraints: its name, a prompt that states all, and all constraints so far."""

    name: str
    prompt: str
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class ConstrainedTask(Task):
    """A task whose answers must keep constraints: `prompt` is the first level's; most tasks have but one level.

    The target's language is empty if the task names none.
    """

    levels: tuple[Level, ...] = ()

    told: ClassVar[str] = "tasks with constraints on the code"


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment of an issue's thread; `created_at` is its ISO 8601 time."""

    user: str
    created_at: str
    body: str


@dataclass(frozen=True, slots=True)
class Reference:
    """How a user replied to a maintainer in the thread of an issue, which `url` names."""

    id: str
    url: str
    maintainer: str
    user: str


@dataclass(frozen=True, slots=True)
class Workspace:
    """The repository that a session works in: the path of a clone or mirror on this machine, and the commit.

    `dockerfile` is the text of the dataset's own Dockerfile.
    """

    repository: str
    commit: str
    dockerfile: str | None = None


@dataclass(frozen=True, slots=True)
class AssistTask(Task):
    """An issue of a repository: `prompt` is the title and the body that the user opens with.

    `pull` is True for a pull request. `conditions` say what satisfies the user, `thread` is what was really said; no
    model under test sees either. The target's language is the repository's. `workspace` is None without a repository.
    `replies` are those in all threads of the dataset, this one's too. `needs_build`: the dataset has a Dockerfile for
    it, which `workspace` holds if there is one.
    """

    title: str = ""
    body: str = ""
    author: str = ""
    url: str = ""
    pull: bool = False
    conditions: tuple[str, ...] = ()
    thread: tuple[Comment, ...] = ()
    workspace: Workspace | None = None
    created_at: str = ""
    replies: tuple[Reference, ...] = field(default=(), repr=False, compare=False)
    needs_build: bool = False

    told: ClassVar[str] = "issues of repositories"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks in order, with the hash of their whole content.

    `places` says where a task is written, as `FILE:LINE`. `own` marks the user's own tasks: a cell refuses those whose
    tests cannot be passed, while a published dataset keeps its known defects. `remark` is what a user should
    know of the tasks.
    """

    name: str
    tasks: tuple[Task, ...]
    content_hash: str
    places: Mapping[str, str] = field(default_factory=dict)
    own: bool = False
    remark: str = ""
