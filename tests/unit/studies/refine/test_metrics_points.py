"""Which of a cell's figures reach MLflow, and under which names."""

from codechat.base.records import SessionRecord
from codechat.report.metrics import Effort, Point, points_of
from codechat.studies.refine.metrics import REFINE, refine_metrics


def record(*passed: bool) -> SessionRecord:
    turns = [
        {
            "turn": number,
            "instruction": {"id": "i", "text": "t", "scope": "semantic", "change": "add"} if number else None,
            "response": "r",
            "outcome": "pass" if good else "fail",
            "passed": good,
            "passed_base": good,
            "adherence": {"verdict": "adhered", "by": "rules", "reason": ""} if number else None,
        }
        for number, good in enumerate(passed)
    ]
    return SessionRecord.model_validate(
        {
            "cell_id": "c",
            "session_id": "s",
            "task_id": "T/0",
            "dataset": "d",
            "model": "m",
            "protocol": "refine",
            "agenda": ["semantic"] * (len(turns) - 1),
            "seed": 0,
            "status": "completed",
            "turns": turns,
        }
    )


def test_series_have_the_turn_as_step_and_scalars_the_contracts_names() -> None:
    points = points_of(
        REFINE, refine_metrics([record(True, True, False, False)], seed=0, effort=Effort(retries=2, wall_s=1.5))
    )
    series = [point for point in points if point.key.startswith("turn/")]
    assert series == [
        *(Point("turn/pass_at_1", value, turn) for turn, value in enumerate([1.0, 1.0, 0.0, 0.0])),
        *(Point("turn/iar", 1.0, turn) for turn in (1, 2, 3)),
    ]
    scalars = {point.key: point.value for point in points if not point.key.startswith("turn/")}
    assert scalars["final/mst"] == scalars["final/mst_at_4"] == 2.0
    assert scalars["final/delta_pct"] == -100.0
    assert scalars["final/regression"] == scalars["final/regression_semantic"] == 1 / 2
    assert scalars["final/regression_semantic_add"] == scalars["final/regression_add"] == 1 / 2
    assert scalars["final/self_correction_add"] == 0.0
    assert 0 < scalars["final/mk_p"] < 1
    assert scalars["final/mk_p_iar"] == 1.0
    assert scalars["final/outcome_fail"] == 2
    assert {key: value for key, value in scalars.items() if key.startswith("cost/")} == {
        "cost/retries": 2,
        "cost/wall_s": 1.5,
    }, "an offline model has no charts of zeros"
    assert all(point.step == 0 for point in points if not point.key.startswith("turn/"))
    assert {point.key.partition("/")[0] for point in points} == {"turn", "final", "cost"}


def test_null_is_not_logged() -> None:
    keys = {point.key for point in points_of(REFINE, refine_metrics([record(True)], seed=0))}
    assert keys.isdisjoint({"turn/iar", "final/mk_p", "final/phi", "final/regression", "cost/model_usd"})
    assert "final/mst" in keys
    nothing = points_of(REFINE, refine_metrics([], seed=0))
    assert {point.key for point in nothing if point.value} == set()
