"""Figures of an audit, against hand calculations."""

import math
from typing import Any

import pytest

from codechat.base.domain import Instruction
from codechat.report.audit.kinds import Row
from codechat.report.audit.scoring import agreement, items_of, kappa, score, share
from codechat.studies.refine.audit import ADHERENCE, APPLICABILITY, DECISIONS

INSTRUCTION = Instruction("i", "Remove all comments.", "cosmetic", "remove")


def row(number: int, judged: str, label: str = "", adherence: str = "", true: str = "", **more: Any) -> Row:
    """A row that the judge found `judged`, the change `adherence`, labelled `label` and `true`."""
    instruction = more.pop("instruction", INSTRUCTION)
    return DECISIONS.row(
        {}, cell_id="c", dataset="d", task_id=f"t/{number}", turn=1, instruction_id=instruction.id,
        instruction=instruction.text, scope=instruction.scope, change=instruction.change, judge_applicable=judged,
        judge=more.pop("by", "rules"), judge_reason=more.pop("reason", "seen"), judge_adherence=adherence,
        adherence_judge="llm" if adherence else "", counts_for=more.pop("counts_for", "both"), applicable=label,
        adherence=true,
    )  # fmt: skip


def rows(*groups: tuple[int, str, str]) -> list[Row]:
    """(count, judged, label) each."""
    flat = [(judged, label) for count, judged, label in groups for _ in range(count)]
    return [row(number, judged, label) for number, (judged, label) in enumerate(flat)]


# yes/yes 4, judged yes but labelled no 1, judged no but labelled yes 2, no/no 3
TEN = rows((4, "yes", "yes"), (1, "yes", "no"), (2, "no", "yes"), (3, "no", "no"))


def test_accuracy_precision_and_recall() -> None:
    found = score(TEN, APPLICABILITY)
    assert (found.accuracy.count, found.accuracy.of, found.accuracy.value) == (7, 10, 0.7)
    yes, no = found.classes["yes"], found.classes["no"]
    assert (yes.precision.value, yes.recall.value) == (4 / 5, 4 / 6)
    assert (no.precision.value, no.recall.value) == (3 / 5, 3 / 4)
    assert found.confusion == {
        "yes": {"yes": 4, "no": 2, "undecided": 0},
        "no": {"yes": 1, "no": 3, "undecided": 0},
    }


def test_kappa_by_hand() -> None:
    # agreement 0.7; by chance 0.6 * 0.5 + 0.4 * 0.5 = 0.5; (0.7 - 0.5) / (1 - 0.5) = 0.4
    found = score(TEN, APPLICABILITY).kappa
    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert found.n == 10


def test_kappas_interval_is_the_asymptotic_one() -> None:
    """Fleiss, Cohen and Everitt (1969), written out here."""
    table = [[20, 5, 1], [10, 15, 2], [0, 3, 9]]
    n = sum(map(sum, table))
    p = [[cell / n for cell in line] for line in table]
    given, other = [sum(line) for line in p], [sum(line[j] for line in p) for j in range(3)]
    seen, chance = sum(p[i][i] for i in range(3)), sum(given[i] * other[i] for i in range(3))
    agree = sum(p[i][i] * ((1 - chance) - (given[i] + other[i]) * (1 - seen)) ** 2 for i in range(3))
    differ = sum(p[i][j] * (other[i] + given[j]) ** 2 for i in range(3) for j in range(3) if i != j)
    bracket = agree + (1 - seen) ** 2 * differ - (seen * chance - 2 * chance + seen) ** 2
    error = math.sqrt(bracket / (n * (1 - chance) ** 4))
    value = (seen - chance) / (1 - chance)
    found = kappa([(i, j) for i in range(3) for j in range(3) for _ in range(table[i][j])])
    assert found is not None
    half = 1.959963984540054 * error
    assert (found.value, found.low, found.high) == pytest.approx((value, value - half, value + half))


def test_kappa_of_one_class_alone_is_unknown() -> None:
    assert kappa([]) is None
    assert kappa([("yes", "yes")] * 5) is None
    one_sided, perfect = kappa([("yes", "no")] * 5), kappa([("yes", "yes"), ("no", "no")])
    assert one_sided is not None
    assert perfect is not None
    assert (one_sided.value, perfect.value) == (0, 1)


def test_wilsons_interval_by_hand() -> None:
    z, n, p = 1.959963984540054, 10, 0.9
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    found = share(9, 10)
    assert (found.low, found.high) == pytest.approx(
        ((centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n))
    )
    assert share(0, 0).value is None
    assert share(10, 10).high == pytest.approx(1)


def test_an_adherence_judgement_is_right_only_if_the_instruction_applied() -> None:
    labelled = [
        row(0, "yes", "yes", "adhered", "adhered"),
        row(1, "yes", "yes", "violated", "violated"),
        row(2, "yes", "yes", "adhered", "violated"),
        row(3, "yes", "no", "adhered"),
        row(4, "yes", "no", "violated", "violated"),  # whatever else was labelled
        row(5, "no", "no"),
    ]
    found = score(labelled, ADHERENCE)
    assert (found.labelled, found.accuracy.count, found.accuracy.of) == (5, 2, 5)
    assert found.confusion == {
        "adhered": {"adhered": 1, "violated": 0, "undecided": 0},
        "violated": {"adhered": 1, "violated": 1, "undecided": 0},
        "inapplicable": {"adhered": 1, "violated": 1, "undecided": 0},
    }
    assert found.classes["adhered"].precision.value == pytest.approx(1 / 3)
    assert found.classes["adhered"].recall.value == 1
    assert found.classes["violated"].precision.value == pytest.approx(1 / 2)
    assert found.classes["violated"].recall.value == pytest.approx(1 / 2)


def test_what_was_not_labelled_or_not_decided_is_counted_and_left_out() -> None:
    labelled = [
        row(0, "yes", "yes", "adhered", "adhered"),
        row(1, "yes", "yes", "adhered"),
        row(2, "undecided", "no"),
        row(3, "yes"),
        row(4, "yes", "yes", "undecided", "violated"),
    ]
    fits, done = score(labelled, APPLICABILITY), score(labelled, ADHERENCE)
    assert (fits.labelled, fits.unlabelled, fits.undecided, fits.accuracy.of) == (4, 1, 1, 3)
    assert fits.confusion["no"] == {"yes": 0, "no": 0, "undecided": 1}
    assert (done.labelled, done.unlabelled, done.undecided, done.accuracy.of) == (2, 1, 1, 1)


def test_groups() -> None:
    other = Instruction("j", "Add a test.", "semantic", "add")
    labelled = [row(0, "yes", "yes"), row(1, "yes", "no"), row(2, "no", "no", instruction=other, by="llm")]
    found = score(labelled, APPLICABILITY)
    assert {name: (one.count, one.of) for name, one in found.groups["scope"].items()} == {
        "cosmetic": (1, 2),
        "semantic": (1, 1),
    }
    assert {name: (one.count, one.of) for name, one in found.groups["change"].items()} == {
        "add": (1, 1),
        "remove": (1, 2),
    }
    assert {name: (one.count, one.of) for name, one in found.groups["judge"].items()} == {
        "llm": (1, 1),
        "rules": (1, 2),
    }


def test_rules_that_a_model_contradicted_are_counted() -> None:
    labelled = [
        row(0, "yes", "yes", reason="llm disagrees (not applicable: no) | 1 comment: line 1"),
        row(1, "yes", "no", reason="llm disagrees (not applicable: no) | 1 comment: line 1"),
        row(2, "yes", "no", reason="llm agrees | 1 comment: line 1"),
        row(3, "yes", "yes", reason="a comment says: llm disagrees ("),
    ]
    found = score(labelled, APPLICABILITY).llm_disagreed
    assert (found.count, found.of) == (1, 2)


def test_agreement_of_two_annotators() -> None:
    first = [row(n, "yes", label) for n, label in enumerate(["yes", "yes", "yes", "no", "no", ""])]
    second = [row(n, "yes", label) for n, label in enumerate(["yes", "yes", "no", "no", "yes", "yes"])]
    found = agreement({one["sample"]: one for one in first}, {one["sample"]: one for one in second}, APPLICABILITY)
    assert (found.same_label.count, found.same_label.of) == (3, 5)
    # agreement 0.6; by chance 0.6 * 0.6 + 0.4 * 0.4 = 0.52
    assert found.kappa is not None
    assert found.kappa.value == pytest.approx(0.08 / 0.48)
    # the judge said yes everywhere, so being right is being labelled yes
    assert found.kappa_on_correctness is not None
    assert found.kappa_on_correctness.value == pytest.approx(0.08 / 0.48)


def test_kappa_on_correctness_is_about_the_judge() -> None:
    """Two annotators who label all differently may both find the judge wrong each time."""
    first = [row(n, "yes", "yes", "adhered", label) for n, label in enumerate(["violated", "adhered"])]
    second = [row(0, "yes", "no", "adhered"), row(1, "yes", "yes", "adhered", "adhered")]
    found = agreement({one["sample"]: one for one in first}, {one["sample"]: one for one in second}, ADHERENCE)
    assert found.same_label.count == 1
    assert found.kappa_on_correctness is not None
    assert found.kappa_on_correctness.value == 1


def test_items_are_the_labelled_rows() -> None:
    assert len(items_of(TEN, APPLICABILITY)) == 10
    assert items_of(TEN, ADHERENCE) == []


def test_each_draw_has_figures_of_its_own() -> None:
    """As the paper gives them: 91 % of one sample of 100, 75 % of another."""
    fits = [
        row(n, "yes" if n < 60 else "no", "yes" if 9 <= n < 60 else "no", counts_for="applicability")
        for n in range(100)
    ]
    followed = [
        row(n, "yes", "no" if n < 10 else "yes", "adhered", "violated" if n < 25 else "adhered", counts_for="adherence")
        for n in range(100)
    ]
    one, two = score([*fits, *followed], APPLICABILITY), score([*fits, *followed], ADHERENCE)
    assert (one.accuracy.count, one.accuracy.of) == (91, 100)
    assert (two.accuracy.count, two.accuracy.of) == (75, 100)
    # 51 yes/yes, 9 judged yes and labelled no, 40 no/no: by chance 0.6 * 0.51 + 0.4 * 0.49 = 0.502
    assert one.kappa is not None
    assert (one.kappa.value, one.kappa.n) == (pytest.approx((0.91 - 0.502) / 0.498), 100)
    first = {each["sample"]: each for each in [*fits, *followed]}
    assert agreement(first, first, ADHERENCE).same_label.of == 100
