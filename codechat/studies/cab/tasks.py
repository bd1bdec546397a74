"""Issues of repositories as tasks, read from CodeAssistBench's fields (docs/codeassist.md), and the paper's sample."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from codechat.base.domain import Target
from codechat.base.seeding import generator
from codechat.base.texts import writable
from codechat.datasets.tasks import Task
from codechat.sandbox.languages import language_of


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment of an issue's thread; `created_at` is its ISO 8601 time."""

    user: str
    created_at: str
    body: str


@dataclass(frozen=True, slots=True)
class Reference:
    """A user's reply to a maintainer in the thread of the issue at `url`."""

    id: str
    url: str
    maintainer: str
    user: str


@dataclass(frozen=True, slots=True)
class AssistTask(Task):
    """An issue of a repository: `prompt` is the title and the body that the user opens with.

    `pull` is True for a pull request. `conditions` satisfy the user, `thread` is the real one; no model under test sees
    either. The target's language is the repository's. `replies` come from all threads of the dataset, this one
    included. `needs_build`: the dataset has a Dockerfile for it, in `workspace` if there is one.
    `repository_created_at` is the repository's date, empty if the dataset does not have it.
    """

    title: str = ""
    body: str = ""
    author: str = ""
    url: str = ""
    pull: bool = False
    conditions: tuple[str, ...] = ()
    thread: tuple[Comment, ...] = ()
    created_at: str = ""
    replies: tuple[Reference, ...] = field(default=(), repr=False, compare=False)
    needs_build: bool = False
    repository_created_at: str = ""

    plural: ClassVar[str] = "issues of repositories"


ADDRESS = re.compile(r"https://github\.com/([\w-]+)/([\w.-]+)/(issues|pull)/([1-9]\d*)", re.ASCII)
Filled = Annotated[str, Field(pattern=r"\S")]


class CommentRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    user: str
    created_at: str
    body: str


class IssueRow(BaseModel):
    """One issue as published. `url` has the repository, the number, and the kind: issue or pull request."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    url: str
    title: Filled
    body: str | None
    author: Filled | None
    created_at: str
    commit_id: str = Field(pattern=r"^([0-9a-f]{40})?$")
    language: Filled
    satisfaction_conditions: list[Filled] = Field(min_length=1)
    comments: list[CommentRow]
    dockerfile: str | None
    test_command: Filled | None = None
    repository_created_at: Filled | None = None

    @field_validator("url")
    @classmethod
    def _of_an_issue(cls, url: str) -> str:
        found = ADDRESS.fullmatch(url)
        if found is None or found[2] in (".", ".."):
            raise ValueError("it must be https://github.com/OWNER/NAME/issues/NUMBER, or pull in place of issues")
        return url

    @property
    def repository(self) -> str:
        """`owner/name`."""
        return "/".join(self._parts[:2])

    @property
    def pull(self) -> bool:
        return self._parts[2] == "pull"

    @property
    def task_id(self) -> str:
        """`owner/name#4`."""
        return f"{self.repository}#{self._parts[3]}"

    @property
    def _parts(self) -> tuple[str, ...]:
        found = ADDRESS.fullmatch(self.url)
        assert found is not None
        return found.groups()

    def content(self) -> dict[str, Any]:
        """The row for the dataset's hash, without absent fields of later versions."""
        later = {name for name in ("test_command", "repository_created_at") if getattr(self, name) is None}
        return self.model_dump(exclude=later)

    def task(self) -> AssistTask:
        """The task, without a repository to work in."""
        body = self.body or ""
        return AssistTask(
            self.task_id,
            f"{self.title}\n\n{body}".strip(),
            Target(language_of(self.language).names[0]),
            title=self.title,
            body=body,
            author=self.author or "",
            url=self.url,
            pull=self.pull,
            conditions=tuple(self.satisfaction_conditions),
            thread=tuple(Comment(each.user, each.created_at, each.body) for each in self.comments),
            created_at=self.created_at,
            needs_build=self.dockerfile is not None,
            repository_created_at=self.repository_created_at or "",
        )


def issue_of(value: dict[str, Any]) -> IssueRow:
    """The issue in a line of a task file. Raises `ValueError`, also for a text that no file could contain.

    The benchmark's first form, in which its issues of all time are published, has other names for the same fields.
    """
    row = IssueRow.model_validate(_renamed(value) if "first_question" in value else value)
    if writable(value) is not value:
        raise ValueError("a text has half of a surrogate pair (\\ud800 to \\udfff)")
    return row


def _renamed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the first form (`first_question`, `commit_info`) under the names of the later form."""
    asked, commit = value["first_question"] or {}, value.get("commit_info") or {}
    return {
        **{"url": commit.get("repository"), "commit_id": (commit.get("latest_commit") or {}).get("sha") or ""},
        **{name: asked.get(name) for name in ("title", "body", "created_at") if name in asked},
        **{"author": asked.get("user"), "satisfaction_conditions": value.get("user_satisfaction_condition")},
        **{name: value[name] for name in ("comments", "language", "created_at") if name in value},
        **{name: value.get(name) for name in ("dockerfile", "test_command", "repository_created_at")},
    }


def words_of(text: str) -> list[str]:
    """The words of a text for comparisons, in small letters."""
    return re.findall(r"\w+", text.casefold())


def plain(text: str) -> str:
    """A text without marks, in small letters: equal for texts of the same words."""
    return " ".join(words_of(text))


def with_replies(tasks: Iterable[AssistTask]) -> list[AssistTask]:
    """The tasks, each with the users' replies of all of them."""
    known = list(tasks)
    replies = tuple(reply for task in known for reply in replies_in(task))
    return [replace(task, replies=replies) for task in known]


def replies_in(task: AssistTask) -> Iterator[Reference]:
    """The author's comments directly after another user's, each with that one. The id ends with its number."""
    for number, (said, replied) in enumerate(pairwise(task.thread), 2):
        if said.user != task.author == replied.user:
            yield Reference(f"{task.task_id}:{number}", task.url, said.body, replied.body)


RECENT_SINCE = "2024-11"  # repositories made in this month or later are of the cohort `recent`
WITH_DOCKERFILE, EACH, LONG_THREAD = 5, 10, 5
"""Issues with a Dockerfile, issues of a number of turns, and the number of turns that longer threads count as."""


def cohort_of(task: AssistTask) -> tuple[str, str]:
    """The cohort of an issue, `recent` or `all_time`, and the source of its date: `repository` or `issue`.

    An issue of a recent repository is recent; a recent issue may be of an older one.
    """
    date, source = task.repository_created_at, "repository"
    if not date:
        date, source = task.created_at, "issue"
    return "recent" if date >= RECENT_SINCE else "all_time", source


def thread_turns(task: AssistTask) -> int:
    """The number of answers of other users in the real thread: comments in a row are one turn."""
    by_author = [True, *(comment.user == task.author for comment in task.thread)]
    return sum(before and not now for before, now in pairwise(by_author))


def thread_replies(task: AssistTask) -> int:
    """The number of comments of other users in the real thread."""
    return sum(comment.user != task.author for comment in task.thread)


def paper_sample(tasks: Sequence[AssistTask], seed: int) -> list[AssistTask]:
    """The sample of CodeAssistBench's paper (section 4.2.2), in the tasks' order; another for another seed.

    Of every language and cohort 50 issues at most: up to five with a Dockerfile, then as many of each number of turns
    (1, 2, 3, 4, 5 or more) as make ten with them; a shortage is made up from the number before.
    """
    groups: dict[tuple[str, str], list[AssistTask]] = defaultdict(list)
    for task in tasks:
        groups[cohort_of(task)[0], task.target.language].append(task)
    taken = {task.task_id for place, group in groups.items() for task in _of_language(group, seed, "/".join(place))}
    return [task for task in tasks if task.task_id in taken]


def _of_language(group: Sequence[AssistTask], seed: int, place: str) -> list[AssistTask]:
    order = sorted(group, key=lambda task: task.task_id)
    generator(seed, place, "sample").shuffle(order)
    taken = [task for task in order if task.needs_build][:WITH_DOCKERFILE]
    known = {task.task_id for task in taken}
    missing = 0
    for turns in range(LONG_THREAD, 0, -1):
        of_turns = [task for task in order if max(1, min(thread_turns(task), LONG_THREAD)) == turns]
        here = sum(task.task_id in known for task in of_turns)
        wanted = max(0, EACH + missing - here)
        more = [task for task in of_turns if task.task_id not in known][:wanted]
        taken, missing = [*taken, *more], EACH + missing - here - len(more)
    return taken
