"""The language model's verdict on a constraint: votes, the reference, and which models a cell has."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest

from codechat.base.domain import Usage
from codechat.judging import JUDGES, ConstraintQuestion, DecidesConstraints
from codechat.judging.deciding import Decision
from codechat.judging.llm import majority
from codechat.models.roles import models_in
from codechat.run.cell.budget import Budget
from codechat.run.settings.compose import compose, compose_values
from codechat.run.settings.config import CellConfig
from codechat.testing import Answer, Call, OpenAIServer, Result
from support.mistakes import mistake

QUESTION = ConstraintQuestion("t/1", 0, 0, "Sort {it}.", "It is stable.", "code()", "published_solution()")
WORDS = ("KEPT", "BROKEN")


def vote(word: str | None, reason: str = "") -> Decision:
    return Decision(None if word is None else {"VERDICT": word}, reason or str(word), usage=Usage(2, 1), retries=1)


@pytest.mark.parametrize(
    ("words", "met", "reason"),
    [
        (["KEPT"], True, "KEPT"),
        (["BROKEN"], False, "BROKEN"),
        ([None], None, "None"),
        (["KEPT", "BROKEN", "BROKEN"], False, "1 of 3 votes for, 2 against: BROKEN"),
        (["BROKEN", "KEPT"], None, "1 of 2 votes for, 1 against: BROKEN"),
        ([None, "KEPT", None], True, "1 of 3 votes for, 0 against: KEPT"),
        ([None, None], None, "0 of 2 votes for, 0 against: None"),
    ],
)
def test_the_majority_of_readable_votes(words: list[str | None], met: bool | None, reason: str) -> None:
    found = majority([vote(word) for word in words], WORDS)
    assert (found.met, found.reason) == (met, reason)
    assert (found.usage, found.retries) == (Usage(2 * len(words), len(words)), len(words))


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    verdicts = cycle(["KEPT", "BROKEN", "BROKEN"])

    def answer(call: Call) -> Result:
        return Answer(f"REASON: so.\nVERDICT: {next(verdicts)}")

    with OpenAIServer(answer) as running:
        yield running


def judge_at(server: OpenAIServer, *words: str) -> Any:
    place = "judge.constraint"
    asked = [f"{place}.base_url={server.base_url}", f"{place}.api_key_env=null", f"{place}.cache=false"]
    return JUDGES.build(compose(["protocol=repair", "judge=llm", *asked, *words]).config.judge)


async def test_several_votes_are_several_calls(server: OpenAIServer) -> None:
    judge = judge_at(server, "judge.votes=3")
    await judge.check()
    said = await judge.constraint(QUESTION)
    await judge.aclose()
    assert (said.met, said.reason) == (False, "1 of 3 votes for, 2 against: so.")
    assert len(server.calls) == 3


@pytest.mark.parametrize("shown", [True, False])
async def test_the_reference_is_shown_if_that_is_asked_for(server: OpenAIServer, shown: bool) -> None:
    judge = judge_at(server, f"judge.reference={shown}")
    await judge.constraint(QUESTION)
    await judge.aclose()
    (call,) = server.calls
    assert ("published_solution()" in call.messages[0]["content"]) == shown
    assert "Sort {it}." in call.messages[0]["content"]


@pytest.mark.parametrize("preset", ["few_shot", "no_reasoning"])
@pytest.mark.parametrize(
    ("harness", "alike", "own"),
    [("official", True, True), ("official", False, False), ("guarded", True, False)],
)
async def test_the_published_harness_has_a_question_of_its_own(
    server: OpenAIServer, preset: str, harness: str, alike: bool, own: bool
) -> None:
    """MultiCodeIF's judge fails code that keeps a constraint and does something else than the solution."""
    judge = judge_at(server, f"protocol.harness={harness}", f"judge.prompts={preset}")
    await judge.constraint(replace(QUESTION, like_reference=alike))
    await judge.aclose()
    asked = server.calls[0].messages[0]["content"]
    for said in ("published_solution()", "functionally similar", "behaves differently"):
        assert (said in asked) is own
    assert ("Ignore whether the code is correct otherwise" in asked) is not own
    assert ("VERDICT: KEPT" in asked) and ("VERDICT: BROKEN" in asked)


def roles(config: CellConfig) -> list[str]:
    return [place for place, _ in models_in(config.judge, "judge")]


def test_a_cell_has_the_judges_that_its_protocol_asks() -> None:
    assert roles(compose(["judge=llm"]).config) == ["judge.applicability", "judge.adherence"]
    assert roles(compose(["judge=llm", "protocol=repair"]).config) == ["judge.constraint"]
    assert roles(compose(["judge=hybrid", "protocol=levels"]).config) == ["judge.llm.constraint"]
    chosen = compose(["judge=llm", "protocol=repair", "model@judge.constraint=gpt5"]).config
    assert chosen.judge.constraint.name == "gpt-5"  # type: ignore[attr-defined]


def test_prices_are_those_of_the_judges_that_are_asked() -> None:
    words = ["model=openai", "model.name=a", "judge=llm", "protocol=repair"]
    assert Budget.of(compose(words).config).tariff.judges == ("constraint",)
    priced = [*words, "judge.constraint.prices={input: 1, output: 2}", "budget_usd=1"]
    with mistake("budget_usd"):
        Budget.of(compose(priced).config)


def test_no_judge_of_constraints_changes_the_id_of_a_cell_that_has_none() -> None:
    plain, other = compose(["judge=llm"]).config, compose(["judge=llm", "model@judge.constraint=gpt5"]).config
    assert plain.identity() == other.identity()
    repairing = compose(["judge=llm", "protocol=repair"]).config
    assert repairing.identity() != compose(["judge=llm", "protocol=repair", "judge.votes=3"]).config.identity()
    official = compose(["judge=llm", "protocol=repair", "protocol.harness=official"]).config
    assert "functionally similar" in str(official.identity()["judge"])
    assert "functionally similar" not in str(repairing.identity()["judge"])
    assert "constraint" not in str(plain.identity()["judge"])


def test_a_judge_without_its_question_is_refused() -> None:
    values = compose_values(["judge=llm", "protocol=repair"])[0]["judge"]
    values["prompts"]["constraint"] = None
    with mistake("judge.prompts.constraint"):
        JUDGES.validate(values)


def test_rules_decide_no_constraints_of_this_kind() -> None:
    assert not isinstance(JUDGES.build(compose(["judge=rules"]).config.judge), DecidesConstraints)
