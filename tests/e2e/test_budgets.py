"""Budgets near their end: calls under way are reserved for, and sessions are finished rather than many begun."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codechat import compose, run
from codechat.testing import Answer, Call, OpenAIServer, Result, dataset_tasks, reference_solver

TASKS = dataset_tasks("starter")
solve = reference_solver(TASKS)


def answers(tokens: int) -> Any:
    """The reference, after a while, in so many tokens."""

    async def answer(call: Call) -> Result:
        await asyncio.sleep(0.02)
        text = solve(call)
        return Answer(str(text), usage={"prompt_tokens": 100, "completion_tokens": tokens})

    return answer


def cell(server: OpenAIServer, runs: Path, *more: str) -> Any:
    words = ["model=openai", f"model.base_url={server.base_url}", "model.name=m", "model.cache=false", "tracking=none"]
    words += ["model.prices={input: 0, output: 10}", "judge=rules", "sandbox.allow_weak=true", f"runs_dir={runs}"]
    return run(compose([*words, *more]))


@pytest.mark.parametrize("known", [True, False])
def test_many_calls_under_way_do_not_overspend(tmp_path: Path, known: bool) -> None:
    """A call costs $0.005: of 64 slots as many are used as the budget has room for."""
    with OpenAIServer(answers(500)) as server:
        more = ["model.max_tokens=500"] if known else []
        limits = ["model.max_concurrency=64", "agenda.turns=3", "budget_usd=0.2"]
        outcome = cell(server, tmp_path / "runs", *limits, *more)
        assert outcome.status == 3
        assert server.most_in_flight > 1, "calls are made side by side"
    spent = outcome.metrics["spent_usd"]["model"]
    assert 0.19 < spent <= 0.2 + 0.005
    assert outcome.metrics["completed"] > 0


def test_a_small_budget_finishes_some_sessions(tmp_path: Path) -> None:
    """Five sessions of four calls cost $0.04; half of that is there."""
    with OpenAIServer(answers(200)) as server:
        words = ["dataset.limit=5", "agenda.turns=4", "budget_usd=0.02"]
        outcome = cell(server, tmp_path / "runs", *words)
        assert outcome.status == 3 and outcome.metrics["completed"] >= 1
        assert outcome.metrics["spent_usd"]["model"] <= 0.02 + 0.002
        rest = cell(server, tmp_path / "runs", *words, "budget_usd=1")
        assert rest.status == 0 and rest.metrics["completed"] == 5


def test_a_large_budget_holds_nobody_back(tmp_path: Path) -> None:
    """The first calls are answered when all of them are under way."""
    everyone = asyncio.Event()

    async def answer(call: Call) -> Result:
        if call.number == 7:
            everyone.set()
        async with asyncio.timeout(30):
            await everyone.wait()
        return solve(call)

    with OpenAIServer(answer) as server:
        outcome = cell(server, tmp_path / "runs", "dataset.limit=8", "agenda.turns=2", "budget_usd=1000")
        assert outcome.status == 0 and not outcome.metrics["retries"]


def test_a_budget_of_tokens_finishes_some_sessions_too(tmp_path: Path) -> None:
    with OpenAIServer(answers(200)) as server:
        outcome = cell(server, tmp_path / "runs", "dataset.limit=6", "agenda.turns=4", "budget_tokens=3500")
        assert outcome.status == 3 and outcome.metrics["completed"] >= 1
        assert outcome.unfinished and "budget_tokens" in outcome.unfinished
