"""CodeAssistBench's file: what is read, chosen and told."""

import gzip
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.datasets import DATASETS, select
from codechat.errors import UserError
from codechat.studies.cab.tasks import AssistTask, Comment
from codechat.tasks import Dataset
from support.cab_rows import issue, write

DATA = Path(os.environ.get("CODECHAT_TEST_DATA", ""))
published = pytest.mark.skipif(
    not (DATA / "cab_recent.jsonl.gz").is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files"
)
ADDRESS = "https://github.com/ann/shop"
ROWS = [
    issue(),
    issue(url=f"{ADDRESS}/pull/5", language="c#", dockerfile="FROM scratch\n"),
    issue(url=f"{ADDRESS}/issues/6", language="c++", body=None),
    issue(url="https://github.com/ben/shop.js/issues/4", language="javascript", dockerfile="FROM scratch\n"),
]


def load(path: Path, **options: Any) -> Dataset:
    return DATASETS.build(DATASETS.validate({"benchmark": "cab", "path": str(path), **options}))


def tasks(dataset: Dataset) -> list[AssistTask]:
    return [task for task in dataset.tasks if isinstance(task, AssistTask)]


@published
@pytest.mark.parametrize(
    ("name", "counts", "repeated"),
    [
        ("recent", (306, 32, 11, 41), "2 rows repeat an issue of the file (levywang/avhub#6, bestZwei/ciallo-tts#1): "),
        ("verified_strict", (83, 4, 1, 16), "12 rows repeat an issue of the file (LegendApp/legend-list#142, "),
        ("verified_lenient", (54, 9, 0, 7), ""),
    ],
)
def test_the_published_files(name: str, counts: tuple[int, ...], repeated: str) -> None:
    issues, pulls, empty, needed = counts
    path = DATA / f"cab_{name}.jsonl.gz"
    dataset = load(path)
    assert (len(dataset.tasks), sum(task.pull for task in tasks(dataset))) == (issues, pulls)
    assert sum(not task.body for task in tasks(dataset)) == empty
    assert (len(load(path, kind="issue").tasks), len(load(path, kind="pull").tasks)) == (issues - pulls, pulls)
    assert len(load(path, build="needed").tasks) == needed == sum(task.needs_build for task in tasks(dataset))
    assert len(load(path, build="not_needed").tasks) == issues - needed
    assert dataset.remark.startswith(repeated) and bool(dataset.remark) == bool(repeated)


@published
def test_the_smaller_files_are_parts_of_recent() -> None:
    recent = {task.task_id: task for task in tasks(load(DATA / "cab_recent.jsonl.gz"))}
    for name in ("strict", "lenient"):
        for task in tasks(load(DATA / f"cab_verified_{name}.jsonl.gz")):
            assert task == recent[task.task_id]
    assert Counter(task.target.language for task in recent.values()) == {
        "python": 159, "javascript": 37, "cpp": 31, "typescript": 26, "csharp": 25, "c": 20, "java": 8
    }  # fmt: skip


def test_a_row_is_a_task(tmp_path: Path) -> None:
    (task,) = tasks(load(write(tmp_path / "tasks.jsonl", issue())))
    assert (task.task_id, task.url, task.pull) == ("ann/shop#4", f"{ADDRESS}/issues/4", False)
    assert task.prompt == "It does not start\n\nNothing happens when I start it."
    assert (f"{task.title}\n\n{task.body}", task.author) == (task.prompt, "user")
    assert task.conditions == ("Names the variable that must be set",)
    assert task.thread[1] == Comment("user", "2025-01-02T05:00:00Z", "1.2, from the archive.")
    assert (task.created_at, task.workspace) == ("2025-01-02T03:04:05Z", None)
    (reply,) = task.replies
    assert (reply.id, reply.url) == ("ann/shop#4:2", task.url)
    assert (reply.maintainer, reply.user) == ("Which version is it?", "1.2, from the archive.")


def test_an_empty_body_leaves_the_title(tmp_path: Path) -> None:
    first, second = tasks(load(write(tmp_path / "t.jsonl", issue(body=None), issue(url=ROWS[1]["url"], body=" \r\n"))))
    assert first.prompt == second.prompt == "It does not start"
    assert (first.body, second.body) == ("", " \r\n")


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({}, ["ann/shop#4", "ann/shop#5", "ann/shop#6", "ben/shop.js#4"]),
        ({"kind": "issue"}, ["ann/shop#4", "ann/shop#6", "ben/shop.js#4"]),
        ({"kind": "pull"}, ["ann/shop#5"]),
        ({"build": "needed"}, ["ann/shop#5", "ben/shop.js#4"]),
        ({"build": "not_needed"}, ["ann/shop#4", "ann/shop#6"]),
        ({"languages": ["C++", "JS"]}, ["ann/shop#6", "ben/shop.js#4"]),
        ({"languages": ["csharp"], "build": "needed"}, ["ann/shop#5"]),
    ],
)
def test_choosing(tmp_path: Path, options: dict[str, Any], ids: list[str]) -> None:
    dataset = load(write(tmp_path / "tasks.jsonl", *ROWS), **options)
    assert [task.task_id for task in dataset.tasks] == ids
    assert dataset.content_hash == load(write(tmp_path / "tasks.jsonl", *ROWS)).content_hash
    assert all(len(task.replies) == 4 for task in tasks(dataset)), "the tone does not depend on what is chosen"


def test_a_repeated_issue_counts_once_as_it_comes_first(tmp_path: Path) -> None:
    again = issue(language="java", satisfaction_conditions=["Other"])
    path = write(tmp_path / "tasks.jsonl", *ROWS, again)
    dataset = load(path)
    assert len(dataset.tasks) == 4 and dataset.tasks[0].target.language == "python"
    assert dataset.remark.startswith("1 row ") and "(ann/shop#4)" in dataset.remark
    assert dataset.content_hash == load(write(tmp_path / "less.jsonl", *ROWS)).content_hash
    assert dataset.places["ann/shop#4"] == f"{path}:1"
    assert len(tasks(dataset)[0].replies) == 4


def test_gzip_and_unknown_fields_do_not_matter(tmp_path: Path) -> None:
    plain = write(tmp_path / "tasks.jsonl", *ROWS)
    packed = tmp_path / "tasks.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    more = write(tmp_path / "more.jsonl", *({**row, "task_id": "x", "stars": 1} for row in ROWS))
    assert load(plain).content_hash == load(packed).content_hash == load(more).content_hash


def lacking(name: str) -> dict[str, Any]:
    return {field: value for field, value in issue().items() if field != name}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (issue(satisfaction_conditions=[]), "satisfaction_conditions: "),
        (issue(satisfaction_conditions=["  "]), "satisfaction_conditions.0: "),
        (issue(satisfaction_conditions="all"), "satisfaction_conditions: "),
        (lacking("satisfaction_conditions"), "satisfaction_conditions: Field required"),
        (lacking("dockerfile"), "dockerfile: Field required"),
        (issue(url="https://github.com/ann/shop/issues/04"), "url: it must be https://github.com/OWNER/NAME/"),
        (issue(url="https://github.com/ann/../issues/4"), "url: it must be "),
        (issue(url="https://github.com/ann/shop/issues/4\n"), "url: it must be "),
        (issue(url="https://example.org/ann/shop/issues/4"), "url: it must be "),
        (issue(commit_id="--upload-pack=sh"), "commit_id: "),
        (issue(commit_id="0123"), "commit_id: "),
        (issue(title=""), "title: "),
        (issue(comments=[{"user": "ann", "body": "x"}]), "comments.0.created_at: Field required"),
        (issue(comments=None), "comments: "),
        (issue(body="\ud800"), "half of a surrogate pair"),
        (issue(comments=[{"user": "a", "created_at": "", "body": "\udfff"}]), "half of a surrogate pair"),
        (issue(language=None), "language: "),
    ],
)
def test_a_wrong_row_is_told_with_its_line_and_a_remedy(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(write(tmp_path / "tasks.jsonl", issue(url=f"{ADDRESS}/issues/1"), row))
    assert caught.value.message.startswith(f"{tmp_path}/tasks.jsonl:2: ") and told in caught.value.message
    assert caught.value.remedy.startswith("give CodeAssistBench's task file")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"url": ', "not JSON: "),
        (b"[1]", "the line is not a JSON object"),
        (b'"\xff"', "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_malformed_line_is_told(tmp_path: Path, line: bytes, told: str) -> None:
    path = write(tmp_path / "tasks.jsonl", issue())
    path.write_bytes(path.read_bytes() + b"\n" + line)
    with pytest.raises(UserError, match=rf"tasks.jsonl:3: {told}"):
        load(path)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"languages": ["jave"]}, "dataset.languages: no issue of the file is in 'jave'"),
        ({"languages": ["cpp"], "kind": "pull"}, "no issue of the file is of these languages, this kind"),
        ({"kind": "issues"}, "dataset.kind"),
        ({"build": "maybe"}, "dataset.build"),
        ({"path": "/nowhere/cab.jsonl"}, "there is no file /nowhere/cab.jsonl"),
    ],
)
def test_a_wrong_choice_is_told(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        load(**{"path": write(tmp_path / "tasks.jsonl", *ROWS), **options})
    assert told in str(caught.value)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no issue"):
        load(write(tmp_path / "tasks.jsonl"))


def test_the_limit_takes_the_first_of_the_chosen(tmp_path: Path) -> None:
    config = DATASETS.validate(
        {"benchmark": "cab", "path": str(write(tmp_path / "t.jsonl", *ROWS)), "build": "needed", "limit": 1}
    )
    assert [task.task_id for task in select(DATASETS.build(config), config)] == ["ann/shop#5"]  # type: ignore[arg-type]
