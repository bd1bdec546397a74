"""Several samples of every issue: how often one of them is judged correct, and how often all are."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from codechat.metrics.repeats import Part, all_of, any_of, mean_over_tasks, sizes
from codechat.metrics.statistics import Figure
from codechat.records import SessionRecord
from codechat.report.data import Table, columns_of, with_interval
from codechat.report.generic.repeats import measured, pooled_in
from codechat.report.generic.tables import named_table
from codechat.report.study import Study, Verdicts
from codechat.studies.cab.metrics import GRADES
from codechat.studies.cab.turns import AssistJudgement


@dataclass
class Judged(Verdicts):
    """A cell's sessions, and by issue whether each is judged correct; an undecided one is no sample."""

    correct: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))

    def add(self, session: SessionRecord) -> None:
        """Count a completed session."""
        super().add(session)
        verdict = AssistJudgement.of(session).verdict
        if verdict is not None:
            self.correct[session.task_id].append(verdict.lower() == GRADES[0])

    def of_k(self, k: int, part: Callable[[int, int, int], Part]) -> Figure:
        """What any or all (`part`) of k samples of an issue are: correct."""
        return mean_over_tasks({task: part(len(own), sum(own), k) for task, own in self.correct.items()})


def repeated(study: Study[Any]) -> Iterator[Table]:
    """The table of correct@k and correct^k, if an entrant pools several cells."""
    rows = []
    found: Judged
    for found in pooled_in(study):
        for k in sizes(found.cell.samples):
            any_correct, all_correct = found.of_k(k, any_of), found.of_k(k, all_of)
            values = (*measured(found, any_correct), *measured(found, all_correct))
            rows.append((found, (k, len(any_correct.by_task), *values)))
    columns = (
        *columns_of("d", k="k", tasks="Issues"), *with_interval("correct_any", "correct@k", ".3f"),
        *with_interval("correct_all", "correct^k", ".3f"),
    )  # fmt: skip
    if rows:
        yield named_table(
            study, columns, rows, title="Correct in one of k samples, and in all",
            name="assist_repeats_correct", group=study.protocol,
            note="Unbiased: means over all choices of k of an issue's samples, then over the issues with k decided "
            "ones. correct@k: one of the k is CORRECT; correct^k: all k are. k = 1 is the share of correct verdicts, "
            "each issue with the same weight. Intervals: 95 %, resampled by issue, each with all its samples.",
        )  # fmt: skip
