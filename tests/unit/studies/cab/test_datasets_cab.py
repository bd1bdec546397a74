"""CodeAssistBench's file: what is read, chosen and told."""

import gzip
import os
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS, select
from codechat.datasets.tasks import Dataset
from codechat.studies.cab.chapter.tables import paper
from codechat.studies.cab.tasks import AssistTask, Comment, cohort_of, thread_replies, thread_turns
from support.cab import issue, write

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


def thread(*users: str) -> list[dict[str, str]]:
    return [{"user": user, "created_at": "2025-01-02T04:00:00Z", "body": f"{user} says so."} for user in users]


def many(*wanted: tuple[int, int, bool], language: str = "python") -> list[dict[str, Any]]:
    """So many issues whose threads have so many turns, with a Dockerfile or without."""
    found: list[dict[str, Any]] = []
    for count, turns, builds in wanted:
        for _ in range(count):
            own = {"url": f"https://github.com/{language}/a/issues/{len(found) + 1}", "language": language}
            own |= {"dockerfile": "FROM scratch\n" if builds else None, "comments": thread(*["ann", "user"] * turns)}
            found.append(issue(**own))
    return found


def by_turns(dataset: Dataset) -> Counter[tuple[str, int]]:
    return Counter((task.target.language, min(thread_turns(task), 5)) for task in tasks(dataset))


def test_the_papers_sample_counted_by_hand(tmp_path: Path) -> None:
    """Ten of each number of turns, those with a Dockerfile among them; what lacks is drawn from the number before."""
    rows = many((30, 1, False), (12, 2, False), (4, 3, False), (2, 5, False), (9, 7, True), (20, 4, False))
    rows += many((3, 1, False), (14, 2, False), (1, 6, True), language="c")
    dataset = load(write(tmp_path / "tasks.jsonl", *rows), sample="paper")
    # python: 5+ has 11, so 10; 4 has 20, so 10; 3 has 4, so 2 gives 12 of its 16, all that it has; 1 the 14 that lack
    # c: 5+ has 1 of 10, 4 and 3 none, so 2 gives all its 14 of 39, and 1 all its 3
    assert by_turns(dataset) == {
        ("python", 5): 10, ("python", 4): 10, ("python", 3): 4, ("python", 2): 12, ("python", 1): 14,
        ("c", 5): 1, ("c", 2): 14, ("c", 1): 3,
    }  # fmt: skip
    assert sum(task.needs_build for task in tasks(dataset) if task.target.language == "python") >= 5
    again, other = (load(tmp_path / "tasks.jsonl", sample="paper", sample_seed=seed) for seed in (0, 1))
    assert again.tasks == dataset.tasks != other.tasks and by_turns(other) == by_turns(dataset)


def test_a_cohort_goes_by_the_repositorys_own_date_if_a_row_has_it(tmp_path: Path) -> None:
    old, new = "2019-03-01T00:00:00Z", "2025-03-01T00:00:00Z"
    rows = [
        issue(url=f"{ADDRESS}/issues/{number}", created_at=opened, repository_created_at=made)
        for number, (opened, made) in enumerate([(new, None), (old, None), (new, old), (new, new)], 1)
    ]
    path = write(tmp_path / "tasks.jsonl", *rows)
    assert [cohort_of(task) for task in tasks(load(path))] == [
        ("recent", "issue"), ("all_time", "issue"), ("all_time", "repository"), ("recent", "repository"),
    ]  # fmt: skip
    chosen = {cohort: [task.task_id for task in load(path, cohort=cohort).tasks] for cohort in ("recent", "all_time")}
    assert chosen == {"recent": ["ann/shop#1", "ann/shop#4"], "all_time": ["ann/shop#2", "ann/shop#3"]}


def test_the_first_form_of_the_file_is_read(tmp_path: Path) -> None:
    """In it the issues of all time are published: other names, some rows without an author, a few without a commit."""
    late = issue()
    first = {
        "language": "python", "comments": late["comments"], "dockerfile": None, "created_at": late["created_at"],
        "commit_info": {"repository": late["url"], "latest_commit": {"sha": late["commit_id"]}},
        "first_question": {"title": late["title"], "body": late["body"], "user": "user"},
        "user_satisfaction_condition": late["satisfaction_conditions"],
    }  # fmt: skip
    lost = {**first, "commit_info": {"repository": f"{ADDRESS}/issues/9", "latest_commit": {"sha": ""}}}
    dataset, same = load(write(tmp_path / "first", first, lost)), load(write(tmp_path / "late", late))
    assert dataset.tasks == same.tasks and dataset.content_hash == same.content_hash
    assert "1 row " in dataset.remark and "ann/shop#9" in dataset.remark
    (alone,) = tasks(load(write(tmp_path / "nobody", {**late, "author": None})))
    assert alone.author == ""


@published
def test_turns_of_published_threads_by_both_definitions() -> None:
    """The paper's Table 2 implies 2.10 turns of the real thread on its recent sample: between the two."""
    sample = tasks(load(DATA / "cab_recent.jsonl.gz", sample="paper"))
    assert len(sample) == 197, "the paper drew 194 from the 308 rows, of which two are there twice"
    assert Counter(task.target.language for task in sample) == {
        "python": 50, "javascript": 37, "cpp": 31, "typescript": 26, "csharp": 25, "c": 20, "java": 8
    }  # fmt: skip
    assert round(mean(map(thread_turns, sample)), 2) == 1.68 and round(mean(map(thread_replies, sample)), 2) == 2.22
    shares, turns, _ = paper()["recent"]["GPT-4.1 mini"]
    assert round(sum(share * each for share, each in zip(shares, turns, strict=True)) / 100, 2) == 2.10


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
        (issue(url="https://github.com/ann/shop/issues/04"), "https://github.com/OWNER/NAME/"),
        (issue(url="https://github.com/ann/../issues/4"), "url: "),
        (issue(url="https://github.com/ann/shop/issues/4\n"), "url: "),
        (issue(url="https://example.org/ann/shop/issues/4"), "url: "),
        (issue(commit_id="--upload-pack=sh"), "commit_id: "),
        (issue(commit_id="0123"), "commit_id: "),
        (issue(title=""), "title: "),
        (issue(comments=[{"user": "ann", "body": "x"}]), "comments.0.created_at: "),
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
        (b"[1]", ".*JSON object"),
        (b'"\xff"', "not UTF-8"),
        (b"[" * 100_000, "nested more than 100 levels deep"),
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
        ({"languages": ["jave"]}, "'jave'"),
        ({"languages": ["cpp"], "kind": "pull"}, "no issue of the file"),
        ({"kind": "issues"}, "dataset.kind"),
        ({"build": "maybe"}, "dataset.build"),
        ({"path": "/nowhere/cab.jsonl"}, "/nowhere/cab.jsonl"),
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
