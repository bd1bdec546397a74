"""Adherence corrected for the judge's errors: worked out by hand, weighted, refused where labels say too little."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from codechat.report.metrics.corrected import ALL, NO_CODE, Correction, Share, rogan_gladen
from codechat.report.metrics.judge_errors import JudgeLabels, Label, errors_of
from codechat.report.metrics.statistics import Figure, TaskBootstrap

TASKS = [f"t/{number}" for number in range(20)]


def figure(hits: int, total: int, tasks: Sequence[str] = TASKS) -> Figure:
    """As many judged changes, dealt to the tasks one by one, those judged adhered first."""
    found = Figure()
    for number in range(total):
        found.count(tasks[number % len(tasks)], number < hits)
    return found


def labels(scope: str, adhered: tuple[int, int], violated: tuple[int, int]) -> list[Label]:
    """By verdict, how many labels say followed of how many."""
    return [
        Label("d", TASKS[number % len(TASKS)], scope, verdict, float(number < followed))
        for verdict, (followed, count) in ((True, adhered), (False, violated))
        for number in range(count)
    ]


def correction(judged: Mapping[str, Figure], *drawn: Sequence[Label], tasks: Sequence[str] = TASKS) -> Correction:
    known = JudgeLabels("judge", {"d": judged}, tuple(label for own in drawn for label in own))
    return Correction(known, {"d": TaskBootstrap(tasks, 0)})


def shared(found: Share | str) -> Share:
    assert isinstance(found, Share), found
    return found


def test_by_hand() -> None:
    """60 of 100 are judged adhered; of the labels 18 of 20 adhered ones are followed, and 4 of 20 violated ones.

    So 54 + 8 = 62 of 100 are followed: sensitivity 54/62, specificity 32/38. Of a cell with 40 of 100 judged adhered
    (0.4 − 6/38) / (54/62 − 6/38) are.
    """
    found = correction({"cosmetic": figure(60, 100)}, labels("cosmetic", (18, 20), (4, 20)))
    own = found.errors("cosmetic")
    assert own.sensitivity == pytest.approx(54 / 62)
    assert own.specificity == pytest.approx(32 / 38)
    assert found.errors(ALL).sensitivity == pytest.approx(54 / 62)
    same = shared(found.share("d", {"cosmetic": figure(60, 100)}))
    assert same.value == pytest.approx(0.62)
    assert same.by_scope
    other = shared(found.share("d", {"cosmetic": figure(40, 100)}))
    assert other.value == pytest.approx((0.4 - 6 / 38) / (54 / 62 - 6 / 38))
    for share in (same, other):
        assert share.interval is not None
        low, high = share.interval
        assert 0 <= low < share.value < high <= 1
    assert same.interval is not None and other.interval is not None
    assert same.interval[1] - same.interval[0] < other.interval[1] - other.interval[0], "nothing has to be carried over"


def test_errors_and_correction_are_inverse() -> None:
    sensitivity, specificity = errors_of(0.7, 0.95, 0.3)
    assert rogan_gladen(0.7, sensitivity, specificity) == pytest.approx(0.7 * 0.95 + 0.3 * 0.3)
    assert rogan_gladen(sensitivity, sensitivity, specificity) == pytest.approx(1)
    assert rogan_gladen(1 - specificity, sensitivity, specificity) == pytest.approx(0)


def test_labels_count_by_the_decisions_they_stand_for() -> None:
    """90 of 100 cosmetic decisions are adhered, 10 of 100 semantic ones, and 10 labels are of each: the shares of
    followed ones among the adhered are 1 and 1/2, among the violated 0 and 3/10. Too few say not followed, or followed,
    within a scope, so all scopes together: (90 · 1 + 10 · 0.5) / 100 and (10 · 0 + 90 · 0.3) / 100.
    """
    judged = {"cosmetic": figure(90, 100), "semantic": figure(10, 100)}
    drawn = [labels("cosmetic", (10, 10), (0, 9)), labels("semantic", (5, 10), (3, 9))]
    found = correction(judged, *drawn)
    refusal = found.errors("cosmetic").refusal
    assert "9 of changes judged violated" in refusal and "10 are needed" in refusal
    everything = found.errors(ALL)
    followed, missed = 90 + 5, 90 * (3 / 9)
    assert everything.sensitivity == pytest.approx(followed / (followed + missed))
    assert everything.specificity == pytest.approx((10 + 60) / (10 + 60 + 5))
    share = shared(found.share("d", judged))
    assert not share.by_scope
    assert share.value == pytest.approx((followed + missed) / 200)


def test_scope_by_scope_if_every_scope_has_labels_enough() -> None:
    judged = {"cosmetic": figure(80, 100), "semantic": figure(30, 50)}
    drawn = [labels("cosmetic", (24, 25), (5, 25)), labels("semantic", (15, 20), (2, 20))]
    found = correction(judged, *drawn)
    share = shared(found.share("d", judged))
    assert share.by_scope
    assert share.value == pytest.approx((80 * 24 / 25 + 20 * 5 / 25 + 30 * 15 / 20 + 20 * 2 / 20) / 150)
    alone = shared(found.share("d", {"semantic": judged["semantic"]}))
    assert alone.value == pytest.approx((30 * 15 / 20 + 20 * 2 / 20) / 50)
    unknown = found.share("d", {"structural": figure(5, 10)})
    assert not shared(unknown).by_scope, "a scope without labels is corrected by those of all"


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (labels("cosmetic", (9, 9), (2, 30)), "9 of changes judged adhered, and 10 are needed"),
        (labels("cosmetic", (30, 30), (0, 9)), "9 of changes judged violated, and 10 are needed"),
        (labels("cosmetic", (30, 30), (7, 10)), "3 say not followed, and 5 are needed"),
        (labels("cosmetic", (1, 30), (3, 30)), "4 say followed, and 5 are needed"),
        (labels("cosmetic", (10, 20), (10, 20)), "not identified: sensitivity 0.50 + specificity 0.50 may be 1"),
        (labels("cosmetic", (11, 20), (9, 20)), "not identified"),
        (labels("cosmetic", (4, 20), (16, 20)), "not identified"),
        ([], "0 of changes judged adhered"),
    ],
)
def test_what_cannot_be_corrected_is_refused_in_words(drawn: list[Label], words: str) -> None:
    refused = correction({"cosmetic": figure(50, 100)}, drawn).share("d", {"cosmetic": figure(50, 100)})
    assert isinstance(refused, str)
    assert words in refused


def test_a_share_beyond_what_is_possible_is_cut() -> None:
    found = correction({"cosmetic": figure(60, 100)}, labels("cosmetic", (38, 40), (4, 40)))
    share = shared(found.share("d", {"cosmetic": figure(100, 100)}))
    assert (share.value, share.cut) == (1.0, True)
    assert not shared(found.share("d", {"cosmetic": figure(60, 100)})).cut


def test_replies_without_code_follow_nothing() -> None:
    found = correction({"cosmetic": figure(60, 100)}, labels("cosmetic", (18, 20), (4, 20)))
    share = shared(found.share("d", {"cosmetic": figure(60, 100), NO_CODE: figure(0, 25)}))
    assert share.value == pytest.approx(62 / 125)
    assert found.share("d", {NO_CODE: figure(0, 25)}) == "nothing was judged"


def test_more_labels_make_the_interval_narrower_and_those_of_one_task_wider() -> None:
    def width(drawn: Sequence[Label]) -> float:
        share = shared(correction({"cosmetic": figure(60, 100)}, drawn).share("d", {"cosmetic": figure(60, 100)}))
        assert share.interval is not None
        return share.interval[1] - share.interval[0]

    few, many = labels("cosmetic", (18, 20), (4, 20)), labels("cosmetic", (72, 80), (16, 80))
    assert width(many) < width(few)
    alike = [replace(label, task=TASKS[0]) if label.adhered and not label.followed else label for label in many]
    assert width(alike) > 1.2 * width(many), "all that it calls adhered and is not is on one task"


def test_one_task_has_no_interval() -> None:
    judged = {"cosmetic": figure(60, 100, TASKS[:1])}
    drawn = [
        Label("d", TASKS[0], "cosmetic", one.adhered, one.followed) for one in labels("cosmetic", (18, 20), (4, 20))
    ]
    share = shared(correction(judged, drawn, tasks=TASKS[:1]).share("d", judged))
    assert share.value == pytest.approx(0.62)
    assert share.interval is None


def test_a_scope_whose_own_labels_tell_nothing_is_not_corrected_by_other_scopes() -> None:
    """In semantic changes half of either verdict are followed, so the verdicts there are a coin's."""
    judged = {"cosmetic": figure(50, 100), "semantic": figure(50, 100)}
    found = correction(judged, labels("cosmetic", (29, 30), (1, 30)), labels("semantic", (15, 30), (15, 30)))
    assert not found.errors(ALL).refusal
    refused = found.share("d", {"semantic": judged["semantic"]})
    assert isinstance(refused, str)
    assert refused.startswith("not identified: sensitivity 0.50 + specificity 0.50")
    assert shared(found.share("d", {"cosmetic": judged["cosmetic"]})).by_scope
    assert not shared(found.share("d", judged)).by_scope


def test_a_scope_with_too_few_labels_is_corrected_by_all() -> None:
    judged = {"cosmetic": figure(50, 100), "semantic": figure(50, 100)}
    found = correction(judged, labels("cosmetic", (29, 30), (1, 30)), labels("semantic", (5, 6), (1, 6)))
    assert not shared(found.share("d", {"semantic": judged["semantic"]})).by_scope
