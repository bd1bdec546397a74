"""Issues of repositories as tasks, read from CodeAssistBench's fields (docs/codeassist.md)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from codechat.base.domain import Target
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
    """How a user replied to a maintainer in the thread of an issue, which `url` names."""

    id: str
    url: str
    maintainer: str
    user: str


@dataclass(frozen=True, slots=True)
class AssistTask(Task):
    """An issue of a repository: `prompt` is the title and the body that the user opens with.

    `pull` is True for a pull request. `conditions` say what satisfies the user, `thread` is what was really said; no
    model under test sees either. The target's language is the repository's. `replies` are those in all threads of the
    dataset, this one's too. `needs_build`: the dataset has a Dockerfile for it, in `workspace` if there is one.
    `repository_created_at` is the repository's own date, empty if the dataset does not say it.
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
    """One comment of the thread."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    user: str
    created_at: str
    body: str


class IssueRow(BaseModel):
    """One issue as published. `url` has the repository, the number, and whether it is a pull request."""

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
        """Whether it is a pull request."""
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
        """The row for the dataset's hash: without fields of later versions that it does not have."""
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
    """The issue in a line of a task file. Raises `ValueError`, also for a text that no file could hold.

    The benchmark's first form, in which its issues of all time are published, has other names for the same.
    """
    row = IssueRow.model_validate(_renamed(value) if "first_question" in value else value)
    if writable(value) is not value:
        raise ValueError("a text has half of a surrogate pair (\\ud800 to \\udfff)")
    return row


def _renamed(value: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the first form (`first_question`, `commit_info`) under the names of the later one."""
    asked, commit = value["first_question"] or {}, value.get("commit_info") or {}
    shared: dict[str, Any] = {name: value[name] for name in ("comments", "language", "created_at") if name in value}
    later: dict[str, Any] = {name: value.get(name) for name in ("dockerfile", "test_command", "repository_created_at")}
    return {
        **{"url": commit.get("repository"), "commit_id": (commit.get("latest_commit") or {}).get("sha") or ""},
        **{name: asked.get(name) for name in ("title", "body", "created_at") if name in asked},
        **{"author": asked.get("user"), "satisfaction_conditions": value.get("user_satisfaction_condition")},
        **shared,
        **later,
    }


def with_replies(tasks: Iterable[AssistTask]) -> list[AssistTask]:
    """The tasks, each with the users' replies of all of them."""
    known = list(tasks)
    replies = tuple(reply for task in known for reply in replies_in(task))
    return [replace(task, replies=replies) for task in known]


def replies_in(task: AssistTask) -> Iterator[Reference]:
    """The comments of the user that directly follow somebody else's, each with that one.

    The id ends with the number of the reply in the thread, from 1.
    """
    for number, (said, replied) in enumerate(zip(task.thread, task.thread[1:], strict=False), 2):
        if said.user != task.author == replied.user:
            yield Reference(f"{task.task_id}:{number}", task.url, said.body, replied.body)
