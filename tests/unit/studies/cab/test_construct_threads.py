"""Rules of issues and threads without a model, against cases worked out by hand, and published rows."""

import gzip
import json
import random

import pytest

from codechat.run.construct import Item
from codechat.studies.cab.construct import row_of
from codechat.studies.cab.construct.github import MAIL_MASK, TOKEN_MASK, Account, mask, media_in, turns_of
from codechat.studies.cab.judging import references_for
from codechat.studies.cab.tasks import issue_of, paper_sample, thread_turns, with_replies
from support.cab import issue
from support.hosting import PUBLISHED, published

needs_data = pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs CODECHAT_TEST_DATA")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://example.org/a", "an address"),
        ("see HTTP://example.org", "an address"),
        ("www.example.org has it", "an address"),
        ("![a shot](shot.png)", "a picture or file"),
        ("![a shot][1]", "a picture or file"),
        ('<img width="3" src="a">', "a tag of media"),
        ("<VIDEO controls>", "a tag of media"),
        ('at URL "http:// example. org"', ""),
        ("page1_img1.png and ./assets/3.mp4", ""),
        ("WriteString[TValue](TValue&) and [text](other.md)", ""),
        ("rtsp://camera/stream", ""),
        ("<T> and <source>", ""),
    ],
)
def test_media(text: str, found: str) -> None:
    assert media_in("nothing", text) == found


@needs_data
def test_no_published_issue_holds_media_or_is_of_one_participant() -> None:
    for row in published():
        assert media_in(row["title"], row["body"] or "", *(each["body"] for each in row["comments"])) == "", row["url"]
        assert len({row["author"], *(each["user"] for each in row["comments"])}) > 1
        assert turns_of(row["author"], [each["user"] for each in row["comments"]])[0]["maintainer"]


SECRETS = {
    "ann.b+c@mail.example.org": MAIL_MASK, "a@b.co": MAIL_MASK, "ghp_" + "a1" * 18: TOKEN_MASK,
    "github_pat_" + "a1_" * 12: TOKEN_MASK, "sk-proj-" + "aB3-" * 8: TOKEN_MASK, "hf_" + "aBcDeFgH1" * 4: TOKEN_MASK,
    "AKIA" + "ABCD1234" * 2: TOKEN_MASK, "xoxb-1234567890-abc": TOKEN_MASK, "npm_" + "aB3d" * 9: TOKEN_MASK,
    "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2lnbmF0dXJlMTIz": TOKEN_MASK,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----": TOKEN_MASK,
    "Authorization: Bearer abcdefghijklmnop123": f"Authorization: Bearer {TOKEN_MASK}",
}  # fmt: skip
NO_SECRETS = (
    "npx playwright@1.52.0-alpha-2025", "@inngest/agent-kit@0.3.1", "git@github.com:ann/shop.git", "brew python@3.12",
    "_hf_hub_download_to_cache_dir", "task-sk-learn", "user:pass@192.168.1.2", "a @ b", "@ann thanks",
)  # fmt: skip


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_masked(secret: str) -> None:
    masked = mask(f"It says {secret} here, and ({secret}).")
    assert masked == f"It says {SECRETS[secret]} here, and ({SECRETS[secret]})."
    assert mask(masked) == masked


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_is_none_stays(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("text", ["a" * 200_000, "a@" * 50_000, "a.@" + "b." * 50_000, "sk-" * 50_000, "eyJ" * 40_000])
def test_masking_takes_time_by_length_alone(text: str) -> None:
    mask(text)


def test_turns_merge_the_neighbours_of_one_side() -> None:
    assert turns_of("u", ["a", "b", "u", "u", "a", "u"]) == [
        {"user": [0], "maintainer": [1, 2]},
        {"user": [3, 4], "maintainer": [5]},
        {"user": [6], "maintainer": []},
    ]
    assert turns_of("u", ["u", "a"]) == [{"user": [0, 1], "maintainer": [2]}]
    assert turns_of("u", []) == [{"user": [0], "maintainer": []}]


@needs_data
def test_turns_are_as_many_as_the_dataset_counts() -> None:
    for row in published():
        made = turns_of(row["author"], [each["user"] for each in row["comments"]])
        assert sum(bool(turn["maintainer"]) for turn in made) == thread_turns(issue_of(row).task())


def test_bots() -> None:
    assert Account(login="a[bot]").is_bot and Account(login="a", type="Bot").is_bot
    assert not Account(login="JCrobots").is_bot


def test_pairs_and_scores_worked_out_by_hand() -> None:
    """Two issues of one pair each; BM25 leaves an issue's own pair out, and finds the other by the word `folder`."""
    rows = [
        issue(url=f"https://github.com/ann/shop/issues/{number}", comments=[
            {"user": "ann", "created_at": "2025-01-02T04:00:00Z", "body": said},
            {"user": "user", "created_at": "2025-01-02T05:00:00Z", "body": replied},
            {"user": "user", "created_at": "2025-01-02T06:00:00Z", "body": "and more"},
        ])
        for number, said, replied in ((1, "Look in the folder.", "It is empty."), (2, "Which version?", "1.2"))
    ]  # fmt: skip
    one, two = with_replies(issue_of(row).task() for row in rows)
    assert [(reply.id, reply.user) for reply in one.replies] == [
        ("ann/shop#1:2", "It is empty."),
        ("ann/shop#2:2", "1.2"),
    ]
    assert [reply.id for reply in references_for(two, "the folder is there", 3)] == ["ann/shop#1:2"]
    assert references_for(one, "the folder is there", 3) == ()


@needs_data
def test_the_published_rows_have_364_pairs() -> None:
    with gzip.open(PUBLISHED, "rt") as stream:
        rows = [json.loads(line) for line in stream]
    tasks = with_replies(issue_of(row).task() for row in rows)
    assert len(rows) == 308 and len(tasks[0].replies) == 364


def test_a_sample_worked_out_by_hand() -> None:
    """60 issues of one turn: ten for each of the five numbers of turns, of which four lack; five with a Dockerfile first."""
    tasks = [
        issue_of(issue(
            url=f"https://github.com/ann/shop/issues/{number}", dockerfile="FROM a" if number <= 6 else None,
            comments=[{"user": "ann", "created_at": "2025-01-02T04:00:00Z", "body": "Yes."}],
        )).task()
        for number in range(1, 61)
    ]  # fmt: skip
    drawn = paper_sample(tasks, 0)
    assert len(drawn) == 50 and 5 <= sum(task.needs_build for task in drawn) <= 6
    random.Random(1).shuffle(tasks)
    assert {task.task_id for task in paper_sample(tasks, 0)} == {task.task_id for task in drawn}


def test_a_row_without_conditions_or_dockerfile_has_the_fields() -> None:
    data = {"repository": "ann/shop", "language": "c#", "number": 1, "comments": [], "needs_build": True}
    row = row_of(Item("ann/shop#1", data))
    assert (row["dockerfile"], row["satisfaction_conditions"]) == (None, [])
    assert row["_classification"] == {"category": "Needs build environment"} and "needs_build" not in row
