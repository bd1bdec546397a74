"""What settings change: effects against a recount by hand, and where a report about settings has its answer."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from codechat.base.records import SessionRecord, TurnRecord
from codechat.report.build import build_report, comparisons_of, headline_of, sections_of
from codechat.report.chapters import study_of
from codechat.report.comparison import Comparison, resamples_of
from codechat.report.data import Board, Cards, Interval
from codechat.report.generic.factors import Question
from codechat.report.generic.paired import holm, signed_ranks
from codechat.report.loading import load_cells
from codechat.report.metrics.statistics import TaskRatio, wilson
from codechat.report.page import write_page
from support.pages import MadeCell, cell_of
from support.refine_cells import Made, write_cell

TASKS = 14
AGENDAS = {"steep": 0.5, "flat": 0.8, "kind": 0.8}
LENGTHS = (4, 8, 10)


def lasting(model: str, agenda: str, turns: int, task: int) -> int:
    """The turns that a task sustains: any function that depends on everything."""
    share = AGENDAS[agenda] + (0.1 if model == "b" else 0.0) - 0.05 * (task % 5) + 0.02 * (turns == 4)
    return max(1, min(turns, round(turns * share)))


def cell(
    model: str,
    agenda: str = "flat",
    turns: int = 10,
    *,
    tasks: int = TASKS,
    dataset: str = "humaneval",
    varied: Sequence[str] = ("agenda", "agenda.turns"),
    last: Callable[[str, str, int, int], int] = lasting,
) -> MadeCell:
    """A cell whose tasks pass their first turns and none of the later ones."""
    name = f"{model}-{agenda}-{turns}-{dataset}"
    records = tuple(
        SessionRecord(
            cell_id=name, session_id=f"{name}/{task}", task_id=f"{dataset}/{task}", dataset=dataset, model=model,
            protocol="refine", agenda=["cosmetic"] * (turns - 1), seed=0, status="completed",
            turns=[
                TurnRecord(turn=turn, outcome="pass" if good else "fail", passed=good, passed_base=good)
                for turn in range(turns) for good in [turn < last(model, agenda, turns, task)]
            ],
        )
        for task in range(tasks)
    )  # fmt: skip
    words = {"agenda": f"agenda={agenda}", "agenda.turns": f"turns={turns}"}
    differences = {key: words[key] for key in varied}
    about: dict[str, Any] = {"agenda": agenda, "variant": ", ".join(differences.values()), "differences": differences}
    made = cell_of(records, turns, **about)
    return MadeCell(**{**vars(made), "folder": Path("runs") / name})


@pytest.fixture(scope="module")
def cells() -> list[MadeCell]:
    """Two models × three agendas × three lengths, and a cell of another dataset that nothing is compared with."""
    whole = [cell(*each) for each in itertools.product("ab", AGENDAS, LENGTHS)]
    return [*whole, cell("a", "steep", 10, dataset="mbpp")]


def study(cells: Sequence[MadeCell]) -> tuple[Comparison[Any], Mapping[str, Question]]:
    (comparison,) = comparisons_of(cells)
    return comparison, {each.factor: each for each in study_of(comparison).questions}


def test_an_effect_is_the_mean_over_all_other_settings_paired_by_task(cells: list[MadeCell]) -> None:
    _, asked = study(cells)
    assert list(asked) == ["agenda", "turns", "model"], "what was set comes before the model"
    found = {frozenset((each.a, each.b)): each for each in asked["agenda"].effects}
    assert len(found) == 3
    others = list(itertools.product("ab", LENGTHS))
    tests = []
    for pair, effect in found.items():
        by_task = {}
        for side in (effect.a, effect.b):
            by_task[side] = [
                fmean(lasting(model, side, turns, task) / turns for model, turns in others) for task in range(TASKS)
            ]
        assert {effect.a, effect.b} == pair
        assert effect.values == pytest.approx((fmean(by_task[effect.a]), fmean(by_task[effect.b])))
        assert effect.difference == pytest.approx(effect.values[0] - effect.values[1])
        assert effect.difference >= 0, "the higher level comes first"
        assert (effect.blocks, effect.tasks) == (6, TASKS)
        assert effect.p == signed_ranks(by_task[effect.a], by_task[effect.b]).p
        tests.append(effect.p)
    assert [each.p_holm for each in found.values()] == holm(tests), "the family is one factor's pairs of levels"


def test_its_interval_is_of_resampled_tasks(cells: list[MadeCell]) -> None:
    _, asked = study(cells)
    effect = asked["agenda"].largest
    assert (effect.b, effect.interval is not None) == ("steep", True)
    whole = TaskRatio()
    for task, (model, turns) in itertools.product(range(TASKS), itertools.product("ab", LENGTHS)):
        gained = lasting(model, effect.a, turns, task) - lasting(model, effect.b, turns, task)
        whole.count(f"humaneval/{task}", gained * (40 // turns), 40)
    tasks = tuple(sorted(whole.by_task))
    assert effect.interval == pytest.approx(resamples_of(tasks, "humaneval").interval(whole))


def test_levels_are_compared_on_tasks_that_all_completed() -> None:
    """A cell with fewer tasks: the others' further tasks count in no difference."""
    few = [cell("a", "steep", tasks=5), cell("a", "flat", tasks=TASKS)]
    _, asked = study(few)
    (effect,) = asked["agenda"].effects
    assert effect.tasks == 5
    shares = {name: fmean(lasting("a", name, 10, task) / 10 for task in range(5)) for name in ("flat", "steep")}
    assert effect.values == pytest.approx((shares["flat"], shares["steep"]))
    assert dict(asked["agenda"].levels)["flat"][0] == pytest.approx(shares["flat"])


def test_cells_that_differ_in_more_are_not_compared() -> None:
    _, asked = study([cell("a", "steep", 4), cell("a", "flat", 8), cell("b", "kind", 10)])
    assert not asked


def test_the_headline_is_the_answer_with_its_interval(cells: list[MadeCell]) -> None:
    comparison, asked = study(cells)
    told = headline_of([comparison], ())
    effect = asked["agenda"].largest
    assert effect.interval is not None
    ends = f"[{effect.interval.low:.3f}, {effect.interval.high:.3f}]"
    assert told.title.startswith(f"Agenda {effect.a} ") and told.title.endswith(f"than {effect.b}")
    assert f"{effect.difference:.3f} {ends}" in told.title
    assert told.kicker.startswith("What do agenda and session length change")
    for question in asked.values():
        assert question.largest.numbers in told.text, "each factor with its interval"
    assert "Holm over 3 pairs of levels" in told.text
    assert "falls with the length by itself" in told.text
    assert told.facts[0] == ("19", "cells")


def test_a_difference_that_may_be_chance_makes_no_claim() -> None:
    def noise(model: str, agenda: str, turns: int, task: int) -> int:
        return 5 + (task % 3 if agenda == "flat" else (task + 1) % 3)

    comparison, asked = study([cell("a", name, varied=["agenda"], last=noise) for name in ("flat", "steep")])
    told = headline_of([comparison], ())
    assert told.title.startswith("No clear effect of agenda") and asked["agenda"].largest.numbers in told.title
    assert "may be chance" in told.text and "one pair of levels" in told.text


def test_nothing_is_certain() -> None:
    """A level that passes everything has Wilson's interval; equal differences and a single task have none."""
    late = {"flat": 10, "steep": 4}
    sides = [cell("a", name, varied=["agenda"], last=lambda _, agenda, *__: late[agenda]) for name in late]
    _, asked = study(sides)
    assert asked["agenda"].levels["flat"] == (1.0, wilson(TASKS, TASKS))
    assert asked["agenda"].largest.interval is None
    _, asked = study([cell("a", name, varied=["agenda"], tasks=1) for name in ("flat", "steep")])
    assert asked["agenda"].largest.interval is None and asked["agenda"].levels["flat"][1] is None


def test_a_dataset_of_one_task_leaves_no_interval() -> None:
    """It has no resamples, so none of a mean with it is known: NaN would be no JSON, and the page would stay empty."""
    sizes = {"humaneval": 1, "mbpp": TASKS}
    every = itertools.product(("flat", "steep"), sizes)
    _, asked = study([cell("a", name, varied=["agenda"], dataset=on, tasks=sizes[on]) for name, on in every])
    assert [ends for _, ends in asked["agenda"].levels.values()] == [None, None]
    assert asked["agenda"].largest.interval is None


def test_equal_levels_have_no_difference() -> None:
    comparison, _ = study([cell("a", name, varied=["agenda"], last=lambda *_: 4) for name in ("flat", "steep")])
    assert "no difference" in headline_of([comparison], ()).text


def test_the_page_begins_with_what_was_varied(cells: list[MadeCell]) -> None:
    comparison, _ = study(cells)
    keys = [section.key for section in sections_of([comparison])]
    assert keys == ["answer-refine", "survival", "leaderboard", "curves", "results"]
    survival = sections_of([comparison])[1]
    (charts,) = [part for part in survival.parts if isinstance(part, list)]
    assert {line.name for chart in charts for line in chart.lines} == {*AGENDAS}, "a chart compares levels"
    assert all(len({(line.cell.model, line.cell.turns) for line in chart.lines}) == 1 for chart in charts)
    (cards,) = sections_of([comparison])[3].parts
    assert isinstance(cards, Cards)
    assert sorted(card.cell.folder for card in cards.cards) == sorted(each.folder for each in cells), (
        "also of one alone"
    )


def test_with_models_alone_the_leaderboard_comes_first() -> None:
    (comparison,) = comparisons_of([cell("a", varied=[]), cell("b", varied=[])])
    assert next(section.key for section in sections_of([comparison])) == "leaderboard"
    assert not study_of(comparison).questions
    assert headline_of([comparison], ()).title.startswith("b keeps code alive longest: ")


def test_one_further_cell_of_eight_models_makes_no_report_about_settings() -> None:
    models = [cell(model, varied=["agenda"]) for model in "abcdefgh"]
    (comparison,) = comparisons_of([*models, cell("a", "steep", varied=["agenda"])])
    assert [section.key for section in sections_of([comparison])][:2] == ["leaderboard", "answer-refine"]
    assert "keep" in headline_of([comparison], ()).title


def test_sessions_of_one_length_are_ranked_among_themselves(cells: list[MadeCell]) -> None:
    comparison, _ = study(cells)
    ranked = next(section for section in sections_of([comparison]) if section.key == "leaderboard")
    boards = [part for part in ranked.parts if isinstance(part, Board)]
    assert [board.sort for board in boards] == ["MST of 10", "MST of 8", "MST of 4"]
    for board, length in zip(boards, sorted(LENGTHS, reverse=True), strict=True):
        shown = board.columns[0].values
        assert {each.turns for each in shown if isinstance(each, MadeCell)} == {length}
        most = [column.most for column in board.columns if column.most]
        assert most == [length], "the axis ends at the length"


def test_the_report_of_a_sweep_has_its_answer_in_every_form(tmp_path: Path) -> None:
    for agenda, turns in itertools.product(("balanced", "iid", "fixed"), (3, 5)):
        write_cell(Made("m", agenda=agenda, turns=turns, tasks=8, breaks=0.2), tmp_path / "runs")
    data = build_report(load_cells([tmp_path / "runs"]), tmp_path / "out")
    first = data.tables[0]
    assert first.name == "refine_effects" and data.opening[0] is first
    rows = list(first.named_rows())
    assert [row["factor"] for row in rows] == ["agenda"] * 3 + ["session length"]
    assert [row["family"] for row in rows] == [3, 3, 3, 1]
    assert all(isinstance(row["difference_ci"], Interval) for row in rows)
    text = write_page(data, tmp_path / "out").read_text(encoding="utf-8")
    begin = text.index('id="overview">') + len('id="overview">')
    shown = json.loads(text[begin : text.index("</script>", begin)])
    assert shown["sections"][0]["key"] == "answer-refine"
    boards = [part for part in shown["sections"][0]["parts"] if isinstance(part, dict)]
    assert [board["columns"][0]["title"] for board in boards] == ["Agenda", "Session length"]
    assert shown["findings"]["kicker"].startswith("What do agenda and session length change")
    groups = list(data.groups)
    assert groups.index("refine_effects") < groups.index("ablations") < groups.index("leaderboard")
