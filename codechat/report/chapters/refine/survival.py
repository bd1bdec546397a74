"""How long sessions pass: the log-rank test between survival curves."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Survival:
    """Sessions of one entrant. `lasted` holds the passing turns from turn 0 on, N of them at most; `turns` is N.

    A session that lasted all N turns has not failed yet: it is censored.
    """

    lasted: Sequence[int]
    turns: int


@dataclass(frozen=True, slots=True)
class LogRank:
    """The test that the curves are one, with `groups - 1` degrees of freedom."""

    chi2: float
    p: float


def log_rank(groups: Sequence[Survival]) -> LogRank | None:
    """Compare two or more curves over the turns they share; None where no session ever fails or a group is empty."""
    from statsmodels.duration.survfunc import survdiff

    shared = min(group.turns for group in groups)
    times, failed, members = [], [], []
    for number, group in enumerate(groups):
        for lasted in group.lasted:
            # the first failing turn, counted from 1: a session that fails at turn 0 has time 1
            times.append(min(lasted, shared) + 1)
            failed.append(int(lasted < shared))
            members.append(number)
    if not any(failed) or len(set(members)) < len(groups):
        return None
    chi2, p = survdiff(times, failed, members)
    return LogRank(float(chi2), float(p))
