"""The report page driven in a real browser: read, filtered, opened, by mouse and by keyboard, light, dark and narrow."""

import random
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from codechat.base.domain import AgentStep, StepKind, Trajectory
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.page import write_page
from support.pages import cell_of, chromium, made_cell, made_report, made_session, requested, until

pytestmark = pytest.mark.browser

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)> &lt;i&gt; \\ud800"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of three cells, one of them a dialogue full of markup."""
    folder = tmp_path_factory.mktemp("page")
    cells = [
        made_cell("strong", tasks=30, breaks=0.04),
        made_cell("weak", tasks=30, breaks=0.3),
        cell_of((hostile(),), 4),
    ]
    return write_page(made_report(cells, folder / "figures"), folder).as_uri()


def hostile() -> SessionRecord:
    """A dialogue whose every text is markup."""
    session = made_session(f"t/{HOSTILE}", HOSTILE, turns=4, breaks=0.9, lines=5, luck=random.Random(2))
    for turn in session.turns:
        turn.response, turn.code, turn.skipped = f"{HOSTILE} said", f"{HOSTILE}\n# {turn.turn}", False
        steps = tuple(AgentStep(kind, f"{HOSTILE}\n{HOSTILE}", HOSTILE, 1) for kind in get_args(StepKind))
        turn.trajectory = Trajectory(None, steps, elsewhere=1, diff=f"+{HOSTILE}\n-{HOSTILE}\n", ended="time")
        made = turn.model_dump(mode="json")
        if turn.failure:
            made["failure"] |= {"input": HOSTILE, "exception": HOSTILE}
        if turn.instruction and turn.adherence:
            made |= {"asked": [], "instruction": made["instruction"] | {"text": HOSTILE, "id": HOSTILE}}
            made["adherence"]["reason"] = made["candidates"][0]["id"] = HOSTILE
        session.turns[turn.turn] = TurnRecord.model_validate(made)
    return session.model_copy(update={"session_id": "hostile"})


@pytest.fixture
def page(driver: Any, address: str) -> Iterator[Any]:
    """The page, freshly loaded. Whatever a test does, no error reaches the console and nothing leaves the machine."""
    requested(driver)  # what the browser opened for itself
    show(driver, address)
    yield driver
    assert [entry["message"] for entry in driver.get_log("browser")] == []
    assert [url for url in requested(driver) if not url.startswith(("file:", "data:", "about:", "blob:"))] == []
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def show(driver: Any, address: str) -> None:
    driver.get("about:blank")
    driver.get(address)
    until(lambda: script(driver, "return document.documentElement.dataset.ready"), "the sessions can be searched")


def script(driver: Any, text: str, *values: Any) -> Any:
    return driver.execute_script(text, *values)


def texts(driver: Any, selector: str) -> list[str]:
    return script(
        driver, "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent)", selector
    )


def one(driver: Any, selector: str) -> Any:
    return until(lambda: driver.find_elements("css selector", selector), selector)[0]


def press(driver: Any, *keys: str) -> None:
    """Keys sent to whatever has the focus."""
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(driver).send_keys(key).perform()


def choose(driver: Any, name: str, value: str) -> None:
    from selenium.webdriver.support.ui import Select

    Select(one(driver, f"#filters [name={name}]")).select_by_value(value)


def counted(driver: Any) -> int:
    return int(texts(driver, "#count")[0].split()[0].replace(",", ""))


def open_first(driver: Any) -> None:
    script(driver, "document.getElementById('row-0').click()")
    until(lambda: script(driver, "return !document.getElementById('dialogue').hidden"), "a dialogue is open")


def wide(driver: Any) -> int:
    """The width of the page, in pixels; `innerWidth` would grow with it on a phone."""
    return int(script(driver, "return document.documentElement.scrollWidth"))


def test_the_story_from_the_top(page: Any) -> None:
    assert texts(page, "h1")[0].startswith("strong ")
    assert len(texts(page, "#leaderboard tbody tr")) == 3
    assert len(texts(page, "#curves svg")) == 3
    assert len(texts(page, "#survival .series")) == 3
    until(lambda: texts(page, "#results h3") == ["Results"], "the chapters")
    assert texts(page, "#notes li") == ["A note on the report."]
    until(lambda: script(page, "return document.querySelector('.paper img').naturalWidth") == 320, "the figure")


def test_the_leaderboard_sorts(page: Any) -> None:
    def models() -> list[str]:
        return [text for text in texts(page, "#leaderboard tbody th a") if text in ("strong", "weak")]

    assert models() == ["strong", "weak"]
    head = next(
        each for each in page.find_elements("css selector", "#leaderboard thead button") if each.text.startswith("MST")
    )
    head.click()
    assert models() == ["weak", "strong"]
    assert head.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"


def test_a_table_opens(page: Any) -> None:
    one(page, "#part-mst summary").click()
    until(lambda: texts(page, "#part-mst tbody tr"), "the rows")
    assert texts(page, "#part-mst tbody strong") == ["8.20"]
    assert "[7.90, 8.50]" in texts(page, "#part-mst tbody td")


def test_filters_agree_with_the_records(page: Any) -> None:
    records = [made_cell(name, tasks=30, breaks=risk).records for name, risk in (("strong", 0.04), ("weak", 0.3))]
    first = [next((t.turn for t in s.turns if not t.passed), -1) for cell in records for s in cell]
    hostile_first = next((t.turn for t in hostile().turns if not t.passed), -1)
    assert counted(page) == 61
    for turn in (-1, 0, 2):
        choose(page, "broken", str(turn))
        assert counted(page) == [*first, hostile_first].count(turn), turn
    one(page, "#filters [type=reset]").click()
    until(lambda: counted(page) == 61, "all sessions again")
    choose(page, "model", "weak")
    assert counted(page) == 30
    choose(page, "scope", "semantic")
    choose(page, "event", "s")
    assert counted(page) == 0, "a skipped turn has no scope: filters hold for one turn"
    assert "No session matches" in texts(page, "#rows")[0]
    choose(page, "scope", "")
    assert counted(page) == sum(any(t.skipped for t in s.turns) for s in records[1])
    choose(page, "event", "")
    choose(page, "outcome", "t")
    assert counted(page) == sum(any(t.outcome == "timeout" for t in s.turns) for s in records[1])


def test_events_agree_with_the_records(page: Any) -> None:
    steps = [
        [(before.passed, turn.passed) for before, turn in pairwise(session.turns) if not turn.skipped]
        for session in made_cell("weak", tasks=30, breaks=0.3).records
    ]
    choose(page, "model", "weak")
    choose(page, "event", "broke")
    assert counted(page) == sum((True, False) in found for found in steps)
    choose(page, "event", "mended")
    assert counted(page) == sum((False, True) in found for found in steps)
    choose(page, "broken", "0")
    assert counted(page) == sum((False, True) in found and not found[0][0] for found in steps)


def test_search_finds_tasks_and_instructions(page: Any) -> None:
    box = one(page, "#filters [name=q]")
    box.send_keys("humaneval/7 weak")
    until(lambda: counted(page) == 1, "one session")
    box.clear()
    cells = [made_cell(name, tasks=30, breaks=risk) for name, risk in (("strong", 0.04), ("weak", 0.3))]
    asked = [{turn.instruction.id for turn in s.turns if turn.instruction} for cell in cells for s in cell.records]
    rare = min(sorted(set().union(*asked)), key=lambda each: sum(each in ids for ids in asked))
    box.send_keys(rare)
    until(lambda: counted(page) < 61, "the search")
    assert counted(page) == sum(any(each.startswith(rare) for each in ids) for ids in asked)


def test_a_session_opens_with_its_differences(page: Any) -> None:
    choose(page, "model", "weak")
    choose(page, "event", "broke")
    open_first(page)
    task = texts(page, "#dialogue h1")[0]
    record = next(s for s in made_cell("weak", tasks=30, breaks=0.3).records if s.task_id == task)
    turn = next(t for b, t in pairwise(record.turns) if b.passed and not t.passed)
    card = f"#turn-{turn.turn}"
    assert turn.instruction is not None
    assert texts(page, f"{card} blockquote p") == [turn.instruction.text]
    assert "broke here" in texts(page, f"{card} .chip")
    changed = "".join(texts(page, f"{card} .come .text"))
    assert changed
    assert set(texts(page, f"{card} .come .text")) <= set((turn.code or "").split("\n"))
    assert turn.failure is not None
    assert texts(page, f"{card} .failure dd") == [turn.failure.input, turn.failure.expected, turn.failure.actual]
    assert turn.adherence is not None
    assert turn.adherence.reason in texts(page, f"{card} .judge")[0]
    assert len(texts(page, f"{card} .candidates li")) == 2
    script(page, f"document.querySelectorAll('{card} .tabs button')[2].click()")
    assert texts(page, f"{card} .reply") == [turn.response]
    script(page, f"document.querySelectorAll('{card} .tabs button')[3].click()")
    assert texts(page, f"{card} .message pre") == [message.content for message in turn.request]


def test_two_dialogues_of_a_task_stand_side_by_side(page: Any, address: str) -> None:
    show(page, f"{address}#session=weak.humaneval.4&beside=strong.humaneval.4")
    until(lambda: bool(texts(page, ".beside")), "the two dialogues")
    pair = [
        next(s for s in made_cell(name, tasks=30, breaks=breaks).records if s.task_id == "humaneval/4")
        for name, breaks in (("strong", 0.04), ("weak", 0.3))
    ]
    for turn, (left, right) in enumerate(zip(*(session.turns for session in pair), strict=True)):
        card = f"#turn-{turn}"
        assert [text.replace(" ", "_") for text in texts(page, f"{card} .beside .chip")] == [
            left.outcome,
            right.outcome,
        ]
        assert ("verdicts differ" in texts(page, f"{card} .differs")) == (left.passed != right.passed)
        assert ("other code" in texts(page, f"{card} .differs")) == (left.code != right.code)
        sides = [texts(page, f"{card} .code:nth-of-type({place}) .row .text") for place in (3, 4)]
        assert sides == [(left.code or "").split("\n"), (right.code or "").split("\n")]
        heights = script(
            page, f"return [...document.querySelectorAll('{card} .sheet')].map((node) => node.children.length)"
        )
        assert heights[0] == heights[1], "lines stand beside each other"
    assert script(page, "return document.querySelector('[name=beside]').value") == "strong.humaneval.4"
    script(
        page, "const c = document.querySelector('[name=beside]'); c.value = ''; c.dispatchEvent(new Event('change'))"
    )
    until(lambda: not texts(page, ".beside"), "one dialogue alone")


@pytest.mark.parametrize("width", [420, 1400])
def test_what_differs_between_two_dialogues_is_marked(driver: Any, tmp_path: Path, width: int) -> None:
    """A changed line far down in long equal texts: of code at turn 0, of a reply without code at turn 1."""
    sessions = []
    for model, word in (("one", "left"), ("two", "right")):
        session = made_session("t/1", model, turns=2, breaks=0.0, lines=4, luck=random.Random(3))
        lines = [f"line_{number} = {number}" for number in range(60)]
        lines[50] = f"line_50 = {word}"
        for turn, code in zip(session.turns, ("\n".join(lines), None), strict=True):
            turn.skipped, turn.code, turn.response = False, code, "\n".join(lines)
        sessions.append(session)
    cells = [cell_of((session,), 2) for session in sessions]
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    address = write_page(made_report(cells, tmp_path / "figures"), tmp_path).as_uri()
    show(driver, f"{address}#session={sessions[0].session_id}&beside={sessions[1].session_id}")
    until(lambda: bool(texts(driver, ".beside")), "both dialogues")
    for turn, name in ((0, "other code"), (1, "other reply")):
        assert name in texts(driver, f"#turn-{turn} .differs")
        assert texts(driver, f"#turn-{turn} .gone .text") == ["line_50 = right"]
        assert texts(driver, f"#turn-{turn} .come .text") == ["line_50 = left"]
        assert len(texts(driver, f"#turn-{turn} .row .text")) < 20, "equal lines are folded away"
        script(driver, f"document.querySelector('#turn-{turn} .fold').click()")
        folded = script(driver, f"return document.querySelectorAll('#turn-{turn} .fold').length")
        assert folded in (1, 2), "both columns open together"
        assert len(texts(driver, f"#turn-{turn} .row .text")) > 50
    assert any(text.startswith("They differ at turns 0, 1 ") for text in texts(driver, "#dialogue > .quiet"))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_official_verdicts_stand_beside_ours(driver: Any, tmp_path: Path) -> None:
    session = made_session("t/1", "model", turns=2, breaks=0.0, lines=4, luck=random.Random(3))
    for turn, passed in zip(session.turns, (True, False), strict=True):
        turn.__pydantic_extra__ = {
            "official": {"passed": passed, "outcome": None, "reason": None if passed else "said so"}
        }
    address = write_page(made_report([cell_of((session,), 2)], tmp_path / "figures"), tmp_path).as_uri()
    show(driver, f"{address}#session={session.session_id}&beside=official")
    until(lambda: bool(texts(driver, ".beside")), "both verdicts")
    assert [texts(driver, f"#turn-{turn} .beside .chip") for turn in (0, 1)] == [["pass", "pass"], ["fail", "pass"]]
    assert [texts(driver, f"#turn-{turn} .differs") for turn in (0, 1)] == [[], ["verdicts differ"]]
    assert "said so" in texts(driver, "#turn-1 .beside p")


def test_folded_lines_unfold(page: Any) -> None:
    open_first(page)
    script(page, "document.querySelector('.fold').closest('.turn').id = 'here'")
    script(page, "document.querySelectorAll('#here .fold').forEach((fold) => fold.click())")
    rows = texts(page, "#here .row:not(.gone) .text")
    script(page, "document.querySelectorAll('#here .tabs button')[1].click()")
    assert rows == texts(page, "#here .row .text"), "the new side of a difference is the code"


def test_a_link_leads_to_a_turn(page: Any, address: str) -> None:
    show(page, f"{address}#session=weak.humaneval.4&turn=3")
    until(lambda: script(page, "return document.activeElement.id") == "turn-3", "the turn has the focus")
    assert texts(page, "#dialogue h1") == ["humaneval/4"]
    show(page, f"{address}#model=weak&broken=-1&list")
    alive = sum(all(t.passed for t in s.turns) for s in made_cell("weak", tasks=30, breaks=0.3).records)
    assert counted(page) == alive
    show(page, f"{address}#session=nobody")
    (count,) = texts(page, "#count")
    assert "no session nobody" in count


def test_by_keyboard_alone(page: Any) -> None:
    press(page, "/")
    assert script(page, "return document.activeElement.name") == "q"
    press(page, "weak")
    until(lambda: counted(page) == 30, "the search")
    press(page, "\ue00c", "j", "j", "k")  # Escape leaves the field
    assert script(page, "return document.activeElement.id") == "list"
    assert script(page, "return document.querySelector('[aria-selected=true]').id") == "row-1"
    press(page, "\ue007")  # Enter
    until(lambda: texts(page, "#dialogue h1") == ["humaneval/1"], "the session")
    press(page, "j", "j", "k", "j")
    assert script(page, "return document.activeElement.id") == "turn-1"
    assert script(page, "return getComputedStyle(document.activeElement).boxShadow") != "none", "the focus is seen"
    press(page, "\ue014")  # right
    until(lambda: texts(page, "#dialogue h1") == ["humaneval/2"], "the next session")
    press(page, "\ue00c")
    until(lambda: script(page, "return document.activeElement.id") == "list", "back to the list")
    assert script(page, "return document.querySelector('[aria-selected=true]').id") == "row-2"
    assert counted(page) == 30, "the filters are kept"
    press(page, "?")
    assert script(page, "return document.getElementById('keys').open")


def test_back_returns_to_the_list(page: Any) -> None:
    choose(page, "model", "weak")
    open_first(page)
    page.back()
    until(lambda: script(page, "return document.getElementById('dialogue').hidden"), "the report")
    assert counted(page) == 30


def test_hostile_texts_stay_texts(page: Any, address: str) -> None:
    from selenium.common.exceptions import WebDriverException

    show(page, f"{address}#session=hostile")
    until(lambda: texts(page, "#dialogue h1") == [f"t/{HOSTILE}"], "the dialogue")
    script(
        page,
        "document.querySelectorAll('.turn').forEach((turn) => turn.querySelectorAll('.tabs button').forEach((tab) => tab.click()))",
    )
    script(page, "document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert script(page, "return document.querySelectorAll('img[src=x]').length") == 0
    one(page, "#turn-1 .tabs button:nth-child(3)").click()
    assert texts(page, "#turn-1 .steps .value") == [f"{HOSTILE}\n{HOSTILE}", HOSTILE] * 3
    assert "limit: time" in texts(page, "#turn-1 .chip")
    assert texts(page, "#turn-1 .agent .row .text") == [f"+{HOSTILE}", f"-{HOSTILE}"]
    script(page, "document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert script(page, "return document.querySelectorAll('img[src=x]').length") == 0
    assert texts(page, "#turn-1 blockquote p") == [HOSTILE]
    assert page.title.startswith("strong keeps")
    with pytest.raises(WebDriverException, match="TrustedHTML"):
        script(page, "document.body.innerHTML = arguments[0]", HOSTILE)
    assert ["TrustedHTML" in entry["message"] for entry in page.get_log("browser")] == [True]


@pytest.mark.parametrize("width", [375, 320])
def test_a_phone_shows_it_without_scrolling_sideways(page: Any, address: str, width: int) -> None:
    screen = {"width": width, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    show(page, address)
    script(page, "document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert wide(page) == width
    open_first(page)
    script(page, "document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert wide(page) == width
    show(page, f"{address}#session=hostile")
    until(lambda: texts(page, ".turn"), "the dialogue")
    assert wide(page) == width


def test_dark_and_light(page: Any) -> None:
    def ground() -> int:
        """The first channel of the page's background."""
        colour = script(page, "return getComputedStyle(document.body).backgroundColor")
        return int(colour.partition("(")[2].split(",")[0])

    assert ground() > 200
    one(page, "#theme").click()
    assert ground() < 60
    assert one(page, "#theme").get_attribute("aria-pressed") == "true"
    one(page, "#theme").click()
    assert ground() > 200
    page.refresh()
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    assert ground() < 60


def test_five_thousand_sessions(driver: Any, tmp_path: Path) -> None:
    few = made_cell("m", tasks=100, breaks=0.1)
    many = tuple(
        few.records[number % 100].model_copy(update={"session_id": f"s{number}", "task_id": f"t/{number}"})
        for number in range(5000)
    )
    counts = {"sessions": len(many), "completed": len(many)}
    cell = replace(few, records=many, metrics={**few.metrics, **counts})
    address = write_page(made_report([cell], tmp_path / "figures"), tmp_path).as_uri()
    started = time.monotonic()
    show(driver, address)
    ready = time.monotonic() - started
    assert ready < 8, "seconds until the sessions can be searched"
    assert counted(driver) == 5000
    assert len(texts(driver, ".session")) < 60, "only what is seen is drawn"
    search = (
        "const box = document.querySelector('[name=q]'); const start = performance.now(); box.value = arguments[0];"
    )
    search += "box.dispatchEvent(new Event('input', { bubbles: true })); return performance.now() - start;"
    assert script(driver, search, "cosmetic-add") < 1000, "milliseconds"
    assert 0 < counted(driver) < 5000
    script(driver, search, "")
    script(driver, "document.getElementById('list').scrollTop = 1e9")
    until(lambda: "t/4999" in texts(driver, ".session .task"), "the last session")
    script(driver, "document.querySelector('#rows > :last-child').click()")
    until(lambda: texts(driver, "#dialogue h1") == ["t/4999"], "the last session opened")
    assert [entry["message"] for entry in driver.get_log("browser")] == []


def test_code_is_coloured_if_it_is_python_and_a_turn_without_a_verdict_says_so(driver: Any, tmp_path: Path) -> None:
    python, java, mute = made_cell("m", tasks=3, breaks=0.0, turns=3).records
    java = java.model_copy(update={"language": "java"})
    for turn in mute.turns:
        turn.outcome = turn.passed = turn.passed_base = turn.failure = None
    java.turns[1].outcome = java.turns[1].passed = java.turns[1].passed_base = java.turns[1].failure = None
    judged = mute.model_copy(update={"judgement": {"verdict": "PARTIALLY_CORRECT"}, "session_id": "judged"})
    report = made_report([cell_of((python, java, mute, judged), 3)], tmp_path / "figures")
    show(driver, write_page(report, tmp_path).as_uri())
    assert texts(driver, ".session .fate")[2:] == ["not scored", "partially correct"]
    room = "const list = document.getElementById('list'); return [list.scrollHeight - list.clientHeight,"
    room += " list.clientHeight - document.getElementById('rows').offsetHeight]"
    assert script(driver, room) == [0, 0], "a short list is no higher than its sessions"
    assert "not scored" in texts(driver, "#filters option")
    choose(driver, "outcome", "-")
    assert counted(driver) == 3
    choose(driver, "outcome", "")
    choose(driver, "event", "broke")
    assert counted(driver) == 0, "no verdict breaks nothing"
    choose(driver, "event", "")
    coloured = []
    for place in range(2):
        script(driver, f"document.getElementById('row-{place}').click()")
        until(lambda place=place: texts(driver, "#dialogue h1") == [f"humaneval/{place}"], "the session")
        coloured.append(len(texts(driver, ".py-word")))
        assert texts(driver, "#turn-2 .code .text"), "the code is shown"
        if place:
            assert "not scored" in texts(driver, "#turn-1 .chip")
        press(driver, "\ue00c")
        until(lambda: script(driver, "return document.getElementById('dialogue').hidden"), "the list")
    assert coloured[0] > 0
    assert coloured[1] == 0
    assert [entry["message"] for entry in driver.get_log("browser")] == []
