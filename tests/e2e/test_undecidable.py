"""A pool that the judge cannot decide: refused at the start, told, or said before any figure."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.report.tracking import read_tracking
from codechat.report.tracking.runs import description
from codechat.testing import Answer, Call, OpenAIServer, Result, dataset_tasks, reference_solver
from support.stores import client_of

pytestmark = pytest.mark.long

RULE = '"{""pattern"": ""comment""}"'
PLAIN = """text,scope
Remove all comments.,cosmetic
Rename every variable after its meaning.,cosmetic
Extract a helper function.,structural
Add a class around it.,structural
Add a check of the arguments.,semantic
Add a cache for the results.,semantic
"""
PARTLY = f"""text,scope,rule
Remove all comments.,cosmetic,{RULE}
Rename every variable after its meaning.,cosmetic,
Add a comment at the end.,structural,{RULE}
Add a comment at the top.,semantic,{RULE}
"""
SMALL = ("dataset.limit=2", "agenda.turns=6", "hardware.workers=1", "instructions.path=pool.csv")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    solver = reference_solver(dataset_tasks("starter"))

    def answer(call: Call) -> Result:
        first = call.messages[0]["content"]
        if "VERDICT: NOT_APPLICABLE" in first:
            return "REASON: so.\nVERDICT: APPLICABLE"
        return "I cannot say." if "VERDICT: ADHERED" in first else str(solver(call))

    with OpenAIServer(lambda call: Answer(str(answer(call)))) as started:
        yield started


def cell(server: OpenAIServer, *more: str) -> int:
    return main(["model=openai", "model.name=tested", f"model.base_url={server.base_url}", *SMALL, *more])


def judges(server: OpenAIServer, place: str = "judge") -> list[str]:
    urls = [f"{place}.{role}.base_url={server.base_url}" for role in ("applicability", "adherence")]
    return [f"{place}.check=false", *urls]


def test_a_pool_without_rules_is_refused_at_the_start(
    here: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pool.csv").write_text(PLAIN)
    assert cell(server, "tracking=none") == 2
    shown = capsys.readouterr()
    mistake, remedy = shown.err.splitlines()
    assert mistake.startswith("error: judge=rules ") and "cosmetic, structural, semantic" in mistake
    assert "judge=hybrid" in remedy and "judge=llm" in remedy and "rule" in remedy
    assert (shown.out, server.answered, server.probes, (here / "runs").exists()) == ("", 0, 0, False)
    for judge, place in (("hybrid", "judge.llm"), ("llm", "judge")):
        assert cell(server, "tracking=none", f"judge={judge}", *judges(server, place)) == 0


def test_only_what_the_agenda_asks_for_must_be_decidable(
    here: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pool.csv").write_text(PARTLY.replace(f"Add a comment at the top.,semantic,{RULE}\n", ""))
    assert cell(server, "tracking=none") == 2
    problem, remedy = capsys.readouterr().err.splitlines()
    assert problem.startswith("error: ") and "semantic" in problem
    assert "instructions.path" in remedy and "agenda.distribution=" in remedy
    assert cell(server, "tracking=none", "agenda.distribution={cosmetic: 1, structural: 1}") == 0
    assert cell(server, "tracking=none", "agenda.axis=change", "agenda.sequence=[modify]") == 2
    assert re.search("type modify.* rule", capsys.readouterr().err)


def test_instructions_without_a_rule_are_told_once(
    here: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pool.csv").write_text(PARTLY)
    assert cell(server, "tracking=none") == 0
    told = "judge=rules leaves out 1 of 4 instructions: they have no rule; judge=hybrid or judge=llm decides those too"
    assert capsys.readouterr().err.splitlines().count(told) == 1


def test_a_cell_of_skipped_turns_says_so_before_any_figure(
    here: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pool.csv").write_text(PARTLY)  # one instruction of a type, and it is soon used up
    assert cell(server) == 0
    metrics = json.loads(next((here / "runs").glob("*/metrics.json")).read_text())
    skipped = metrics["skipped_turns"]
    assert skipped > 2 and metrics["undecided"] == 0
    said = f"{skipped} of 10 follow-up turns were skipped ({skipped}) or undecided (0): the figures rest on the others"
    shown = capsys.readouterr().out
    assert shown.index(said) < shown.index("Pass@1")
    noted = description(read_tracking(next((here / "runs").iterdir())))
    assert noted.index(said) < noted.index("| figure |")
    assert cell(server, "tracking=none", "runs_dir=quiet", "agenda.turns=2") == 0
    assert "caution" not in capsys.readouterr().out


def test_mlflow_and_the_page_say_so_too(here: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "pool.csv").write_text(PLAIN)
    assert cell(server, "judge=llm", *judges(server), "judge.max_reasks=0") == 0
    said = "of 10 follow-up turns were skipped"
    client = client_of(here)
    (run,) = client.search_runs([client.get_experiment_by_name("codechat").experiment_id])
    note = run.data.tags["mlflow.note.content"]
    assert said in run.data.tags["codechat.caution"] and note.index(said) < note.index("| figure |")
    capsys.readouterr()
    assert main(["report", "runs=runs", "out=report"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    unread = "caution: tested, starter: the judge's answers could not be read: 10 of 10 decisions on adherence"
    assert first.startswith(unread) and said in first
    page = (here / "report/index.html").read_text()
    assert said in page and page.index('id="cautions"') < page.index('id="headline"')


def test_rescoring_by_rules_that_do_not_exist_is_refused(
    here: Path, server: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "pool.csv").write_text(PLAIN)
    assert cell(server, "tracking=none", "judge=llm", *judges(server)) == 0
    run = next((here / "runs").iterdir())
    assert main(["rescore", f"run={run}", "judge=rules", "out=again"]) == 2
    assert re.search("judge=rules .*6 instructions.* rule", capsys.readouterr().err)
