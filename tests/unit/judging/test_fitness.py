"""The questions with known answers: what is said to be right is right, and no single answer passes."""

import ast
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Instruction
from codechat.judging import ADHERENCE, APPLICABILITY, CONSTRAINT, QUESTIONS
from codechat.judging.deciding import quote
from codechat.judging.fitness import KNOWN, NEEDED, Known, examined, right_word
from codechat.judging.llm import WORDS
from codechat.run.settings.compose import compose
from codechat.studies.refine.instructions import INSTRUCTIONS
from codechat.studies.refine.judge_rules import RulesJudge

POOL = {one.text: one for one in INSTRUCTIONS.build(INSTRUCTIONS.validate({"kind": "default"})).instructions}
PROMPTS = Path(__file__).parents[3] / "conf" / "prompts" / "llm"


def instruction(known: Known) -> Instruction:
    return POOL[known.quoted["instruction"]]


def numbered(role: str) -> list[Any]:
    return [pytest.param(known, id=str(number)) for number, known in enumerate(KNOWN[role], 1)]


@pytest.mark.parametrize("role", QUESTIONS)
def test_each_role_has_twelve_different_questions_six_of_each_answer(role: str) -> None:
    assert Counter(known.right for known in KNOWN[role]) == dict.fromkeys(WORDS[role], 6)
    assert len({tuple(known.quoted.values()) for known in KNOWN[role]}) == 12


def test_the_bar_is_the_lowest_that_a_coin_seldom_meets() -> None:
    tail = [sum(math.comb(12, right) for right in range(least, 13)) / 2**12 for least in range(13)]
    assert next(least for least in range(13) if tail[least] < 0.05) == NEEDED
    assert (round(tail[10], 3), round(tail[9], 3), round(1 / tail[10])) == (0.019, 0.073, 52)


@pytest.mark.parametrize("known", numbered(APPLICABILITY))
async def test_the_rules_agree_on_applicability(known: Known) -> None:
    found = await RulesJudge().applicable(known.quoted["code"], instruction(known))
    assert found.applicable is (known.right == "APPLICABLE")


@pytest.mark.parametrize("known", numbered(ADHERENCE))
async def test_the_rules_agree_on_adherence(known: Known) -> None:
    found = await RulesJudge().adherence(known.quoted["before"], known.quoted["after"], instruction(known))
    assert found.verdict.upper() == known.right


def calls(tree: ast.AST) -> set[str]:
    found = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = (each.id if isinstance(each, ast.Name) else getattr(each, "attr", "") for each in found)
    return {*names}


def has(*kinds: type[ast.AST]) -> Callable[[ast.FunctionDef], bool]:
    return lambda function: any(isinstance(node, kinds) for node in ast.walk(function))


CHECKS: dict[str, Callable[[ast.FunctionDef], bool]] = {
    "named sum_of_squares": lambda function: function.name == "sum_of_squares",
    "not call sorted()": lambda function: not calls(function) & {"sorted", "sort"},
    "written in Java": lambda function: False,  # it parses as Python
    "use recursion": lambda function: function.name in calls(function),
    "use a dictionary": has(ast.Dict),
    "not contain a for or while loop": lambda function: not has(ast.For, ast.While)(function),
    "have a docstring": lambda function: ast.get_docstring(function) is not None,
    "use a set": lambda function: has(ast.Set, ast.SetComp)(function) or "set" in calls(function),
    "not import": lambda function: not has(ast.Import, ast.ImportFrom)(function),
    "raise a ValueError": has(ast.Raise),
    "type hint": lambda function: all(each.annotation is not None for each in function.args.args),
    "exactly two parameters": lambda function: len(function.args.args) == 2,
}


@pytest.mark.parametrize("known", numbered(CONSTRAINT))
def test_the_syntax_tree_agrees_on_constraints(known: Known) -> None:
    (check,) = (check for words, check in CHECKS.items() if words in known.quoted["constraint"])
    (function,) = ast.parse(known.quoted["code"]).body
    assert isinstance(function, ast.FunctionDef)
    assert check(function) is (known.right == "KEPT")


@pytest.mark.parametrize("role", QUESTIONS)
@pytest.mark.parametrize("preset", ["few_shot", "zero_shot", "neutral", "no_reasoning"])
def test_a_stand_in_knows_the_questions_in_every_prompt_and_nothing_else(role: str, preset: str) -> None:
    path = PROMPTS / preset / f"{role}.md"
    prompt = (path if path.exists() else PROMPTS / "few_shot" / f"{role}.md").read_text("utf-8")
    for known in KNOWN[role]:
        assert right_word(quote(prompt, **known.quoted)) == known.right
        assert right_word(quote(prompt, **{name: f"{text} " for name, text in known.quoted.items()})) is None


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["judge=llm"], "judge"), (["judge=llm", "judge.check=false"], None), (["judge=rules"], None),
        (["judge=hybrid"], "judge.llm"), (["judge=hybrid", "judge.llm.check=false"], None),
    ],
)  # fmt: skip
def test_language_models_alone_are_examined_unless_it_is_off(words: list[str], place: str | None) -> None:
    found = examined(compose(words).config.judge)
    assert (found and found.place) == place
