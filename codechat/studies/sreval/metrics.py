"""The figures of requirements that come step by step (SR-Eval, section 4; definitions in docs/sreval.md)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from codechat.base.records import SessionRecord
from codechat.report.metrics.measures import Final, Measures, Series
from codechat.report.metrics.spending import Effort
from codechat.report.metrics.statistics import TaskRatio
from codechat.report.metrics.sums import CellSums, Mean, Tally, Value, at

CHECKS = "earlier"  # the field of a turn with the verdicts of earlier turns' tests: `[{turn, passed}]`

STEPWISE = Measures(
    protocol="stepwise",
    title="SR-Eval: requirements that come step by step",
    series=(
        Series("acc", "Acc(k)", help="tasks whose code passes the turn's own tests, among tasks with the turn"),
        Series(
            "kept",
            "Earlier tests kept",
            first_turn=1,
            help="tests of earlier turns that the code passes, among tests that the turn's own reference passes",
        ),
    ),
    finals=(
        Final("avg_acc", "AvgAcc", help="unweighted mean of Acc(k) over the turns that exist"),
        Final("complete_rate", "Complete rate", help="tasks that pass the tests of every turn"),
        Final("question_acc", "Acc over all turns", help="turns that pass their own tests, of all turns"),
        Final("acc_after_first", "Acc after the first turn", help="turns that pass, of all but first turns"),
        Final("kept_overall", "Earlier tests kept", help="the same over all turns, of no paper"),
        Final("atc", "Tokens per task", unit="number", higher_is_better=False,
              help="input and output tokens of all turns, averaged over tasks"),
    ),
    passed="the code passes the tests of the turn's own requirement",
)  # fmt: skip


@dataclass
class _Seen(CellSums):
    acc: list[TaskRatio] = field(default_factory=list)
    kept: list[TaskRatio] = field(default_factory=list)
    finals: Tally = field(default_factory=Tally)

    def count(self, session: SessionRecord) -> None:
        task, count = session.task_id, self.finals.count
        for turn in session.turns:
            passed = (bool(turn.passed), 1)
            at(self.acc, turn.turn, TaskRatio).count(task, *passed)
            count(task, {"question_acc": passed, **({"acc_after_first": passed} if turn.turn else {})})
            for check in (turn.model_extra or {}).get(CHECKS) or ():
                at(self.kept, turn.turn - 1, TaskRatio).count(task, bool(check["passed"]))
                count(task, {"kept_overall": (bool(check["passed"]), 1)})
        used = sum(turn.usage.input_tokens + turn.usage.output_tokens for turn in session.turns)
        count(task, {"complete_rate": (all(turn.passed for turn in session.turns), 1), "atc": (used, 1)})

    def values(self, value: Value) -> dict[str, Any]:
        return {
            "acc": [*map(value, self.acc)],
            "kept": [*map(value, self.kept)],
            "avg_acc": value(Mean(self.acc)),
            **{final.key: value(self.finals[final.key]) for final in STEPWISE.finals[1:]},
        }


def stepwise_metrics(sessions: Iterable[SessionRecord], *, seed: int, effort: Effort | None = None) -> dict[str, Any]:
    """The content of metrics.json, as described by `STEPWISE`."""
    seen = _Seen()
    found = seen.content(sessions, seed, effort)
    found["n"] |= {"acc": [len(figure.by_task) for figure in seen.acc], "avg_acc": len(seen.tasks)}
    return found
