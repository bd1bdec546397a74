"""What coding agents did: every figure by a second reading of sessions.jsonl, and nothing of it without an agent."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import pytest

from codechat.base.domain import SCOPES, AgentStep, Trajectory
from codechat.base.records import SessionRecord, TurnRecord, read_sessions
from codechat.cli.app import main
from codechat.cli.cell_view import summary
from codechat.cli.commands.export import AGENT_COLUMNS, COLUMNS
from codechat.report.build import build_report, comparisons_of, sections_of
from codechat.report.data import Board, BoardColumn
from codechat.report.loading import load_cells
from codechat.report.metrics import caution_of, points_of
from codechat.report.metrics.agents import COUNTS, FINALS, AgentSums
from codechat.report.page import STEP_LIMIT, body_of
from codechat.studies.refine.metrics import REFINE, refine_metrics
from support.codeif import Talk, write_talk
from support.recount import near
from support.refine_cells import Made, session, write_cell

AGENT = Made("codex", tasks=12, turns=5, agent=3, errored=2, overflows=1)
KEYS = [final.key for final in FINALS]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_cell(AGENT, folder)
    write_cell(Made("gpt5", tasks=12, turns=5), folder)
    return folder


@pytest.fixture(scope="module")
def report(runs: Path) -> Path:
    assert main(["report", f"runs={runs}", f"out={runs.parent / 'report'}"]) == 0
    return runs.parent / "report"


def folder_of(runs: Path, model: str) -> Path:
    (folder,) = runs.glob(f"{model}-*")
    return folder


def turns_of(folder: Path) -> list[dict[str, Any]]:
    """The turns of completed sessions with a trajectory, as plain JSON."""
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    turns = [turn for each in sessions if each["status"] == "completed" for turn in each["turns"]]
    return [turn for turn in turns if turn.get("trajectory")]


def by_hand(turns: list[dict[str, Any]]) -> dict[str, float | None]:
    """Every figure of some turns, from its definition."""

    def mean(values: list[float]) -> float | None:
        return fmean(values) if values else None

    did = [turn["trajectory"] for turn in turns]
    commands = [[step for step in each["steps"] if step["kind"] == "command"] for each in did]
    later = [turn["trajectory"] for turn in turns if turn["turn"] > 0]
    return {
        "commands": mean([len(each) for each in commands]),
        "ran_code": mean([each["ran_code"] for each in did]),
        "requests": mean([each["requests"] for each in did]),
        "tokens": mean([turn["usage"]["input_tokens"] + turn["usage"]["output_tokens"] for turn in turns]),
        "edited_elsewhere": mean([each["elsewhere"] > 0 for each in did]),
        "files_elsewhere": mean([each["elsewhere"] for each in did]),
        "lines": mean([each["lines_added"] + each["lines_removed"] for each in later]),
        "limited": mean([each["ended"] not in ("exit", "error") for each in did]),
    }


def rows_of(report: Path, name: str) -> list[dict[str, str]]:
    with (report / "tables" / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def same(found: Mapping[str, Any], turns: list[dict[str, Any]]) -> bool:
    """Whether these are the figures of the turns."""
    return all(near(found[key], value) for key, value in by_hand(turns).items())


def test_every_figure_is_its_definition(runs: Path, report: Path) -> None:
    turns = turns_of(folder_of(runs, "codex"))
    (row,) = rows_of(report, "refine_agents_finals")
    assert row["model"] == "codex" and int(row["commands_n"]) == len(turns)
    assert same(row, turns)
    assert all(float(row[f"{key}_ci_low"]) <= float(row[key]) <= float(row[f"{key}_ci_high"]) for key in KEYS)
    rows = rows_of(report, "refine_agents_turns")
    assert [row["turn"] for row in rows] == ["0", "1", "2", "3", "4"]
    assert all(same(row, [turn for turn in turns if turn["turn"] == int(row["turn"])]) for row in rows)
    rows = rows_of(report, "refine_agents_by_scope")
    assert [row["scope"] for row in rows] == [*SCOPES]
    asked = [turn for turn in turns if turn["instruction"]]
    assert all(same(row, [turn for turn in asked if turn["instruction"]["scope"] == row["scope"]]) for row in rows)


def test_the_counts_are_sums_and_those_of_0_are_no_column(runs: Path, report: Path) -> None:
    did = [turn["trajectory"] for turn in turns_of(folder_of(runs, "codex"))]
    (row,) = rows_of(report, "refine_agents_finals")
    found = json.loads((folder_of(runs, "codex") / "metrics.json").read_text())["agent"]
    sums = {f"ended_{end}": sum(each["ended"] == end for each in did) for end in ("exit", "error", "time", "tokens")}
    sums["asked_again"] = sum(each["attempts"] > 1 for each in did)
    sums |= {name: sum(each[name] for each in did) for name in ("replayed", "unmetered", "omitted")}
    assert {name: int(row[name]) for name in sums} == {name: found[name] for name in sums} == sums
    assert "ended_memory" not in row and found["ended_memory"] == 0
    assert {count.key for count in COUNTS} <= found.keys()


def test_without_an_agent_there_is_nothing(runs: Path, tmp_path: Path) -> None:
    plain = folder_of(runs, "gpt5")
    assert "agent" not in json.loads((plain / "metrics.json").read_text())
    data = build_report(load_cells([plain]), tmp_path / "report")
    assert not [each.name for each in data.tables if "agent" in each.name]
    assert not [each.title for each in data.sections if "agent" in each.title] and "refine_agents" not in data.groups
    assert main(["export", f"run={plain}", f"out={tmp_path / 'turns.parquet'}"]) == 0
    assert list(pd.read_parquet(tmp_path / "turns.parquet").columns) == [column.name for column in COLUMNS]


def test_a_skipped_turn_counts_nowhere() -> None:
    """Nor does an errored session, or a turn of several scopes among the scopes."""
    did = Trajectory("x = 1\n", (AgentStep("command", "ls"), AgentStep("edit", "a.py")), lines_added=4, requests=2)
    asked = [{"id": scope, "text": "?", "scope": scope, "change": "add"} for scope in ("cosmetic", "semantic")]
    turns = [
        TurnRecord(turn=1, skipped=True),
        TurnRecord.model_validate({"turn": 2, "asked": asked, "trajectory": did}),
        TurnRecord.model_validate({"turn": 3, "asked": [asked[0]] * 2, "trajectory": did}),
    ]
    sums = AgentSums()
    sums.add(session("c", "t", turns))
    sums.add(session("c", "u", turns, status="errored"))
    found = sums.content(0)["agent"]
    assert (found["completed"], found["commands"], found["lines"], found["n"]["commands"]) == (1, 1.0, 4.0, 2)
    assert found["by_turn"]["commands"] == [None, None, 1.0, 1.0] and found["n"]["by_scope"]["lines"] == {"cosmetic": 1}
    assert AgentSums().content(0) == {}
    slim = AgentSums()
    slim.add(session("c", "t", turns).slim())
    assert slim.content(0)["agent"] == found


def test_an_agent_whose_output_names_no_step_has_unknown_commands() -> None:
    sums = AgentSums()
    sums.add(session("c", "t", [TurnRecord(turn=1, trajectory=Trajectory("x = 1\n", requests=3))]))
    found = sums.content(0)["agent"]
    assert "commands" not in found and "ran_code" not in found and found["requests"] == 3.0


def test_seeds_are_pooled(tmp_path: Path) -> None:
    folders = [write_cell(Made("codex", tasks=6, turns=3, agent=2, seed=seed), tmp_path) for seed in (0, 1)]
    (cell,) = load_cells([tmp_path], lambda *_: None, lambda config, sessions: refine_metrics(sessions, seed=0))
    turns = [turn for folder in folders for turn in turns_of(folder)]
    assert same(cell.metrics["agent"], turns)
    assert cell.metrics["agent"]["n"]["commands"] == len(turns)


def test_any_protocol_has_its_section(tmp_path: Path) -> None:
    path = write_talk(Talk("a", tasks=3), tmp_path / "runs") / "metrics.json"
    sums = AgentSums()
    sums.add(session("c", "t", [TurnRecord(turn=1, trajectory=Trajectory("x = 1\n", requests=3, unmetered=1))]))
    path.write_text(json.dumps(json.loads(path.read_text()) | sums.content(0)))
    *_, section = sections_of(comparisons_of(load_cells([tmp_path / "runs"])))
    board = section.parts[1]
    assert section.key == "agents-static" and isinstance(board, Board)
    columns = {column.title: column for column in board.columns}
    assert isinstance(columns["Model"], BoardColumn) and columns["Unmetered"].values == [(1, None)]
    assert columns["Commands per turn"].values == [(None, None)]


def test_it_is_tracked_summed_up_and_warned_of(runs: Path) -> None:
    metrics = json.loads((folder_of(runs, "codex") / "metrics.json").read_text())
    points = {point.key: point.value for point in points_of(REFINE, metrics)}
    assert points["final/agent_commands"] == metrics["agent"]["commands"]
    assert points["final/agent_ended_time"] == metrics["agent"]["ended_time"]
    table = summary(REFINE, metrics, "codex")
    said = [str(cell) for column in table.columns for cell in column.cells if "commands per turn" in str(cell)]
    assert len(said) == 1 and f"requests per turn {metrics['agent']['requests']:.1f}" in said[0]
    assert f"{metrics['agent']['unmetered']} requests of the agent came back without usage" in caution_of(metrics)
    assert "a limit ended 40 % of the agent's turns" in caution_of({"agent": {"limited": 0.4}})
    assert caution_of({"agent": {"limited": 0.2, "unmetered": 0}}) == ""


def test_an_export_has_its_columns(runs: Path, tmp_path: Path) -> None:
    folder = folder_of(runs, "codex")
    assert main(["export", f"run={folder}", f"out={tmp_path / 'turns.parquet'}"]) == 0
    frame = pd.read_parquet(tmp_path / "turns.parquet")
    assert list(frame.columns) == [column.name for column in (*COLUMNS, *AGENT_COLUMNS)]
    sessions = [json.loads(line) for line in (folder / "sessions.jsonl").read_text().splitlines()]
    turns = [turn.get("trajectory") for each in sessions for turn in each["turns"]]
    assert None in turns
    sources = {
        "ran_code": "ran_code", "edits_elsewhere": "elsewhere", "lines_added": "lines_added",
        "lines_removed": "lines_removed", "requests": "requests", "agent_ended": "ended", "attempts": "attempts",
    }  # fmt: skip
    for name, source in sources.items():
        values = [None if pd.isna(value) else value for value in frame[name]]
        assert values == [None if did is None else did[source] for did in turns], name
    commands = [did and sum(step["kind"] == "command" for step in did["steps"]) for did in turns]
    assert [None if pd.isna(value) else value for value in frame["commands"]] == commands


def test_the_page_gets_the_steps_bounded() -> None:
    long = "x" * (3 * STEP_LIMIT)
    did = Trajectory(long, (AgentStep("command", "ls", long, 2), AgentStep("edit", "a.py")), ended="time", diff=long)
    one = session("c", "t", [TurnRecord(turn=1, trajectory=did), TurnRecord(turn=2)])
    body = body_of(SessionRecord.model_validate_json(one.line()), {}, None)
    agent = body["turns"][1]["agent"]
    assert "file" not in agent and agent["ended"] == "time" and agent["diff"] == long and "omitted" not in agent
    assert [step[:2] + step[3:] for step in agent["steps"]] == [["command", "ls", 2], ["edit", "a.py", None]]
    assert len(agent["steps"][0][2]) < STEP_LIMIT + 200
    assert "agent" not in body["turns"][2]
    tight = body_of(one, {}, 2_000)["turns"][1]["agent"]
    assert len(tight["steps"][0][2]) < 2_200 < len(tight["diff"]) < 17_000


def test_records_read_back_equal(runs: Path) -> None:
    path = folder_of(runs, "codex") / "sessions.jsonl"
    assert [each.line() for each in read_sessions(path)] == path.read_text().splitlines()
