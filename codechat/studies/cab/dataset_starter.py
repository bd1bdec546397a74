"""The embedded issues: three of this project's own, on tiny repositories, to show a dialogue without key or network.

Each is a file of `starter/`: the issue, its thread, and the repository as the texts of its commits. The repositories
have the same commit ids on every machine, and are written without the program git.
"""

import hashlib
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from codechat.base.config import original_option
from codechat.base.domain import Target
from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.base.files import content_hash, from_yaml
from codechat.datasets import DATASETS, DatasetConfig
from codechat.datasets.tasks import Dataset, Workspace
from codechat.studies.cab.tasks import AssistTask, Comment, with_replies

ISSUES = ("till", "pebble", "kettle")
MAINTAINER, USER = "maintainer", "user"
OPENED = "2025-02-01T09:00:00Z"
BEGUN_S = 1_735_689_600
"""The time of the first commit, 2025-01-01 in UTC; every further one is a day later."""
DAY_S = 86_400


class AssistStarterConfig(DatasetConfig):
    """Options of `assist_starter`."""

    kind: Literal["assist_starter"] = original_option("assist_starter", "which dataset")


@DATASETS.register("assist_starter", AssistStarterConfig)
def assist_starter(config: AssistStarterConfig) -> Dataset:
    """Three small issues of this project's own, with their repositories: embedded, nothing to download."""
    issues = [_read(name) for name in ISSUES]
    content = content_hash([asdict(issue) for issue in issues])
    return Dataset("assist_starter", tuple(with_replies(issue.task() for issue in issues)), content)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit: its message, and the whole texts of the files that it adds or changes, by path."""

    message: str
    files: Mapping[str, str]


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


def _read(name: str) -> StarterIssue:
    values = from_yaml((Path(__file__).parent / "starter" / f"{name}.yaml").read_text(encoding="utf-8"))
    commits = [Commit(**each) for each in values.pop("commits")]
    thread = [said for each in values.pop("thread") for said in each.items()]
    conditions = tuple(values.pop("conditions"))
    return StarterIssue(name, commits=commits, thread=thread, conditions=conditions, **values)


Objects = dict[str, bytes]
"""Git objects with their headers, by id."""


def objects_of(commits: Sequence[Commit], author: str) -> tuple[list[str], Objects]:
    """The ids of the commits, each the child of the one before, and all objects."""
    objects: Objects = {}
    ids: list[str] = []
    files: dict[str, str] = {}
    for number, commit in enumerate(commits):
        files |= commit.files
        parent = [f"parent {ids[-1]}"] if ids else []
        signed = f"{author} <{author}@localhost> {BEGUN_S + number * DAY_S} +0000"
        tree = _tree(files, objects)
        lines = [f"tree {tree}", *parent, f"author {signed}", f"committer {signed}", "", commit.message]
        ids.append(_keep("commit", ("\n".join(lines) + "\n").encode(), objects))
    return ids, objects


def write_once(name: str, last: str, objects: Objects) -> Path:
    """The bare repository of these objects in codechat's cache, `last` its newest commit. Raises `UserError`."""
    folder = cache_root() / "assist_starter" / content_hash([name, last])[:16] / f"{name}.git"
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            new = Path(made) / "new"
            for path, data in _files(last, objects):
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                (new / path).write_bytes(data)
            _move(new, folder)
    except OSError as error:
        raise UserError(
            f"cannot write {folder}: {error.strerror}", "free some space, or set CODECHAT_CACHE_DIR"
        ) from error
    return folder


def _files(last: str, objects: Objects) -> Iterator[tuple[str, bytes]]:
    yield "HEAD", b"ref: refs/heads/main\n"
    yield "config", b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
    yield "refs/heads/main", f"{last}\n".encode()
    for name, data in objects.items():
        yield f"objects/{name[:2]}/{name[2:]}", zlib.compress(data)


def _move(new: Path, folder: Path) -> None:
    try:
        new.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process came first, with the same content
            raise


def _tree(files: Mapping[str, str], objects: Objects) -> str:
    """The id of the folder of these files."""
    inner: dict[str, dict[str, str]] = {}
    entries: list[tuple[str, bytes]] = []
    for path, text in files.items():
        name, slash, rest = path.partition("/")
        if slash:
            inner.setdefault(name, {})[rest] = text
        else:
            entries.append((name, _entry("100644", name, _keep("blob", text.encode(), objects))))
    for name, below in inner.items():
        entries.append((f"{name}/", _entry("40000", name, _tree(below, objects))))  # git sorts folders so
    return _keep("tree", b"".join(entry for _, entry in sorted(entries)), objects)


def _entry(mode: str, name: str, identity: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(identity)


def _keep(kind: str, content: bytes, objects: Objects) -> str:
    data = f"{kind} {len(content)}\0".encode() + content
    identity = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    objects[identity] = data
    return identity
