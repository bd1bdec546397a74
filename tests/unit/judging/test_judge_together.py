"""Applicability of several instructions by one question: what is asked, what is read, and what is chosen."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Applicabilities, Instruction
from codechat.cli.app import main
from codechat.judging import JUDGES, DecidesTogether
from codechat.models.calls import Brake, run_coroutine
from codechat.run.settings.compose import compose
from codechat.testing import OpenAIServer, dataset_tasks, reference_solver

TEXTS = {
    "applicability": "Does {{instruction}} apply to {{code}}?", "adherence": "{{instruction}} {{before}} {{after}}",
    "reask": "{{verdicts}}",
}  # fmt: skip
ASKED = [Instruction(f"i{number}", f"Do thing {number}.", "cosmetic", "add") for number in range(1, 4)]


def judge(kind: str, *replies: str, **more: Any) -> Any:
    model = {"kind": "scripted", "replies": list(replies)}
    values = {"kind": "llm", "prompts": TEXTS, "applicability": model, "adherence": model, "max_reasks": 0, **more}
    return JUDGES.build(JUDGES.validate(values if kind == "llm" else {"kind": "hybrid", "llm": values}))


def decided(built: Any, *asked: Instruction, code: str = "x = 1") -> Applicabilities:
    async def ask() -> Applicabilities:
        assert isinstance(built, DecidesTogether)
        try:
            return await built.applicable_together(code, asked)
        finally:
            await built.aclose()

    return run_coroutine(ask, Brake())


def test_each_has_its_own_line() -> None:
    reply = "The third.\nVERDICT 1: NOT_APPLICABLE\n**VERDICT 2: APPLICABLE**\nVERDICT 3: APPLICABLE"
    found = decided(judge("llm", reply), *ASKED)
    assert [each.applicable for each in found.decisions] == [False, True, True]
    assert {each.by for each in found.decisions} == {"llm"}


def test_lines_in_another_order_are_read_by_their_numbers() -> None:
    reply = "VERDICT 2: NOT_APPLICABLE\nVERDICT 1: APPLICABLE\nVERDICT 3: NOT_APPLICABLE"
    assert [each.applicable for each in decided(judge("llm", reply), *ASKED).decisions] == [True, False, False]


def test_what_cannot_be_read_is_asked_one_by_one() -> None:
    unreadable = "VERDICT 1: APPLICABLE\nVERDICT 3: APPLICABLE"
    replies = [unreadable, "VERDICT: APPLICABLE", "VERDICT: NOT_APPLICABLE", "who knows"]
    with OpenAIServer(lambda call: replies[call.number]) as server:
        asked = {"kind": "openai", "name": "j", "base_url": server.base_url, "cache": False}
        found = decided(judge("llm", "", applicability=asked), *ASKED)
    assert len(server.calls) == 4
    assert found.usage.output_tokens == sum(len(reply.split()) for reply in replies)
    assert [each.applicable for each in found.decisions] == [True, False, None]


def test_one_alone_is_asked_as_ever() -> None:
    assert [each.applicable for each in decided(judge("llm", "VERDICT: APPLICABLE"), ASKED[0]).decisions] == [True]


def test_rules_decide_what_they_can_and_nothing_is_asked_behind_the_first_that_applies() -> None:
    pool = [
        Instruction("c", "Remove the comments.", "cosmetic", "remove", rule={"pattern": "comment"}),
        Instruction("f", "Do something.", "cosmetic", "add"),
    ]
    ruled = decided(judge("hybrid", "never asked"), *pool, code="x = 1  # one\n")
    assert [(each.applicable, each.by) for each in ruled.decisions] == [(True, "rules"), (None, "rules")]
    asked = decided(judge("hybrid", "VERDICT: APPLICABLE"), *pool, code="x = 1\n")
    assert [(each.applicable, each.by) for each in asked.decisions] == [(False, "rules"), (True, "llm")]


def test_it_is_in_the_id_only_while_it_is_set() -> None:
    plain, same, other = (
        compose(["judge=llm", *words]).config.judge.identity() for words in ([], ["judge.batch=1"], ["judge.batch=3"])
    )
    assert plain == same
    assert other == {**plain, "batch": 3}


def test_a_cell_chooses_as_with_single_questions_and_asks_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    solve = reference_solver(dataset_tasks("starter"))

    def applies(text: str) -> str:  # by the text of the request alone
        return "APPLICABLE" if len(text) % 3 == 0 else "NOT_APPLICABLE"

    def answer(call: Any) -> Any:
        asked = call.messages[0]["content"]
        several = re.search(r"<<<BEGIN INSTRUCTIONS \w+>>>\n(.*)\n<<<END INSTRUCTIONS", asked, re.DOTALL)
        single = re.search(r"<<<BEGIN INSTRUCTION \w+>>>\n(.*)\n<<<END INSTRUCTION ", asked, re.DOTALL)
        if several is not None:
            texts = re.findall(r"^\d+\. (.*)$", several[1], re.MULTILINE)
            return "\n".join(f"VERDICT {number}: {applies(text)}" for number, text in enumerate(texts, 1))
        if single is not None and "VERDICT: NOT_APPLICABLE" in asked:
            return f"VERDICT: {applies(single[1])}"
        return solve(call)

    found = {}
    with OpenAIServer(answer) as server:
        for batch in (1, 3):
            words = ["model=openai", "model.name=m", f"model.base_url={server.base_url}", "judge=llm", "tracking=none"]
            words += ["judge.check=false"]
            for role in ("applicability", "adherence"):
                words += [f"model@judge.{role}=openai", f"judge.{role}.name=j"]
                words += [f"judge.{role}.base_url={server.base_url}", f"judge.{role}.cache=false"]
            assert main([*words, "dataset.limit=2", "agenda.turns=4", f"judge.batch={batch}"]) == 0
            (path,) = Path("runs").iterdir()
            turns = [
                turn
                for line in (path / "sessions.jsonl").read_text().splitlines()
                for turn in json.loads(line)["turns"]
            ]
            calls = sum("VERDICT" in call.messages[0]["content"] for call in server.calls)
            found[batch] = ([turn["candidates"] for turn in turns], calls)
            server.calls.clear()
            path.rename(tmp_path / f"done-{batch}")
    assert found[1][0] == found[3][0]
    assert any(len(tried) > 1 for tried in found[1][0])
    assert found[3][1] < found[1][1]
