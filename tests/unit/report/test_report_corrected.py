"""A report's corrected adherence against a recount from metrics.json, and that nothing else of the report changes."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord
from codechat.report.build import build_report, comparisons_of, sections_of
from codechat.report.comparison import JudgeLabels, Label, LoadedCell
from codechat.report.data import Board, BoardColumn
from codechat.report.loading import load_cells
from codechat.studies.refine.metrics import refine_metrics
from support.refine_cells import Made, write_cell

SCOPES = ("cosmetic", "structural", "semantic")
FOLLOWED = {True: 18, False: 4}  # by verdict, how many of 20 labels say followed
REASON = "the labels are of another judge (rules)"


def measured(config: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any]:
    return refine_metrics(sessions, seed=config["seed"])


def load(runs: Path) -> list[LoadedCell]:
    return list(load_cells([runs], lambda *_: None, measured))


def labels_of(cell: LoadedCell) -> JudgeLabels:
    """Twenty labels of each verdict in every scope of a cell."""
    sizes: Counter[tuple[str, bool]] = Counter()
    tasks = set()
    for session in cell.sessions():
        tasks.add(session.task_id)
        for turn in session.turns[1:]:
            if turn.instruction is not None and turn.adherence is not None and turn.adherence.verdict != "undecided":
                sizes[turn.instruction.scope, turn.adherence.verdict == "adhered"] += 1
    order = sorted(tasks)
    labels = [
        Label(order[number % len(order)], scope, verdict, float(number < followed), cell.parts[0].cell_id)
        for scope in SCOPES for verdict, followed in FOLLOWED.items() for number in range(20)
    ]  # fmt: skip
    return JudgeLabels("rules", sizes, tuple(labels))


def table(out: Path, name: str) -> list[dict[str, str]]:
    with (out / "tables" / f"{name}.csv").open() as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[LoadedCell]:
    """A model with two seeds on one dataset and one on another, and a second model."""
    runs = tmp_path_factory.mktemp("corrected") / "runs"
    for made in (
        Made("good", "humaneval", tasks=40, adheres=0.8), Made("good", "humaneval", tasks=40, adheres=0.8, seed=1),
        Made("good", "mbpp", tasks=30, adheres=0.75), Made("other", "humaneval", tasks=40, adheres=0.6),
    ):  # fmt: skip
        write_cell(made, runs)
    return load(runs)


@pytest.fixture(scope="module")
def corrected(cells: list[LoadedCell]) -> list[LoadedCell]:
    """The first model's cells with labels, the other's without."""
    return [replace(cell, labels=labels_of(cell) if cell.model == "good" else REASON) for cell in cells]


@pytest.fixture(scope="module")
def reports(
    cells: list[LoadedCell], corrected: list[LoadedCell], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A report without labels, and one with them."""
    raw, both = (tmp_path_factory.mktemp(name) for name in ("raw", "both"))
    build_report(cells, raw)
    build_report(corrected, both)
    return raw, both


def test_a_recount(cells: list[LoadedCell], corrected: list[LoadedCell], reports: tuple[Path, Path]) -> None:
    """The labels have the verdicts of the whole cell by their weights: nothing is moved, whatever λ is."""
    rows = {(row["model"], row["dataset"], row["of"]): row for row in table(reports[1], "adherence_corrected")}
    for cell, labelled in zip(cells, corrected, strict=True):
        counts = cell.metrics["phi"]
        whole = [sum(counts[f"{code}_{kind}"] for code in ("pass", "fail")) for kind in ("adhered", "violated")]
        row = rows[cell.model, cell.dataset, "all turns"]
        assert int(row["judged"]) == sum(whole)
        assert float(row["raw"]) == pytest.approx(whole[0] / sum(whole))
        if cell.model == "other":
            assert row["powered"] == ""
            assert row["note"] == f"not corrected: {REASON}"
            assert (cell.model, cell.dataset, "cosmetic") not in rows, "it is said once"
            continue
        assert isinstance(labelled.labels, JudgeLabels)
        sizes = labelled.labels.sizes
        by_scope = {scope: (sizes[scope, True], sizes[scope, False]) for scope in SCOPES}
        for name, (adhered, violated) in {"all turns": tuple(whole), **by_scope}.items():
            share = rows[cell.model, cell.dataset, name]
            expected = (0.9 * adhered + 0.2 * violated) / (adhered + violated)
            assert float(share["powered"]) == pytest.approx(expected)
            assert float(share["powered_ci_low"]) < expected < float(share["powered_ci_high"])


def test_seeds_are_pooled_and_datasets_averaged(corrected: list[LoadedCell], reports: tuple[Path, Path]) -> None:
    assert [(cell.model, cell.dataset, cell.samples) for cell in corrected] == [
        ("good", "humaneval", 2), ("other", "humaneval", 1), ("good", "mbpp", 1),
    ]  # fmt: skip
    board = {(row["model"], row["dataset"]): row for row in table(reports[1], "leaderboard")}
    own = [float(board["good", name]["adherence_corrected"]) for name in ("humaneval", "mbpp")]
    (mean,) = [row for row in board.values() if row["dataset"] == "mean of all"]
    assert float(mean["adherence_corrected"]) == pytest.approx(sum(own) / 2)
    assert float(mean["adherence_corrected_ci_low"]) < sum(own) / 2 < float(mean["adherence_corrected_ci_high"])
    assert board["other", "humaneval"]["adherence_corrected"] == ""


def test_nothing_else_of_a_report_changes(reports: tuple[Path, Path]) -> None:
    before, after = ({path.stem for path in (out / "tables").glob("*.csv")} for out in reports)
    assert after - before == {"adherence_corrected"}
    for name in before - {"leaderboard"}:
        paths = [out / "tables" / f"{name}.csv" for out in reports]
        assert paths[0].read_bytes() == paths[1].read_bytes(), name
    raw, both = (table(out, "leaderboard") for out in reports)
    assert [{key: row[key] for key in raw[0]} for row in both] == raw, "the raw values stay where they were"


def columns(cells: list[LoadedCell]) -> dict[tuple[str, str], BoardColumn]:
    (board,) = (
        part for section in sections_of(comparisons_of(cells)) for part in section.parts if isinstance(part, Board)
    )
    return {(column.group, column.title): column for column in board.columns}


def test_the_page_shows_both(cells: list[LoadedCell], corrected: list[LoadedCell]) -> None:
    plain, shown = columns(cells), columns(corrected)
    assert ("", "Adhered") in plain
    assert not any(group == "Adhered" for group, _ in plain)
    assert shown["Adhered", "as judged"].values == plain["", "Adhered"].values
    values = shown["Adhered", "corrected"].values
    assert [value is None for value in values] == [cell.model == "other" for cell in corrected]
    assert shown["Adhered", "95 % interval"].ends
