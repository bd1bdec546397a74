"""Cells with a gate, over HTTP and in the real sandbox: what the model is told, what it costs, what stays."""

import csv
import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from codechat.base.records import read_sessions
from codechat.cli.app import main
from codechat.report.page import Index, body_of
from codechat.testing import Call, OpenAIServer, overflow
from codechat.testing.cells import without_times
from support.processes import codechat, ended, start, wait_until

pytestmark = pytest.mark.long

BASE, PLUS = 4321, 7654321
TASK = {
    "prompt": 'def f(x):\n    """x + 1"""\n', "entry_point": "f", "canonical_solution": "    return x + 1\n",
    "base_input": [[BASE], [2]], "plus_input": [[PLUS]],
}  # fmt: skip
BODIES = {"good": "x + 1", "base": "x", "plus": f"x + 1 if x < {PLUS - 1} else 0"}
REFUSED = "That code does not pass"


class Scripted:
    """Answers the n-th request of a dialogue that is no message about a test by the n-th list of kinds, try by try."""

    def __init__(self, *script: str) -> None:
        self.script = [kinds.split() for kinds in script]
        self.tries: Counter[str] = Counter()
        self.turns: dict[str, int] = {}
        self.wait: Callable[[str, int], None] = lambda kind, number: None

    def __call__(self, call: Call) -> Any:
        asked = [each["content"] for each in call.messages if each["role"] == "user"]
        last = [text for text in asked if not text.startswith(REFUSED)][-1]
        turn = self.turns.setdefault(last, len(self.turns))
        kinds = self.script[turn] if turn < len(self.script) else ["good"]
        number = self.tries[last]
        self.tries[last] += 1
        kind = kinds[min(number, len(kinds) - 1)]
        self.wait(kind, number)
        if kind == "overflow":
            return overflow()
        if kind == "none":
            return "I would rather not."
        return f"Sure.\n```python\ndef f(x):\n    return {BODIES[kind]}  # {turn}.{number}\n```"


def words(url: str, *more: str, runs: str = "runs") -> list[str]:
    Path("mine.jsonl").write_text(json.dumps({"task_id": "m/0", **TASK}) + "\n")
    return [
        "model=openai", "model.name=tested", f"model.base_url={url}", "model.api_key_env=null", "dataset=jsonl",
        "dataset.path=mine.jsonl", "agenda.turns=6", "tracking=none", "sandbox.allow_weak=true", "judge=rules",
        f"runs_dir={runs}", *more,
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def folder_in(runs: str) -> Path:
    (folder,) = (path for path in Path(runs).iterdir() if not path.name.startswith("."))
    return folder


def sessions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]


def metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return found


def turns(runs: str) -> list[dict[str, Any]]:
    (session,) = sessions(folder_in(runs))
    found: list[dict[str, Any]] = session["turns"]
    return [turn for turn in found if not turn["skipped"]]


def comparable(found: list[dict[str, Any]]) -> Any:
    """The sessions without times and without what names the cell."""
    named = ("cell_id", "session_id", "model")
    return [without_times({key: value for key, value in each.items() if key not in named}) for each in found]


SCRIPT = ("good", "base good", "plus", "none base good", "base", "good")


def test_no_plus_input_reaches_the_model_whose_gate_sees_the_base_tests() -> None:
    with OpenAIServer(Scripted(*SCRIPT)) as server:
        assert main(words(server.base_url, "protocol.gate=tests")) == 0
        told = [
            message["content"] for call in server.calls for message in call.messages if message["role"] != "assistant"
        ]
    about = [text for text in told if text.startswith(REFUSED)]
    assert any(
        f"Arguments: {BASE}" in text and f"Expected: {BASE + 1}" in text and f"Result: {BASE}" in text for text in about
    )
    assert not [text for text in told if str(PLUS) in text or str(PLUS + 1) in text]
    found = turns("runs")
    assert [turn.get("gate", {}).get("rolled_back") for turn in found[1:5]] == [False, None, False, True]
    assert [turn["passed"] for turn in found] == [True, True, False, True, False, True]
    assert [turn["passed_base"] for turn in found] == [True, True, True, True, False, True]
    assert [each["outcome"] for each in found[3]["gate"]["tries"]] == ["no_code", "fail", "pass"]


def test_a_gate_that_sees_all_tests_tells_of_plus_tests() -> None:
    with OpenAIServer(Scripted(*SCRIPT)) as server:
        assert main(words(server.base_url, "protocol.gate=tests", "protocol.gate_tests=all")) == 0
        assert any(f"Arguments: {PLUS}" in str(call.messages[-1]) for call in server.calls)
    assert turns("runs")[2]["gate"]["rolled_back"]


def test_every_silent_try_is_a_call_of_its_own_and_is_cached_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    price = "model.prices={input: 1, output: 10}"
    with OpenAIServer(Scripted(*SCRIPT)) as server:
        command = words(server.base_url, "protocol.gate=silent", "model.temperature=0", price)
        assert main(command) == 0
        asked = Counter(json.dumps(call.messages) for call in server.calls)
        assert sorted(asked.values()) == [1, 1, 1, 2, 3, 3]
        assert main(command) == 0, "a finished cell"
        assert main(words(server.base_url, *command[11:], runs="again")) == 0
        assert len(server.calls) == sum(asked.values()), "neither asks the server"
    capsys.readouterr()
    assert comparable(sessions(folder_in("again"))) == comparable(sessions(folder_in("runs")))
    found = metrics(folder_in("runs"))
    further = [call["usage"] for turn in turns("runs") for call in turn.get("calls", [])[1:]]
    firsts = [turn["usage"] for turn in turns("runs")]
    for payer, usages in (("gate", further), ("model", firsts)):
        spent = {name: sum(each[name] for each in usages) for name in ("input_tokens", "output_tokens")}
        assert {name: found["tokens"][payer][name] for name in spent} == spent
        cost = (spent["input_tokens"] + 10 * spent["output_tokens"]) / 1e6
        assert found["cost_usd"][payer] == pytest.approx(cost) and cost > 0
    assert found["spent_usd"]["model"] == pytest.approx(found["cost_usd"]["model"] + found["cost_usd"]["gate"])


def test_a_budget_counts_further_tries() -> None:
    with OpenAIServer(Scripted("good", "base")) as server:
        assert main(words(server.base_url, "protocol.gate=silent", "protocol.gate_tries=10", "budget_tokens=1000")) == 3
        assert 3 <= len(server.calls) < 11
    (session,) = sessions(folder_in("runs"))
    assert session["status"] == "errored" and "budget" in session["error"]


def test_a_recording_is_scored_again_and_replayed_with_its_tries() -> None:
    script = (*SCRIPT[:3], "base overflow", "base", "good")
    for gate in ("silent", "tests"):
        with OpenAIServer(Scripted(*script)) as server:
            assert main(words(server.base_url, f"protocol.gate={gate}", "model.cache=false", runs=gate)) == 0
        source = folder_in(gate)
        assert [call["response"] is None for call in turns(gate)[3]["calls"]] == [False, True]
        assert main(["rescore", f"run={source}", f"out={gate}-again"]) == 0
        again = Path(f"{gate}-again")
        assert comparable(sessions(again)) == comparable(sessions(source))
        told = ("measures", "retries", "spent_usd", "judge_check")
        of = [{key: each for key, each in metrics(place).items() if key not in told} for place in (again, source)]
        assert without_times(of[0]) == without_times(of[1])
        replayed = ["model=replay", f"model.path={source}/sessions.jsonl", f"protocol.gate={gate}"]
        assert main([*words("", *replayed, runs=f"{gate}-replayed")[4:]]) == 0
        assert comparable(sessions(folder_in(f"{gate}-replayed"))) == comparable(sessions(source))


def test_a_replay_whose_tests_decide_otherwise_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(Scripted(*SCRIPT)) as server:
        assert main(words(server.base_url, "protocol.gate=silent")) == 0
    replayed = ["model=replay", f"model.path={folder_in('runs')}/sessions.jsonl"]
    options = ["protocol.gate=silent", "protocol.gate_tests=all"]
    assert main([*words("", *replayed, *options, runs="replayed")[4:]]) == 2
    assert "the model was asked once there" in capsys.readouterr().err


def test_a_kill_in_a_try_loses_at_most_the_call_under_way(tmp_path: Path) -> None:
    with OpenAIServer(Scripted(*SCRIPT)) as server:
        options = ("protocol.gate=silent", "model.cache=false")
        assert main(words(server.base_url, *options, runs="whole")) == 0
    script, reached = Scripted(*SCRIPT), list[int]()

    async def slow(call: Call) -> Any:
        import asyncio

        answer = script(call)
        if "3.1" in str(answer) and not reached:
            reached.append(len(server.calls))
            await asyncio.sleep(60)
        return answer

    with OpenAIServer(slow) as server:
        command = words(server.base_url, *options, runs="killed")
        process = start(tmp_path, *command)
        wait_until(lambda: reached)
        process.kill()
        ended(process)
        script.tries.subtract(list(script.tries)[3:4])  # the call that was lost is answered again
        assert codechat(tmp_path, *command).returncode == 0
        asked = Counter(json.dumps(call.messages) for call in server.calls)
        assert sum(asked.values()) == 11 + 1
    assert comparable(sessions(folder_in("killed"))) == comparable(sessions(folder_in("whole")))


def test_a_coding_agent_has_no_gate(capsys: pytest.CaptureFixture[str]) -> None:
    agent = ["model=mini_swe_agent", "model.name=m", "model.base_url=http://127.0.0.1:9/v1"]
    assert main([*words("", "protocol.gate=silent")[3:], *agent]) == 2
    assert "set protocol.gate=none" in capsys.readouterr().err


def test_the_estimate_says_what_it_assumes_of_the_gate(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {}
    for gate in ("none", "silent"):
        assert main(words("http://127.0.0.1:9/v1", f"protocol.gate={gate}", "dry_run=true")) == 0
        counts[gate] = " ".join(capsys.readouterr().out.split())
    assert "a gate refuses 15% of the replies" in counts["silent"] and "a gate refuses" not in counts["none"]
    assert counts["silent"] != counts["none"]


def test_the_page_prints_what_its_command_prints(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "beyond.md").read_text(encoding="utf-8")
    section = page.split("## A check between turns")[1].split("\n## ")[0]
    commands, printed = (section.split(f"```{kind}\n")[1].split("```")[0] for kind in ("console", "text"))
    done = codechat(tmp_path, *commands.splitlines()[0].split()[1:], "sandbox.allow_weak=true")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert all(" ".join(line.split()) in told for line in printed.splitlines())
    assert (Path(__file__).parents[2] / "docs" / "beyond-gate.png").stat().st_size < 60_000


# -- the drifter, whose truth is known ----------------------------------------------------------------------------

P, TRIES = 0.6, 2


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The cells of the sweep by their gate: the drifter, which breaks every kind of turn with probability `P`."""
    folder = tmp_path_factory.mktemp("sweep")
    rates = [f"model.regression.{scope}={P}" for scope in ("cosmetic", "structural", "semantic")]
    command = ["-m", "+sweep=gate", "model=drifter", *rates, "model.self_correction=0", "tracking=none", "judge=rules"]
    done = codechat(folder, *command, "dataset.limit=30", "sandbox.allow_weak=true", f"runs_dir={folder}/runs")
    assert done.returncode == 0, done.stderr
    cells = list((folder / "runs").iterdir())
    return {next((g for g in ("silent", "tests") if f"gate-{g}" in cell.name), "none"): cell for cell in cells
            if not cell.name.startswith(".")}  # fmt: skip


def test_a_turn_fails_if_every_try_does(sweep: dict[str, Path]) -> None:
    for gate in ("silent", "tests"):
        met = [turn for session in sessions(sweep[gate]) for turn in session["turns"][1:] if not turn["skipped"]]
        failed, seen = fmean(turn["gate"]["rolled_back"] if "gate" in turn else False for turn in met), 0.96
        expected = (P * seen) ** (TRIES + 1)
        assert abs(failed - expected) < 3.5 * (expected * (1 - expected) / len(met)) ** 0.5 + 0.02
        asked = fmean("gate" in turn for turn in met)
        assert abs(asked - P * seen) < 3.5 * (P * (1 - P) / len(met)) ** 0.5 + 0.02


def test_the_figures_follow_from_the_sessions(sweep: dict[str, Path]) -> None:
    for gate, folder in sweep.items():
        found, done = metrics(folder), sessions(folder)
        passes = [[bool(turn["passed"]) for turn in session["turns"]] for session in done]
        assert found["pass_at_1"] == pytest.approx([fmean(column) for column in zip(*passes, strict=True)])
        assert found["mst"] == pytest.approx(fmean([*row, False].index(False) for row in passes))
        broke, mended, met = [], [], Counter[bool]()
        standing: list[list[bool]] = []
        for session in done:
            stands, curve = None, []
            for turn in session["turns"]:
                if stands is not None and not turn["skipped"]:
                    met[stands] += 1
                    (broke if stands else mended).append(turn["passed"] is not stands)
                if not turn.get("gate", {}).get("rolled_back"):
                    stands = turn["passed"]
                curve.append(bool(stands))
            standing.append(curve)
        assert found["regression"]["overall"] == pytest.approx(fmean(broke))
        assert found["self_correction"]["overall"] == pytest.approx(fmean(mended) if mended else 0.0)
        if gate == "none":
            assert "gate" not in found and "gate" not in found["ci"] and "gate" not in found["tokens"]
            continue
        of, answered = found["gate"], [t for s in done for t in s["turns"] if not t["skipped"]]
        gated = [turn for turn in answered if "gate" in turn]
        by_try = Counter(str(len(t["gate"]["tries"]) - 1) for t in gated if t["gate"]["accepted"])
        assert of["accepted"] == by_try and of["turns"] == len(gated)
        assert of["given_up"] == sum(not turn["gate"]["accepted"] for turn in gated)
        assert of["calls"] == sum(len(turn["calls"]) - 1 for turn in gated)
        assert of["asked_again"] == pytest.approx(len(gated) / len(answered))
        rolled = [turn.get("gate", {}).get("rolled_back", False) for turn in answered]
        assert of["rolled_back"] == pytest.approx(fmean(rolled)) and sum(rolled) > 5
        assert of["standing"] == pytest.approx([fmean(column) for column in zip(*standing, strict=True)])
        firsts = [[bool(t["passed"]) and "gate" not in t for t in session["turns"]] for session in done]
        assert of["without"] == pytest.approx([fmean(column) for column in zip(*firsts, strict=True)])
        low, high = found["ci"]["gate"]["rolled_back"]
        drawn = random.Random(1)
        shares = []
        for _ in range(2000):
            chosen = drawn.choices(done, k=len(done))
            them = [t for s in chosen for t in s["turns"] if not t["skipped"]]
            shares.append(fmean(t.get("gate", {}).get("rolled_back", False) for t in them))
        shares.sort()
        assert abs(low - shares[50]) < 0.012 and abs(high - shares[1949]) < 0.012


def test_code_that_stands_is_what_the_next_turn_changes(sweep: dict[str, Path]) -> None:
    for session in sessions(sweep["tests"]):
        told: list[dict[str, str]] = []
        for turn in session["turns"]:
            if turn["skipped"]:
                continue
            assert turn["request"][: len(told)] == told
            if not turn.get("gate", {}).get("rolled_back"):
                told = [*turn["request"], {"role": "assistant", "content": turn["response"]}]


@pytest.mark.usefixtures("rendered")
def test_the_report_sets_the_gate_beside_none(sweep: dict[str, Path], tmp_path: Path) -> None:
    runs = ",".join(map(str, sweep.values()))
    assert main(["report", f"runs={runs}", "out=report"]) == 0
    with Path("report/tables/gate.csv").open() as stream:
        rows = {row["variant"]: row for row in csv.DictReader(stream)}
    none = metrics(sweep["none"])
    for gate in ("silent", "tests"):
        row, found = rows[f"gate={gate}"], metrics(sweep[gate])
        assert float(row["pass_last"]) == pytest.approx(found["pass_at_1"][-1])
        assert float(row["pass_without"]) == pytest.approx(none["pass_at_1"][-1])
        difference = found["pass_at_1"][-1] - none["pass_at_1"][-1]
        assert float(row["pass_difference"]) == pytest.approx(difference)
        assert float(row["pass_difference_ci_low"]) < difference < float(row["pass_difference_ci_high"])
        assert float(row["mst_difference"]) == pytest.approx(found["mst"] - none["mst"])
        assert float(row["standing"]) == pytest.approx(found["gate"]["standing"][-1])
        assert float(row["rolled_back"]) == pytest.approx(found["gate"]["rolled_back"])
    assert Path("report/figures/gate_standing.png").stat().st_size > 1000
    assert main(["report", f"runs={sweep['none']}", "out=alone"]) == 0
    assert not Path("alone/tables/gate.csv").exists() and not Path("alone/figures/gate_standing.png").exists()


def test_the_export_has_tries_and_roll_backs(sweep: dict[str, Path]) -> None:
    assert main(["export", f"run={sweep['silent']}", "out=turns.csv"]) == 0
    with Path("turns.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    recorded = [turn for session in sessions(sweep["silent"]) for turn in session["turns"]]
    assert [int(row["gate_tries"]) for row in rows] == [max(0, len(turn.get("calls", [])) - 1) for turn in recorded]
    assert [row["rolled_back"].lower() == "true" for row in rows] == [
        turn.get("gate", {}).get("rolled_back", False) for turn in recorded
    ]
    assert main(["export", f"run={sweep['none']}", "out=none.csv"]) == 0
    assert "rolled_back" not in Path("none.csv").read_text().splitlines()[0]


def test_the_page_shows_refused_replies_and_what_was_rolled_back(sweep: dict[str, Path]) -> None:
    index, bodies = Index(), []
    records = list(read_sessions(sweep["tests"] / "sessions.jsonl"))
    for record in records:
        index.add(0, record)
        bodies.append(body_of(record, index.instructions, None))
    recorded = [[turn.get("gate", {}) for turn in session["turns"]] for session in sessions(sweep["tests"])]
    rolled = [[at for at, gate in enumerate(gates) if gate.get("rolled_back")] for gates in recorded]
    assert index.columns([0])["rolled_back"] == rolled and any(rolled)
    for body, session in zip(bodies, sessions(sweep["tests"]), strict=True):
        for shown, turn in zip(body["turns"], session["turns"], strict=True):
            assert ("gate" in shown) is ("gate" in turn) and not {"gate", "calls"} & set(shown.get("more", {}))
            if "gate" in turn:
                replies = [(each["reply"], each["outcome"]) for each in shown["gate"]["tries"]]
                assert replies == [
                    (call["response"], told["outcome"])
                    for call, told in zip(turn["calls"], turn["gate"]["tries"], strict=True)
                ]
    without = Index()
    for record in read_sessions(sweep["none"] / "sessions.jsonl"):
        without.add(0, record)
    assert "rolled_back" not in without.columns([0])


def test_an_audit_shows_people_the_code_that_the_turn_met(sweep: dict[str, Path]) -> None:
    assert main(["audit", "export", f"runs={sweep['silent']}", "out=audit", "n=150"]) == 0
    found = {session["task_id"]: session["turns"] for session in sessions(sweep["silent"])}
    after = 0
    with Path("audit/sample.csv").open() as stream:
        for row in csv.DictReader(stream):
            before = None
            for turn in found[row["task_id"]][: int(row["turn"])]:
                after += bool(turn.get("gate", {}).get("rolled_back"))
                before = before if turn.get("gate", {}).get("rolled_back") else turn["code"] or before
            assert row["code_before"] == before
    assert after
