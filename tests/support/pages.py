"""Cells for the report page, and a headless Chromium to look at it."""

import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import CHANGES, SCOPES
from codechat.base.records import SessionRecord
from codechat.report.build import comparisons_of, headline_of, sections_of
from codechat.report.comparison import LoadedCell
from codechat.report.data import Column, Drawing, FigureFile, Interval, ReportData, Table
from codechat.studies.refine.metrics import REFINE, refine_metrics

PATIENCE_S = 20.0  # for what takes well below a second on an idle machine
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync", "--window-size=1300,900",
)  # fmt: skip


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A Selenium driver; skips the test where the browser or its driver is not installed."""
    program, driver_program = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if program is None or driver_program is None:
        pytest.skip("needs chromium and chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver_program))
    try:
        driver.set_page_load_timeout(60)
        yield driver
    finally:
        driver.quit()


def until(condition: Callable[[], Any], what: str) -> Any:
    """The condition's first true value."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.03)
    raise AssertionError(f"waited in vain: {what}")


def requested(driver: Any) -> list[str]:
    """The addresses that pages asked for since the last call; a slow browser's own start page is none of theirs."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("chrome:", "chrome-untrusted:"))]


WORDS = [
    "value",
    "items",
    "total",
    "index",
    "result",
    "left",
    "right",
    "count",
    "table",
    "depth",
    "limit",
    "parts",
    "source",
    "target",
    "queue",
    "seen",
]
OPENINGS = ("Here is the revised function.", "I changed it as you asked.", "Sure! The behaviour stays the same.")
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="120"><rect width="320" height="120" fill="#eef"/></svg>'


@dataclass(frozen=True)
class MadeCell(LoadedCell):
    """A cell whose sessions are in memory."""

    records: tuple[SessionRecord, ...] = ()

    def sessions(self) -> Iterator[SessionRecord]:
        return iter(self.records)


def made_cell(
    model: str, *, tasks: int, turns: int = 10, dataset: str = "humaneval", breaks: float = 0.08, lines: int = 14
) -> MadeCell:
    """One cell; `breaks` is the chance that a change breaks the code, `lines` the usual length of a function."""
    luck = random.Random(f"{model}/{dataset}")
    records = tuple(
        made_session(f"{dataset}/{number}", model, turns=turns, breaks=breaks, lines=lines, luck=luck)
        for number in range(tasks)
    )
    return cell_of(records, turns)


def cell_of(records: tuple[SessionRecord, ...], turns: int = 10, **labels: Any) -> MadeCell:
    """A cell of given records, with the metrics that belong to them."""
    first = records[0]
    return MadeCell(
        folder=Path("runs") / f"{first.model}-{first.dataset}",
        cell_id=first.cell_id,
        config={},
        metrics=refine_metrics(records, seed=0),
        model=first.model,
        dataset=first.dataset,
        protocol="refine",
        agenda=labels.pop("agenda", "balanced"),
        turns=turns,
        seed=0,
        judge="hybrid",
        measures=REFINE,
        records=records,
        **labels,
    )


def made_session(task: str, model: str, *, turns: int, breaks: float, lines: int, luck: random.Random) -> SessionRecord:
    """One dialogue: codes that change a little at every turn, with a skipped turn now and then."""
    dataset, _, number = task.partition("/")
    code = _function(number, max(3, int(luck.gauss(lines, lines / 3))), luck)
    passed = luck.random() > breaks / 2
    made: list[dict[str, Any]] = []
    history: list[dict[str, str]] = []
    agenda = [luck.choice(SCOPES) for _ in range(turns - 1)]
    for turn in range(turns):
        if turn and luck.random() < 0.02:
            made.append({**_outcome(passed, luck), "turn": turn, "skipped": True, "code": code})
            continue
        instruction = _instruction(agenda[turn - 1], luck) if turn else None
        if turn:
            code = _changed(code, luck)
            risk = breaks * {"cosmetic": 0.4, "structural": 1.0, "semantic": 1.6}[agenda[turn - 1]]
            passed = luck.random() > (risk if passed else 0.9)
        asked = (
            instruction["text"]
            if instruction
            else f"Implement task {number}.\n\n" + " ".join(luck.choices(WORDS, k=80))
        )
        history = [*history, {"role": "user", "content": asked}]
        reply = f"{luck.choice(OPENINGS)} {' '.join(luck.choices(WORDS, k=30))}.\n\n```python\n{code}\n```\n"
        made.append(
            {
                **_outcome(passed, luck), "turn": turn, "instruction": instruction, "request": history, "response": reply,
                "finish_reason": "stop", "code": code, "cpu_s": 0.012, "latency_s": 1.5,
                "candidates": [
                    {"id": "rename-parameters", "applicable": False, "by": "rules"},
                    {"id": instruction["id"], "applicable": True, "by": "llm"},
                ] if instruction else [],
                "adherence": _adherence(luck) if instruction else None,
                "usage": {"input_tokens": 300 + 250 * turn, "output_tokens": 240, "cached_input_tokens": 0},
            }
        )  # fmt: skip
        history = [*history, {"role": "assistant", "content": reply}]
    return SessionRecord.model_validate(
        {
            "schema": 1, "cell_id": f"{model}-{dataset}", "session_id": f"{model}.{dataset}.{number}",
            "task_id": task, "dataset": dataset, "model": model, "protocol": "refine",
            "agenda": agenda, "seed": 0, "status": "completed", "turns": made,
        }
    )  # fmt: skip


def _function(number: str, lines: int, luck: random.Random) -> str:
    body = "\n".join(_line(luck) for _ in range(lines))
    return f'def solve_{number}(items):\n    """Do what task {number} says."""\n{body}\n    return result'


def _line(luck: random.Random) -> str:
    one, two, three = luck.choices(WORDS, k=3)
    return luck.choice(
        (
            f"    {one} = {two} + {luck.randrange(100)}  # keep {three}",
            f"    for {one} in sorted({two}):\n        {three}.append({one})",
            f"    if {one} > {luck.randrange(50)} and not {two}:\n        {three} = '{one} {two}'",
        )
    )


def _changed(code: str, luck: random.Random) -> str:
    lines = code.split("\n")
    for _ in range(luck.randint(1, 4)):
        at = luck.randrange(2, len(lines))
        lines[at] = lines[at].replace(luck.choice(WORDS), luck.choice(WORDS))
    lines[at:at] = _line(luck).split("\n")
    return "\n".join(lines)


def _instruction(scope: str, luck: random.Random) -> dict[str, str]:
    number, change = luck.randrange(25), luck.choice(CHANGES)
    text = f"Please {change} the {WORDS[number % len(WORDS)]} in a {scope} way, and say nothing else about it."
    return {"id": f"{scope}-{change}-{number}", "text": text, "scope": scope, "change": change}


def _outcome(passed: bool, luck: random.Random) -> dict[str, Any]:
    if passed:
        return {"outcome": "pass", "passed": True, "passed_base": True}
    kind = luck.choices(("fail", "timeout", "syntax_error", "no_code"), (90, 4, 4, 2))[0]
    failure = {"reason": "wrong result", "suite": "plus", "index": luck.randrange(400), "input": f"([{luck.randrange(99)}, 2, 3],)",
               "expected": f"{luck.randrange(99)}", "actual": "None"}  # fmt: skip
    return {"outcome": kind, "passed": False, "passed_base": luck.random() < 0.5, "failure": failure}


def _adherence(luck: random.Random) -> Mapping[str, str]:
    verdict = luck.choices(("adhered", "violated", "undecided"), (82, 16, 2))[0]
    return {"verdict": verdict, "by": "llm", "reason": "The revision was compared with what was asked."}


def made_report(cells: Sequence[LoadedCell], folder: Path) -> ReportData:
    """The cells' headline and sections, with one table and one figure in place of the real ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "alive.svg").write_text(PICTURE)
    table = Table(
        name="mst",
        title="MST@10",
        columns=(Column("model", "Model"), Column("mst", "MST", ".2f"), Column("ci", "95 % interval", ".2f")),
        rows=(("gpt5", 8.2, Interval(7.9, 8.5)), ("llama", 4.0, Interval(3.5, 4.5)), ("none", None, None)),
        note="Bold is the best.",
        strong=frozenset({(0, 1)}),
        group="data",
    )
    drawing = Drawing("alive", "Survival", "Share of sessions alive.", "data", lambda *_: None)
    figure = FigureFile(drawing, folder / "alive.png", folder / "alive.svg")
    studies = comparisons_of(cells)
    return ReportData(
        cells, (table,), (figure,), {"data": "Results"}, headline_of(studies, ()), sections_of(studies),
        notes=("A note on the report.",),
    )  # fmt: skip
