"""A probe's figures against a recount of sessions.jsonl and turns.jsonl; report and export with and without them."""

import csv
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import read_sessions
from codechat.cli.commands.export import run_export
from codechat.report.build import build_report, comparisons_of
from codechat.report.comparison import LoadedCell
from codechat.report.drawing import Look
from codechat.report.loading import load_cells
from codechat.report.page import write_page
from codechat.run.extensions import extensions
from codechat.studies.refine.chapter import probed
from codechat.studies.refine.probe.figures import SHOWN, write_figures
from support.mistakes import mistake
from support.refine_cells import Made, write_cell

SCOPES = ("cosmetic", "structural", "semantic")
CHANGES = ("add", "remove", "modify")


def probe_of(sessions: list[dict[str, Any]], draws: random.Random) -> Iterator[dict[str, Any]]:
    """Made-up results: most passing turns have a record, some of these only undecided inputs."""
    for session in sessions:
        passed = False
        for turn in session["turns"]:
            if turn["passed"] and draws.random() < 0.9:
                inputs, differs = (0, 0) if draws.random() < 0.1 else (150, draws.choice([0, 0, 0, 2]))
                smallest = {"input": "([],)", "expected": "0", "actual": "None"} if differs else None
                reference = {"inputs": inputs, "differs": differs, "undecided": 150 - inputs, "smallest": smallest}
                before = {"inputs": 150, "differs": draws.choice([0, 0, 1]), "undecided": 0, "smallest": None}
                yield {
                    "cell_id": session["cell_id"], "session_id": session["session_id"], "task_id": session["task_id"],
                    "turn": turn["turn"], "reference": reference, "before": before if passed else None, "of_turn": None,
                }  # fmt: skip
            passed = bool(turn["passed"])


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The runs of two models, the first on two datasets, and a folder with their probe."""
    folder = tmp_path_factory.mktemp("probed")
    for made in (
        Made("good", "humaneval", tasks=30, errored=2, overflows=3), Made("good", "mbpp", tasks=20),
        Made("weak", "humaneval", tasks=30, breaks=0.15),
    ):  # fmt: skip
        write_cell(made, folder / "runs")
    draws = random.Random(5)
    lines = [json.dumps(turn) for cell in cells_in(folder / "runs") for turn in probe_of(lines_of(cell), draws)]
    (folder / "probe").mkdir()
    (folder / "probe" / "turns.jsonl").write_text("\n".join(lines) + "\n")
    named = {cell.name: read_sessions(cell / "sessions.jsonl") for cell in cells_in(folder / "runs")}
    write_figures(named, folder / "probe")
    return folder / "runs", folder / "probe"


def cells_in(runs: Path) -> list[Path]:
    return sorted(runs.iterdir())


def lines_of(cell: Path, name: str = "sessions.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (cell / name).read_text().splitlines()]


class Recount:
    """The figures of one cell by plain loops."""

    def __init__(self, cell: Path, probe: Path) -> None:
        records = {(t["cell_id"], t["session_id"], t["turn"]): t for t in lines_of(probe, "turns.jsonl")}
        self.differ: list[tuple[int, str, bool]] = []
        self.hidden: list[tuple[str, bool, bool]] = []
        self.changed: list[bool] = []
        self.undecided = self.left_out = 0
        self.lengths: list[tuple[int, int]] = []
        self.curves: list[list[tuple[bool, bool]]] = [[] for _ in range(10)]
        for session in lines_of(cell):
            if session["status"] != "completed":
                continue
            states: list[tuple[bool, bool | None]] = []
            for turn in session["turns"]:
                asked = not turn["skipped"] and not (session.get("ended") and turn["response"] is None)
                kind = "{scope}/{change}".format(**turn["instruction"]) if turn.get("instruction") else ""
                record = records.get((session["cell_id"], session["session_id"], turn["turn"])) if asked else None
                differs = bool(record["reference"]["differs"]) if record and record["reference"]["inputs"] else None
                if not asked:
                    differs = states[-1][1]
                elif turn["passed"]:
                    self._passing(turn["turn"], kind, record, differs)
                if asked and states and states[-1] == (True, False) and (not turn["passed"] or differs is not None):
                    self.hidden.append((kind, bool(turn["passed"] and differs), not turn["passed"]))
                states.append((turn["passed"], differs))
                self.curves[turn["turn"]].append((turn["passed"], bool(turn["passed"] and not differs)))
            tests = [passed for passed, _ in states]
            strict = [bool(passed and not differs) for passed, differs in states]
            self.lengths.append(([*tests, False].index(False), [*strict, False].index(False)))

    def _passing(self, turn: int, kind: str, record: dict[str, Any] | None, differs: bool | None) -> None:
        self.left_out += record is None
        self.undecided += record is not None and differs is None
        if record is not None and differs is not None:
            self.differ.append((turn, kind, differs))
            self.changed += [record["before"]["differs"] > 0] if record["before"] else []


def mean(values: list[Any]) -> float:
    return sum(map(float, values)) / len(values)


def test_figures_are_a_recount(places: tuple[Path, Path]) -> None:
    runs, probe = places
    written = json.loads((probe / "probe.json").read_text())["cells"]
    assert [each["name"] for each in written] == [cell.name for cell in cells_in(runs)]
    for cell, figures in zip(cells_in(runs), written, strict=True):
        own = Recount(cell, probe)
        assert min(len(own.hidden), own.undecided, own.left_out) > 5
        counts = [figures[name] for name in ("probed", "undecided", "left_out")]
        assert counts == [len(own.differ), own.undecided, own.left_out]
        assert figures["differs"]["overall"]["value"] == pytest.approx(mean([d for *_, d in own.differ]))
        assert figures["differs_from_before"]["value"] == pytest.approx(mean(own.changed))
        for name, place in (("hidden_regression", 1), ("seen_regression", 2)):
            share = figures[name]
            assert share["overall"]["value"] == pytest.approx(mean([each[place] for each in own.hidden]))
            assert share["overall"]["n"] == len(own.hidden)
            for scope in SCOPES:
                of = [each[place] for each in own.hidden if each[0].startswith(scope)]
                assert share["by_scope"][scope]["value"] == pytest.approx(mean(of))
            for change in CHANGES:
                assert share["by_change"][change]["n"] == sum(each[0].endswith(change) for each in own.hidden)
        for turn in range(10):
            of = [d for at, _, d in own.differ if at == turn]
            assert figures["differs_at"][turn] == {
                "value": pytest.approx(mean(of)), "n": len(of), "ci": figures["differs_at"][turn]["ci"],
            }  # fmt: skip
            for place, name in enumerate(("pass_at_1", "strict_pass_at_1")):
                expected = mean([each[place] for each in own.curves[turn]])
                assert figures[name][turn]["value"] == pytest.approx(expected)
        tests, strict = (mean([length[place] for length in own.lengths]) for place in (0, 1))
        assert figures["mst"]["value"] == pytest.approx(tests)
        assert figures["strict_mst"]["value"] == pytest.approx(strict)
        low, high = figures["lost_turns"]["ci"]
        assert low < tests - strict < high
        assert tests > strict
        assert json.loads((cell / "metrics.json").read_text())["mst"] == pytest.approx(tests)


def load(runs: Path, probe: Path | None) -> list[LoadedCell]:
    cells = load_cells([runs])
    return [replace(cell, results={"probe": probe} if probe else {}) for cell in cells]


@pytest.fixture(scope="module")
def reports(places: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A report without the probe, and one with it."""
    plain, both = (tmp_path_factory.mktemp(name) for name in ("plain", "both"))
    for out, probe in ((plain, None), (both, places[1])):
        write_page(build_report(load(places[0], probe), out), out)
    return plain, both


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_only_the_probes_tables_are_new(reports: tuple[Path, Path]) -> None:
    before, after = ({path.stem for path in (out / "tables").glob("*.csv")} for out in reports)
    assert after - before == {"probe", "probe_types", "probe_turns", "probe_differences"}
    for name in before:
        texts = [(out / "tables" / f"{name}.csv").read_bytes() for out in reports]
        assert texts[0] == texts[1], name
    pages = [(out / "index.html").read_text() for out in reports]
    assert [probed.TITLE in page for page in pages] == [False, True]


def test_both_curves_are_drawn(places: tuple[Path, Path]) -> None:
    (plain,), (comparison,) = (comparisons_of(load(places[0], probe)) for probe in (None, places[1]))
    assert list(probed.drawings(plain)) == []
    (drawing,) = probed.drawings(comparison)
    axes = drawing.draw(comparison, Look(comparison)).axes
    written = json.loads((places[1] / "probe.json").read_text())["cells"]
    figures = {(each["model"], each["dataset"]): each for each in written}
    for panel, found in zip(axes, comparison.in_order(), strict=False):
        own = figures[found.cell.model, found.cell.dataset]
        for line, name in zip(panel.lines, ("pass_at_1", "strict_pass_at_1"), strict=True):
            assert list(line.get_ydata()) == [each["value"] for each in own[name]]


def test_the_report_has_every_difference_and_shows_some(places: tuple[Path, Path], reports: tuple[Path, Path]) -> None:
    runs, probe = places
    tables = reports[1] / "tables"
    every = rows(tables / "probe_differences.csv")
    differ = sum(sum(d for *_, d in Recount(cell, probe).differ) for cell in cells_in(runs))
    assert len(every) == differ > SHOWN
    assert {(row["input"], row["expected"], row["actual"]) for row in every} == {("([],)", "0", "None")}
    assert f"The first {SHOWN} of {differ} rows" in (tables / "probe_differences.md").read_text()
    overview = {(row["model"], row["dataset"]): row for row in rows(tables / "probe.csv")}
    parts = [Recount(cell, probe).hidden for cell in cells_in(runs) if cell.name.startswith("good")]
    whole = overview["good", "all together"]
    assert float(whole["hidden"]) == pytest.approx(mean([each[1] for part in parts for each in part]))
    assert ("weak", "all together") not in overview


def test_the_page_shows_a_difference_at_its_turn(places: tuple[Path, Path]) -> None:
    cells = load(*places)
    shown = [turn for cell in cells for session in probed.shown(cell) for turn in session.turns if turn.model_extra]
    assert shown
    for turn in shown:
        assert turn.of_protocol[probed.DIFFERS] is True
        assert turn.of_protocol["fresh input"]["actual"] == "None"


def test_export_has_columns_of_the_probe(places: tuple[Path, Path], tmp_path: Path) -> None:
    runs, probe = places
    cell = cells_in(runs)[0]
    assert run_export([f"run={cell}", f"out={tmp_path / 'plain.csv'}"]) == 0
    assert run_export([f"run={cell}", f"probe={probe}", f"out={tmp_path / 'both.csv'}"]) == 0
    plain, both = rows(tmp_path / "plain.csv"), rows(tmp_path / "both.csv")
    added = [column.name for column in extensions().results["probe"].added]
    assert list(both[0]) == [*plain[0], *added]
    assert [{name: row[name] for name in plain[0]} for row in both] == plain
    turns = lines_of(probe, "turns.jsonl")
    known = {(turn["session_id"], turn["turn"]): turn for turn in turns if turn["cell_id"] == both[0]["cell_id"]}
    assert known
    for row in both:
        record = known.get((row["session_id"], int(row["turn"])))
        if record is None:
            assert not any(row[name] for name in added)
            continue
        reference = record["reference"]
        assert [row["probed_inputs"], row["probe_differs"]] == [str(reference["inputs"]), str(reference["differs"])]
        assert row["probe_actual"] == ("None" if reference["differs"] else "")
        assert row["probe_differs_from_before"] == (str(record["before"]["differs"]) if record["before"] else "")


def test_a_folder_without_results_is_the_users_mistake(places: tuple[Path, Path], tmp_path: Path) -> None:
    with mistake("holds no turns.jsonl", "codechat probe"):
        run_export([f"run={cells_in(places[0])[0]}", f"probe={tmp_path}", f"out={tmp_path / 'x.csv'}"])
