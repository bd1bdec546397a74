"""`dry_run=true` tells what a cell would take, and takes nothing."""

import hashlib
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import CHARS_PER_TOKEN
from codechat.report.metrics.spending import Price, Tariff
from codechat.run.cell import build_cell
from codechat.run.cell.estimate import Need, estimate_of, total
from codechat.run.settings.compose import compose
from codechat.testing import Answer, Call, OpenAIServer, dataset_tasks, fading_solver
from codechat.testing.cells import command
from support.processes import codechat

UNPRIVILEGED = "http://127.0.0.1:9/v1"
PRICED = ("model.prices={input: 1, output: 10}", "judge=llm")


def run(words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return codechat(folder, *words[3:])


def row(output: str, name: str) -> list[str]:
    found = re.findall(rf"^{name} +(.+)$", output, re.MULTILINE)
    return re.split(r"  +", found[-1].strip())


def test_an_estimate_asks_nobody_and_leaves_no_folder(tmp_path: Path) -> None:
    judges = [
        f"judge.{role}.{key}" for role in ("applicability", "adherence") for key in ("prices={input: 2, output: 2}",)
    ]
    done = run(
        command(UNPRIVILEGED, 4, "runs", "dry_run=true", *PRICED, "model@judge.applicability=gpt_oss_20b",
                "model@judge.adherence=gpt_oss_20b", *judges), tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "would hold 4 sessions, 40 turns" in done.stdout
    assert "Assumed:" in done.stdout
    calls, sent, _, received, cost, uncached = (float(text.replace(",", "")) for text in row(done.stdout, "model")[:6])
    assert calls == 40
    assert cost == uncached, "no price of cached input is known"
    assert abs(cost - (sent + 10 * received) / 1e6) <= 0.01
    calls, sent, _, received, cost, _ = (float(text.replace(",", "")) for text in row(done.stdout, "judges")[:6])
    assert (calls, received) == (4 * 9 * 3 + 2 * 12, (4 * 9 * 3 + 2 * 12) * 200), "and the questions of judge.check"
    assert abs(cost - 2 * (sent + received) / 1e6) <= 0.01
    assert not list(tmp_path.iterdir())


def test_it_is_near_to_what_the_same_cell_takes(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "codechat", "tracking=none", "dataset.limit=6"]
    assert run([*words, "model=echo"], tmp_path).returncode == 0
    (cell,) = (tmp_path / "runs").iterdir()
    turns = [turn for line in (cell / "sessions.jsonl").read_text().splitlines() for turn in json.loads(line)["turns"]]
    sent = sum(len(message["content"]) for turn in turns for message in turn["request"]) / CHARS_PER_TOKEN
    done = run([*command(UNPRIVILEGED, 6, "other"), "dry_run=true"], tmp_path)
    assert 0.7 < float(row(done.stdout, "model")[1].replace(",", "")) / sent < 1.5
    assert row(done.stdout, "judges")[0] == "0", "rules ask nobody"


def test_what_the_journal_holds_costs_nothing_and_a_sweep_is_summed(tmp_path: Path) -> None:
    with OpenAIServer(fading_solver(dataset_tasks("starter"))) as server:
        words = command(server.base_url, 3, "runs", "agenda.turns=3")
        assert run([*words, "seed=0"], tmp_path).returncode == 0
        before = len(server.calls)
        sweep = [*words, "seed=0,1", "dry_run=true"]
        sweep.insert(sweep.index("codechat") + 1, "-m")
        done = run(sweep, tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(server.calls) == before
    assert "0 of 3 sessions, 0 turns" in done.stdout
    assert "would hold 3 sessions, 9 turns" in done.stdout
    assert "2 cells" in done.stdout
    assert row(done.stdout, "model")[0] == "9", "the sum of both cells"
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_maintainer_without_a_room_is_expected_to_answer_at_once(tmp_path: Path) -> None:
    """Calls of the maintainer: ten answers of an issue, each after five steps where commands can be run."""
    words = [sys.executable, "-m", "codechat", "protocol=assist", "dataset=assist_starter", "dry_run=true"]
    words += [
        "model=openai",
        "model.name=nobody",
        f"model.base_url={UNPRIVILEGED}",
        "model.prices={input: 1, output: 10}",
    ]
    sent = {}
    for environment, answers in (("checkout", 3 * 10 * 6), ("none", 3 * 10)):
        done = run([*words, f"environment={environment}"], tmp_path)
        assert done.returncode == 0, done.stderr
        calls, sent[environment], _, received = (float(text.replace(",", "")) for text in row(done.stdout, "model")[:4])
        assert calls == answers and received == round(answers * 1_200 / CHARS_PER_TOKEN)
    assert sent["none"] < sent["checkout"] / 10


def test_a_cell_that_was_begun_is_estimated_by_its_own_tokens(tmp_path: Path) -> None:
    """A prompt has 300 tokens and 500 more for each earlier reply, which has 700: other figures than by characters."""
    solve = fading_solver(dataset_tasks("starter"))

    def answer(call: Call) -> Answer:
        sent = 300 + 500 * sum(message["role"] == "assistant" for message in call.messages)
        return Answer(str(solve(call)), usage={"prompt_tokens": sent, "completion_tokens": 700})

    def estimate(*more: str) -> tuple[float, ...]:
        done = run([*words, *more, "dry_run=true"], tmp_path)
        assert done.returncode == 0, done.stderr
        assert "replies  without max_tokens, of model: a reply that repeats itself ends at" in done.stdout
        calls, sent, _, received = (float(text.replace(",", "")) for text in row(done.stdout, "model")[:4])
        return calls, sent / calls, received / calls

    with OpenAIServer(answer) as server:
        words = command(server.base_url, 12, "runs", "agenda.turns=3", "judge=rules", "model.max_concurrency=1")
        before = estimate()
        assert run([*words, "budget_tokens=30000"], tmp_path).returncode == 3
        calls, sent, received = estimate()
        assert 10 <= len(server.calls) <= 30 and calls == 36 - len(server.calls) < before[0]
    assert received == pytest.approx(700, rel=0.05) and before[2] < 300
    assert sent == pytest.approx(800, rel=0.25), "the mean of 300, 800 and 1,300"


def test_a_bounded_reply_needs_no_caution(tmp_path: Path) -> None:
    done = run([*command(UNPRIVILEGED, 4, "runs"), "model.max_tokens=2048", "dry_run=true"], tmp_path)
    assert done.returncode == 0 and "repeats itself" not in done.stdout


BLOCK = 16
"""Words of a block: the prefix cache keeps whole blocks."""


def blocks(messages: Iterable[Mapping[str, str]]) -> Iterator[bytes]:
    """For every whole block, a hash of the conversation up to its end. Roles belong to the first word of a message."""
    words = [
        word if number else f"{message['role']} {word}"
        for message in messages
        for number, word in enumerate((message["content"] or "").split())
    ]
    so_far = hashlib.sha256()
    for start in range(0, len(words) - BLOCK + 1, BLOCK):
        so_far.update("\0".join(words[start : start + BLOCK]).encode() + b"\1")
        yield so_far.digest()


class Caching(OpenAIServer):
    """Has a prefix cache that drops nothing, and counts cached words in the usage of chat replies."""

    known: set[bytes]

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        written = super().writes(call, answer)
        self.known = getattr(self, "known", set())
        cached = BLOCK * sum(1 for _ in itertools.takewhile(self.known.__contains__, blocks(call.messages)))
        self.known.update(blocks([*call.messages, {"role": "assistant", "content": answer.text or ""}]))
        written["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
        return written


def test_the_share_that_a_prefix_cache_serves_is_near_to_what_a_server_reports(tmp_path: Path) -> None:
    """Within 0.08 of the input tokens of the model, and within 0.15 of the judges', whose questions are short."""
    with Caching(fading_solver(dataset_tasks("starter"))) as server:
        judges = [
            word
            for role in ("applicability", "adherence")
            for word in (f"model@judge.{role}=openai", f"judge.{role}.base_url={server.base_url}",
                         f"judge.{role}.name=judge-0", f"judge.{role}.cache=false")
        ]  # fmt: skip
        words = [*command(server.base_url, 6, "runs", "judge=llm", "judge.max_reasks=0"), *judges]
        estimated = run([*words, "dry_run=true"], tmp_path)
        assert estimated.returncode == 0, estimated.stderr
        assert run(words, tmp_path).returncode == 0
    (cell,) = (tmp_path / "runs").iterdir()
    used = json.loads((cell / "metrics.json").read_text())["tokens"]
    for payer, name, tolerance in (("model", "model", 0.08), ("judge", "judges", 0.15)):
        calls, sent, cached = (float(text.replace(",", "")) for text in row(estimated.stdout, name)[:3])
        measured = used[payer]["cached_input_tokens"] / used[payer]["input_tokens"]
        assert calls > 0
        assert abs(cached / sent - measured) < tolerance, (name, cached / sent, measured)
    model = row(estimated.stdout, "model")
    assert float(model[2].replace(",", "")) / float(model[1].replace(",", "")) > 0.85


def test_cached_input_has_its_own_price_and_a_sweep_adds_up_times() -> None:
    cell = build_cell(compose(["model=openai", "model.name=m", "dataset.limit=2", "model.max_concurrency=2"]))
    tariff = Tariff({"model": Price(input=10, output=0, cached_input=1)})
    found = estimate_of(cell, tariff)
    used = found.tokens["model"]
    fresh = used.input_tokens - used.cached_input_tokens
    assert found.usd["model"] == pytest.approx((10 * fresh + used.cached_input_tokens) / 1e6)
    assert found.uncached_usd["model"] == pytest.approx(10 * used.input_tokens / 1e6)
    both = total([found, found])
    assert both.usd["model"] == pytest.approx(2 * (found.usd["model"] or 0))
    assert both.seconds["model"] == pytest.approx(2 * found.seconds["model"])


def test_the_time_of_a_role_is_bounded_by_its_slots_and_by_its_longest_session() -> None:
    need = Need()
    for seconds in (3.0, 1.0, 2.0):
        need.add(Need(1, 0, 0, 0, seconds))
    assert need.seconds(1) == 6
    assert need.seconds(2) == 3
    assert need.seconds(100) == 3, "the calls of one session wait for each other"


def test_who_would_be_asked_is_told(tmp_path: Path) -> None:
    done = run([*command(UNPRIVILEGED, 1, "runs"), "dry_run=true", "judge=paper"], tmp_path)
    (asked,) = [line for line in done.stdout.splitlines() if line.startswith("asks ")]
    assert f"model fading-12 at {UNPRIVILEGED}" in asked
    assert "judge.applicability openai/gpt-oss-20b at http://" in asked
