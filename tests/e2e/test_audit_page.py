"""The labelling page in a real browser: labels by keyboard, kept, exported, and no text that is more than text."""

import csv
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from codechat.base.records import SessionRecord
from codechat.cli.commands.audit import run_audit
from codechat.report.audit.kinds import read_labels
from codechat.report.audit.page import labelling_page
from codechat.studies.cab.audit import CONDITIONS
from codechat.studies.multicodeif.audit import CONSTRAINTS
from support.pages import chromium, requested, until
from support.refine_cells import CODE, of, session, turn, write_audit_cell

pytestmark = pytest.mark.browser

pytest.importorskip("selenium", reason="needs selenium")

HOSTILE = (
    "def double(x):\n    return x * 2  # <img src=x onerror=\"document.title='broken'\">\n"
    "</script><script>document.title = 'broken'</script><!--\n"
    "    note = '\u202e\u2066 reversed'\n"
)
CHANGED = 'def double(x):\n    """Twice x."""\n    return 2 * x\n'


def sessions() -> list[SessionRecord]:
    adding, modifying = of("cosmetic", "add"), of("semantic", "modify")
    turns = [
        turn(1, adding[0], adding[1:2], code=CHANGED),
        turn(2, modifying[0], code=HOSTILE,
             adherence={"verdict": "violated", "by": "llm", "reason": "<b>told</b> so"}),
    ]  # fmt: skip
    return [session("c", f"t/{number}", turns) for number in range(4)]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    write_audit_cell(tmp_path / "cell", sessions())
    assert run_audit(["export", f"runs={tmp_path / 'cell'}", f"out={tmp_path / 'audit'}"]) == 0
    return tmp_path / "audit" / "label.html"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[Path], Any]]:
    """Opens the page; called again, it opens it in a new browser of the same user."""
    with ExitStack() as stack:

        def open_page(page: Path) -> Any:
            stack.close()
            driver = stack.enter_context(chromium(tmp_path / "user"))
            driver.execute_cdp_cmd(
                "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path / "downloads")}
            )
            driver.get(page.as_uri())
            return driver

        yield open_page


def press(driver: Any, *keys: str) -> None:
    for key in keys:
        driver.switch_to.active_element.send_keys(key)


def text(driver: Any, name: str) -> str:
    found: str = driver.find_element("id", name).text
    return found


def shown(driver: Any, name: str) -> bool:
    found: bool = driver.find_element("id", name).is_displayed()
    return found


def go_to(driver: Any, chosen: bool) -> None:
    """The first open decision whose candidate was chosen or not, found by answering yes."""
    for _ in range(20):
        press(driver, "y")
        if shown(driver, "second") is chosen:
            return
        press(driver, "u", "\ue014")  # clear, then the right arrow
    raise AssertionError("there is no such decision")


def test_labels_by_keyboard_are_blind_until_given(page: Path, opened: Callable[[Path], Any]) -> None:
    driver = opened(page)
    assert text(driver, "progress") == "0 of 12 labelled"
    assert not shown(driver, "second")
    assert not shown(driver, "judge")
    assert "After" not in text(driver, "code"), "the changed code would tell what the judge decided"
    press(driver, "r", "a")
    assert not shown(driver, "judge"), "the judge is hidden until labelled"
    assert text(driver, "progress") == "0 of 12 labelled"
    go_to(driver, chosen=True)
    assert text(driver, "progress") == "0 of 12 labelled", "the second question is open"
    assert "After" in text(driver, "code")
    press(driver, "r")
    assert not shown(driver, "judge")
    press(driver, "a")
    assert text(driver, "progress") == "1 of 12 labelled"
    press(driver, "r")
    assert shown(driver, "judge")
    assert "yes (by rules)" in text(driver, "judge")
    press(driver, "r")
    assert not shown(driver, "judge")
    press(driver, "n")
    assert not shown(driver, "second"), "no adherence where nothing applied"
    press(driver, "u")
    assert text(driver, "progress") == "0 of 12 labelled"


def test_labels_survive_the_browser_and_are_exported(page: Path, opened: Callable[[Path], Any], tmp_path: Path) -> None:
    driver = opened(page)
    driver.find_element("id", "annotator").send_keys("Ada L.\ue007")
    go_to(driver, chosen=True)
    press(driver, "v", "c", "=odd", "\ue007", "\ue007")  # the note, Enter leaves it, Enter goes on
    press(driver, "n")
    time.sleep(1)  # the browser writes its storage a little later
    driver = opened(page)
    assert text(driver, "progress") == "2 of 12 labelled"
    press(driver, "e")
    path = tmp_path / "downloads" / "labels-Ada-L-.csv"
    until(path.is_file, "the download")
    rows = [row for _, row in read_labels(path).values()]
    given = [(row["applicable"], row["adherence"], row["note"], row["annotator"]) for row in rows if row["applicable"]]
    assert sorted(given) == [("no", "", "", "Ada L."), ("yes", "violated", "=odd", "Ada L.")]
    with (page.parent / "sample.csv").open(newline="") as stream:
        assert [row["sample"] for row in rows] == [row["sample"] for row in csv.DictReader(stream)]
    assert run_audit(["score", f"labels={path}", f"out={tmp_path / 'scored'}"]) == 0


def test_rows_ask_what_they_were_drawn_for(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    """All 12 decisions for applicability, but 2 changes alone for adherence: 10 rows have one question."""
    write_audit_cell(tmp_path / "cell", sessions())
    words = [f"runs={tmp_path / 'cell'}", f"out={tmp_path / 'apart'}", "applicability=12", "adherence=2"]
    assert run_audit(["export", *words]) == 0
    driver = opened(tmp_path / "apart" / "label.html")
    asked = 0
    for _ in range(12):
        press(driver, "y", "a")
        asked += shown(driver, "second")
        assert ("After" in text(driver, "code")) is shown(driver, "second")
        press(driver, "\ue014")
    assert asked == 2
    assert text(driver, "progress") == "12 of 12 labelled"
    press(driver, "e")
    path = tmp_path / "downloads" / "labels-anonymous.csv"
    until(path.is_file, "the download")
    rows = [row for _, row in read_labels(path).values()]
    assert sorted(row["counts_for"] for row in rows) == ["applicability"] * 10 + ["both"] * 2
    assert [row["adherence"] == "adhered" for row in rows] == [row["counts_for"] == "both" for row in rows]


def test_hostile_text_stays_text_and_nothing_is_requested(page: Path, opened: Callable[[Path], Any]) -> None:
    driver = opened(page)
    seen = ""
    for _ in range(12):
        press(driver, "y", "v", "r")
        seen += text(driver, "code") + text(driver, "judge")
        press(driver, "\ue014")
    assert "<img src=x onerror" in seen
    assert "</script><script>document.title" in seen
    assert "U+202E" in seen
    assert "\u202e" not in seen
    assert "<b>told</b> so" in seen
    assert driver.title == "Label 12 decisions"
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    assert [url for url in requested(driver) if not url.startswith(("chrome", "data:"))] == [page.as_uri()]


def test_the_diff_shows_both_codes(page: Path, opened: Callable[[Path], Any]) -> None:
    driver = opened(page)
    for _ in range(12):
        press(driver, "y")
        if "Twice x." in text(driver, "code") and "# twice" in text(driver, "code"):
            break
        press(driver, "\ue014")
    gone = [cell.text for cell in driver.find_elements("css selector", "td.code.gone")]
    come = [cell.text for cell in driver.find_elements("css selector", "td.code.come")]
    assert [line.strip() for line in gone if line.strip()] == [line.strip() for line in CODE.splitlines()[1:]]
    assert [line.strip() for line in come if line.strip()] == [line.strip() for line in CHANGED.splitlines()[1:]]


def test_a_page_on_a_narrow_screen_does_not_overflow(page: Path, opened: Callable[[Path], Any]) -> None:
    driver = opened(page)
    driver.set_window_size(500, 900)
    press(driver, "y")
    assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_constraints_are_labelled_with_the_task_in_sight(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    rows = [
        CONSTRAINTS.row(
            {"prompt": f"Task {turn} {HOSTILE}", "code": HOSTILE}, dataset="d", task_id="t/0", turn=turn, place=0,
            category="coding_style", type="naming", constraint="Names in snake_case.", judge_met="no", judge="rule",
            judge_reason="line 1: fooBar", cell_id="c",
        )
        for turn in (1, 2)
    ]  # fmt: skip
    page = tmp_path / "label.html"
    page.write_text(labelling_page(rows), encoding="utf-8")
    driver = opened(page)
    assert "constraint?" in text(driver, "ask-first")
    assert text(driver, "instruction") == "Names in snake_case."
    assert "Task 1" in text(driver, "read") and "</script>" in text(driver, "read")
    assert driver.title.startswith("Label"), "a prompt is no markup"
    press(driver, "r", "y")
    assert not shown(driver, "second")
    assert text(driver, "progress") == "1 of 2 labelled"
    press(driver, "r")
    judge = text(driver, "judge")
    assert "no (by rule)" in judge and "line 1: fooBar" in judge
    press(driver, "e")
    path = tmp_path / "downloads" / "labels-anonymous.csv"
    until(path.is_file, "the download")
    assert [row["met"] for _, row in read_labels(path).values()] == ["yes", ""]


def test_conditions_are_labelled_with_issue_and_thread_in_sight(tmp_path: Path, opened: Callable[[Path], Any]) -> None:
    """Long texts and long words scroll in panes of their own, from their beginning at every decision."""
    rows = [
        CONDITIONS.row(
            {"question": "x" * 9_000, "thread": thread, "answer": "Use it."}, dataset="cab", task_id="own/tool#4",
            turn=1, place=place, language="c", condition="It is told why. " * 99, judge_satisfied="no", judge="gpt-5",
            judge_reason="It is not. " * 99, cell_id="c",
        )
        for place, thread in enumerate((f"ann:\n{HOSTILE}" + "A line.\n" * 999, ""))
    ]  # fmt: skip
    page = tmp_path / "label.html"
    page.write_text(labelling_page(rows), encoding="utf-8")
    driver = opened(page)
    panes = "return [...document.querySelectorAll('#read details')].map(%s)"
    issue, thread = driver.execute_script(panes % "pane => pane.firstChild.textContent")
    assert "issue" in issue and "thread" in thread
    for width in (1440, 500):
        driver.set_window_size(width, 900)
        assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert max(driver.execute_script(panes % "pane => pane.offsetHeight")) < 450
    driver.execute_script("document.querySelector('#read details:last-child pre').scrollTop = 500")
    press(driver, "y", "r")
    judge = text(driver, "judge")
    assert "no (by gpt-5)" in judge and "It is not." in judge
    assert driver.execute_script(panes % "pane => pane.lastChild.scrollTop") == [0, 500], "a label moves nothing"
    press(driver, "\ue014")
    assert text(driver, "read").endswith("(nothing)")
    press(driver, "\ue012")
    assert driver.execute_script(panes % "pane => pane.lastChild.scrollTop") == [0, 0]
    assert driver.title.startswith("Label"), "a thread is no markup"
