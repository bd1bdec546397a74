"""How an issue of the starter is written: a repository commit by commit, and a thread."""

from collections.abc import Sequence
from dataclasses import dataclass

from codechat.domain import Target
from codechat.studies.cab.starter.repository import Commit, objects_of, write_once
from codechat.studies.cab.tasks import AssistTask, Comment
from codechat.tasks import Workspace

MAINTAINER, USER = "maintainer", "user"
OPENED = "2025-02-01T09:00:00Z"


@dataclass(frozen=True, slots=True)
class StarterIssue:
    """An issue of a tiny repository.

    `asked_at` is the number of the commit, from 0, at which it was opened; the later ones are what became of it, and
    no maintainer may see them. `thread` has who said what, beginning behind the opening.
    """

    name: str
    language: str
    commits: Sequence[Commit]
    asked_at: int
    title: str
    body: str
    conditions: tuple[str, ...]
    thread: Sequence[tuple[str, str]]

    def task(self) -> AssistTask:
        """The task, with its repository in codechat's cache. Raises `UserError` if that cannot be written."""
        ids, objects = objects_of(self.commits, MAINTAINER)
        repository = write_once(self.name, ids[-1], objects)
        said = enumerate(self.thread, 10)
        return AssistTask(
            f"starter/{self.name}#1",
            f"{self.title}\n\n{self.body}",
            Target(self.language),
            title=self.title,
            body=self.body,
            author=USER,
            url=f"starter/{self.name}/issues/1",
            conditions=self.conditions,
            thread=tuple(Comment(who, f"2025-02-01T{hour}:00:00Z", text) for hour, (who, text) in said),
            workspace=Workspace(str(repository), ids[self.asked_at]),
            created_at=OPENED,
        )
