"""Who pays what: prices by the models' configs, budgets over all calls, and the brake that they pull."""

import asyncio
from typing import Any

import pytest
from pydantic import SerializeAsAny

from codechat.base.domain import Usage
from codechat.base.errors import Stopped
from codechat.judging import JUDGES
from codechat.models import MODELS, ModelConfig
from codechat.models.calls import Brake
from codechat.models.roles import Roles, role
from codechat.report.metrics.spending import Effort, Price, Tariff, spending_of
from codechat.run.cell.budget import Budget, tariff_of
from codechat.run.journal import Charge, Ledger
from codechat.run.journal.ledger import charge_for
from support.mistakes import mistake

CHEAP, DEAR = {"input": 1.0, "output": 2.0}, {"input": 10.0, "output": 20.0, "cached_input": 1.0}
PROMPTS = {
    "applicability": "{{instruction}} {{code}}",
    "adherence": "{{before}} {{after}} {{instruction}}",
    "reask": "{{verdicts}}",
}


def model(prices: Any = None) -> Any:
    return MODELS.validate({"kind": "openai", "name": "m", "prices": prices})


def judge(applicability: Any, adherence: Any) -> Any:
    roles = {"applicability": applicability, "adherence": adherence}
    asked = {role: {"kind": "openai", "name": role, "prices": prices} for role, prices in roles.items()}
    return JUDGES.validate({"kind": "llm", "prompts": PROMPTS, **asked})


def test_prices_are_found_wherever_a_judge_keeps_its_models() -> None:
    llm = judge(CHEAP, DEAR)
    hybrid = JUDGES.validate({"kind": "hybrid", "llm": llm.model_dump()})
    for each in (llm, hybrid):
        tariff = tariff_of(model(DEAR), each)
        assert tariff.prices == {
            "model": Price(10, 20, 1),
            "applicability": Price(1, 2, 1),
            "adherence": Price(10, 20, 1),
        }
    assert tariff_of(model(), hybrid).unpriced == ("model",)
    assert tariff_of(model(), judge(CHEAP, None)).unpriced == ("model", "judge.adherence")
    rules = JUDGES.validate({"kind": "rules"})
    tariff = tariff_of(MODELS.validate({"kind": "echo"}), rules)
    assert (set(tariff.prices.values()), tariff.unpriced) == ({None}, ())


def test_a_budget_counts_all_payers_and_needs_their_prices() -> None:
    tariff = tariff_of(model(CHEAP), judge(DEAR, DEAR))
    ledger = Ledger()
    budget = Budget(1.0, 1_000_000, tariff)
    ledger.add(Charge("model", input_tokens=500_000))
    assert budget.reason_to_stop(ledger) == ""
    ledger.add(Charge("adherence", input_tokens=60_000, cached_input_tokens=20_000, output_tokens=4_000))
    assert budget.spent_usd(ledger) == pytest.approx(0.5 + 0.4 + 0.02 + 0.08)
    assert "$1.00 (budget_usd)" in budget.reason_to_stop(ledger)
    assert "$1.00 (budget_usd)" in budget.reason_to_stop(Ledger(), {"model": Usage(0, 500_000)})
    assert "564,000 tokens (budget_tokens)" in Budget(None, 564_000, tariff).reason_to_stop(ledger)
    with mistake("model, judge.applicability"):
        Budget(1.0, None, tariff_of(model(), judge(None, DEAR)))


@pytest.mark.parametrize(
    ("applicability", "adherence", "cost"),
    [
        (CHEAP, CHEAP, 1_000 * 1 + 100 * 2),
        (CHEAP, DEAR, 600 * 1 + 60 * 2 + 400 * 10 + 40 * 20),
        (CHEAP, None, None),
        (None, None, None),
    ],
)
def test_the_judges_cost_is_exact_or_null(applicability: Any, adherence: Any, cost: float | None) -> None:
    tokens = {"model": Usage(), "judge": Usage(input_tokens=1_000, output_tokens=100)}
    tariff = tariff_of(model(), judge(applicability, adherence))
    found = spending_of(
        tokens, Effort(tariff=tariff, judged={"applicability": Usage(900, 80), "adherence": Usage(400, 40)})
    )
    assert found["cost_usd"]["model"] is None
    assert found["cost_usd"]["judge"] == (None if cost is None else pytest.approx(cost / 1e6))


async def test_a_pulled_brake_wakes_who_waits_to_try_again() -> None:
    brake = Brake()
    await brake.wait(asyncio.sleep(0))
    waiting = asyncio.create_task(brake.wait(asyncio.sleep(3600)))
    await asyncio.sleep(0)
    brake.pull("the budget is reached")
    with pytest.raises(Stopped, match="the budget is reached"):
        await waiting
    with pytest.raises(Stopped):
        await brake.wait(asyncio.sleep(3600))
    brake.pull("another budget")
    assert (brake.reason, brake.interrupted) == ("the budget is reached", False)
    brake.pull("interrupted", interrupted=True)
    assert (brake.reason, brake.interrupted, brake.refused) == ("interrupted", True, True)


def test_further_roles_have_prices_and_costs_of_their_own() -> None:
    price = Price(1, 2, 1)
    tariff = Tariff({"model": price, "user": price, "reviewer": None})
    tokens = {"model": Usage(input_tokens=10), "judge": Usage(), "user": Usage(output_tokens=3)}
    found = spending_of(tokens, Effort(tariff=tariff, spent={"model": Usage(20), "user": Usage(0, 5)}))
    assert found["cost_usd"] == {"model": 10 / 1e6, "judge": None, "user": 6 / 1e6}
    assert found["spent_usd"] == {"model": 20 / 1e6, "judge": None, "user": 10 / 1e6, "reviewer": None}


def test_a_role_that_calls_no_endpoint_needs_no_price() -> None:
    class Two(Roles):
        user: SerializeAsAny[ModelConfig] = role("rehearsed_user", "who asks")
        judge: SerializeAsAny[ModelConfig] = role("openai", "who judges")

    roles = Two.model_validate({"user": {"kind": "rehearsed_user"}, "judge": {"kind": "openai", "name": "m"}})
    assert tariff_of(model(CHEAP), protocol=roles).unpriced == ("protocol.judge",)
    assert tariff_of(model(CHEAP), protocol=roles).prices["user"] is None


def test_the_tokens_of_a_payer_are_those_of_all_tiers() -> None:
    ledger = Ledger()
    for usage in (Usage(10, 1), Usage(100, 10).served_as("batch"), Usage(1, 0), Usage(5, 0).served_as("flex")):
        ledger.add(charge_for("model", usage))
    ledger.add(charge_for("user", Usage(7, 7)))
    assert {name: (used.input_tokens, used.output_tokens) for name, used in ledger.spent.items()} == {
        "model": (116, 11), "user": (7, 7),
    }  # fmt: skip
    assert ledger.tokens == 116 + 11 + 14
