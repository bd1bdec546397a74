"""A page of three protocols in a real browser: each has its section, its charts, its tables, and dialogues with checks."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.report.data import Chart, Line, Section
from codechat.report.loading import load_cells
from codechat.report.page import write_page
from support.codeif import Talk, write_talk
from support.pages import chromium, made_report, requested, until
from support.refine_cells import Made, write_cell

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    for made in (Talk("strong", meets=0.9), Talk(HOSTILE, meets=0.4), Talk("strong", "dynamic", tasks=6)):
        write_talk(replace(made, model=made.model.replace("/", "∕")), folder / "runs")
    write_cell(Made("strong", tasks=4, turns=3), folder / "runs")
    return folder


def show(driver: Any, folder: Path, protocols: set[str]) -> None:
    """The page of the cells of some protocols, freshly loaded."""
    cells = [cell for cell in load_cells([folder / "runs"]) if cell.protocol in protocols]
    report = made_report(cells, folder / "figures")
    tables = (*report.tables, *(replace(table, name="own", group="static") for table in report.tables))
    report = replace(report, tables=tables, groups={**report.groups, "static": "Static"})
    requested(driver)
    driver.get("about:blank")
    driver.get(write_page(report, folder / "-".join(sorted(protocols))).as_uri())
    until(lambda: script(driver, "return document.documentElement.dataset.ready"), "the sessions can be searched")
    until(lambda: script(driver, "return document.querySelectorAll('details').length"), "the tables are there")


def quiet(driver: Any) -> None:
    """No error reached the console and nothing left the machine."""
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    assert [url for url in requested(driver) if not url.startswith(("file:", "data:", "about:", "blob:"))] == []


def script(driver: Any, text: str, *values: Any) -> Any:
    return driver.execute_script(text, *values)


def texts(driver: Any, selector: str) -> list[str]:
    return script(
        driver, "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector
    )


def test_every_protocol_has_a_section(driver: Any, folder: Path) -> None:
    show(driver, folder, {"refine", "static", "dynamic"})
    assert texts(driver, ".bar nav a") == ["Leaderboard", "Curves", "Tables", "Static", "Dynamic", "Sessions"]
    assert len(texts(driver, "#leaderboard tbody tr")) == 1, "the leaderboard is of refinement cells"
    rows = texts(driver, "#protocol-static tbody th")
    assert rows[0].startswith("strong"), "the best comes first"
    assert HOSTILE.replace("/", "∕") in rows[1]
    charts = "#protocol-static .wide-charts svg"
    assert len(texts(driver, charts)) == 6
    assert len(texts(driver, f"{charts} path.band")) == 12, "an interval around every line"
    drawn = script(driver, f"return document.querySelector('{charts} path.line').getTotalLength()")
    assert drawn > 100
    ticks = [texts(driver, f"#protocol-static figure:nth-child({place}) .tick")[:3] for place in (1, 5)]
    assert ticks == [["0.00", "0.25", "0.50"]] * 2, "shares as in the tables"
    ends = texts(driver, "#protocol-static figure:nth-child(1) .tick")[4:6]
    assert ends == ["1.00", "turn 0"], "both axes say what they show"
    assert len(texts(driver, "#protocol-static .parts details")) == 1, "its tables are in its own section"
    quiet(driver)


def test_a_number_has_as_many_digits_at_every_turn(driver: Any, folder: Path) -> None:
    report = made_report(load_cells([folder / "runs"]), folder / "numbers")
    lines = [Line(report.cells[0], "gain", [12.3456, 3.4567, 4.5678])]
    section = Section("gains", "Gains", "", [[Chart("", "gain", lines, top=20.0, share=False)]])
    driver.get(write_page(replace(report, sections=(section,)), folder / "numbers").as_uri())
    until(lambda: texts(driver, "#gains svg"), "the chart is there")
    assert texts(driver, "#gains .series title")[0].endswith(": 12.35, 3.46, 4.57")


def test_dialogues_are_found_by_strategy_and_show_their_checks(driver: Any, folder: Path) -> None:
    show(driver, folder, {"refine", "static", "dynamic"})
    labels = texts(driver, "#filters label span")
    assert "Protocol" in labels
    assert "Scope or Strategy" in labels
    script(driver, "location.hash = 'protocol=dynamic&scope=Code+Standard&list'")
    until(lambda: texts(driver, "#count")[0].split()[0] not in ("30", "0"), "the list is filtered")
    assert all(text.endswith(", dynamic") for text in texts(driver, "#rows .dataset"))
    script(driver, "document.getElementById('row-0').click()")
    until(lambda: script(driver, "return !document.getElementById('dialogue').hidden"), "a dialogue is open")
    assert "initial" in texts(driver, "#turn-0 .chip")
    assert "Code Standard" in texts(driver, "#dialogue .chip")
    for turn, told in enumerate(texts(driver, ".checks summary")):
        met, total = (int(word) for word in told.split() if word.isdigit())
        assert len(texts(driver, f"#turn-{turn} .checks .met")) == met
        assert len(texts(driver, f"#turn-{turn} .checks li")) == total
    assert any("AssertionError" in text for text in texts(driver, ".checks .unmet"))
    quiet(driver)


def test_a_page_without_refinements_has_nothing_of_them(driver: Any, folder: Path) -> None:
    show(driver, folder, {"static"})
    assert texts(driver, "h1")[0].startswith("strong leads: Instruction Accuracy")
    assert texts(driver, "#kicker") == ["CodeIF-Bench, static conversation"]
    (lede,) = texts(driver, "#lede")
    assert "\u00a0%" in lede and " %" not in lede, "no line begins with the sign"
    assert texts(driver, ".bar nav a") == ["Static", "Sessions"]
    for part in ("leaderboard", "survival", "curves", "results"):
        assert script(driver, "return document.getElementById(arguments[0]) === null", part)
    labels = texts(driver, "#filters label span")
    assert "Strategy" in labels
    assert not {"Protocol", "Change", "Scope"} & set(labels)
    wide = script(driver, "return document.documentElement.scrollWidth <= innerWidth")
    assert wide, "nothing sticks out"
    quiet(driver)
