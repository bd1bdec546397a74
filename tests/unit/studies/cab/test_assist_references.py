"""References for the user's tone: BM25 against scores that were worked out by hand, and what is never returned."""

import math
import os
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from codechat.datasets import DATASETS
from codechat.studies.cab.judging import read_judge, read_user, references_for, scores_of
from codechat.studies.cab.maintainer import read_changes, read_reply
from codechat.studies.cab.tasks import AssistTask, Reference

PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "cab_recent.jsonl.gz"
REPLIES = (
    Reference("a/a#1:2", "u/a", "restart the server", "done"),
    Reference("b/b#1:2", "u/b", "The server, the SERVER!", "thanks"),
    Reference("c/c#1:2", "u/c", "no idea", "hm"),
    Reference("d/d#1:2", "u/d", "server", "mine"),
)
TASK = AssistTask("d/d#1", "Help.", url="u/d", replies=REPLIES)


def ids(task: AssistTask, answer: str, count: int = 3) -> list[str]:
    return [reference.id for reference in references_for(task, answer, count)]


def test_scores_worked_out_by_hand() -> None:
    """Three documents of 3, 4 and 2 words without the issue's own, so 3 on average.

    `server` is in two of three: its weight is ln(1 + 1.5 / 2.5) = ln 1.6. In a, once among 3 words:
    1 · 2.5 / (1 + 1.5 · (0.25 + 0.75 · 1)) = 1. In b, twice among 4 words: 2 · 2.5 / (2 + 1.5 · (0.25 + 0.75 · 4/3)) =
    5 / 3.875. `restart` is in one of three: ln(1 + 2.5 / 1.5) = ln (8/3), and only a has it.
    """
    scores = scores_of([reply for reply in REPLIES if reply.url != "u/d"], "Server, server restart?")
    assert scores == {
        REPLIES[0]: pytest.approx(math.log(1.6) + math.log(8 / 3)),
        REPLIES[1]: pytest.approx(math.log(1.6) * 5 / 3.875),
    }
    assert ids(TASK, "Server, server restart?") == ["a/a#1:2", "b/b#1:2"]
    assert ids(TASK, "server") == ["b/b#1:2", "a/a#1:2"]


def test_an_answer_of_many_words_is_scored_at_once() -> None:
    """Texts and answers come from strangers: the event loop waits for the scores."""
    chosen = random.Random(0)
    words = [f"w{number}" for number in range(20_000)]
    replies = [Reference(str(number), "u", " ".join(chosen.choices(words, k=40)), "x") for number in range(2_000)]
    answer = " ".join([*chosen.choices(words, k=50_000), *(f"z{number}" for number in range(50_000))])
    start = time.process_time()
    assert len(scores_of(replies, answer)) == len(replies)
    assert time.process_time() - start < 2


def test_a_reply_of_a_million_characters_is_read_at_once() -> None:
    long = "no idea, sorry" * 10
    for unit in ("\u2028", "SATISFACTION ", "> CONDITION 1 ", "~~~\n-y\n", "`a`\n", "ANSWER:\n", "> " * 400 + "\n"):
        reply = (unit * (1_000_000 // len(unit)))[:1_000_000]
        start = time.process_time()
        assert read_user(reply, [long, "b" * 40]) is None
        assert read_judge(reply, 3) is None
        read_reply(reply)
        read_changes(reply)
        assert time.process_time() - start < 8  # four readers, each far below two seconds on a quiet machine


def test_the_issues_own_replies_are_left_out_whatever_they_say() -> None:
    assert "d/d#1:2" not in ids(TASK, "server")
    elsewhere = replace(TASK, task_id="e/e#1", url="u/e")
    assert ids(elsewhere, "server")[0] == "d/d#1:2"


@pytest.mark.parametrize(("answer", "count"), [("", 3), ("?!", 3), ("zebra", 3), ("server", 0)])
def test_nothing_fits(answer: str, count: int) -> None:
    assert ids(TASK, answer, count) == []


def test_without_other_replies() -> None:
    assert ids(replace(TASK, replies=()), "server") == []
    assert ids(replace(TASK, replies=REPLIES[3:]), "server") == []


def test_equal_scores_are_in_the_order_of_ids() -> None:
    same = tuple(Reference(f"x/{name}#1:2", f"u/{name}", "try again", "ok") for name in "dacb")
    task = replace(TASK, url="u/other", replies=same)
    assert ids(task, "again") == ["x/a#1:2", "x/b#1:2", "x/c#1:2"]
    assert ids(replace(task, replies=same[::-1]), "again") == ["x/a#1:2", "x/b#1:2", "x/c#1:2"]


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="CODECHAT_TEST_DATA is unset: no benchmark files")
def test_the_published_replies() -> None:
    """364 in the rows as published; three of them are in the two rows that repeat an issue."""
    dataset = DATASETS.build(DATASETS.validate({"benchmark": "cab", "path": str(PUBLISHED)}))
    tasks = [task for task in dataset.tasks if isinstance(task, AssistTask)]
    assert len(tasks[0].replies) == 361 and len({reply.id for reply in tasks[0].replies}) == 361
    assert len(tasks) - len({reply.url for reply in tasks[0].replies}) == 25
    for task in tasks[:40]:
        found = references_for(task, task.thread[0].body, 3)
        assert found == references_for(task, task.thread[0].body, 3)
        assert task.url not in [reference.url for reference in found]
