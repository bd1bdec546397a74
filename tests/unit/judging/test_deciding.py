"""The one way to decide by a model: closed words, several labels, quoting, re-asks, and doubt."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.base.domain import Message, Reply, Usage
from codechat.base.errors import ContextOverflow, InfrastructureError
from codechat.judging.deciding import Question, decide, quote, read_answer, reask
from codechat.models import Request
from codechat.models.scripted import Scripted
from codechat.sandbox.languages import LONGEST_REPLY

FORM = {"CORRECTNESS": ("TRUE", "FALSE"), "VERDICT": ("CORRECT", "PARTIALLY_CORRECT", "INCORRECT")}
GOOD = "Looked.\nCORRECTNESS: true\nREASON: it says so\n**VERDICT: Partially correct**"
AGAIN = reask("Say one of:\n{{verdicts}}", FORM)
PLACE = Request((), "t/1", 3, role="reviewer", number=2)


def question(**options: Any) -> Question:
    return Question("right", "Is it right?", FORM, AGAIN, **options)


class Asked:
    """A model that answers from a list, whatever the turn, and keeps what it was asked."""

    def __init__(self, *answers: str | Exception) -> None:
        self.requests: list[Request] = []
        self._answers = iter(answers)
        self.model = Scripted(self._answer)

    def _answer(self, request: Request) -> Reply | Exception:
        self.requests.append(request)
        answer = next(self._answers)
        return answer if isinstance(answer, Exception) else Reply(answer, usage=Usage(5, 1), retries=1)


async def test_every_label_is_read_and_what_it_took_is_summed() -> None:
    asked = Asked("Perhaps.", GOOD)
    found = await decide(asked.model, question(), PLACE)
    assert found.answers == {"CORRECTNESS": "TRUE", "VERDICT": "PARTIALLY_CORRECT"}
    assert (found.verdict, found.reason) == ("PARTIALLY_CORRECT", "it says so")
    assert (found.usage, found.retries, found.cached) == (Usage(10, 2), 2, False)
    first, second = asked.requests
    assert [(r.task_id, r.turn, r.role, r.number) for r in (first, second)] == [("t/1", 3, "reviewer", 2)] * 2
    assert second.messages == (*first.messages, Message("assistant", "Perhaps."), Message("user", AGAIN))
    assert "VERDICT: PARTIALLY_CORRECT" in AGAIN and "CORRECTNESS: FALSE" in AGAIN


async def test_what_stays_unreadable_or_does_not_fit_is_undecided() -> None:
    for answers in (["no"] * 3, [ContextOverflow("too long")]):
        found = await decide(Asked(*answers).model, question(), PLACE)
        assert (found.answers, found.verdict) == (None, None)
    asked = Asked("no")
    await decide(asked.model, question(max_reasks=0), PLACE)
    assert len(asked.requests) == 1


async def test_an_answer_beyond_the_longest_reply_is_asked_for_again_in_part() -> None:
    asked = Asked("x" * LONGEST_REPLY + f"\n{GOOD}", GOOD)
    found = await decide(asked.model, question(), PLACE)
    assert (found.verdict, found.usage) == ("PARTIALLY_CORRECT", Usage(10, 2))
    assert len(asked.requests[1].messages[1].content) == LONGEST_REPLY


async def test_a_model_that_is_away_is_no_decision_and_its_attempts_are_kept() -> None:
    failure = InfrastructureError("gone")
    failure.retries = 4
    with pytest.raises(InfrastructureError) as caught:
        await decide(Asked("no", failure).model, question(), PLACE)
    assert caught.value.retries == 5


@pytest.mark.parametrize(
    "answer",
    [
        "VERDICT: CORRECT",
        "CORRECTNESS: TRUE",
        "CORRECTNESS: TRUE\nCORRECTNESS: FALSE\nVERDICT: CORRECT",
        "CORRECTNESS: MAYBE\nVERDICT: CORRECT",
        "VERDICT: CORRECT\nCORRECTNESS: TRUE",
        "CORRECTNESS: TRUE\nVERDICT: CORRECT\nor rather not",
        "CORRECTNESS: TRUE\nVERDICT: CORRECT or INCORRECT",
        "",
    ],
)
def test_an_answer_counts_only_whole_and_at_its_end(answer: str) -> None:
    assert read_answer(answer, FORM) is None


@given(st.text(), st.text())
def test_no_text_ends_its_own_quotation_or_the_other_ones(before: str, after: str) -> None:
    prompt = quote("{{before}}\n--\n{{after}}\n{{boundary}}", before=before, after=after)
    mark = prompt.rpartition("\n")[2]
    assert mark not in before and mark not in after
    assert prompt.count(f"<<<END BEFORE {mark}>>>") == prompt.count(f"<<<END AFTER {mark}>>>") == 1
