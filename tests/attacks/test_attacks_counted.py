"""How many attempts the corpora hold, by what they attack: each is tried by the tests beside it, and none may pass."""

import re
from pathlib import Path

import pytest

from attacks.attack_assertions import ASSERTION_ATTACKS
from attacks.attack_chosen import CHOSEN, EMPTY
from attacks.attack_forging import FORGING
from attacks.attack_harming import HARMING
from attacks.attack_java import JAVA_ATTACKS
from attacks.attack_java_more import ENDS, FORGES, REACHES, TEXTS
from attacks.attack_judges import UNREADABLE
from attacks.attack_malformed import MALFORMED
from attacks.attack_named_tests import CALLED, TOP
from attacks.attack_outside import OUTSIDE_ATTACKS
from attacks.attack_outside_texts import TEXT_ATTACKS
from attacks.attack_rooms import PYTHON, SHELL
from attacks.attack_stalling import STALLING
from attacks.attack_values import VALUES

TESTS = Path(__file__).parents[1]


def written(pattern: str, *places: str) -> int:
    """How often a pattern stands in files of the tests."""
    return sum(
        len(re.findall(pattern, path.read_text(encoding="utf-8"))) for place in places for path in TESTS.glob(place)
    )


COUNTS: dict[str, int] = {
    "assertions": sum(map(len, (ASSERTION_ATTACKS, OUTSIDE_ATTACKS, TEXT_ATTACKS, CHOSEN, EMPTY))),
    "pytest": len(CALLED) + len(TOP),
    "JUnit": sum(map(len, (JAVA_ATTACKS, TEXTS, REACHES, FORGES, ENDS))),
    "Maven": written(r'(?m)^    "[^"\n]+": ', "unit/suites/test_maven.py"),
    "calls": sum(map(len, (FORGING, HARMING, MALFORMED, STALLING, VALUES))),
    "rooms": len(SHELL) + len(PYTHON),
    "judges": len(UNREADABLE),
    "extraction": written(r"(?m)^=== ", "golden/extraction_replies.txt"),
    "validators": written("hard: true|\"hard\": true", "golden/constraints/*.yaml"),
}  # fmt: skip


@pytest.mark.parametrize("kind", COUNTS)
def test_each_kind_has_attempts(kind: str) -> None:
    assert COUNTS[kind] >= 14


def test_there_are_more_than_promised() -> None:
    assert sum(COUNTS.values()) >= 2_500, COUNTS
