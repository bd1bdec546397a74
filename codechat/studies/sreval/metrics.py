"""The figures of requirements that come step by step (SR-Eval, section 4; definitions in docs/sreval.md)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from codechat.base.domain import OUTCOMES
from codechat.base.records import SessionRecord
from codechat.report.metrics.measures import Final, Measures, Series
from codechat.report.metrics.spending import Effort, Tokens, add_tokens, no_tokens, spending_of
from codechat.report.metrics.statistics import Figure, TaskBootstrap, percentile_interval

CHECKS = "earlier"
"""The field of a turn with the verdicts of earlier turns' tests: `[{turn, passed}]`."""

STEPWISE = Measures(
    protocol="stepwise",
    title="SR-Eval: requirements that come step by step",
    series=(
        Series("acc", "Acc(k)", help="tasks whose code passes the turn's own tests, of those that have the turn"),
        Series(
            "kept",
            "Earlier tests kept",
            first_turn=1,
            help="tests of earlier turns that the code passes, of those that the turn's own reference passes",
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
class _Seen:
    """The sums over all sessions, made in one pass."""

    sessions: int = 0
    tasks: list[str] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    tokens: Tokens = field(default_factory=no_tokens)
    acc: list[Figure] = field(default_factory=list)
    kept: list[Figure] = field(default_factory=list)
    complete: Figure = field(default_factory=Figure)
    questions: Figure = field(default_factory=Figure)
    after_first: Figure = field(default_factory=Figure)
    kept_overall: Figure = field(default_factory=Figure)
    spent: Figure = field(default_factory=Figure)

    def add(self, session: SessionRecord) -> None:
        self.sessions += 1
        if session.status != "completed":
            return
        task = session.task_id
        self.tasks.append(task)
        add_tokens(self.tokens, session)
        for turn in session.turns:
            self.outcomes.update([turn.outcome] if turn.outcome is not None else [])
            _at(self.acc, turn.turn).count(task, bool(turn.passed))
            for figure in (self.questions, *([self.after_first] if turn.turn else [])):
                figure.count(task, bool(turn.passed))
            for passed in [bool(check["passed"]) for check in (turn.model_extra or {}).get(CHECKS) or ()]:
                _at(self.kept, turn.turn - 1).count(task, passed)
                self.kept_overall.count(task, passed)
        self.complete.count(task, all(turn.passed for turn in session.turns))
        used = [turn.usage.input_tokens + turn.usage.output_tokens for turn in session.turns]
        self.spent.count(task, sum(used))


def _at(figures: list[Figure], place: int) -> Figure:
    while len(figures) <= place:
        figures.append(Figure())
    return figures[place]


def stepwise_metrics(sessions: Iterable[SessionRecord], *, seed: int, effort: Effort | None = None) -> dict[str, Any]:
    """The content of metrics.json: JSON values as `STEPWISE` says. The sessions are read once, in any order."""
    seen = _Seen()
    for session in sessions:
        seen.add(session)
    bootstrap = TaskBootstrap(seen.tasks, seed)
    resampled = [bootstrap.ratios(figure) for figure in seen.acc]
    finals = {
        "complete_rate": seen.complete,
        "question_acc": seen.questions,
        "acc_after_first": seen.after_first,
        "kept_overall": seen.kept_overall,
        "atc": seen.spent,
    }
    spending = spending_of(seen.tokens, effort or Effort())
    return {
        "sessions": seen.sessions,
        "completed": len(seen.tasks),
        "errored": seen.sessions - len(seen.tasks),
        "outcomes": {outcome: seen.outcomes[outcome] for outcome in OUTCOMES},
        "acc": [figure.rate for figure in seen.acc],
        "kept": [figure.rate for figure in seen.kept],
        "avg_acc": _mean([figure.rate for figure in seen.acc]),
        **{name: figure.rate for name, figure in finals.items()},
        "n": {
            "acc": [len(figure.by_task) for figure in seen.acc],
            "kept": [sum(total for _, total in figure.by_task.values()) for figure in seen.kept],
            "avg_acc": len(seen.tasks),
            **{name: sum(total for _, total in figure.by_task.values()) for name, figure in finals.items()},
        },
        "ci": {
            "acc": [bootstrap.interval(figure) for figure in seen.acc],
            "kept": [bootstrap.interval(figure) for figure in seen.kept],
            "avg_acc": percentile_interval(map(_mean, zip(*resampled, strict=True))),
            **{name: bootstrap.interval(figure) for name, figure in finals.items()},
        },
        **spending,
    }


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
