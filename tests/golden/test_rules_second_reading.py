"""The rules held to a second reader, who labelled 600 entries blind: neither the first labels nor the rules were seen.

`rules/second_reading.csv` keeps what was first labelled, which is also what the rules decided then, what the second
reader said, and what was settled where they differ, with the reason. `rules/second_reading_fresh.csv` keeps the same of
270 further triples, read after the rules were mended by the first 600: what the mended rules are worth.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable

import pytest

from codechat.base.domain import CHANGES, SCOPES
from codechat.report.audit.scoring import kappa
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import adherence, applicable
from support.triples import RULES, Triple, read_triples

SECOND, FRESH = RULES / "second_reading.csv", RULES / "second_reading_fresh.csv"
POOL = {instruction.id: instruction for instruction in read_pool(EMBEDDED, {}).instructions}
TRIPLES = {one.digest: one for one in read_triples(POOL)}
ROWS, FRESH_ROWS = (list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in (SECOND, FRESH))
LATER = re.compile("since version [245] of the rules")
WORDS = {True: "yes", False: "no"}


def same(first: str, second: str, rows: list[dict[str, str]]) -> tuple[int, int]:
    """How many of the rows have the same in both columns, of how many that have anything."""
    filled = [row for row in rows if row[first]]
    return sum(row[first] == row[second] for row in filled), len(filled)


def test_what_was_settled_is_what_the_labels_say() -> None:
    for row in ROWS + FRESH_ROWS:
        triple = TRIPLES[row["triple"]]
        assert WORDS[triple.applicable is True] == row["settled_applicable"], row
        assert (triple.adherence or "") == row["settled_adherence"], row


def test_the_first_agreement_is_kept_as_it_was_found() -> None:
    assert same("first_applicable", "applicable", ROWS) == (592, 600)
    assert same("first_adherence", "adherence", ROWS) == (437, 450)


def test_the_mended_rules_agree_with_a_fresh_reading() -> None:
    assert not {row["triple"] for row in ROWS} & {row["triple"] for row in FRESH_ROWS}
    assert same("first_applicable", "applicable", FRESH_ROWS) == (266, 270)
    assert same("first_adherence", "adherence", FRESH_ROWS) == (266, 270)


def test_every_difference_has_a_reason_and_nothing_else_was_settled_anew() -> None:
    for row in ROWS + FRESH_ROWS:
        pairs = [(f"first_{name}", name, f"settled_{name}") for name in ("applicable", "adherence")]
        differs = any(row[first] != row[second] for first, second, _ in pairs)
        assert bool(row["reason"]) == (differs or LATER.search(row["reason"]) is not None), row
        for first, second, settled in pairs:
            assert row[settled] in (row[first], row[second]) or (
                LATER.search(row["reason"]) and row[settled] in ("violated", "no")
            )


def test_what_was_settled_later_only_passes_a_value_through_or_is_read_by_nothing() -> None:
    """Both readers took ten such changes for adherence; later versions refuse them, and the labels follow."""
    later = [row for row in ROWS + FRESH_ROWS if LATER.search(row["reason"]) and "lock" not in row["instruction"]]
    assert len(later) == 10
    assert {(row["first_adherence"], row["adherence"], row["settled_adherence"]) for row in later} == {
        ("adhered", "adhered", "violated")
    }


def test_a_lock_where_nothing_is_shared_was_settled_later_too() -> None:
    """Two later blind readers say that it does not apply; the label follows, and the first reading stays as it was."""
    (row,) = [row for row in FRESH_ROWS if LATER.search(row["reason"]) and row["instruction"] == "semantic-use-lock"]
    assert (row["first_applicable"], row["applicable"], row["settled_applicable"]) == ("yes", "yes", "no")


def by_rules(question: str, triple: Triple) -> str:
    """The rules' decision in the words of the files; "" if they leave it undecided."""
    if question == "applicable":
        return {True: "yes", False: "no", None: ""}[applicable(triple.before, triple.instruction).applicable]
    return adherence(triple.before, triple.after or "", triple.instruction).verdict.replace("undecided", "")


def by_label(question: str, triple: Triple) -> str:
    return WORDS[triple.applicable is True] if question == "applicable" else triple.adherence or ""


@pytest.mark.parametrize("decide", [by_rules, by_label])
@pytest.mark.parametrize(
    ("rows", "least", "kappas"),
    [
        (ROWS, {"applicable": 597, "adherence": 442}, 0.97),  # 7 of 450 are undecided
        (FRESH_ROWS, {"applicable": 265, "adherence": 262}, 0.6),  # 3 of 270 are undecided
    ],
    ids=["first", "fresh"],
)
def test_rules_and_labels_agree_with_the_second_reader_no_less_than_was_found(
    rows: list[dict[str, str]], least: dict[str, int], kappas: float, decide: Callable[[str, Triple], str]
) -> None:
    for question, count in least.items():
        pairs = [(decide(question, TRIPLES[row["triple"]]), row[question]) for row in rows if row[question]]
        pairs = [pair for pair in pairs if pair[0]]
        agreed = kappa(pairs)
        assert sum(one == other for one, other in pairs) >= count
        assert agreed is not None and agreed.value > kappas


@pytest.mark.parametrize("question", ["applicable", "adherence"])
def test_the_rules_are_right_on_what_was_settled(question: str) -> None:
    right, every = Counter[str](), Counter[str]()
    for row in ROWS:
        triple, settled = TRIPLES[row["triple"]], row[f"settled_{question}"]
        if settled and (decided := by_rules(question, triple)):
            for group in ("overall", triple.instruction.scope, triple.instruction.change):
                every[group] += 1
                right[group] += decided == settled
    for group in ("overall", *SCOPES, *CHANGES):
        assert every[group] >= 100
        assert right[group] >= 0.98 * every[group], group
