"""The rules held to changes that were written to follow, to miss or to almost follow an instruction.

2,100 changes, in seven batches by authors who saw the instructions' texts alone, not the rules, and labelled twice,
independently and blind (`adversarial/labelling.md`). A change is clear if both readers say so. The rules' wrong
decisions on the part `mended` were shown to those who mended versions 3 to 5 of the rules, and all to those who wrote
version 6, which is undecided on what it cannot see: here it is the share decided and, of that, the share right that count.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable

TRIPLES = Path(__file__).with_name("adversarial") / "triples.jsonl"
ROWS = [json.loads(line) for line in TRIPLES.read_text(encoding="utf-8").splitlines()]
POOL = {instruction.id: instruction for instruction in read_pool(EMBEDDED, {}).instructions}
FITS = {True: "yes", False: "no", None: "undecided"}


def clarity(row: dict[str, Any]) -> str:
    return "clear" if row["one"]["clarity"] == row["two"]["clarity"] == "clear" else "borderline"


def both_apply(row: dict[str, Any]) -> bool:
    return row["one"]["applicable"] == row["two"]["applicable"] == "yes"


def decided(question: str) -> Iterator[tuple[str, str, bool | None]]:
    """For each label that both readers share: the part, how clear it is, whether the rules agree (None: undecided).

    What does not apply has no adherence.
    """
    for row in ROWS:
        label, instruction = row["one"][question], POOL[row["instruction"]]
        if label != row["two"][question] or (question == "adherence" and not both_apply(row)):
            continue
        if question == "applicable":
            said = FITS[applicable(row["before"], instruction).applicable]
        else:
            said = adherence(row["before"], row["after"], instruction).verdict
        yield row["part"], clarity(row), None if said == "undecided" else said == label


def test_two_readers_agree() -> None:
    parts = Counter(row["part"] for row in ROWS)
    assert parts == {"mended": 1773, "held": 327}
    held = {row["instruction"] for row in ROWS if row["part"] == "held"}
    assert len({(POOL[each].scope, POOL[each].change) for each in held}) == 9 and len(held) == 187
    assert {row["instruction"] for row in ROWS} == set(POOL)
    applied = [row for row in ROWS if both_apply(row)]
    assert sum(row["one"]["applicable"] == row["two"]["applicable"] for row in ROWS) == 2080
    assert (sum(row["one"]["adherence"] == row["two"]["adherence"] for row in applied), len(applied)) == (1782, 1792)


def test_the_rules_are_right_on_what_they_decide() -> None:
    found = [agrees for _, _, agrees in decided("adherence")]
    sure = [agrees for agrees in found if agrees is not None]
    assert len(sure) >= 0.94 * len(found), f"{len(sure)} of {len(found)} are decided"
    assert sum(sure) >= 0.95 * len(sure), f"{sum(sure)} of {len(sure)} are right"


@pytest.mark.parametrize("question", ["applicable", "adherence"])
def test_by_part_and_clarity(question: str) -> None:
    right, every = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for part, clear, agrees in decided(question):
        every[part, clear] += agrees is not None
        right[part, clear] += agrees is True
    shares = {key: round(100 * right[key] / count, 1) for key, count in sorted(every.items())}
    least = LEAST[question]
    assert all(shares[key] >= least[key] for key in every), shares


LEAST = {
    "applicable": {
        ("held", "clear"): 98.5, ("held", "borderline"): 85.0, ("mended", "clear"): 98.5, ("mended", "borderline"): 90.0,
    },
    "adherence": {
        ("held", "clear"): 94.0, ("held", "borderline"): 70.0, ("mended", "clear"): 96.0, ("mended", "borderline"): 85.0,
    },
}  # fmt: skip
"""Per cent of what is decided that are right, a little under what was found; docs/audit.md has the figures."""
