"""CodeAssistBench: issues of repositories, each with its thread and the conditions that satisfy the user.

The clones of the repositories are on this machine. A clone's settings are never read, because they could name programs
that git would start: git works in a separate empty repository, which borrows only the objects of the clone.
"""

import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from codechat.base.config import original_option, place_option, run_option
from codechat.base.errors import UserError, nearest
from codechat.base.files import content_hash
from codechat.base.template import counted
from codechat.datasets import DATASETS, DatasetConfig, compared, select
from codechat.datasets.reading.lines import read_values
from codechat.datasets.tasks import Dataset, Workspace
from codechat.sandbox.languages import language_of
from codechat.studies.cab.environments.commits import borrows, git, objects_of
from codechat.studies.cab.tasks import AssistTask, IssueRow, cohort_of, issue_of, paper_sample, with_replies

LAYOUTS = ("{owner}/{name}", "{owner}__{name}", "{name}")
"""The places of a clone in the folder, each without and with `.git` at the end; the first clone counts."""
OWN_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tcommitGraph = false\n\tmultiPackIndex = false\n"
PATIENCE_S = 120.0  # for one commit; a hundred thousand files take half a second
SHOWN = 3  # problems in a message, ids in a remark

Problem = tuple[str, str]  # a problem of a repository, and the remedy


def find_clone(folder: Path, repository: str) -> Path | None:
    """The clone or mirror of the repository `owner/name` in a folder; None if there is none."""
    return next((path for path in _places(folder, repository) if objects_of(path) is not None), None)


def require_commits(folder: Path, needed: Iterable[tuple[str, str]]) -> dict[str, Path]:
    """The clone of every repository; `needed` has repository (`owner/name`) and commit of each chosen issue.

    Raises `UserError` that names missing clones, commits, or files of a commit.
    """
    if not folder.is_dir():
        raise UserError(f"dataset.repos: there is no folder {folder}", "name the folder that holds the clones")
    commits: dict[str, list[str]] = defaultdict(list)
    for repository, commit in dict.fromkeys(needed):
        commits[repository].append(commit)
    clones = {repository: find_clone(folder, repository) for repository in commits}
    with _own_repository() as own, ThreadPoolExecutor(os.cpu_count()) as threads:

        def examine(repository: str) -> list[Problem]:
            clone = clones[repository]
            if clone is None:
                return [_without_clone(folder, repository)]
            return [each for commit in commits[repository] for each in _problems(own, clone, repository, commit)]

        problems = [problem for each in threads.map(examine, commits) for problem in each]
    if problems:
        first = f", the first {SHOWN}" if len(problems) > SHOWN else ""
        head = f"dataset.repos: {counted(len(problems), 'problem')} with the clones in {folder}{first}:"
        raise UserError("\n".join([head, *(problem for problem, _ in problems[:SHOWN])]), problems[0][1])
    return {repository: clone for repository, clone in clones.items() if clone is not None}


def _places(folder: Path, repository: str) -> Iterator[Path]:
    owner, _, name = repository.partition("/")
    for layout in LAYOUTS:
        place = layout.format(owner=owner, name=name)
        yield from (folder / place, folder / f"{place}.git")


def _without_clone(folder: Path, repository: str) -> Problem:
    there = next((path for path in _places(folder, repository) if path.exists()), None)
    problem = f"{repository} is not there" if there is None else f"{there} is no clone"
    target = folder / f"{repository.replace('/', '__')}.git"
    return problem, f"git clone --mirror https://github.com/{repository} {target}"


def _problems(own: Path, clone: Path, repository: str, commit: str) -> Iterator[Problem]:
    """The problem of a clone with a commit, if there is one."""
    whole = f"git clone --mirror https://github.com/{repository}, without --filter and --reference"
    if borrows(objects_of(clone) or clone):
        repacked = f"git -C {clone} repack -a -d, then remove the file objects/info/alternates"
        yield f"{clone} borrows objects of another repository", repacked
        return
    try:
        kind = _git(own, clone, "cat-file", "-t", commit)
        if kind.stdout.strip() != b"commit":
            yield f"{clone} lacks the commit {commit}", f"git -C {clone} fetch origin {commit}"
            return
        listed = _git(own, clone, "rev-list", "--objects", "--no-walk", "--missing=print", commit)
    except subprocess.TimeoutExpired:
        yield f"{clone} could not be read within {PATIENCE_S:g} s", f"git -C {clone} fsck"
        return
    missing = sum(line.startswith(b"?") for line in listed.stdout.splitlines())
    if listed.returncode:
        said = listed.stderr.decode(errors="replace").strip().partition("\n")[0]
        yield f"{clone} cannot be read at {commit}: {said}", whole
    elif missing:
        yield f"{clone} lacks {counted(missing, 'file or folder', 'files and folders')} of the commit {commit}", whole


def _git(own: Path, clone: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    places = {"GIT_DIR": str(own), "GIT_OBJECT_DIRECTORY": str(objects_of(clone))}
    return git(*words, more=places, seconds=PATIENCE_S)


@contextmanager
def _own_repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="codechat-git-") as folder:
        own = Path(folder)
        for name in ("objects", "refs"):
            (own / name).mkdir()
        (own / "HEAD").write_text("ref: refs/heads/none\n")
        (own / "config").write_text(OWN_CONFIG)
        yield own


REMEDY = (
    "give CodeAssistBench's task file: one JSON object a line, with url, title, body, author, created_at, commit_id, "
    "language, comments, satisfaction_conditions and dockerfile"
)


class CabConfig(DatasetConfig):
    """Options of `cab`. `kind` chooses issues or pull requests, so `benchmark` has the dataset's name."""

    benchmark: Literal["cab"] = original_option("cab", "which dataset")
    kind: Literal["issue", "pull", "all"] = run_option("all", "take issues only, pull requests only, or both")
    path: str = place_option(..., "the published task file, .jsonl or .jsonl.gz", min_length=1)
    repos: str | None = place_option(
        None, "the folder of the clones or mirrors; null: there are none, as environment=none allows", min_length=1
    )
    languages: list[str] | None = run_option(None, "take these languages only, in any spelling", min_length=1)
    build: Literal["any", "needed", "not_needed"] = run_option(
        "any", "take what has a Dockerfile only, what has none only, or both"
    )
    cohort: Literal["recent", "all_time"] | None = run_option(
        None,
        "take issues of repositories made since November 2024, or of others; by the issue's date if a row has none",
    )
    sample: Literal["paper"] | None = run_option(
        None, "draw the paper's sample of what is left: by language, Dockerfile and turns of the thread"
    )
    sample_seed: int = run_option(0, "which sample is drawn")


PUBLISHED = frozenset(
    {
        "b84e6d2af18a46901c7bbf54071401b1754fcdd3ef157574ce64787ecfe3c6dc",  # recent
        "bec0f3081073160bef6ac9e614de836297f2cb6ab73a1b91920331ecda659516",  # verified, strict
        "f89c375ba5e018093e1de8c51b3b69fd0279990c7bf8f985b59359b0e891b46f",  # verified, lenient
    }
)
"""The contents of the published files. The paper's figures are shown for these alone."""


@DATASETS.register("cab", CabConfig, key="benchmark")
def cab(config: CabConfig) -> Dataset:
    """CodeAssistBench: up to 308 issues of repositories in seven languages (dataset.path, dataset.repos)."""
    path = Path(config.path).expanduser()
    rows: dict[str, IssueRow] = {}
    places: dict[str, str] = {}
    repeated, without = list[str](), list[str]()
    for place, row in read_values(path, issue_of, REMEDY):
        if not row.commit_id:
            without.append(row.task_id)
        elif row.task_id in rows:
            repeated.append(row.task_id)
        else:
            rows[row.task_id], places[row.task_id] = row, place
    if not rows:
        raise UserError(f"{path} holds no issue", REMEDY)
    tasks = _chosen(with_replies(row.task() for row in rows.values()), rows, config)
    if config.repos is not None:
        tasks = _with_workspaces(tasks, rows, config)
    content = content_hash([row.content() for row in rows.values()])
    found = Dataset("cab", tuple(tasks), content, places, remark=_remark(repeated, without))
    return compared(found, "issues of CodeAssistBench as published", PUBLISHED)


def _chosen(tasks: Sequence[AssistTask], rows: Mapping[str, IssueRow], config: CabConfig) -> list[AssistTask]:
    """The tasks that the options choose. Raises `UserError` if there is none."""
    known = {task.target.language for task in tasks}
    wanted = known if config.languages is None else {language_of(name).names[0] for name in config.languages}
    for name in wanted - known:
        raise UserError(f"dataset.languages: no issue of the file is in '{name}'", nearest(name, known))
    chosen = [
        task
        for task in tasks
        if (config.kind == "all" or task.pull == (config.kind == "pull"))
        and (config.build == "any" or (rows[task.task_id].dockerfile is not None) == (config.build == "needed"))
        and task.target.language in wanted
        and (config.cohort is None or cohort_of(task)[0] == config.cohort)
    ]
    if not chosen:
        what = "these languages, this kind, this build and this cohort"
        raise UserError(f"no issue of the file is of {what}", "choose fewer at once")
    return chosen if config.sample is None else paper_sample(chosen, config.sample_seed)


def _with_workspaces(tasks: Sequence[AssistTask], rows: Mapping[str, IssueRow], config: CabConfig) -> list[AssistTask]:
    """The tasks, the selected ones with their repositories. Raises `UserError` that names missing ones."""
    assert config.repos is not None
    folder = Path(config.repos).expanduser().resolve()
    running = {task.task_id: rows[task.task_id] for task in select(Dataset("cab", tuple(tasks), ""), config)}
    clones = require_commits(folder, [(row.repository, row.commit_id) for row in running.values()])
    workspaces = {
        name: Workspace(str(clones[row.repository]), row.commit_id, row.dockerfile, row.test_command)
        for name, row in running.items()
    }
    return [replace(task, workspace=workspaces.get(task.task_id)) for task in tasks]


def _remark(repeated: Sequence[str], without: Sequence[str]) -> str:
    parts = []
    for ids, singular, plural, end in (
        (repeated, "row repeats an issue", "rows repeat an issue", "the first row of each counts"),
        (without, "row names no commit", "rows name no commit", "left out"),
    ):
        if ids:
            names = ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
            parts.append(f"{counted(len(ids), singular, plural)} of the file ({names}): {end}")
    return "; ".join(parts)
