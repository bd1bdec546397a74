"""Clones beside a task file: where they are found, what is told of them, and that nothing of them is executed."""

from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Workspace
from codechat.studies.cab.dataset import find_clone, require_commits
from codechat.studies.cab.tasks import AssistTask
from support.cab import NOWHERE, git, issue, repository, write
from support.mistakes import mistake

FILES = {"shop/__init__.py": "", "README.md": "A shop.\n"}
REPOSITORY = "ann/shop"
PLACES = ["ann/shop", "ann/shop.git", "ann__shop", "ann__shop.git", "shop", "shop.git"]


@pytest.mark.parametrize("bare", [False, True], ids=["clone", "mirror"])
@pytest.mark.parametrize("place", PLACES)
def test_layouts(tmp_path: Path, place: str, bare: bool) -> None:
    commit = repository(tmp_path / place, FILES, bare=bare)
    assert find_clone(tmp_path, REPOSITORY) == tmp_path / place
    assert require_commits(tmp_path, [(REPOSITORY, commit)]) == {REPOSITORY: tmp_path / place}


def test_the_more_exact_name_counts_and_a_folder_that_is_no_clone_does_not(tmp_path: Path) -> None:
    (tmp_path / "ann" / "shop").mkdir(parents=True)
    commit = repository(tmp_path / "ann__shop", FILES)
    repository(tmp_path / "shop", {"other": "1"})
    assert require_commits(tmp_path, [(REPOSITORY, commit)]) == {REPOSITORY: tmp_path / "ann__shop"}


def test_packed_objects_of_a_shallow_mirror(tmp_path: Path) -> None:
    repository(tmp_path / "origin", FILES)
    (tmp_path / "origin" / "later").write_text("1\n")
    git(tmp_path / "origin", "add", ".")
    git(tmp_path / "origin", "commit", "-q", "-m", "later")
    commit = git(tmp_path / "origin", "rev-parse", "HEAD")
    origin = f"file://{tmp_path}/origin"
    git(tmp_path, "clone", "-q", "--mirror", "--depth=1", origin, str(tmp_path / "repos" / "shop.git"))
    require_commits(tmp_path / "repos", [(REPOSITORY, commit)])


def told(folder: Path, *needed: tuple[str, str]) -> UserError:
    with pytest.raises(UserError) as caught:
        require_commits(folder, needed)
    assert len(str(caught.value).splitlines()) <= 5
    return caught.value


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    commit = repository(tmp_path / "shop", FILES)
    error = told(tmp_path, (REPOSITORY, commit), (REPOSITORY, NOWHERE))
    assert f"{tmp_path}/shop lacks the commit {NOWHERE}" in error.message
    assert error.remedy == f"git -C {tmp_path}/shop fetch origin {NOWHERE}"


def test_files_of_a_commit_that_are_missing_are_counted(tmp_path: Path) -> None:
    commit = repository(tmp_path / "shop", FILES)
    blob = git(tmp_path / "shop", "rev-parse", "HEAD:README.md")
    (tmp_path / "shop/.git/objects" / blob[:2] / blob[2:]).unlink()
    error = told(tmp_path, (REPOSITORY, commit))
    assert all(named in error.message for named in (f"{tmp_path}/shop ", "1 file or folder", commit))
    assert "without --filter" in error.remedy


def test_a_partial_clone_is_not_completed(tmp_path: Path) -> None:
    commit = repository(tmp_path / "origin", FILES)
    git(tmp_path / "origin", "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "repos" / "shop.git"
    git(tmp_path, "clone", "-q", "--mirror", "--filter=blob:none", f"file://{tmp_path}/origin", str(clone))
    assert "lacks 2 files and folders" in told(tmp_path / "repos", (REPOSITORY, commit)).message


def test_a_missing_clone_and_a_path_that_is_none(tmp_path: Path) -> None:
    error = told(tmp_path, (REPOSITORY, NOWHERE))
    assert "ann/shop " in error.message
    assert error.remedy == f"git clone --mirror https://github.com/ann/shop {tmp_path}/ann__shop.git"
    (tmp_path / "shop").mkdir()
    assert f"{tmp_path}/shop is no clone" in told(tmp_path, (REPOSITORY, NOWHERE)).message
    (tmp_path / "ann__shop").write_text("a file")
    assert f"{tmp_path}/ann__shop is no clone" in told(tmp_path, (REPOSITORY, NOWHERE)).message


def test_many_problems_are_counted_and_the_first_named(tmp_path: Path) -> None:
    error = told(tmp_path, *((f"ann/{number}", NOWHERE) for number in range(200)))
    head, *named = error.message.splitlines()
    assert "200 problems" in head and named == [f"ann/{number} is not there" for number in range(3)]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "there is no folder" in told(tmp_path / "none", (REPOSITORY, NOWHERE)).message


def test_a_commit_that_is_something_else(tmp_path: Path) -> None:
    repository(tmp_path / "shop", FILES)
    blob = git(tmp_path / "shop", "rev-parse", "HEAD:README.md")
    assert f"{tmp_path}/shop lacks the commit {blob}" in told(tmp_path, (REPOSITORY, blob)).message


def test_broken_objects_are_told(tmp_path: Path) -> None:
    commit = repository(tmp_path / "shop", FILES)
    tree = git(tmp_path / "shop", "rev-parse", "HEAD^{tree}")
    place = tmp_path / "shop/.git/objects" / tree[:2] / tree[2:]
    place.chmod(0o644)
    place.write_bytes(b"no object")
    message = told(tmp_path, (REPOSITORY, commit)).message
    assert all(named in message for named in (f"{tmp_path}/shop ", "cannot be read", commit))


def test_objects_of_elsewhere_do_not_count(tmp_path: Path) -> None:
    """A clone from elsewhere could else show files of this machine's own repositories."""
    commit = repository(tmp_path / "private", FILES)
    repos = tmp_path / "repos"
    repos.mkdir()
    (repos / "shop").symlink_to(tmp_path / "private")
    require_commits(repos, [(REPOSITORY, commit)])  # a link that the user made in the folder
    (repos / "shop").unlink()
    (repos / "shop").mkdir()
    (repos / "shop" / ".git").symlink_to(tmp_path / "private" / ".git")
    assert "is no clone" in told(repos, (REPOSITORY, commit)).message
    (repos / "shop" / ".git").unlink()
    git(repos / "shop", "init", "-q")
    (repos / "shop/.git/objects/info/alternates").write_text(f"{tmp_path}/private/.git/objects\n")
    error = told(repos, (REPOSITORY, commit))
    assert "another repository" in error.message and "repack -a -d" in error.remedy


def test_nothing_of_a_clone_is_executed(tmp_path: Path) -> None:
    """Settings, hooks and attributes that name a program; the program would leave a mark."""
    commit = repository(tmp_path / "shop", {**FILES, ".gitattributes": "* filter=evil\n"})
    folder, mark = tmp_path / "shop" / ".git", tmp_path / "executed"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho run >>{mark}\n")
    evil.chmod(0o755)
    for name in (folder / "hooks").iterdir():
        name.unlink()
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
        (folder / "hooks" / hook).symlink_to(evil)
    (folder / "config").write_text(
        f"""[core]
    repositoryformatversion = 1
    fsmonitor = {evil}
    sshCommand = {evil}
    pager = {evil}
    alternateRefsCommand = {evil}
    hooksPath = {folder}/hooks
[extensions]
    partialClone = origin
[remote "origin"]
    url = ext::{evil}
    promisor = true
    uploadpack = {evil}
[protocol "ext"]
    allow = always
[filter "evil"]
    smudge = {evil}
    clean = {evil}
    required = true
[include]
    path = {evil}
"""
    )
    blob = git(tmp_path, "hash-object", "--no-filters", str(tmp_path / "shop/README.md"))
    require_commits(tmp_path, [(REPOSITORY, commit)])
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    assert "lacks 1 file or folder" in told(tmp_path, (REPOSITORY, commit)).message
    assert not mark.exists()


def load(path: Path, **options: Any) -> list[AssistTask]:
    dataset = DATASETS.build(DATASETS.validate({"benchmark": "cab", "path": str(path), **options}))
    return [task for task in dataset.tasks if isinstance(task, AssistTask)]


def test_tasks_that_run_have_their_repositories(tmp_path: Path) -> None:
    commit = repository(tmp_path / "repos" / "ann__shop", FILES)
    rows = [
        issue(commit_id=commit, dockerfile="FROM scratch\n"),
        issue(url="https://github.com/ben/other/issues/1"),
    ]
    path = write(tmp_path / "tasks.jsonl", *rows)
    assert [task.workspace for task in load(path)] == [None, None]
    with mistake("ben/other"):
        load(path, repos=str(tmp_path / "repos"))
    first, second = load(path, repos=str(tmp_path / "repos"), limit=1)
    assert first.workspace == Workspace(str(tmp_path / "repos/ann__shop"), commit, "FROM scratch\n")
    assert second.workspace is None
