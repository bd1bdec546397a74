"""The share of instructions that were followed, corrected for the errors of the judge that decided it.

A judge calls a change adhered in a share q of all cases. With its sensitivity (the share of followed instructions that
it calls adhered) and its specificity (the share of the others that it calls violated) the true share is (q +
specificity − 1) / (sensitivity + specificity − 1): Rogan and Gladen, American Journal of Epidemiology 107 (1978).

For intervals the tasks are resampled in the labelled cells and in the corrected one alike, and sensitivity and
specificity vary as the number of labels demands (`codechat.report.metrics.judge_errors`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from codechat.report.metrics.judge_errors import Bootstraps, Errors, Judged, JudgeLabels, ends, estimate, summed
from codechat.report.metrics.statistics import Interval, TaskBootstrap

ALL = "all"
NO_CODE = "no code"
"""The scope of replies without code, which no judge needs to see: certainly not followed."""
SURE = Errors((0, 0), (0, 0), 1.0, 1.0, (1.0, 1.0))


@dataclass(frozen=True, slots=True)
class Share:
    """A corrected share, cut to the range from 0 to 1, with its values in the resamples; `cut` if it was outside."""

    value: float
    drawn: Any
    cut: bool
    by_scope: bool

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval."""
        return ends(self.drawn)


def rogan_gladen(adhered: Any, sensitivity: Any, specificity: Any) -> Any:
    """The true share, from the share that is judged adhered and the judge's sensitivity and specificity."""
    return (adhered + specificity - 1) / (sensitivity + specificity - 1)


class Correction:
    """A judge's errors by its labels, and the corrected shares of a cell that the same judge judged.

    `bootstraps` resample the tasks of every dataset of the labelled cells and of the cell to be corrected, so that
    a task which is in both is resampled in both alike.
    """

    def __init__(self, known: JudgeLabels, bootstraps: Bootstraps) -> None:
        self.known, self.bootstraps = known, bootstraps
        self._found: dict[str, Errors] = {}
        self.scopes = tuple(dict.fromkeys(scope for own in known.judged.values() for scope in own))

    @classmethod
    def alone(cls, known: JudgeLabels) -> "Correction":
        """The correction without a cell, to read the judge's errors from the labels alone."""
        tasks = {
            name: {task for figure in own.values() for task in figure.by_task} for name, own in known.judged.items()
        }
        return cls(known, {name: TaskBootstrap(own, 0) for name, own in tasks.items()})

    def errors(self, scope: str) -> Errors:
        """The judge's errors in a scope, or in all scopes (`all`)."""
        if scope not in self._found:
            scopes = self.scopes if scope == ALL else (scope,)
            self._found[scope] = estimate(self.known, scopes, self.bootstraps)
        return self._found[scope]

    def by_scope(self, scopes: Iterable[str]) -> bool:
        """Whether every one of some scopes has labels enough."""
        return all(not self.errors(scope).refusal for scope in scopes)

    def share(self, dataset: str, judged: Judged) -> Share | str:
        """The corrected share of followed instructions, or the reason why there is none.

        It is corrected scope by scope if every scope that occurs has labels enough, else by the labels of all
        scopes together. A single scope whose own labels suffice, but show that its verdicts mean nothing, is
        not corrected by those of others.
        """
        import numpy as np

        known = {scope: figure for scope, figure in judged.items() if figure.rate is not None}
        scopes = known.keys() - {NO_CODE}
        if not scopes:
            return "nothing was judged"
        apart = self.by_scope(scopes)
        if not apart:
            own = [self.errors(scope) for scope in scopes]
            alone = len(own) == 1 and own[0].sensitivity is not None  # others' errors are not used for it
            if refusal := (own[0].refusal if alone else "") or self.errors(ALL).refusal:
                return refusal
        errors = [SURE if scope == NO_CODE else self.errors(scope if apart else ALL) for scope in known]
        whole = [summed(figure) for figure in known.values()]
        value = _corrected(whole, [(each.sensitivity, each.specificity) for each in errors])
        bootstrap = self.bootstraps.get(dataset)
        sums = bootstrap.sums(list(known.values())) if bootstrap is not None else None
        drawn = None
        if sums is not None and all(each.drawn is not None for each in errors):
            parts = [(sums[:, place, 0], sums[:, place, 1]) for place in range(len(known))]
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn = _corrected(parts, [each.drawn or () for each in errors]).clip(0, 1)
        return Share(min(1.0, max(0.0, value)), drawn, not 0 <= value <= 1, apart)


def _corrected(parts: Sequence[tuple[Any, Any]], errors: Sequence[Any]) -> Any:
    """The share over several groups of decisions, each given as (adhered, all) and with errors of its own.

    The corrected number of a group without a decision is 0.
    """
    total = sum(whole for _, whole in parts)
    followed = [
        (hits + (specificity - 1) * whole) / (sensitivity + specificity - 1)
        for (hits, whole), (sensitivity, specificity) in zip(parts, errors, strict=True)
    ]
    return sum(followed) / total
