"""CodeAssistBench: issues of repositories, each with its thread and the conditions that satisfy its user."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from codechat.config import original_option, place_option, run_option
from codechat.datasets import DATASETS, DatasetConfig, select
from codechat.datasets.reading.lines import read_values
from codechat.errors import UserError, nearest
from codechat.files import content_hash
from codechat.languages import language_of
from codechat.studies.cab.clones import require_commits
from codechat.studies.cab.issues import IssueRow, issue_of, with_replies
from codechat.studies.cab.tasks import AssistTask
from codechat.tasks import Dataset, Workspace
from codechat.template import counted

REMEDY = (
    "give CodeAssistBench's task file: one JSON object a line, with url, title, body, author, created_at, commit_id, "
    "language, comments, satisfaction_conditions and dockerfile"
)
SHOWN = 3  # ids in a remark


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


@DATASETS.register("cab", CabConfig, key="benchmark")
def cab(config: CabConfig) -> Dataset:
    """CodeAssistBench: up to 308 issues of repositories in seven languages (dataset.path, dataset.repos)."""
    path = Path(config.path).expanduser()
    rows: dict[str, IssueRow] = {}
    places: dict[str, str] = {}
    repeated: list[str] = []
    for place, row in read_values(path, issue_of, REMEDY):
        if row.task_id in rows:
            repeated.append(row.task_id)
        else:
            rows[row.task_id], places[row.task_id] = row, place
    if not rows:
        raise UserError(f"{path} holds no issue", REMEDY)
    tasks = _chosen(with_replies(row.task() for row in rows.values()), rows, config)
    if config.repos is not None:
        tasks = _with_workspaces(tasks, rows, config)
    content = content_hash([row.model_dump() for row in rows.values()])
    return Dataset("cab", tuple(tasks), content, places, remark=_remark(repeated))


def _chosen(tasks: Sequence[AssistTask], rows: Mapping[str, IssueRow], config: CabConfig) -> list[AssistTask]:
    """The tasks that the options choose. Raises `UserError` if there is none."""
    wanted = None
    if config.languages is not None:
        known = {task.target.language for task in tasks}
        wanted = {language_of(name).names[0] for name in config.languages}
        for name in wanted - known:
            raise UserError(f"dataset.languages: no issue of the file is in '{name}'", nearest(name, known))
    found = [
        task
        for task in tasks
        if (config.kind == "all" or task.pull == (config.kind == "pull"))
        and (config.build == "any" or (rows[task.task_id].dockerfile is not None) == (config.build == "needed"))
        and (wanted is None or task.target.language in wanted)
    ]
    if not found:
        raise UserError("no issue of the file is of these languages, this kind and this build", "choose fewer at once")
    return found


def _with_workspaces(tasks: Sequence[AssistTask], rows: Mapping[str, IssueRow], config: CabConfig) -> list[AssistTask]:
    """The tasks, those that will run with their repositories. Raises `UserError` that names what is missing."""
    assert config.repos is not None
    folder = Path(config.repos).expanduser().resolve()
    running = {task.task_id: rows[task.task_id] for task in select(Dataset("cab", tuple(tasks), ""), config)}
    clones = require_commits(folder, [(row.repository, row.commit_id) for row in running.values()])
    workspaces = {
        name: Workspace(str(clones[row.repository]), row.commit_id, row.dockerfile) for name, row in running.items()
    }
    return [replace(task, workspace=workspaces.get(task.task_id)) for task in tasks]


def _remark(repeated: Sequence[str]) -> str:
    """What a user should know of issues that are in the file again."""
    if not repeated:
        return ""
    names = ", ".join(repeated[:SHOWN]) + (", …" if len(repeated) > SHOWN else "")
    again = counted(len(repeated), "row repeats an issue", "rows repeat an issue")
    return f"{again} of the file ({names}): the first row of each counts"
