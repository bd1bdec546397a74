"""Issues that no model need read: personal data and duplicates; and conditions labelled before a cell ran."""

import asyncio
import json
from pathlib import Path

import pytest

from codechat.cli.app import main
from codechat.run.construct import Dropped, Item
from codechat.studies.cab.construct.quality import covers, duplicates, personal_in
from support.cab import issue

PERSONAL = {
    "Mail ann@mail.example.org.": "an e-mail address",
    "The key is ghp_" + "a1" * 18: "a token or key",
    "Call +49 30 1234567 at noon": "a telephone number",
    "or (555) 123-4567.": "a telephone number",
    "whatsapp +919812345678": "a telephone number",
    "IBAN DE89 3704 0044 0532 0130 00": "a bank account",
    "GB82WEST12345698765432,": "a bank account",
    "my server 93.184.216.34:8080": "an IP address",
}
NONE = [
    "127.0.0.1:8000 and 192.168.1.20 and 0.0.0.0", "on 2024-11-01T10:00:00+0200", "version 1.2.3, v10.4.3.2-beta",
    "-10 +20 30 in a diff", "DE88 3704 0044 0532 0130 00", "AB12CDEF0123456789 is a hash", "300.1.2.3", "sizes 100-200-300",
]  # fmt: skip


@pytest.mark.parametrize("text", PERSONAL)
def test_personal_data_is_found(text: str) -> None:
    assert personal_in(f"See.\n{text}") == PERSONAL[text]


@pytest.mark.parametrize("text", NONE)
def test_what_is_nobodys_is_no_personal_data(text: str) -> None:
    assert personal_in(text) == ""


LONG = " ".join(f"word{number}" for number in range(60))


def test_exact_and_near_duplicates_are_dropped_and_others_kept() -> None:
    texts = {
        "a": ("It fails", LONG),
        "other case": ("it FAILS!", LONG.upper()),
        "a word more": ("It fails", f"{LONG} thanks"),
        "half": ("It fails", LONG[: len(LONG) // 2]),
        "short": ("Help", None),
        "short again": ("Help", ""),
        "another": ("Crash", "It crashes at the start of the second run."),
    }
    items = [Item(name, {"title": title, "body": body}) for name, (title, body) in texts.items()]
    outcomes = asyncio.run(duplicates(items, None))  # type: ignore[arg-type]
    dropped = {item.id: each.detail for item, each in zip(items, outcomes, strict=True) if isinstance(each, Dropped)}
    assert {*dropped} == {"other case", "a word more", "short again"}
    assert dropped["other case"] == "1.00 of a" and "short" in dropped["short again"]


def test_of_two_issues_that_one_is_near_to_the_earlier_is_told() -> None:
    """The order of a set's texts differs from process to process."""
    items = []
    for number in range(20):
        words = [f"w{number}x{place}" for place in range(60)]
        first, second = " ".join(words), " ".join([*words[9:], *(f"new{number}x{place}" for place in range(9))])
        items += [
            Item(f"first {number}", {"title": first, "body": ""}), Item(f"second {number}", {"title": second, "body": ""}),
            Item(f"third {number}", {"title": " ".join([*words[4:], *second.split()[-9:-5]]), "body": ""}),
        ]  # fmt: skip
    outcomes = asyncio.run(duplicates(items, None))  # type: ignore[arg-type]
    details = [each.detail for each in outcomes if isinstance(each, Dropped)]
    assert details == [f"0.87 of first {number}" for number in range(20)]


@pytest.mark.parametrize(
    ("evidence", "condition", "covered"),
    [
        ("the last line is missing", "The last line is read too", True),
        ("it keeps failing on Windows", "Nothing fails on Windows", True),
        ("line", "The last line is read too", False),
        ("last line", "The last line is read too", False),
        ("thanks for the answer", "The last line is read too", False),
        ("it is on the", "It is on the way", False),
    ],
)
def test_evidence_is_several_words_that_name_something_of_the_condition(
    evidence: str, condition: str, covered: bool
) -> None:
    assert covers(evidence, condition) == covered


def test_conditions_of_a_construction_are_labelled_before_a_cell_ran(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    row = issue(url="https://github.com/ann/shop/issues/1", satisfaction_conditions=["It starts.", "It says why."])
    (made / "items.jsonl").write_text(json.dumps(row) + "\n")
    (made / "yield.json").write_text(json.dumps({"recipe": "issues", "id": "x"}))
    for kind, number in (("accuracy", 2), ("completeness", 1)):
        out = tmp_path / kind
        assert main(["audit", "export", f"runs={made}", f"out={out}", f"{kind}=9"]) == 0
        assert len((out / "sample.csv").read_text().splitlines()) > number
        assert "It says why." in (out / "label.html").read_text()
