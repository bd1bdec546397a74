"""A page of three protocols in a real browser: each has its section, its charts, its tables, and dialogues with checks."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.data import Chart, Line, Section
from codechat.report.loading import load_cells
from codechat.report.page import write_page
from codechat.studies.refine.chapter.probed import DIFFERS
from support.codeif import Talk, write_talk
from support.pages import cell_of, chromium, made_report, made_session, requested, until
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


def beyond() -> SessionRecord:
    """Turn 1 asks for two things, turn 2 is rolled back after two tries, turn 3 passes and differs on a fresh input."""
    session = made_session("t/beyond", "m", turns=4, breaks=0.0, lines=5, luck=random.Random(0))
    first, second, third = (turn.model_dump(mode="json") | {"skipped": False} for turn in session.turns[1:])
    told = {"verdict": "violated", "by": "rules", "reason": "nothing was added"}
    first["asked"].append(first["asked"][0] | {"id": "second", "text": "Add one more thing.", "adherence": told})
    first |= {"instruction": None, "adherence": None}
    failure = {"reason": "wrong result", "suite": "base", "index": 0, "input": "[1]", "expected": "1", "actual": "2"}
    refused = {"outcome": "fail", "passed": False, "passed_base": False, "failure": failure}
    call = {"role": "model", "request": second["request"], "finish_reason": "stop", "latency_s": 0.0}
    second |= {
        "outcome": "fail", "passed": False, "failure": failure,
        "gate": {"tries": [refused] * 2, "accepted": False, "rolled_back": True},
        "calls": [{**call, "response": f"refused reply {number}"} for number in (1, 2)],
    }  # fmt: skip
    third |= {DIFFERS: True, "fresh input": {"input": "[[7]]", "expected": "7", "actual": "8"}}
    turns = [session.turns[0], *map(TurnRecord.model_validate, (first, second, third))]
    return session.model_copy(update={"session_id": "beyond", "turns": turns})


def test_a_dialogue_shows_several_instructions_a_roll_back_and_a_difference(driver: Any, tmp_path: Path) -> None:
    page = write_page(made_report([cell_of((beyond(),), 4)], tmp_path / "figures"), tmp_path).as_uri()
    requested(driver)
    driver.get("about:blank")
    driver.get(f"{page}#session=beyond")
    until(lambda: texts(driver, "#dialogue h1") == ["t/beyond"], "the dialogue")
    assert len(texts(driver, "#turn-1 blockquote")) == 2
    assert texts(driver, "#turn-1 blockquote p")[1] == "Add one more thing."
    assert "nothing was added" in texts(driver, "#turn-1 .judge")[1]
    assert "rolled back" in texts(driver, "#turn-2 .chip") and "rolled back" not in texts(driver, "#turn-3 .chip")
    assert texts(driver, "#turn-2 .tries > summary") == ["Asked again: 2 of 2 replies refused"]
    assert texts(driver, "#turn-2 .tries .reply") == ["refused reply 1", "refused reply 2"]
    assert script(driver, "return document.querySelector('#turn-2 .tries').open"), "it is why the turn failed"
    assert DIFFERS in texts(driver, "#turn-3 .chip") and DIFFERS not in texts(driver, "#turn-2 .chip")
    assert "[[7]]" in script(driver, "return document.getElementById('turn-3').textContent"), "the input"
    quiet(driver)
