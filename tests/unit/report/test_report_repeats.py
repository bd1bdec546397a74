"""Cells that differ in the seed alone are one entrant of a report: a small one by hand, all tables by a recount."""

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.files import from_yaml
from codechat.base.records import SessionRecord, TurnRecord, write_sessions
from codechat.report.build import build_report
from codechat.report.data import ReportData
from codechat.report.loading import load_cells
from codechat.studies.refine.metrics import refine_metrics
from support.recount import near, recount, recount_samples
from support.refine_cells import Made, config_of, write_cell


def measured(config: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any]:
    return refine_metrics(sessions, seed=config["seed"])


def known(*_: object) -> None:
    return None


def load(*folders: Path) -> Any:
    return load_cells(folders, known, measured)


def rows_of(out: Path, name: str) -> list[dict[str, str]]:
    with (out / "tables" / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


# By task and seed whether each of three turns passes.
BY_HAND = {
    "t/0": ("ppp", "ppf", "pff"),
    "t/1": ("fff", "ppp", "fpp"),
}


def write_by_hand(runs: Path, seed: int, series: Mapping[str, tuple[str, ...]] = BY_HAND, model: str = "m") -> Path:
    made = Made(model, "t", tasks=len(series), turns=3, seed=seed)
    sessions = [
        SessionRecord(
            cell_id=made.cell_id, session_id=f"{made.cell_id}/{task}", task_id=task, dataset="t", model=model,
            protocol="refine", agenda=["cosmetic"] * 2, seed=seed, status="completed",
            turns=[TurnRecord(turn=turn, outcome="pass" if letter == "p" else "fail", passed=letter == "p",
                              response=f"{task} {turn}")
                   for turn, letter in enumerate(seeds[seed])],
        )
        for task, seeds in series.items()
    ]  # fmt: skip
    folder = runs / made.cell_id.replace("/", "-")
    folder.mkdir(parents=True)
    write_sessions(folder / "sessions.jsonl", sessions)
    (folder / "metrics.json").write_text(json.dumps(refine_metrics(sessions, seed=seed)))
    (folder / "config.yaml").write_text(yaml.safe_dump(config_of(made)))
    return folder


@pytest.fixture
def by_hand(tmp_path: Path) -> Path:
    folders = [write_by_hand(tmp_path / "runs", seed) for seed in (0, 1, 2)]
    build_report(load(*folders), tmp_path)
    return tmp_path


def test_pass_at_k_by_hand(by_hand: Path) -> None:
    """At turn 2 one of t/0's three samples passes and two of t/1's: pass@2 = (2/3 + 3/3) / 2, pass^2 = (0 + 1/3) / 2.

    Alive at turn 2 are one and one: alive@2 = 2/3, alive^2 = 0.
    """
    rows = {(int(row["turn"]), int(row["k"])): row for row in rows_of(by_hand, "repeats_turns")}
    assert len(rows) == 3 * 3
    at = rows[2, 2]
    assert near(at["pass_any"], 5 / 6)
    assert near(at["pass_all"], 1 / 6)
    assert near(at["alive_any"], 2 / 3)
    assert near(at["alive_all"], 0)
    # of the tasks' values, two resamples in four have one alone: the interval's ends are the tasks' own values
    assert (float(at["pass_any_ci_low"]), float(at["pass_any_ci_high"])) == pytest.approx((2 / 3, 1))
    assert (float(at["pass_all_ci_low"]), float(at["pass_all_ci_high"])) == pytest.approx((0, 1 / 3))
    assert near(rows[2, 1]["pass_any"], 1 / 2)
    assert near(rows[2, 3]["pass_any"], 1)
    assert near(rows[2, 3]["pass_all"], 0)
    assert near(rows[0, 3]["pass_all"], 1 / 2)


def test_sustained_turns_by_hand(by_hand: Path) -> None:
    """t/0 sustains 3, 2, 1 turns, t/1 sustains 0, 3, 0: their means 2 and 1 make an MST of 3/2."""
    board = rows_of(by_hand, "leaderboard")
    assert [(row["samples"], row["completed"]) for row in board] == [("3", "6")]
    assert near(board[0]["mst"], 3 / 2)
    assert (float(board[0]["mst_ci_low"]), float(board[0]["mst_ci_high"])) == (1, 2)


def test_variance_by_hand(by_hand: Path) -> None:
    """Sustained turns: within (2 + 6) / 4 = 2; the means 2 and 1 vary by 1/2, less than 2 / 3 of chance: 0.

    At turn 0 t/0 passes always and t/1 once in three: within (0 + 2/3) / 4 = 1/6, all of it the model's draws.
    """
    rows = {row["of"]: row for row in rows_of(by_hand, "repeats_variance")}
    lasting, first = rows["Sustained turns"], rows["Pass@1, turn 0"]
    assert near(lasting["within"], 2)
    assert near(lasting["task"], 0)
    assert (lasting["agenda"], lasting["sample"]) == ("", "")
    assert lasting["apart"].startswith("no")
    assert near(first["sample"], 1 / 6)
    assert near(first["task"], (2 / 3) ** 2 / 2 - 1 / 18)
    assert near(first["agenda"], 0)


def test_what_is_pooled_is_told(by_hand: Path) -> None:
    (row,) = rows_of(by_hand, "repeats")
    assert (row["samples"], row["seeds"], row["tasks"], row["whole"], row["sessions"]) == (
        "3",
        "0, 1, 2",
        "2",
        "2",
        "6",
    )
    assert "m-t-balanced-3-rules-1" in row["folders"]


def test_greedy_replies_that_agree_leave_the_variance_to_the_agenda(tmp_path: Path) -> None:
    """All seeds reply the same at turn 0, and the model decodes greedily: what differs later is the agenda's."""
    series = {"t/0": ("ppp", "ppf"), "t/1": ("pff", "ppf")}
    folders = [write_by_hand(tmp_path / "runs", seed, series) for seed in (0, 1)]
    for folder in folders:
        config = from_yaml((folder / "config.yaml").read_text())
        config["model"]["temperature"] = 0
        (folder / "config.yaml").write_text(yaml.safe_dump(config))
    build_report(load(*folders), tmp_path)
    (row,) = [row for row in rows_of(tmp_path, "repeats_variance") if row["of"] == "Sustained turns"]
    assert near(row["agenda"], ((3 - 2) ** 2 / 2 + (1 - 2) ** 2 / 2) / 2)
    assert near(row["sample"], 0)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReportData, list[Path]]:
    """Model a with three seeds, the last with errored sessions; model b with one."""
    out = tmp_path_factory.mktemp("repeats")
    made = Made("a", tasks=14, turns=5, first=0.7, breaks=0.15)
    folders = [write_cell(replace(made, seed=seed, errored=2 * (seed == 2)), out / "runs") for seed in (0, 1, 2)]
    write_cell(Made("b", tasks=14, turns=5, first=0.6, breaks=0.2), out / "runs")
    return out, build_report(load(out / "runs"), out), folders


def test_every_estimate_against_a_recount(report: tuple[Path, ReportData, list[Path]]) -> None:
    out, _, folders = report
    truth = recount_samples(folders)
    rows = rows_of(out, "repeats_turns")
    assert {row["model"] for row in rows} == {"a"}
    assert len(rows) == 5 * 3
    for row in rows:
        assert int(row["tasks"]) == (14 if int(row["k"]) < 3 else 12)
        for name in ("pass_any", "pass_all", "alive_any", "alive_all"):
            assert near(row[name], truth[name, int(row["turn"]), int(row["k"])]), (name, row)
            assert float(row[f"{name}_ci_low"]) <= float(row[name]) <= float(row[f"{name}_ci_high"])


def test_the_pooled_figures_against_a_recount(report: tuple[Path, ReportData, list[Path]], tmp_path: Path) -> None:
    """The tables of single cells, of all seeds' sessions in one file."""
    out, _, folders = report
    (tmp_path / "sessions.jsonl").write_text("".join((folder / "sessions.jsonl").read_text() for folder in folders))
    truth = recount(tmp_path)
    board = {row["model"]: row for row in rows_of(out, "leaderboard")}
    assert (board["a"]["samples"], board["b"]["samples"]) == ("3", "1")
    assert near(board["a"]["mst"], truth["mst"])
    assert near(board["a"]["regression"], truth["regression"])
    assert near(board["a"]["adherence"], truth["iar_all"])
    assert int(board["a"]["completed"]) == truth["completed"] == 40
    assert int(board["a"]["errored"]) == 2
    (decay,) = [row for row in rows_of(out, "table_4_decay") if row["model"] == "a"]
    assert near(decay["delta_pct"], truth["delta_pct"])
    (costs,) = [row for row in rows_of(out, "costs") if row["model"] == "a"]
    assert int(costs["model_output_tokens"]) == truth["model_tokens"]["output_tokens"]
    assert int(costs["retries"]) == 9  # three of each cell


def test_models_of_one_and_of_several_samples_are_compared_by_task(report: tuple[Path, ReportData, list[Path]]) -> None:
    out, data, folders = report
    rows = recount_samples(folders)["rows"]
    other = recount_samples([out / "runs" / "b-humaneval-balanced-5-rules-0"])["rows"]
    (pair,) = rows_of(out, "pairs_mst")
    assert (pair["a"], pair["b"], pair["tasks"]) == ("a", "b", "14")
    lasting = {task: [[*row, False].index(False) for row in own] for task, own in rows.items()}
    samples = [length for own in lasting.values() for length in own]
    single = [[*own[0], False].index(False) for own in other.values()]
    assert near(pair["mst_difference"], sum(samples) / len(samples) - sum(single) / len(single))
    for row in rows_of(out, "pairs_turns"):
        shares = [
            (sum(r[int(row["turn"])] for r in rows[t]) / len(rows[t]), other[t][0][int(row["turn"])]) for t in rows
        ]
        assert near(row["only_a"], sum(a * (1 - b) for a, b in shares))
        assert near(row["risk_difference"], sum(a - b for a, b in shares) / len(shares))
        assert 0 <= float(row["p"]) <= 1
    assert "permutation test" in next(table.note for table in data.tables if table.name == "pairs_turns")


def test_the_page_says_what_is_pooled(report: tuple[Path, ReportData, list[Path]]) -> None:
    _, data, _ = report
    board = data.sections[0]
    texts = [part for part in board.parts if isinstance(part, str)]
    assert any(all(named in text for named in ("a on humaneval", "3 cells", "seeds 0, 1, 2")) for text in texts)
    assert [cell.label for cell in data.cells] == ["a", "b"]
    assert [cell.samples for cell in data.cells] == [3, 1]
    assert len(list(data.cells[0].sessions())) == 42


@pytest.mark.long
def test_a_report_over_single_seeds_has_nothing_of_it(tmp_path: Path) -> None:
    for model in ("a", "b"):
        write_cell(Made(model, tasks=6, turns=3), tmp_path / "runs")
    alone = build_report(load(tmp_path / "runs"), tmp_path / "new")
    before = build_report(load_cells([tmp_path / "runs"], known), tmp_path / "old")
    assert [table.name for table in alone.tables] == [table.name for table in before.tables]
    for table in alone.tables:
        for suffix in ("csv", "md", "tex"):
            name = f"tables/{table.name}.{suffix}"
            assert (tmp_path / "new" / name).read_bytes() == (tmp_path / "old" / name).read_bytes()
    assert alone.sections == before.sections
    assert "repeats" not in alone.groups


def test_only_the_seed_may_differ(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for made in (Made("a", tasks=4, turns=3), Made("a", tasks=4, turns=3, seed=1), Made("a", tasks=4, turns=4, seed=2),
                 Made("a", tasks=4, turns=3, judge="llm", seed=3)):  # fmt: skip
        write_cell(made, runs)
    assert sorted((cell.label, cell.samples) for cell in load(runs)) == [
        ("a (judge=llm, turns=3)", 1),
        ("a (judge=rules, turns=3)", 2),
        ("a (judge=rules, turns=4)", 1),
    ]


def test_rules_of_two_versions_are_not_pooled(tmp_path: Path) -> None:
    """The tag says what a configuration does not: which version of the rules judged."""
    runs = tmp_path / "runs"
    for seed, tag in ((0, "old"), (1, "new"), (2, "new")):
        folder = write_cell(Made("a", tasks=4, turns=3, seed=seed), runs)
        (folder / "tracking.json").write_text(json.dumps({"tags": {"codechat.repeats": tag}}))
    assert sorted(cell.samples for cell in load(runs)) == [1, 2]


def test_nothing_is_pooled_that_cannot_be_measured(tmp_path: Path) -> None:
    for seed in (0, 1):
        write_cell(Made("a", tasks=4, turns=3, seed=seed), tmp_path / "runs")
    cells = load_cells([tmp_path / "runs"], known, lambda *_: None)
    assert [cell.label for cell in cells] == ["a (seed=0)", "a (seed=1)"]
