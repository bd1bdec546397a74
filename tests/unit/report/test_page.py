"""The report page as bytes: what it holds, that it comes back whole, and that no text in it can become markup."""

import base64
import hashlib
import json
import random
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.domain import Message
from codechat.base.records import SessionRecord, TurnRecord
from codechat.report import page
from codechat.report.build import comparisons_of, sections_of
from codechat.report.comparison import LoadedCell
from codechat.report.page import SCRIPTS, STYLES, Index, as_json, body_of, pack_sessions, packed, shortened
from support.pages import cell_of, made_cell, made_report, made_session

HOSTILE = "</script><script>alert(1)</script><!--<script> &lt;b&gt; &#60;i> \u2028\\ud800 {{style}} 𝒳 ]]> \x00"


class Parts(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.texts: dict[int, str] = {}
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append(dict(attrs))
        self.inside = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[len(self.tags) - 1] = self.texts.get(len(self.tags) - 1, "") + data

    def of(self, tag: str, **wanted: str) -> list[str]:
        """The texts of the elements with a tag and attributes."""
        return [
            self.texts.get(number, "")
            for number, name in enumerate(self.tags)
            if name == tag and all(self.attributes[number].get(key) == value for key, value in wanted.items())
        ]

    def unpacked(self, name: str) -> Any:
        (text,) = self.of("script", id=f"packed-{name}")
        return json.loads(zlib.decompress(base64.b64decode(text)))

    def bodies(self) -> list[dict[str, Any]]:
        starts = self.unpacked("index")["starts"]
        return [body for number in range(len(starts)) for body in self.unpacked(f"chunk-{number}")]


def written(cells: list[Any], folder: Path) -> Parts:
    return Parts(page.write_page(made_report(cells, folder / "figures"), folder).read_text(encoding="utf-8"))


def hostile_session() -> SessionRecord:
    """Texts that would break out of a page, in every field that a model, a task or a judge can fill."""
    session = made_session(f"t/{HOSTILE}", HOSTILE, turns=3, breaks=0.5, lines=5, luck=random.Random(1))
    for turn in session.turns:
        turn.response = f"{HOSTILE}\n```python\n{HOSTILE}\n```"
        turn.code = HOSTILE
        turn.skipped = False
        turn.request = [
            Message(role="user", content=HOSTILE),
            Message(role="assistant", content="\ud800 alone"),
        ]
        if turn.instruction and turn.adherence:
            turn.instruction.text = turn.instruction.id = turn.adherence.reason = turn.candidates[0].id = HOSTILE
    return session.model_copy(update={"error": HOSTILE})


def text_of(stored: Any, turns: list[dict[str, Any]]) -> str | None:
    """A stored text, read as a script does: offsets count UTF-16 units."""
    if not isinstance(stored, list):
        return stored
    units = turns[stored[0]]["reply"].encode("utf-16-le", "surrogatepass")
    return units[2 * stored[1] : 2 * stored[2]].decode("utf-16-le", "surrogatepass")


def requests_of(turns: list[dict[str, Any]]) -> list[list[tuple[str, str | None]]]:
    before: list[tuple[str, str | None]] = []
    found = []
    for turn in turns:
        if "request" in turn:
            new = [(role, text_of(content, turns)) for role, content in turn["request"]]
            before = before[: turn["keep"]] + new
        found.append(before if "request" in turn else [])
    return found


def assert_whole(session: SessionRecord, body: dict[str, Any], instructions: list[list[str]]) -> None:
    """Everything that a reader is to see of a session can be had from its body."""
    turns = body["turns"]
    requests = requests_of(turns)
    for number, (turn, stored) in enumerate(zip(session.turns, turns, strict=True)):
        assert stored.get("reply") == turn.response
        assert text_of(stored.get("code"), turns) == turn.code
        assert requests[number] == [(message.role, message.content) for message in turn.request]
        asked = turn.instruction
        if asked is not None:
            assert instructions[stored["instruction"]] == [asked.id, asked.text, asked.scope, asked.change]
        if turn.failure is not None:
            assert stored["failure"] == turn.failure.given_fields()
        if turn.adherence is not None:
            assert stored["adherence"] == [turn.adherence.verdict, turn.adherence.by, turn.adherence.reason]
        assert [tuple(each) for each in stored.get("candidates", [])] == [
            (each.id, each.applicable, each.by) for each in turn.candidates
        ]


def test_every_session_comes_back_whole(tmp_path: Path) -> None:
    cells = [made_cell(name, tasks=40, breaks=risk) for name, risk in (("a", 0.05), ("b", 0.3))]
    parts = written(cells, tmp_path)
    index = parts.unpacked("index")
    sessions = [session for cell in cells for session in cell.records]
    assert len(index["starts"]) > 1, "too little to fill several chunks"
    for session, body in zip(sessions, parts.bodies(), strict=True):
        assert_whole(session, body, index["instructions"])
    assert index["key"] == [session.session_id for session in sessions]
    assert [index["tasks"][task] for task in index["task"]] == [session.task_id for session in sessions]
    assert index["cell"] == [0] * 40 + [1] * 40


TEXTS = st.text(st.sampled_from("ab\n`𝒳é\ud800<"), max_size=12)


@settings(max_examples=150)
@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4))
def test_any_text_comes_back_whole(texts: list[tuple[str, str, str]]) -> None:
    turns = []
    history: list[Message] = []
    for number, (before, code, asked) in enumerate(texts):
        history = [*history, Message(role="user", content=asked)]
        record = TurnRecord(turn=number, outcome="fail", passed=False, passed_base=False, request=history)
        record.response, record.code = before + code + asked, code
        turns.append(record)
        history = [*history, Message(role="assistant", content=before + code)]
    session = made_session("t/1", "m", turns=2, breaks=0.5, lines=5, luck=random.Random(1))
    session = session.model_copy(update={"turns": turns})
    assert_whole(session, json.loads(as_json(body_of(session, {}, None))), [])


def test_a_repeated_text_is_stored_once() -> None:
    session = made_session("t/1", "m", turns=10, breaks=0.1, lines=30, luck=random.Random(4))
    index = Index()
    index.add(0, session)
    stored = len(as_json(body_of(session, index.instructions, None)))
    said = sum(len(turn.response or "") for turn in session.turns)
    assert stored < 1.6 * said < len(session.line()) / 3


def test_another_language_is_named_and_python_is_not() -> None:
    session = made_session("t/1", "m", turns=1, breaks=0.1, lines=5, luck=random.Random(1))
    assert "language" not in body_of(session, {}, None)
    assert "language" not in body_of(session.model_copy(update={"language": "python"}), {}, None)
    assert body_of(session.model_copy(update={"language": "java"}), {}, None)["language"] == "java"


def test_paper_scale_fits() -> None:
    """8 models x 542 tasks in 60 MB leave 13.8 kB for a session."""
    sessions = [made_session(f"t/{n}", "m", turns=10, breaks=0.1, lines=40, luck=random.Random(n)) for n in range(40)]
    found = pack_sessions([sessions], None, 1 << 40)
    assert found is not None
    assert sum(map(len, found.chunks)) / len(sessions) < 13_800 / 2


def test_no_text_becomes_markup(tmp_path: Path) -> None:
    cell = cell_of((hostile_session(),), 3, variant=HOSTILE)
    report = made_report([cell], tmp_path / "figures")
    table = replace(report.tables[0], title=HOSTILE, note=HOSTILE, rows=((HOSTILE, 1.0, None),))
    report = replace(report, tables=(table,), notes=(HOSTILE,), groups={"data": HOSTILE})
    text = page.write_page(report, tmp_path).read_text(encoding="utf-8")
    plain = written([made_cell("m", tasks=1, turns=3)], tmp_path / "plain")
    parts = Parts(text)
    assert parts.tags == plain.tags, "the same elements as a page of harmless texts"
    assert "alert(1)</script" not in text
    (overview,) = parts.of("script", id="overview")
    assert "<" not in overview
    assert json.loads(overview)["cells"][0]["model"] == HOSTILE
    (body,) = parts.bodies()
    assert body["error"] == HOSTILE
    assert body["turns"][0]["reply"] == f"{HOSTILE}\n```python\n{HOSTILE}\n```"
    assert body["turns"][0]["request"][1] == ["assistant", "\ud800 alone"]


def test_the_policy_allows_this_pages_own_style_and_script_and_nothing_else(tmp_path: Path) -> None:
    parts = written([made_cell("m", tasks=2, turns=3)], tmp_path)
    (policy,) = [each["content"] for each in parts.attributes if each.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    allowed = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert allowed["default-src"] == "'none'"
    assert allowed["img-src"] == "data:"
    scripts = [
        text
        for number, text in parts.texts.items()
        if "type" not in parts.attributes[number] and parts.tags[number] == "script"
    ]
    assert allowed["script-src"] == f"'{hashed(*scripts)}'"
    assert allowed["style-src"] == f"'{hashed(*parts.of('style'))}'"
    assert "unsafe" not in policy
    assert allowed["require-trusted-types-for"] == "'script'"


def hashed(*texts: str) -> str:
    (text,) = texts
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.parametrize("name", [*SCRIPTS, *STYLES, "page.html"])
def test_the_template_stands_alone(name: str) -> None:
    text = files("codechat.report.page").joinpath(name).read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\"' )]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "@import",
        "url(",
        "style=",
        "onclick=",
    ):
        assert word not in text, word
    if name.endswith(".js"):
        assert "</script" not in text.lower()
        assert "<!--" not in text
    assert "\r" not in text


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    cells = [made_cell("a", tasks=6), made_cell("b", tasks=6)]
    report = made_report(cells, tmp_path / "figures")
    first = page.write_page(report, tmp_path / "one").read_bytes()
    assert page.write_page(report, tmp_path / "two").read_bytes() == first


def test_too_much_text_is_shortened_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = made_cell("m", tasks=12)
    noise = random.Random(3)
    for session in cell.records:
        for turn in session.turns:
            turn.response = turn.response and turn.response + noise.randbytes(20_000).hex()
    monkeypatch.setattr(page, "MOST_BYTES", 900_000)
    parts = written([cell], tmp_path)
    limit = json.loads(parts.of("script", id="overview")[0])["limit"]
    assert limit == 6_000
    replies = [turn["reply"] for body in parts.bodies() for turn in body["turns"] if "reply" in turn]
    assert all(len(reply) < limit + 120 and re.search(r"\d,\d{3} characters ", reply) for reply in replies)
    codes = [text_of(turn.get("code"), body["turns"]) for body in parts.bodies() for turn in body["turns"]]
    assert codes == [turn.code for session in cell.records for turn in session.turns], "differences need whole codes"
    assert (tmp_path / "index.html").stat().st_size < 1_200_000


def test_a_shortened_text_says_how_much_is_missing() -> None:
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("a" * 3000 + "b" * 3000, 1000).startswith("a" * 500 + "\n\n[… 5,000 characters are left out")
    assert shortened("a" * 3000 + "b" * 3000, 1000).endswith("b" * 500)


def test_the_index_tells_outcomes_judgements_and_states() -> None:
    turn: dict[str, Any] = {"outcome": "pass", "passed": True, "passed_base": True}
    lost: dict[str, Any] = {"outcome": "no_code", "passed": False, "passed_base": False}
    asked = {"id": "i", "text": "do", "scope": "semantic", "change": "add"}
    judged = {"verdict": "violated", "by": "rules", "reason": ""}
    session = made_session("t/1", "m", turns=2, breaks=0.1, lines=5, luck=random.Random(1)).model_copy(
        update={
            "ended": "context_overflow",
            "turns": [
                TurnRecord.model_validate({**turn, "turn": 0, "response": "x"}),
                TurnRecord.model_validate({**turn, "turn": 1, "skipped": True}),
                TurnRecord.model_validate(
                    {**turn, "turn": 2, "response": "x", "instruction": asked, "adherence": judged}
                ),
                TurnRecord.model_validate({**lost, "turn": 3}),
            ],
        }
    )
    index = Index()
    index.add(0, session)
    index.add(1, session.model_copy(update={"status": "errored", "ended": None, "turns": session.turns[:1]}))
    columns = index.columns([0])
    assert columns["outcomes"] == ["pppn", "p"]
    assert columns["judged"] == ["-svo", "-"]
    assert columns["asked"] == [[-1, -1, 0, -1], [-1]]
    assert columns["state"] == [2, 1]
    assert "verdicts" not in columns, "nobody judges a whole dialogue"
    for said in ("PARTIALLY_CORRECT", None):
        index.add(2, session.model_copy(update={"judgement": {"verdict": said}}))
    assert index.columns([0])["verdicts"] == ["", "", "partially correct", "undecided"]
    assert columns["key"] == [session.session_id, f"{session.session_id}-1"], "an address names one session"


def test_survival_counts_unbroken_prefixes_of_completed_sessions() -> None:
    cell = made_cell("m", tasks=30, breaks=0.2)
    (chart,) = survival_charts(cell)
    expected = [sum(all(t.passed for t in s.turns[: n + 1]) for s in cell.records) / 30 for n in range(10)]
    assert chart.lines[0].values == expected
    assert sum(expected) == pytest.approx(cell.metrics["mst"])
    errored = tuple(session.model_copy(update={"status": "errored"}) for session in cell.records)
    metrics = {**cell.metrics, "completed": 0}
    assert survival_charts(replace(cell, records=errored, metrics=metrics)) == []


def survival_charts(cell: LoadedCell) -> Any:
    (section,) = [each for each in sections_of(comparisons_of([cell])) if each.key == "survival"]
    return section.parts[1]


def test_packing_is_plain_zlib_in_base_64() -> None:
    assert zlib.decompress(base64.b64decode(packed('["<"]'))) == b'["<"]'
