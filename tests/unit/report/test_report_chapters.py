"""Chapters that protocols bring to the report: found by entry point, shown everywhere, and nowhere named by the rest."""

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from codechat import report as report_room
from codechat.cli.cell_view import summary
from codechat.report import chapters, write_tables
from codechat.report.build import build_report, comparisons_of
from codechat.report.chapters import Chapter, chapter_of, leads, register
from codechat.report.loading import load_cells
from codechat.run.protocols import PROTOCOLS
from codechat.studies.refine.metrics import REFINE
from support.codeif import MEASURES, Talk, write_talk
from support.mistakes import mistake
from support.refine_cells import Made, write_cell

DRAWN = True

PLUGIN = '''
"""A protocol's one file: its chapter stands beside it."""

from codechat.report.chapters import Chapter, register
from codechat.report.data import Column, Table
from codechat.report.data import Board, BoardColumn, Headline, Section

@register("static")
class Told(Chapter):
    fates = ("all well", "ill at")

    def summary(self, measures, metrics):
        yield "of its own", str(metrics["completed"])

    def write_tables(self, measures, metrics, folder):
        folder.mkdir(parents=True)
        (folder / "own.csv").write_text("own")

    def groups(self, comparison):
        return {"own": "A group", **super().groups(comparison)}

    def tables(self, comparison):
        yield Table("own_table", "Of its own", (Column("model", "Model"),), tuple((c.model,) for c in comparison.loaded), group="own")
        yield from super().tables(comparison)

    def drawings(self, comparison):
        return iter(())

    def headline(self, comparison, tables):
        return Headline("A claim", tables[0].title, kicker="A question?")

    def sections(self, comparison):
        board = Board("Board", [BoardColumn("Model", comparison.loaded, "cell")], "Model")
        return [Section("own", "Own section", "Own", ["A note.", board], ("own",)), *super().sections(comparison)]
'''


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file as an installed package that names it as its protocol."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "told_plugin.py").write_text(PLUGIN)
    install(tmp_path / "site", monkeypatch, "codechat.protocol", "told_plugin")
    yield
    sys.modules.pop("told_plugin", None)


def install(site: Path, monkeypatch: pytest.MonkeyPatch, group: str, module: str) -> None:
    """Install a package `told` whose entry point names the module; chapters are looked for anew at every question."""
    assert leads(REFINE.protocol), "the shipped ones are known before"
    folder = site / "told-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: told\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(f"[{group}]\ntold = {module}\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(chapters, "_OWN", dict(chapters._OWN))
    monkeypatch.setattr(chapters, "_discover", chapters._discover.__wrapped__)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_cell(Made("m", tasks=3, turns=3), tmp_path / "runs")
    for model in ("a", "b"):
        write_talk(Talk(model, tasks=4), tmp_path / "runs")
    write_talk(Talk("a", "dynamic", tasks=3), tmp_path / "runs")
    return tmp_path / "runs"


def test_a_chapter_is_found_by_the_protocols_own_entry_point(plugin: None, runs: Path, tmp_path: Path) -> None:
    cells = load_cells([runs])
    assert [comparison.protocol for comparison in comparisons_of(cells)] == ["static", "refine", "dynamic"], (
        "own chapters come first"
    )
    data = build_report([cell for cell in cells if cell.protocol != "refine"], tmp_path / "out")
    assert [table.name for table in data.tables][:2] == ["own_table", "static_finals"]
    assert [table.name for table in data.opening] == ["own_table", "dynamic_finals"]
    assert data.groups == {"own": "A group", **{name: MEASURES[name].title for name in ("static", "dynamic")}}
    assert (tmp_path / "out" / "tables" / "own_table.md").is_file()
    assert (data.headline.title, data.headline.text, data.headline.kicker) == ("A claim", "Of its own", "A question?")
    assert [section.key for section in data.sections] == ["own", "protocol-static", "protocol-dynamic"]
    assert {figure.of.group for figure in data.figures} == {"dynamic"}, "it draws nothing"
    metrics = json.loads((runs / "a-codeif_bench-static" / "metrics.json").read_text())
    shown = io.StringIO()
    Console(file=shown).print(summary(MEASURES["static"], metrics, "a cell"))
    assert "of its own" in shown.getvalue()
    assert "Instruction Accuracy" not in shown.getvalue()
    write_tables(MEASURES["static"], metrics, tmp_path / "tables")
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["own.csv"]


def test_a_protocol_without_a_chapter_has_the_generic_one() -> None:
    assert type(chapter_of("nobody")) is Chapter
    assert not leads("nobody")
    assert leads(REFINE.protocol)


def test_two_chapters_of_one_protocol_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert leads(REFINE.protocol)
    with pytest.raises(ValueError, match="'refine' has two chapters"):
        register(REFINE.protocol)(type("Other", (Chapter,), {"__module__": "elsewhere"}))


def test_a_chapter_that_cannot_be_loaded_is_a_users_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "codechat.chapter", "no_such_module")
    with mistake("'told'", "uninstall told"):
        chapter_of("static")


def generic_sources() -> list[Path]:
    room = Path(report_room.__file__).parent
    files = [path for path in room.rglob("*") if path.suffix in (".py", ".js", ".css", ".html")]
    own = [path for path in files if path.parent != room / "chapters" / REFINE.protocol]
    shown = ("cell_view", "commands/report", "commands/export")
    return [*own, *(room.parent / "cli" / f"{name}.py" for name in shown)]


@pytest.mark.parametrize("path", generic_sources(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_generic_half_names_no_protocol(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"refine(?!ments? )", text, re.IGNORECASE)
    for component in PROTOCOLS:
        assert f'"{component.name}"' not in text


def test_every_generic_source_is_looked_at() -> None:
    names = {path.name for path in generic_sources()}
    assert {"build.py", "sections.js", "cell_view.py", "comparison.py"} <= names
    assert "findings.py" not in names


def test_a_plugins_values_reach_the_page_as_data(plugin: None, runs: Path) -> None:
    from codechat.report.page import overview

    cells = [cell for cell in load_cells([runs]) if cell.protocol == "static"]
    data: Any = build_report(cells, runs.parent / "page")
    shown = json.loads(json.dumps(overview(data, None)))
    assert [cell["fates"] for cell in shown["cells"]] == [["all well", "ill at"]] * 2
    own = shown["sections"][0]
    assert own["parts"][0] == "A note."
    assert own["parts"][1]["columns"][0]["values"] == [0, 1]
