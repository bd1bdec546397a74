"""The paper's aggregates over models: every figure by hand, and what may not be averaged."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Change, Scope
from codechat.base.records import AdherenceRecord, InstructionRecord, SessionRecord, TurnRecord
from codechat.report.build import comparisons_of
from codechat.report.chapters import chapter_of
from codechat.report.comparison import LoadedCell
from codechat.report.data import Interval, Table
from codechat.report.drawing import Look
from codechat.report.formats import as_latex, as_markdown
from codechat.report.loading import load_cells
from codechat.report.metrics.statistics import phi
from codechat.studies.refine.chapter.outcomes import Draws, change, drawings, setups_of, tables, together
from support.pages import MadeCell, cell_of
from support.refine_cells import Made, write_cell

ASKED: list[tuple[Scope, Change]] = [("semantic", "add"), ("cosmetic", "remove")]
VERDICTS = {"a": "adhered", "v": "violated", "u": "undecided"}
# by model and dataset: per session whether turns 0, 1 and 2 pass, and whether 1 and 2 adhere
CELLS = {
    ("a", "x"): ["ppf aa", "pfp aa"],
    ("a", "y"): ["fpp aa"],
    ("b", "x"): ["ppp av", "fff av"],
    ("b", "y"): ["pff uv"],
}


def turns_of(session: str) -> Iterator[TurnRecord]:
    passed, judged = session.split()
    for turn, letter in enumerate(passed):
        kind = ASKED[turn - 1] if turn else None
        yield TurnRecord(
            turn=turn, response="reply", code="code", outcome="pass" if letter == "p" else "fail", passed=letter == "p",
            instruction=InstructionRecord(id=kind[0], text="Do.", scope=kind[0], change=kind[1]) if kind else None,
            adherence=AdherenceRecord(verdict=VERDICTS[judged[turn - 1]], by="rules", reason="") if turn else None,
        )  # fmt: skip


def cell(model: str, dataset: str, sessions: Sequence[str] = ("ppp aa",), **labels: Any) -> MadeCell:
    records = tuple(
        SessionRecord(
            cell_id=f"{model}{dataset}", session_id=f"{model}{dataset}{number}", task_id=f"{number}", dataset=dataset,
            model=model, protocol="refine", agenda=[], seed=0, status="completed", turns=list(turns_of(session)),
        )
        for number, session in enumerate(sessions)
    )  # fmt: skip
    made = cell_of(records, len(sessions[0].split()[0]))
    return replace(made, folder=Path(f"{model}-{dataset}-{'-'.join(map(str, labels.values()))}"), **labels)


def tables_of(cells: Sequence[LoadedCell]) -> dict[str, Table]:
    (comparison,) = comparisons_of(cells)
    return {table.name: table for table in tables(together(comparison))}


@pytest.fixture(scope="module")
def by_hand() -> dict[str, Table]:
    return tables_of([cell(*place, sessions) for place, sessions in CELLS.items()])


def values(table: Table, *keys: str) -> list[Any]:
    return [pytest.approx(row[key]) if isinstance(row[key], float) else row[key]
            for row in table.named_rows() for key in keys]  # fmt: skip


def test_means_of_pass_at_1_and_mst(by_hand: dict[str, Table]) -> None:
    keys = ("over", "models", "pass_first", "pass_last", "delta_pct", "mst")
    assert values(by_hand["models_by_dataset"], *keys) == [
        *("x", 2, 0.75, 0.5, -100 / 3, 1.5),  # a 2/2, b 1/2; a 1/2, b 1/2; MST (2 + 1)/2 and (3 + 0)/2
        *("y", 2, 0.5, 0.5, 0.0, 0.5),  # a 0/1, b 1/1; a 1/1, b 0/1; MST 0 and 1
        *("mean of all", 2, 0.625, 0.5, -20.0, 1.0),
    ]


def test_means_by_type_leave_out_a_model_without_such_a_turn(by_hand: dict[str, Table]) -> None:
    found = {(row["dataset"], row["type"]): row for row in by_hand["models_by_type"].named_rows()}
    keys = ("regression", "regression_least", "regression_most", "self_correction")
    expected = {
        ("x", "all"): (1 / 3, 0.0, 2 / 3, 0.5),  # a 2/3, b 0/2; a 1/1, b 0/2
        ("y", "all"): (0.5, 0.0, 1.0, 0.5),  # a 0/1, b 1/1; a 1/1, b 0/1
        ("x", "semantic"): (0.25, 0.0, 0.5, 0.0),  # a 1/2, b 0/1; nothing of a's failed before, b 0/1
        ("x", "cosmetic"): (0.5, 0.0, 1.0, 0.5),  # a 1/1, b 0/1; a 1/1, b 0/1
        ("y", "semantic"): (1.0, 1.0, 1.0, 1.0),  # b 1/1 alone; a 1/1 alone
        ("y", "cosmetic"): (0.0, 0.0, 0.0, 0.0),  # a 0/1 alone; b 0/1 alone
        ("mean of all", "add"): (0.625, 0.0, 1.0, 0.5),
        ("mean of all", "remove"): (0.25, 0.0, 1.0, 0.25),
        ("mean of all", "structural"): (None, None, None, None),
    }
    for place, rates in expected.items():
        assert tuple(found[place][key] for key in keys) == pytest.approx(rates), place
    assert len(found) == 3 * 7


def test_all_turns_together(by_hand: dict[str, Table]) -> None:
    found = {row["type"]: row for row in by_hand["models_together"].named_rows()}
    keys = ("regression", "passed_before", "self_correction", "failed_before")
    expected = {
        "all": (3 / 7, 7, 2 / 5, 5),
        "semantic": (2 / 4, 4, 1 / 2, 2),
        "cosmetic": (1 / 3, 3, 1 / 3, 3),
        "structural": (None, 0, None, 0),
        "a": (2 / 4, 4, 2 / 2, 2),
        "b": (1 / 3, 3, 0 / 3, 3),
    }
    for name, rates in expected.items():
        assert tuple(found[name][key] for key in keys) == pytest.approx(rates), name
    assert found["add"]["regression"] == found["semantic"]["regression"]


def test_phi_over_all_turns(by_hand: dict[str, Table]) -> None:
    *_, both = by_hand["models_phi"].named_rows()
    assert both == {
        "over": "all together", "models": 2, "turns": 11, "phi": pytest.approx((5 * 2 - 1 * 3) / 720**0.5),
        "pass_adhered": 5, "pass_violated": 1, "fail_adhered": 3, "fail_violated": 2, "undecided": 1,
    }  # fmt: skip


def test_the_published_counts_give_the_published_figures() -> None:
    found = phi(16668, 3955, 13497, 4898)
    assert found.value == pytest.approx(0.0888, abs=5e-5)
    assert sum((16668, 3955, 13497, 4898)) == 39_018
    ends = [((0.822, 0.539), -34.4), ((0.746, 0.438), -41.3)]  # the paper has -41.4, of values with more digits
    for (first, last), percent in ends:
        assert change(Draws(first, []), Draws(last, [])).value == pytest.approx(percent, abs=0.05)


def test_what_was_averaged_is_said_and_intervals_hold_their_values(by_hand: dict[str, Table]) -> None:
    for table in by_hand.values():
        assert "2 models on x and y" in table.title
        assert all(named in table.note for named in ("2 models (a, b)", "x and y", "3 turns", "balanced"))
        for text in (as_markdown(table), as_latex(table)):
            assert "2 models on x and y" in text
        for row in table.named_rows():
            for key, interval in row.items():
                if isinstance(interval, Interval):
                    assert interval.low <= row[key.removesuffix("_ci")] <= interval.high


def test_figures_say_what_they_draw_and_draw_what_tables_hold() -> None:
    cells = [cell(*place, sessions) for place, sessions in CELLS.items()]
    (comparison,) = comparisons_of(cells)
    for drawing in drawings(together(comparison)):
        assert all(named in drawing.caption for named in ("2 models (a, b)", "x and y", "3 turns", "balanced"))
        by_model, by_scope, by_change = drawing.draw(comparison, Look(comparison)).axes
        rate = drawing.name.removeprefix("models_")
        rows = {row["type"]: row[rate] for row in tables_of(cells)["models_together"].named_rows()}
        ((level, _), models) = (
            by_model.lines[-1].get_ydata(),
            [drawn[0].get_ydata()[0] for drawn in by_model.containers],
        )
        assert (level, *models) == pytest.approx((rows["all"], rows["a"], rows["b"]))
        assert list(by_scope.containers[0][0].get_ydata()) == pytest.approx([rows["cosmetic"], rows["semantic"]])
        assert list(by_change.containers[0][0].get_ydata()) == pytest.approx([rows["add"], rows["remove"]])


def test_one_model_is_no_mean() -> None:
    assert tables_of([cell("a", "x"), cell("a", "y")]) == {}
    (comparison,) = comparisons_of([cell("a", "x")])
    assert list(drawings(together(comparison))) == []
    shown = list(chapter_of("refine").tables(comparison))
    assert chapter_of("refine").opening(shown) == shown[:1]


@pytest.mark.long
def test_the_terminal_shows_them_after_the_leaderboard() -> None:
    (comparison,) = comparisons_of([cell(*place, sessions) for place, sessions in CELLS.items()])
    chapter = chapter_of("refine")
    names = [table.name for table in chapter.opening(list(chapter.tables(comparison)))]
    assert names == ["leaderboard", "models_by_dataset", "models_by_type", "models_together", "models_phi"]


def grouped(*cells: LoadedCell) -> list[tuple[list[str], list[str]]]:
    return [(sorted(setup.cells), list(setup.datasets)) for setup in setups_of(cells)]


@pytest.mark.parametrize(
    "other",
    [{"agenda": "iid"}, {"turns": 5}, {"variant": "judge llm"}, {"setup": "another prompt"}],
    ids=lambda other: next(iter(other)),
)
def test_nothing_is_averaged_across_settings(other: dict[str, Any]) -> None:
    cells = [cell(model, "x") for model in "ab"] + [cell(model, "x", **other) for model in "bcd"]
    assert grouped(*cells) == [(["b", "c", "d"], ["x"]), (["a", "b"], ["x"])]


def test_nothing_is_averaged_across_tasks() -> None:
    marked = [cell(model, name, mark=name) for model, name in ("ax", "bx", "ay", "cy", "by")]
    assert grouped(*marked) == [(["a", "b", "c"], ["y"])]
    limits = {"a": 10, "b": 10, "c": 20}
    limited = [cell(model, "x", config={"dataset": {"limit": limits[model]}}) for model in "cab"]
    assert grouped(*limited) == [(["a", "b"], ["x"])]


def test_every_model_has_every_dataset() -> None:
    cells = [cell(model, name) for model, name in ("ax", "bx", "cx", "ay", "by")]
    assert grouped(*cells) == [(["a", "b"], ["x", "y"])]
    assert grouped(*cells[:4]) == [(["a", "b", "c"], ["x"])], "one cell on y does not shut the others out"


def test_baselines_are_averaged_only_among_themselves() -> None:
    baselines = [cell(name, "x", config={"model": {"kind": name}}) for name in ("echo", "drifter")]
    models = [cell(name, "x", config={"model": {"kind": "openai"}}) for name in "ab"]
    assert grouped(*baselines, *models) == [(["a", "b"], ["x"])]
    assert grouped(*baselines, models[0]) == [(["a"], ["x"])]
    assert tables_of([*baselines, models[0]]) == {}
    assert "2 baselines on x" in tables_of(baselines)["models_phi"].title


def test_a_judge_for_each_dataset_keeps_them_apart(tmp_path: Path) -> None:
    for model in "ab":
        for dataset, judge in (("humaneval", "rules"), ("mbpp", "llm")):
            write_cell(Made(model, dataset, tasks=3, turns=3, judge=judge), tmp_path)
    loaded = load_cells([tmp_path])
    assert {each.variant for each in loaded} == {""}
    assert grouped(*loaded) == [(["a", "b"], ["humaneval"]), (["a", "b"], ["mbpp"])]
    board = tables_of(loaded)["models_phi"]
    assert [row[:2] for row in board.rows] == [("balanced, humaneval", "humaneval"), ("balanced, mbpp", "mbpp")]
    assert "2 setups" in board.title
