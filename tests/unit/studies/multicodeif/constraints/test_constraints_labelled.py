"""The guarded rules held to labels that were given by reading code: see `tests/golden/constraints/README.md`."""

import contextlib
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from codechat.base.files import from_yaml
from codechat.studies.multicodeif.constraints import Constraint, Finding, constraint_type, constraint_types

pytest.importorskip("tree_sitter_rust", reason="needs codechat[constraints]")

FOLDER = Path(__file__).parents[4] / "golden" / "constraints"
LANGUAGES = {
    *("python", "java", "cpp", "c", "rust", "go", "javascript", "typescript", "kotlin", "csharp", "haskell", "zig"),
}
PLACELESS = re.compile(r"nothing in the code|no comment stands|all \d|the code has (?:no|none)|\w+ returns nothing")


def _pairs() -> list[dict[str, Any]]:
    """The labelled pairs; those of the second batch name their type, the others' file does."""
    return [
        {"type": path.stem, **row, "place": f"{path.name} {number}"}
        for path in sorted(FOLDER.glob("*.yaml"))
        for number, row in enumerate(from_yaml(path.read_text(encoding="utf-8")), 1)
    ]


PAIRS = _pairs()


def _constraint(pair: dict[str, Any]) -> Constraint:
    return Constraint(pair["type"], constraint_type(pair["type"]).read(pair["answer"]))


@pytest.fixture(scope="module")
def findings() -> list[tuple[dict[str, Any], Finding]]:
    return [(pair, _constraint(pair).check(pair["code"])) for pair in PAIRS]


def test_there_are_as_many_labels_as_promised_half_of_them_hard() -> None:
    assert len(PAIRS) >= 400
    assert 2 * sum(pair["hard"] for pair in PAIRS) >= len(PAIRS)
    assert all(set(pair) == {"type", "answer", "met", "hard", "why", "code", "place"} for pair in PAIRS)
    assert len({(pair["type"], pair["answer"], pair["code"]) for pair in PAIRS}) == len(PAIRS)


def test_every_type_has_labels_of_both_kinds() -> None:
    kinds = Counter((pair["type"], pair["met"]) for pair in PAIRS)
    for kind in constraint_types():
        if kind.by == "rule":
            assert kinds[kind.name, True] + kinds[kind.name, False] >= 25, kind.name
            assert min(kinds[kind.name, True], kinds[kind.name, False]) >= 10, kind.name


def test_every_language_has_labels() -> None:
    languages = Counter(_constraint(pair).answer.language for pair in PAIRS)
    assert set(languages) == LANGUAGES
    assert min(languages.values()) >= 5, languages


def test_a_language_of_a_type_has_labels_of_both_kinds_or_stays_undecided() -> None:
    """The last alternative is that the type's answers cannot name the language."""
    labelled = {(pair["type"], _constraint(pair).answer.language, pair["met"]) for pair in PAIRS}
    rules = [kind for kind in constraint_types() if kind.by == "rule"]
    for kind, language in product(rules, sorted(LANGUAGES)):
        if kind.reads(language):
            assert {(kind.name, language, True), (kind.name, language, False)} <= labelled, (kind.name, language)
            continue
        for example in kind.examples:
            with contextlib.suppress(ValueError):
                constraint = Constraint(kind.name, kind.read(f"{language};{example.partition(';')[2]}"))
                assert constraint.unknown and constraint.check("f(1)").met is None, (kind.name, language)


@pytest.mark.parametrize("place", ["", "third.yaml", "fourth.yaml", "fifth.yaml", "sixth.yaml"])
def test_guarded_is_right(findings: list[tuple[dict[str, Any], Finding]], place: str) -> None:
    chosen = [(pair, found) for pair, found in findings if pair["place"].startswith(place)]
    unlike = [
        f"{pair['place']} {pair['answer']}: {pair['why']}; the rule says {found.met}, {found.reason}"
        for pair, found in chosen
        if found.met is not pair["met"]
    ]
    undecided = sum(found.met is None for _, found in chosen)
    decided = len(chosen) - undecided
    assert undecided <= 0.05 * len(chosen), "\n".join(unlike)
    assert len(chosen) - len(unlike) >= 0.98 * decided, "\n".join(unlike)


def test_a_reason_is_one_line_and_says_where(findings: list[tuple[dict[str, Any], Finding]]) -> None:
    for pair, found in findings:
        official = _constraint(pair).check(pair["code"], "official") if _official(pair) else found
        assert all(len(each.reason.splitlines()) == 1 for each in (found, official)), pair["place"]
        lines = [int(number) for number in re.findall(r"line (\d+)", found.reason)]
        assert lines or PLACELESS.match(found.reason), f"{pair['place']}: {found.reason}"
        assert all(1 <= line <= pair["code"].count("\n") + 1 for line in lines), f"{pair['place']}: {found.reason}"


def _official(pair: dict[str, Any]) -> bool:
    """Whether the published harness has a rule for the pair's language, which a user's own task may go beyond."""
    return _constraint(pair).answer.language in ("python", "java", "rust", "go") and pair["type"] != "library"
