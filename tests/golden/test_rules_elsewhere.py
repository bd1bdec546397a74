"""The rules in other languages than Python, against labels made by reading: `rules_elsewhere`, a file a language."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codechat.base.domain import Instruction
from codechat.base.files import from_yaml
from codechat.studies.refine.instructions.pool import EMBEDDED, read_pool
from codechat.studies.refine.patterns import READ, adherence, applicable
from codechat.studies.refine.patterns.reading.neutral import grammar_of

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "rules_elsewhere").glob("*.yaml"))}
POOL = read_pool(EMBEDDED, {})
VERDICTS = ("adhered", "violated", "undecided")


class Label(NamedTuple):
    """One label: a change with its verdict, or a program with `fits` or `fits_not`."""

    instruction: Instruction
    says: str
    names: tuple[str, ...]
    texts: tuple[str, ...]


def labels(language: str) -> Iterator[Label]:
    content: dict[str, Any] = from_yaml(FILES[language].read_text())
    pool = {one.id: one for one in POOL.of(language)}
    for name, kinds in content["labels"].items():
        for says, places in kinds.items():
            for place in places:
                names = tuple([place] if isinstance(place, str) else place)
                yield Label(pool[name], says, names, tuple(content["programs"][each] for each in names))


@pytest.mark.parametrize("language", FILES)
def test_rules_decide_as_people_do(language: str) -> None:
    wrong = []
    for label in labels(language):
        if label.says in VERDICTS:
            found = adherence(*label.texts, label.instruction)
            said, reason = found.verdict, found.reason
        else:
            fits = applicable(*label.texts, label.instruction)
            said, reason = "fits" if fits.applicable else "fits_not", fits.reason
        if said != label.says:
            wrong.append((label.instruction.id, *label.names, label.says, said, reason))
    assert wrong == []


@pytest.mark.parametrize("language", FILES)
def test_there_are_labels_of_all_kinds_for_thirty_instructions(language: str) -> None:
    found: dict[str, set[str]] = {}
    for label in labels(language):
        found.setdefault(label.instruction.id, set()).add(label.says)
    assert len([each for each in found.values() if each >= {"fits", "fits_not", "adhered", "violated"}]) >= 30
    assert any("undecided" in each for each in found.values())


def test_every_language_that_rules_read_has_labels_and_a_grammar() -> None:
    assert {*FILES, "python"} == READ and all(grammar_of(language) for language in FILES)


@pytest.mark.parametrize("language", FILES)
def test_every_cell_of_the_pool_has_eight_instructions_and_most_have_rules(language: str) -> None:
    cells: dict[str, list[Instruction]] = {}
    for one in POOL.of(language):
        cells.setdefault(one.kind, []).append(one)
    assert len(cells) == 9 and min(map(len, cells.values())) >= 8
    assert sum(one.rule is not None for one in POOL.of(language)) >= 100


@pytest.mark.parametrize(
    "code",
    [
        "function f() { return " + "(" * 400 + "1" + ")" * 400 + "; }",
        "function f() { return " + "1 + " * 2000 + "1; }",
        "function f(a) { " + "if (a) { a = 1; } else " * 700 + "{ a = 2; } return a; }",
        "function f() { return 1; }" + " " * 20_000,
        "function f( { " + "{ [ ( " * 3000,
    ],
    ids=["brackets", "sum", "chain", "long", "broken"],
)
def test_code_that_nobody_would_write_is_refused_at_once(code: str) -> None:
    rule = next(one for one in POOL.of("javascript") if one.id == "structural-avoid-else-branches")
    found = applicable(code, rule)
    assert found.applicable is False and found.reason.startswith("the code ")
    assert adherence("function f() { return 1; }", code, rule).verdict == "violated"
