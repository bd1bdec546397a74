"""The embedded issues: three of this project's own, on tiny repositories, to show a dialogue without key or network.

Each is a file of `starter/`: the issue, its thread, and the repository as the texts of its commits. `asked_at` is the
number of the commit, from 0, at which the issue was opened; no maintainer may see the later ones. The repositories have
the same commit ids on every machine, and are written without the program git.
"""

import hashlib
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

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
BEGUN_S = 1_735_689_600  # the time of the first commit, 2025-01-01 in UTC; every further one is a day later
DAY_S = 86_400
Objects = dict[str, bytes]  # Git objects with their headers, by id


class AssistStarterConfig(DatasetConfig):
    kind: Literal["assist_starter"] = original_option("assist_starter", "which dataset")


@DATASETS.register("assist_starter", AssistStarterConfig)
def assist_starter(config: AssistStarterConfig) -> Dataset:
    """Three small issues of this project's own, with their repositories: embedded, nothing to download."""
    issues = [_read(name) for name in ISSUES]
    return Dataset("assist_starter", tuple(with_replies(map(_task, issues))), content_hash(issues))


def _read(name: str) -> dict[str, Any]:
    """The issue in a file; the dataset's content is hashed over these fields in this form."""
    values = from_yaml((Path(__file__).parent / "starter" / f"{name}.yaml").read_text(encoding="utf-8"))
    thread = [list(said) for each in values["thread"] for said in each.items()]
    return {"name": name, **values, "thread": thread}


def _task(issue: Mapping[str, Any]) -> AssistTask:
    """The task, with its repository in codechat's cache. Raises `UserError` if that cannot be written."""
    ids, objects = _objects_of(issue["commits"])
    repository = _write_once(issue["name"], ids[-1], objects)
    said = enumerate(issue["thread"], 10)
    return AssistTask(
        f"starter/{issue['name']}#1",
        f"{issue['title']}\n\n{issue['body']}",
        Target(issue["language"]),
        title=issue["title"],
        body=issue["body"],
        author=USER,
        url=f"starter/{issue['name']}/issues/1",
        conditions=tuple(issue["conditions"]),
        thread=tuple(Comment(who, f"2025-02-01T{hour}:00:00Z", text) for hour, (who, text) in said),
        workspace=Workspace(str(repository), ids[issue["asked_at"]]),
        created_at=OPENED,
    )


def _objects_of(commits: Sequence[Mapping[str, Any]]) -> tuple[list[str], Objects]:
    """The ids of the commits, each the child of the one before, and all objects."""
    objects: Objects = {}
    ids: list[str] = []
    files: dict[str, str] = {}
    for number, commit in enumerate(commits):
        files |= commit["files"]
        parent = [f"parent {ids[-1]}"] if ids else []
        signed = f"{MAINTAINER} <{MAINTAINER}@localhost> {BEGUN_S + number * DAY_S} +0000"
        lines = [f"tree {_tree(files, objects)}", *parent, f"author {signed}", f"committer {signed}", ""]
        ids.append(_add("commit", "\n".join([*lines, commit["message"], ""]).encode(), objects))
    return ids, objects


def _write_once(name: str, last: str, objects: Objects) -> Path:
    """The bare repository of these objects in codechat's cache, `last` its newest commit. Raises `UserError`."""
    folder = cache_root() / "assist_starter" / content_hash([name, last])[:16] / f"{name}.git"
    if folder.is_dir():
        return folder
    files = {f"objects/{key[:2]}/{key[2:]}": zlib.compress(data) for key, data in objects.items()}
    files |= {"HEAD": b"ref: refs/heads/main\n", "refs/heads/main": f"{last}\n".encode()}
    files["config"] = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            new = Path(made, "new")
            for path, data in files.items():
                (new / path).parent.mkdir(parents=True, exist_ok=True)
                (new / path).write_bytes(data)
            new.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another process came first, with the same content
            remedy = "free some space, or set CODECHAT_CACHE_DIR"
            raise UserError(f"cannot write {folder}: {error.strerror}", remedy) from error
    return folder


def _tree(files: Mapping[str, str], objects: Objects) -> str:
    inner: dict[str, dict[str, str]] = {}
    entries: list[tuple[str, bytes]] = []
    for path, text in files.items():
        name, slash, below = path.partition("/")
        if slash:
            inner.setdefault(name, {})[below] = text
        else:
            entries.append((name, _entry("100644", name, _add("blob", text.encode(), objects))))
    for name, folder in inner.items():
        entries.append((f"{name}/", _entry("40000", name, _tree(folder, objects))))  # git sorts folders so
    return _add("tree", b"".join(entry for _, entry in sorted(entries)), objects)


def _entry(mode: str, name: str, identity: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(identity)


def _add(kind: str, content: bytes, objects: Objects) -> str:
    data = f"{kind} {len(content)}\0".encode() + content
    identity = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    objects[identity] = data
    return identity
