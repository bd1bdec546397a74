"""The page in a browser of every width: what does not fit takes more lines, and nothing is cut."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import AgentStep, Trajectory
from codechat.cli.app import main
from codechat.report.page import write_page
from support.multicodeif import Constrained, write_constrained
from support.pages import chromium, made_cell, made_report, until

pytestmark = pytest.mark.browser

VARIANT = "balanced, first 5 tasks, 5 turns, initial prompt “…please write this function in Python…”, seed 0"
RENDERED = True
CUT = """return [...document.querySelectorAll('main *')].filter((each) => !each.closest('svg') && !each.closest('.unseen')
  && ['hidden', 'clip'].includes(getComputedStyle(each).overflowX) && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent)"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.mark.parametrize("width", [390, 1024, 1440, 1920])
def test_nothing_is_cut(driver: Any, tmp_path: Path, width: int) -> None:
    cells = [
        replace(made_cell(name, tasks=6, breaks=0.1), variant=VARIANT, differences={"a": VARIANT}) for name in "ab"
    ]
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get(write_page(made_report(cells, tmp_path / "figures"), tmp_path).as_uri())
    until(lambda: driver.execute_script("return document.querySelectorAll('.session').length > 3"), "the sessions")
    driver.execute_script("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert driver.execute_script(CUT) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    links = "return [...document.querySelectorAll('.bar a, .bar button')].map((each) => each.getBoundingClientRect().toJSON())"
    places = [place for place in driver.execute_script(links) if place["width"]]
    assert len(places) > 3 and all(place["left"] >= 0 and place["right"] <= width for place in places), "the whole bar"


def test_an_agents_steps_fit(driver: Any, tmp_path: Path) -> None:
    cell, long = made_cell("a", tasks=1), "x" * 900
    steps = (AgentStep("command", long, long, 1), AgentStep("edit", long))
    cell.records[0].turns[1].trajectory = Trajectory(None, steps, elsewhere=1, diff=f"+{long}")
    cell.records[0].turns[1].lacks_name = True
    screen = {"width": 420, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    path = write_page(made_report([cell], tmp_path / "figures"), tmp_path)
    driver.get(f"{path.as_uri()}#session={cell.records[0].session_id}")
    until(lambda: driver.execute_script("return document.getElementById('turn-1')"), "the dialogue")
    driver.execute_script(
        "[...document.querySelectorAll('.tabs button')].find((each) => each.textContent === 'Steps').click();"
        "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
    )
    assert len(driver.execute_script("return document.querySelector('.step code').textContent")) < 200
    assert driver.execute_script(CUT) == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 420
    assert "code without the name" in driver.execute_script(
        "return [...document.querySelectorAll('#turn-1 .chip')].map((each) => each.textContent)"
    )


def test_a_single_round_is_bars(driver: Any, tmp_path: Path) -> None:
    """Two cells of self-repair without a repair: a bar each, with its interval, and the shares by category below."""
    for model in ("one", "two"):
        write_constrained(Constrained(model, share=0.1, options={"rounds": 0}), tmp_path / "runs")
    assert main(["report", f"runs={tmp_path / 'runs'}", f"out={tmp_path / 'out'}"]) == 0
    driver.get((tmp_path / "out" / "index.html").as_uri())
    until(lambda: driver.execute_script("return document.querySelectorAll('.session').length > 3"), "the sessions")
    shown = "return [...document.querySelectorAll('.wide-charts figure')].map((each) => ['.block', '.reach', 'path.line'].map("
    counts = driver.execute_script(f"{shown}(part) => each.querySelectorAll(part).length))")
    assert counts and all(count == [2, 2, 0] for count in counts)
    text = driver.execute_script("return document.getElementById('chapters').textContent")
    assert "Accuracy by category" in text and "interface_specification" in text


def test_a_short_text_takes_one_line(driver: Any, tmp_path: Path) -> None:
    cells = [
        replace(made_cell("a", tasks=6, breaks=0.1), variant=words, differences={"a": words})
        for words in ("judge rules, 10 turns", "judge llm, 10 turns")
    ]
    screen = {"width": 1024, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get(write_page(made_report(cells, tmp_path / "figures"), tmp_path).as_uri())
    until(lambda: driver.execute_script("return document.querySelectorAll('.session').length > 3"), "the sessions")
    heights = driver.execute_script(
        "return [...document.querySelectorAll('td.short')].map((each) => [each.textContent, each.clientHeight])"
    )
    assert any(text.startswith("judge rules") for text, _ in heights)
    assert [text for text, height in heights if height > 45] == []


NAMES = """return [...document.querySelectorAll('.wide-charts svg')].map((each) =>
  [...each.querySelectorAll('.series text')].map((text) => text.getBoundingClientRect().toJSON()))"""


@pytest.mark.parametrize("width", [420, 1400])
def test_of_many_entrants_no_names_overlap(driver: Any, tmp_path: Path, width: int) -> None:
    cells = [made_cell(f"entrant-{number:02}-with-a-name", tasks=5, breaks=0.02 * number) for number in range(24)]
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get(write_page(made_report(cells, tmp_path / "figures"), tmp_path).as_uri())
    until(lambda: driver.execute_script("return document.querySelectorAll('.session').length > 3"), "the sessions")
    (names,) = driver.execute_script(NAMES)
    assert len(names) == 8, "only some are named"
    ordered = sorted(names, key=lambda place: place["top"])
    assert all(above["bottom"] <= below["top"] + 3 for above, below in pairwise(ordered)), "leading apart"
    assert driver.execute_script("return document.querySelectorAll('.series.rest').length") == 16, "the rest is grey"
    assert "grey: the other 16" in driver.execute_script("return document.querySelector('.wide-charts').textContent")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_wide_figure_keeps_its_size_on_a_phone(driver: Any, tmp_path: Path) -> None:
    """It scrolls in a box of its own, and the page does not."""
    data = made_report([made_cell("m", tasks=4)], tmp_path / "figures")
    wide = '<svg xmlns="http://www.w3.org/2000/svg" width="1500" height="300"><rect width="1500" height="300"/></svg>'
    data.figures[0].svg.write_text(wide)
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 420, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    )
    driver.get(write_page(data, tmp_path).as_uri())
    until(lambda: driver.execute_script("return document.querySelector('.sight img')?.style.minWidth"), "the figure")
    box, image = driver.execute_script(
        "return ['.sight', '.sight img'].map((each) => document.querySelector(each).getBoundingClientRect().width)"
    )
    assert image >= 0.8 * 1500 > box
    assert driver.execute_script("return document.querySelector('.sight').scrollWidth") >= image
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 420


def test_the_charts_of_a_row_stand_on_one_line(driver: Any, tmp_path: Path) -> None:
    long = "escalating, a variant whose name takes two lines"
    cells = [
        replace(made_cell(name, tasks=6), variant=words, differences={"a": words})
        for name, words in (("a", "iid"), ("b", long))
    ]
    screen = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    driver.get(write_page(made_report(cells, tmp_path / "figures"), tmp_path).as_uri())
    until(lambda: driver.execute_script("return document.querySelectorAll('.session').length > 3"), "the sessions")
    find = "return [...document.querySelectorAll('.card %s')].map((each) => each.getBoundingClientRect().%s)"
    captions = driver.execute_script(find % ("figcaption", "height"))
    tops = driver.execute_script(find % ("svg", "top"))
    assert len({*captions}) == 2, "one name is longer"
    assert len({*tops}) == 1
