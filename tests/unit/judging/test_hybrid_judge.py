"""The hybrid judge: who decides, whom it asks, and what it records where rules and language model disagree."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Adherence, Applicability, Instruction, Usage
from codechat.base.errors import UserError
from codechat.judging import JUDGES, Judge
from codechat.run.run import run
from codechat.run.settings.compose import compose, compose_values
from codechat.studies.refine.judge_hybrid import DISAGREES, HybridConfig
from codechat.testing import Answer, Behaviour, Call, OpenAIServer

RULED = Instruction("ruled", "Remove all comments.", "cosmetic", "remove", {"pattern": "comment"})
FREE = Instruction("free", "Make the names clearer.", "cosmetic", "modify")
BEFORE, AFTER = "x = 1  # one\n", "x = 1\n"
CLOSED = "http://127.0.0.1:9/v1"


def judge(*overrides: str, url: str = CLOSED) -> Judge:
    at = [
        f"judge.llm.{role}.{word}"
        for role in ("applicability", "adherence")
        for word in (f"base_url={url}", "max_retries=0")
    ]
    config = JUDGES.validate(compose_values(["judge=hybrid", *at, *overrides])[0]["judge"])
    found: Judge = JUDGES.build(config)
    return found


@pytest.fixture
def serve() -> Iterator[Any]:
    with ExitStack() as stack:
        yield lambda behaviour: stack.enter_context(OpenAIServer(behaviour, models=["openai/gpt-oss-20b"]))


def saying(applicability: str, adherence: str) -> Behaviour:
    def answer(call: Call) -> Answer:
        asks_applicability = "NOT_APPLICABLE" in call.messages[0]["content"]
        said = applicability if asks_applicability else adherence
        usage = {"prompt_tokens": 7, "completion_tokens": 2}
        return Answer(f"REASON: thought so.\n{'VERDICT: ' + said if said else ''}", usage=usage)

    return answer


async def both(judge: Judge, instruction: Instruction) -> tuple[Applicability, Adherence]:
    try:
        await judge.check()
        return await judge.applicable(BEFORE, instruction), await judge.adherence(BEFORE, AFTER, instruction)
    finally:
        await judge.aclose()


async def test_what_a_rule_decides_contacts_nobody() -> None:
    fits, done = await both(judge(), RULED)
    assert (fits.applicable, fits.by, done.verdict, done.by) == (True, "rules", "adhered", "rules")
    assert (fits.reason, fits.usage) == ("1 comment: line 1", Usage())


async def test_the_rest_is_asked(serve: Any) -> None:
    server = serve(saying("NOT_APPLICABLE", "VIOLATED"))
    fits, done = await both(judge(url=server.base_url), FREE)
    assert (fits.applicable, fits.by, fits.usage) == (False, "llm", Usage(7, 2))
    assert (done.verdict, done.by, done.reason) == ("violated", "llm", "thought so.")


async def test_what_a_rule_leaves_undecided_is_asked(serve: Any) -> None:
    server = serve(saying("APPLICABLE", "VIOLATED"))
    todo = Instruction("todo", "Add a TODO.", "cosmetic", "add", {"pattern": "comment", "matches": "TODO"})
    asked = judge(url=server.base_url)
    done = await asked.adherence("x = 1\n", "x = 1  # TODO\n", todo)
    await asked.aclose()
    assert (done.verdict, done.by) == ("violated", "llm")


async def test_the_endpoint_is_checked_before_its_first_question_and_once(serve: Any) -> None:
    server = serve(saying("APPLICABLE", "ADHERED"))
    asked = judge(url=server.base_url)
    await asked.check()
    await asked.applicable(BEFORE, RULED)
    assert server.probes == 0
    for _ in range(3):
        await asked.applicable(BEFORE, FREE)
    await asked.aclose()
    assert server.probes == 1, "of the model that was asked"
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9"):
        await both(judge(), FREE)


@pytest.mark.parametrize(
    ("said", "opening"),
    [
        (("APPLICABLE", "ADHERED"), "llm agrees | "),
        (("NOT_APPLICABLE", "VIOLATED"), DISAGREES),
        (("", ""), "llm undecided | "),
    ],
)
async def test_both_are_asked_and_the_rule_counts(serve: Any, said: tuple[str, str], opening: str) -> None:
    server = serve(saying(*said))
    fits, done = await both(judge("judge.rules_first=false", "judge.llm.max_reasks=0", url=server.base_url), RULED)
    assert (fits.applicable, fits.by, done.verdict, done.by) == (True, "rules", "adhered", "rules")
    assert fits.reason.startswith(opening)
    assert done.reason.startswith(opening)
    assert fits.reason.endswith(" | 1 comment: line 1")
    assert fits.usage == done.usage == Usage(7, 2)
    assert len(server.calls) == 2
    if opening == DISAGREES:
        assert fits.reason == "llm disagrees (not applicable: thought so.) | 1 comment: line 1"
        assert done.reason == "llm disagrees (violated: thought so.) | no comment left of 1"


async def test_without_a_rule_asking_both_is_asking_the_model(serve: Any) -> None:
    server = serve(saying("APPLICABLE", "ADHERED"))
    fits, done = await both(judge("judge.rules_first=false", url=server.base_url), FREE)
    assert (fits.by, done.by, fits.reason) == ("llm", "llm", "thought so.")


def test_the_preset_holds_every_option_and_each_role_takes_any_model() -> None:
    values: Any = compose_values(["judge=hybrid", "model@judge.llm.adherence=gpt5"])[0]["judge"]
    assert set(values) == set(HybridConfig.model_fields)
    config = JUDGES.validate(values)
    assert isinstance(config, HybridConfig)
    assert config.llm.adherence.name == "gpt-5"
    assert config.identity()["llm"]["adherence"]["name"] == "gpt-5"
    assert config.identity()["rules_first"] is True
    assert "lookahead" not in config.identity()


def test_a_cell_that_rules_decide_runs_without_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool.csv").write_text(
        "text,scope,rule\n"
        'Remove all comments.,cosmetic,"{""pattern"": ""comment""}"\n'
        'Remove all docstrings.,structural,"{""pattern"": ""docstring""}"\n'
    )
    small = ("dataset.limit=1", "agenda.turns=3", "tracking=none", "hardware.workers=1", "instructions.path=pool.csv")
    dead = [f"judge.llm.{role}.base_url={CLOSED}" for role in ("applicability", "adherence")]
    outcome = run(compose([*small, "judge=hybrid", *dead]))
    assert outcome.status == 0
    assert outcome.metrics is not None
    assert outcome.metrics["errored"] == 0


@pytest.mark.parametrize(
    ("first", "ruled", "asks"), [(True, True, False), (True, False, True), (False, True, True), (False, False, True)]
)
def test_an_estimate_counts_the_questions_that_rules_do_not_decide(first: bool, ruled: bool, asks: bool) -> None:
    words = ["judge=hybrid", f"judge.rules_first={first}", "judge.llm.batch=4", "judge.llm.votes=3"]
    config: Any = JUDGES.validate(compose_values(words)[0]["judge"])
    assert config.asks(RULED if ruled else FREE) is asks
    assert config.asked_together() == (4 if first else 1)
    assert config.votes_on_constraint() == config.llm.votes_on_constraint() == 3
    for role in ("applicability", "adherence"):
        assert config.question_length(role) == config.llm.question_length(role)
        assert config.head_length(role) == config.llm.head_length(role)
    assert 0 < config.head_length("adherence") < config.question_length("adherence")
    assert config.llm.asks(RULED) is True


async def test_about_code_that_does_not_parse_the_language_model_decides(serve: Any) -> None:
    broken = "def f(x:\n    return x  # one\n"
    server = serve(saying("APPLICABLE", "ADHERED"))
    asserts = Instruction("a", "Remove it.", "semantic", "remove", {"pattern": "assert"})
    asked = judge(url=server.base_url)
    try:
        await asked.check()
        fits = await asked.applicable(broken, asserts)
        done = await asked.adherence(broken, AFTER, asserts)
        refused = await asked.adherence(BEFORE, broken, asserts)
        comments = await asked.applicable("x = = 1  # one\n", RULED)
    finally:
        await asked.aclose()
    assert (fits.applicable, fits.by) == (True, "llm") and (done.verdict, done.by) == ("adhered", "llm")
    assert (refused.verdict, refused.by) == ("violated", "rules"), "the answer does not parse: a rule sees that"
    assert (comments.applicable, comments.by) == (True, "rules"), "comments are found in broken code too"
