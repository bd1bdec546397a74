"""A judge is examined before a cell, and one whose answers cannot be read stops it."""

import contextlib
import csv
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codechat.cli.app import main
from codechat.judging.fitness import right_word
from codechat.run.journal import Journal
from codechat.testing import Call, OpenAIServer, Result, dataset_tasks, error, reference_solver

SOLVE = reference_solver(dataset_tasks("starter"))
COIN = "VERDICT: {}".format


def is_check(call: Call) -> bool:
    return right_word(call.messages[0]["content"]) is not None


def judged(call: Call) -> bool:
    return "VERDICT: " in call.messages[0]["content"]


def judging(answer: Callable[[Call], Result]) -> Callable[[Call], Result]:
    """A good model under test, judged by `answer`."""
    return lambda call: answer(call) if judged(call) else SOLVE(call)


def words_of(call: Call) -> tuple[str, str]:
    asked = call.messages[0]["content"]
    return ("APPLICABLE", "NOT_APPLICABLE") if "NOT_APPLICABLE" in asked else ("ADHERED", "VIOLATED")


def coin(call: Call) -> Result:
    return COIN(words_of(call)[hashlib.sha256(call.messages[0]["content"].encode()).digest()[0] % 2])


def yes(call: Call) -> Result:
    return COIN(words_of(call)[0])


def unreadable(call: Call) -> Result:
    return "I am only a small model.\nThe request is a good one."


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(server: OpenAIServer, *words: str, judge: str = "llm") -> int:
    place = "judge" if judge == "llm" else "judge.llm"
    command = ["model=openai", "model.name=m", f"model.base_url={server.base_url}", "model.api_key_env=null"]
    command += [f"judge={judge}", "tracking=none", "hardware.workers=1", "dataset.limit=3", "agenda.turns=4"]
    for role in ("applicability", "adherence"):
        command += [f"model@{place}.{role}=openai", f"{place}.{role}.name=small", f"{place}.{role}.cache=false"]
        command += [f"{place}.{role}.base_url={server.base_url}", f"{place}.{role}.api_key_env=null"]
        command += [f"{place}.{role}.max_retries=0"]
    return main([*command, *words])


def metrics() -> dict[str, Any]:
    (path,) = Path("runs").glob("*/metrics.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_a_good_judge_is_asked_twelve_questions_a_role_once(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(SOLVE) as server:
        assert run(server) == 0
        asked = [call.number for call in server.calls if is_check(call)]
        assert asked == [*range(24)], "before anything else"
        assert "applicability 12 of 12, adherence 12 of 12" in capsys.readouterr().err
        assert metrics()["judge_check"] == {"applicability": 12, "adherence": 12}
        (path,) = Path("runs").glob("*/journal.db")
        with contextlib.closing(Journal(path)) as journal:
            paid = [journal.ledger.of[role].calls for role in ("applicability", "adherence")]
        assert sum(paid) == sum(map(judged, server.calls)), "the examination is paid like other decisions"
        calls = len(server.calls)
        assert run(server) == 0 and len(server.calls) == calls
        assert run(server, "judge.adherence.name=another") == 0, "another cell"
        assert sum(map(is_check, server.calls)) == 48


@pytest.mark.parametrize("judge", ["llm", "hybrid"])
@pytest.mark.parametrize(
    ("answer", "said"),
    [(coin, "wrong, "), (yes, "wrong, APPLICABLE: 2, 3, 6, 8, 9, 11"), (unreadable, "I am only a small model.")],
)
def test_a_judge_that_fails_is_refused_with_its_answers(
    answer: Callable[[Call], Result], said: str, judge: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer(judging(answer)) as server:
        more = ["judge.rules_first=false"] if judge == "hybrid" else []
        assert run(server, *more, judge=judge) == 2
        assert all(map(is_check, server.calls)), "nothing else is asked"
        place = "judge" if judge == "llm" else "judge.llm"
        told = capsys.readouterr().err
        assert f"{place}.applicability (small) is right in" in told and f"{place}.adherence (small)" in told
        assert said in told and f"{place}.check=false" in told and f"model@{place}.applicability=NAME" in told
        assert not [*Path("runs").glob("*/sessions.jsonl")]
        asked = len(server.calls)
        assert run(server, *more, judge=judge) == 2
        assert len(server.calls) == 2 * asked, "asked again: the server may have been mended"
        server.behaviour = SOLVE
        assert run(server, *more, judge=judge) == 0


def test_a_cell_takes_over_the_examination_of_its_shard() -> None:
    with OpenAIServer(SOLVE) as server:
        assert run(server, "shard.index=0", "shard.count=2") == 0
        assert sum(map(is_check, server.calls)) == 24
        assert run(server) == 0
        assert sum(map(is_check, server.calls)) == 24
    assert metrics()["judge_check"] == {"applicability": 12, "adherence": 12}


def test_rescoring_examines_only_what_it_asks_anew() -> None:
    with OpenAIServer(SOLVE) as server:
        assert run(server, "judge.check=false") == 0
        (source,) = Path("runs").iterdir()
        server.calls.clear()
        judge = ["judge=llm", *(f"judge.{role}.base_url={server.base_url}" for role in ("applicability", "adherence"))]
        assert main(["rescore", f"run={source}", "out=again", *judge]) == 0
        checks = [*filter(is_check, server.calls)]
        assert len(checks) == 12 and all("VERDICT: ADHERED" in call.messages[0]["content"] for call in checks)
    assert json.loads(Path("again/metrics.json").read_text())["judge_check"] == {"adherence": 12}


def test_the_examination_can_be_left_out() -> None:
    with OpenAIServer(judging(yes)) as server:
        assert run(server, "judge.check=false") == 0
        assert not any(map(is_check, server.calls)) and "judge_check" not in metrics()


POOL = """\
- {id: a, text: Remove all comments., scope: cosmetic, change: remove, rule: {pattern: comment}}
- {id: b, text: Remove all assertions., scope: structural, change: remove, rule: {pattern: assert}}
- {id: c, text: Remove all print calls., scope: semantic, change: remove, rule: {pattern: call, names: [print]}}
"""


def test_rules_that_decide_everything_need_no_examination() -> None:
    Path("pool.yaml").write_text(POOL)
    with OpenAIServer(judging(unreadable)) as server:
        assert run(server, "instructions.path=pool.yaml", judge="hybrid") == 0
        assert server.calls and not any(map(judged, server.calls))


def test_an_examination_that_broke_off_is_gone_on_with(capsys: pytest.CaptureFixture[str]) -> None:
    broken = [True]

    def once(call: Call) -> Result:
        return error(500, "out of memory") if broken[0] and is_check(call) and call.number == 5 else SOLVE(call)

    with OpenAIServer(once) as server:
        assert run(server) == 3
        assert "the judge could not be examined" in capsys.readouterr().err
        assert len(server.calls) == 24
        broken[0] = False
        assert run(server) == 0
        assert sum(map(is_check, server.calls)) == 25


def test_a_judge_that_becomes_unreadable_stops_the_cell(capsys: pytest.CaptureFixture[str]) -> None:
    def good_at_first(call: Call) -> Result:
        return SOLVE(call) if is_check(call) or call.number < 40 else unreadable(call)

    with OpenAIServer(judging(good_at_first)) as server:
        words = ("dataset.limit=null", "agenda.turns=8", "model.max_concurrency=1", "hardware.workers=1")
        assert run(server, *words) == 3
        unread = sum(judged(call) and not is_check(call) and call.number >= 40 for call in server.calls)
        assert 20 <= unread <= 80, "ten decisions of two calls, and what was under way"
        told = capsys.readouterr()
        assert "10 decisions in a row of judge." in told.err and 'began with "I am only a small model."' in told.err
        assert "Choose another judge: model@judge." in told.err
        (path,) = Path("runs").glob("*/sessions.jsonl")
        errored = [each for each in map(json.loads, path.read_text().splitlines()) if each["status"] == "errored"]
        assert errored and all(each["error"].startswith("not finished: ") for each in errored)
        server.behaviour = SOLVE
        assert run(server, *words) == 0
        assert metrics()["errored"] == 0


def test_unreadable_answers_are_the_first_caution(capsys: pytest.CaptureFixture[str]) -> None:
    def now_and_then(call: Call) -> Result:
        number = int(hashlib.sha256(call.messages[0]["content"].encode()).hexdigest(), 16)
        return unreadable(call) if number % 2 else SOLVE(call)

    with OpenAIServer(judging(now_and_then)) as server:
        assert run(server, "judge.check=false") == 0
    unread = metrics()["unreadable"]
    assert 0 < unread["applicability"]["unreadable"] < unread["applicability"]["of"]
    told = " ".join(capsys.readouterr().out.split())
    assert "caution the judge's answers could not be read: " in told
    assert (
        f"{unread['applicability']['unreadable']} of {unread['applicability']['of']} decisions on applicability" in told
    )


def test_a_dry_run_counts_the_examination(capsys: pytest.CaptureFixture[str]) -> None:
    calls = {}
    with OpenAIServer(SOLVE) as server:
        for check in ("true", "false"):
            assert run(server, "dry_run=true", f"judge.check={check}") == 0
            (line,) = (line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["judges"])
            calls[check] = int(line.split()[1].replace(",", ""))
        assert calls["true"] == calls["false"] + 24 and not server.calls
        assert run(server) == 0


def test_a_report_says_first_what_could_not_be_read_and_how_the_judge_was_examined() -> None:
    def now_and_then(call: Call) -> Result:
        number = int(hashlib.sha256(call.messages[0]["content"].encode()).hexdigest(), 16)
        return unreadable(call) if number % 2 and not is_check(call) else SOLVE(call)

    with OpenAIServer(judging(now_and_then)) as server:
        for seed in (0, 1):
            assert run(server, f"seed={seed}") == 0
    assert main(["report", "runs=runs", "out=report"]) == 0
    page = Path("report/index.html").read_text()
    assert re.search(r"caution[^;]{0,40}the judge.{1,10} answers could not be read: \d+ of \d+ decisions on", page)
    with Path("report/tables/counts.csv").open(newline="") as stream:
        (pooled,) = csv.DictReader(stream)
    assert pooled["judge_check_applicability"] == "12" and pooled["sessions"] == "6"
    assert pooled["unreadable_applicability"] == pooled["undecided_applicability"]
