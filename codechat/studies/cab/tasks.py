"""Issues of repositories as tasks."""

from dataclasses import dataclass, field
from typing import ClassVar

from codechat.tasks import Task


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

    plural: ClassVar[str] = "issues of repositories"
