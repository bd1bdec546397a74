"""What is warned of before figures are read: more than a fifth of the sessions, turns or replies is unusable."""

import re
from typing import Any

import pytest

from codechat.report.metrics import caution_of
from codechat.report.metrics.counts import REPLIES

REFINED: dict[str, Any] = {
    "completed": 10,
    "errored": 0,
    "pass_at_1": [1.0, 0.5, 0.5],
    "skipped_turns": 0,
    "undecided": 0,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""), ({"errored": 2}, ""),
        ({"errored": 3}, r"3 of 13 sessions .*\b10\b"),
        ({"errored": 3, "completed": 0, "skipped_turns": None}, "3 of 3 sessions .*no figures"),
        ({"skipped_turns": 4}, ""), ({"skipped_turns": 2, "undecided": 2}, ""),
        ({"skipped_turns": 5}, r"5 of 20 .*skipped \(5\).*undecided \(0\)"),
        ({"skipped_turns": 2, "undecided": 3}, r"5 of 20 .*skipped \(2\).*undecided \(3\)"),
        ({"undecided": 5, "pass_at_1": []}, ""), ({"undecided": 0.2}, ""),
        ({"undecided": 0.25}, "25 % of the tasks .*undecided"),
        (
            {"by_check": {"undecided": {"judge": 0.5, "rules": 0.2, "none": None}}, "n": {"by_check": {"undecided": {"judge": 8}}}},
            "4 of 8 decisions .*judge.*undecided",
        ),
        ({REPLIES: {"all": 10, "cut": 2, "no_code": 2, "overflowed": 2}}, ""),
        ({REPLIES: {"all": 10, "cut": 3}}, "3 of 10 replies .*cut off"),
        ({REPLIES: {"all": 10, "no_code": 3}}, "no code .*3 of 10 replies"),
        (
            {REPLIES: {"all": 10, "no_code": 3, "lacks_name": 2}},
            "no code with the name asked for was found in 3 of 10 replies, and 2 have other code",
        ),
        ({"skipped_turns": 5, "skipped_unparsable": 4}, r"5 of 20 .*skipped \(5, 4 of them .*not parse\)"),
        ({REPLIES: {"all": 99, "overflowed": 3}}, "3 of 10 sessions .*context"),
    ],
)  # fmt: skip
def test_more_than_a_fifth_is_warned_of(change: dict[str, Any], said: str) -> None:
    told = caution_of({**REFINED, **change})
    assert re.match(said, told) and bool(told) is bool(said) and ";" not in told


def test_all_warnings_come_after_what_departs_from_the_datasets_name() -> None:
    told = caution_of({**REFINED, "errored": 9, REPLIES: {"all": 10, "cut": 3}}, "own tasks")
    assert [each.split()[0] for each in told.split("; ")] == ["own", "9", "3"]
    assert caution_of(REFINED, "own tasks") == "own tasks" and caution_of({}) == ""
