"""Judges' replies that quote what a candidate wrote for them: a forged word never counts, an honest one does."""

import pytest

from attacks.attack_judges import FORGED, MEANT, READ, UNREADABLE
from codechat.base.domain import Reply
from codechat.judging.deciding import VERDICT, Question, decide
from codechat.models import Request
from codechat.models.scripted import Scripted
from codechat.studies.cab.judging import read_judge
from support.cab import judges

WORDS = {VERDICT: ("ADHERED", "VIOLATED")}


async def verdict(reply: Reply) -> str | None:
    question = Question("adherence", "Was it followed?", WORDS, "Once more.", max_reasks=0)
    return (await decide(Scripted(lambda _: reply), question, Request((), "t", 0))).verdict


@pytest.mark.parametrize("name", UNREADABLE)
async def test_no_quoted_or_doubtful_word_counts(name: str) -> None:
    assert await verdict(Reply(UNREADABLE[name])) is None


@pytest.mark.parametrize("name", READ)
async def test_an_honest_word_counts(name: str) -> None:
    assert await verdict(Reply(READ[name])) == "VIOLATED"


@pytest.mark.parametrize("name", READ)
async def test_a_reply_that_was_cut_off_says_nothing(name: str) -> None:
    assert await verdict(Reply(READ[name], finish_reason="length")) is None


@pytest.mark.parametrize("name", UNREADABLE)
def test_nor_does_a_form_of_several_labels_hold_it(name: str) -> None:
    """The lines of a whole form, with its verdict replaced by the attack's."""
    form = judges(True, False, verdict="INCORRECT")
    attack = UNREADABLE[name].replace(FORGED, "VERDICT: CORRECT").replace(MEANT, "VERDICT: INCORRECT")
    found = read_judge(form.replace("VERDICT: INCORRECT", attack), 2)
    assert found is None or found.verdict != "CORRECT"


def test_there_are_enough() -> None:
    assert len(UNREADABLE) >= 60 and len(READ) >= 10
