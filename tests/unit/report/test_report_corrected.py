"""A report's corrected adherence against a recount from metrics.json, and that nothing else of the report changes."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord
from codechat.report.build import build_report, sections_of, studies_of
from codechat.report.data import Board, BoardColumn
from codechat.report.loading import load_cells
from codechat.report.metrics.judge_errors import JudgeLabels, Label
from codechat.report.metrics.statistics import Figure
from codechat.report.study import LoadedCell
from codechat.studies.refine.metrics import refine_metrics
from support.refine_cells import Made, write_cell

SCOPES = ("cosmetic", "structural", "semantic")
RIGHT = {True: (54, 60), False: (48, 60)}  # by verdict, how often people say the same, of how many labels
REASON = "the labels are of another judge (rules)"


def measured(config: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any]:
    return refine_metrics(sessions, seed=config["seed"])


def load(runs: Path) -> list[LoadedCell]:
    return list(load_cells([runs], lambda *_: None, measured))


def labels_of(cells: list[LoadedCell]) -> JudgeLabels:
    """Labels of cells of one dataset: of scopes too few each, together enough."""
    judged = {scope: Figure() for scope in SCOPES}
    for cell in cells:
        for session in cell.sessions():
            for turn in session.turns[1:]:
                if (
                    turn.instruction is not None
                    and turn.adherence is not None
                    and turn.adherence.verdict != "undecided"
                ):
                    judged[turn.instruction.scope].count(session.task_id, turn.adherence.verdict == "adhered")
    tasks = sorted(judged["cosmetic"].by_task)
    labels = [
        Label(cells[0].source, tasks[number % len(tasks)], "cosmetic", verdict, float((number < same) is verdict))
        for verdict, (same, count) in RIGHT.items()
        for number in range(count)
    ]
    return JudgeLabels("rules", {cells[0].source: judged}, tuple(labels))


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
    """The first model's cells with labels of its cells on the first dataset; the other has none."""
    known = labels_of([cell for cell in cells if (cell.model, cell.dataset) == ("good", "humaneval")])
    return [replace(cell, labels=known if cell.model == "good" else REASON) for cell in cells]


@pytest.fixture(scope="module")
def reports(
    cells: list[LoadedCell], corrected: list[LoadedCell], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A report without labels, and one with them."""
    raw, both = (tmp_path_factory.mktemp(name) for name in ("raw", "both"))
    build_report(cells, raw)
    build_report(corrected, both)
    return raw, both


def errors(known: JudgeLabels) -> tuple[float, float]:
    """Sensitivity and specificity, by a count of decisions of which as many are right as of the labels."""
    counts = [each for figure in known.judged["humaneval"].values() for each in figure.by_task.values()]
    # all labels are cosmetic: they stand for all scopes
    adhered = sum(hits for hits, _ in counts)
    violated = sum(total for _, total in counts) - adhered
    (right, of), (denied, among) = RIGHT[True], RIGHT[False]
    caught, passed = adhered * right / of, adhered * (of - right) / of
    missed, refused = violated * (among - denied) / among, violated * denied / among
    return caught / (caught + missed), refused / (refused + passed)


def test_a_recount(cells: list[LoadedCell], corrected: list[LoadedCell], reports: tuple[Path, Path]) -> None:
    out = reports[1]
    known = corrected[0].labels
    assert isinstance(known, JudgeLabels)
    sensitivity, specificity = errors(known)

    def true(adhered: float, violated: float) -> float:
        return (adhered / (adhered + violated) + specificity - 1) / (sensitivity + specificity - 1)

    rows = {(row["model"], row["dataset"], row["of"]): row for row in table(out, "adherence_corrected")}
    changes = {(row["model"], row["dataset"]): row for row in table(out, "adherence_corrected_changes")}
    for cell in cells:
        counts = cell.metrics["phi"]
        whole = [sum(counts[f"{code}_{kind}"] for code in ("pass", "fail")) for kind in ("adhered", "violated")]
        row, change = rows[cell.model, cell.dataset, "all turns"], changes[cell.model, cell.dataset]
        assert int(row["judged"]) == sum(whole)
        assert float(row["raw"]) == pytest.approx(whole[0] / sum(whole))
        assert float(change["phi_raw"]) == pytest.approx(counts["value"])
        if cell.model == "other":
            assert (row["corrected"], change["phi_corrected"]) == ("", "")
            assert row["note"] == change["note"] == f"not corrected: {REASON}"
            continue
        assert float(row["corrected"]) == pytest.approx(true(*whole))
        assert row["errors"] == "all scopes together"
        assert float(row["corrected_ci_low"]) < true(*whole) < float(row["corrected_ci_high"])
        first, last = (true(rate, 1 - rate) for rate in (cell.metrics["iar"][0], cell.metrics["iar"][-1]))
        assert float(change["delta_corrected"]) == pytest.approx(100 * (last - first) / first)
        sides = [(counts[f"{code}_adhered"], counts[f"{code}_violated"]) for code in ("pass", "fail")]
        (a, b), (c, d) = ((sum(side) * true(*side), sum(side) * (1 - true(*side))) for side in sides)
        phi = (a * d - b * c) / sqrt((a + b) * (c + d) * (a + c) * (b + d))
        assert float(change["phi_corrected"]) == pytest.approx(phi)
    found = {row["scope"]: row for row in table(out, "judge_errors")}
    assert found["structural"]["note"].startswith("nothing is corrected by these: too few labels")
    assert float(found["all scopes"]["sensitivity"]) == pytest.approx(sensitivity)
    assert float(found["all scopes"]["specificity"]) == pytest.approx(specificity)


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
    widths = [
        float(board["good", name]["adherence_corrected_ci_high"]) - float(board["good", name]["adherence_corrected_ci_low"])
        for name in ("humaneval", "mbpp")
    ]  # fmt: skip
    assert widths[0] < widths[1], "labels say more of the cells that they are of"


def test_nothing_else_of_a_report_changes(reports: tuple[Path, Path]) -> None:
    before, after = ({path.stem for path in (out / "tables").glob("*.csv")} for out in reports)
    assert after - before == {"adherence_corrected", "adherence_corrected_changes", "judge_errors"}
    for name in before - {"leaderboard"}:
        paths = [out / "tables" / f"{name}.csv" for out in reports]
        assert paths[0].read_bytes() == paths[1].read_bytes(), name
    raw, both = (table(out, "leaderboard") for out in reports)
    assert [{key: row[key] for key in raw[0]} for row in both] == raw, "the raw values stay where they were"


def columns(cells: list[LoadedCell]) -> dict[tuple[str, str], BoardColumn]:
    (board,) = (part for section in sections_of(studies_of(cells)) for part in section.parts if isinstance(part, Board))
    return {(column.group, column.title): column for column in board.columns}


def test_the_page_shows_both(cells: list[LoadedCell], corrected: list[LoadedCell]) -> None:
    plain, shown = columns(cells), columns(corrected)
    assert ("", "Adhered") in plain
    assert not any(group == "Adhered" for group, _ in plain)
    assert shown["Adhered", "as judged"].values == plain["", "Adhered"].values
    values = shown["Adhered", "corrected"].values
    assert [value is None for value in values] == [cell.model == "other" for cell in corrected]
    assert shown["Adhered", "95 % interval"].ends
