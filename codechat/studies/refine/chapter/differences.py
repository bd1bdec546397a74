"""Whether two entrants differ in how long and at which turns they pass, with corrected tests and effect sizes."""

from collections.abc import Sequence

from codechat.metrics.statistics import percent_change
from codechat.report.data import Column, Interval, Table, columns_of, with_interval
from codechat.report.generic import matched, paired
from codechat.report.study import sustained
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy

Survival = tuple[Sequence[int], int]
"""How many turns each session passed from turn 0 on, and N, the turns there are.

A session that passed all N has not failed yet: it is censored.
"""
BY_TASK = (
    " A pair with several samples of a task is tested by the tasks that both completed, with a variance that takes a "
    "task's sessions, of both entrants, as dependent."
)


def differences(compared: list[paired.Pair[Outcomes]]) -> Table:
    """A minus B in MST and in Δ, with the paired bootstrap, the signed-rank test and its effect size."""
    columns = (
        *paired.paired_columns("mst", "MST", "mst_difference"),
        *with_interval("delta_difference", "Δ A − Δ B, points", "+.1f"),
    )
    rows = [(*paired.paired_row(pair, lambda verdicts: (sustained(verdicts), 1)), *_delta(pair)) for pair in compared]
    return paired.corrected(Table(
        "pairs_mst", "Paired differences of MST and Δ", columns, tuple(rows), group="pairs",
        note="On the tasks and turns that both completed. Intervals: 95 %, paired bootstrap by task. p: Wilcoxon's "
        "signed-rank test on the tasks' passing turns, Holm-corrected over all pairs of a dataset; bold: below 0.05. "
        "Rank-biserial r: 1 where every task that differs favours A, −1 where every one favours B."
        f"{paired.note_on_samples(compared)}",
    ))  # fmt: skip


def _delta(pair: paired.Pair[Outcomes]) -> tuple[float | None, Interval | None]:
    """The difference of the changes in Pass@1 from the first to the last shared turn, in percentage points."""
    sides = list(zip(pair.at(0), pair.at(-1), strict=True))
    changes = [percent_change(first.rate, last.rate) for first, last in sides]
    drawn = [list(map(percent_change, pair.ratios(first), pair.ratios(last))) for first, last in sides]
    return matched.minus(*changes), matched.difference(*drawn)


def turns(compared: list[paired.Pair[Outcomes]]) -> Table:
    """McNemar's test per turn."""
    spec = paired.count_spec(compared)
    columns = (
        *paired.NAMES,
        Column("turn", "Turn", "d"),
        *columns_of(spec, both="Both pass", only_a="Only A", only_b="Only B", neither="Neither"),
        Column("p", "p", "p"),
        *with_interval("risk_difference", "Risk difference", "+.3f"),
        Column("odds_ratio", "Odds ratio", ".2f"),
    )
    rows: list[paired.Row] = []
    for pair in compared:
        for turn in range(pair.turns):
            a, b = pair.at(turn)
            (found, p), interval = pair.agreement(turn), matched.difference(pair.ratios(a), pair.ratios(b))
            rows.append((*pair.names, turn, *found, p, found.risk_difference, interval, found.odds_ratio))
    return paired.corrected(Table(
        "pairs_turns", "McNemar's test per turn", columns, tuple(rows), group="pairs",
        note="Exact and two-sided, on the tasks that both completed; Holm-corrected over all pairs and turns of a "
        "dataset; bold: below 0.05. Risk difference: Pass@1 of A minus that of B, its interval resampled by task. "
        "Odds ratio: tasks that only A passes per task that only B passes; a dash where B has none."
        f"{paired.note_on_samples(compared)}",
    ))  # fmt: skip


def survival(study: RefineStudy, compared: list[paired.Pair[Outcomes]]) -> Table:
    """The log-rank test: all entrants of a dataset at once, then pair by pair."""
    columns = (
        *paired.NAMES[:3],
        *columns_of("d", sessions_a="Sessions A", sessions_b="Sessions B"),
        *(Column("chi2", "χ²", ".2f"), Column("p", "p", "p")),
    )
    whole: list[paired.Row] = []
    for dataset in study.datasets:
        entrants = study.on(dataset)
        single = len(entrants) > 2 and all(found.cell.samples == 1 for found in entrants)
        test = log_rank([_curve(found) for found in entrants]) if single else None
        if test:
            whole.append((dataset, "all entrants", "", None, None, *test))
    rows: list[paired.Row] = []
    for pair in compared:
        test = log_rank_by_task(pair) if pair.repeated else log_rank([_curve(pair.a), _curve(pair.b)])
        rows.append((*pair.names[:3], len(pair.a.tasks), len(pair.b.tasks), *(test or (None, None))))
    return paired.corrected(Table(
        "pairs_survival", "Log-rank test between survival curves", columns, (*whole, *rows), group="pairs",
        note="A session has failed at the first turn that does not pass; one that passes to the end is censored. Over "
        "the turns that the curves share. The test takes the sessions of two entrants as independent, though they "
        "share their tasks; the paired tests do not. Holm-corrected over all pairs of a dataset; bold: below 0.05."
        f"{BY_TASK if any(pair.repeated for pair in compared) else ''}",
    ), whole=len(whole))  # fmt: skip


def _curve(found: Outcomes) -> Survival:
    return found.sustained, found.cell.turns


def log_rank(groups: Sequence[Survival]) -> tuple[float, float] | None:
    """χ² and p of the test that the curves are one, over the turns they share; a degree of freedom less than curves.

    None if no session ever fails or a group is empty.
    """
    from statsmodels.duration.survfunc import survdiff

    shared = min(turns for _, turns in groups)
    times, failed, members = [], [], []
    for number, (lasted, _) in enumerate(groups):
        # the first failing turn, counted from 1: a session that fails at turn 0 has time 1
        times += [min(turns, shared) + 1 for turns in lasted]
        failed += [int(turns < shared) for turns in lasted]
        members += [number] * len(lasted)
    if not any(failed) or len(set(members)) < len(groups):
        return None
    chi2, p = survdiff(times, failed, members)
    return float(chi2), float(p)


def log_rank_by_task(pair: paired.Pair[Outcomes]) -> tuple[float, float] | None:
    """χ² and p of the log-rank test whose variance is that of the tasks' contributions (Lin and Wei's).

    None if no session of a shared task ever fails, or no task speaks for either.
    """
    from scipy.stats import chi2

    lasted = [[[sustained(row) for row in samples] for samples in side] for side in pair.verdicts]
    flat = [[turns for samples in side for turns in samples] for side in lasted]
    at_risk = [[sum(turns >= turn for turns in side) for turn in range(pair.turns)] for side in flat]
    failed = [sum(side.count(turn) for side in flat) for turn in range(pair.turns)]
    of_a = [mine / (mine + its) if mine + its else 0.0 for mine, its in zip(*at_risk, strict=True)]
    hazard = [count / (mine + its) if count else 0.0 for count, mine, its in zip(failed, *at_risk, strict=True)]

    def part(turns: int, is_a: bool) -> float:
        """What a session adds to the observed minus the expected failures of A."""
        weights = [is_a - share for share in of_a]
        seen = -sum(weights[turn] * hazard[turn] for turn in range(min(turns + 1, pair.turns)))
        return seen + (weights[turns] if turns < pair.turns else 0.0)

    tasks = [
        sum(part(turns, True) for turns in mine) + sum(part(turns, False) for turns in its)
        for mine, its in zip(*lasted, strict=True)
    ]
    spread = sum(each**2 for each in tasks)
    if not spread:
        return None
    statistic = sum(tasks) ** 2 / spread
    return statistic, float(chi2.sf(statistic, 1))
