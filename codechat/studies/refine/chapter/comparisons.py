"""Comparisons of cells: paired tests, one choice or language varied, adherence corrected by people's labels."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations

from codechat.base.domain import SCOPES
from codechat.report.comparison import RESCORED, JudgeLabels
from codechat.report.data import Column, Interval, Table, Value, columns_of, with_interval
from codechat.report.generic import paired
from codechat.report.generic.factors import Outcome, factor_of
from codechat.report.generic.tables import named_table
from codechat.report.metrics.statistics import TaskRatio, percent_change, sustained
from codechat.report.metrics.sums import size
from codechat.studies.refine.chapter.outcomes import Measured, Outcomes, RefineComparison
from codechat.studies.refine.chapter.powered import FEWEST, Powered, powered, powered_difference

NAMES: Mapping[str, str] = {"agenda": "Agenda", "turns": "N", "judge": "Judge", "prompts": "Prompts"}
MEANING = (
    "Corrected: the share of judged instructions that applied and were followed, as people would say. "
    "Prediction-powered (PPI++): the cell's own labels, with all verdicts of the judge to reduce the variance. It "
    "assumes that the labels are a random draw of this cell's decisions, as `audit export` makes it, and nothing of "
    f"the judge. It needs {FEWEST} labels of each verdict in the cell itself. Intervals: 95 %, by task."
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
        f"signed-rank test on the tasks' passing turns, {paired.FAMILIES}; bold: below 0.05. "
        "Rank-biserial r: 1 where every task that differs favours A, −1 where every one favours B."
        f"{paired.note_on_samples(compared)}",
    ), [pair.family for pair in compared])  # fmt: skip


def _delta(pair: paired.Pair[Outcomes]) -> tuple[float | None, Interval | None]:
    """The difference of the changes in Pass@1 over the shared turns, in percentage points."""
    sides = list(zip(pair.at(0), pair.at(-1), strict=True))
    changes = [percent_change(first.rate, last.rate) for first, last in sides]
    drawn = [list(map(percent_change, pair.ratios(first), pair.ratios(last))) for first, last in sides]
    return paired.minus(*changes), paired.difference(*drawn)


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
            (found, p), interval = pair.agreement((a, b)), paired.difference(pair.ratios(a), pair.ratios(b))
            rows.append((*pair.names, turn, *found, p, found.risk_difference, interval, found.odds_ratio))
    return paired.corrected(Table(
        "pairs_turns", "McNemar's test per turn", columns, tuple(rows), group="pairs",
        note=f"Exact and two-sided, on the tasks that both completed; {paired.FAMILIES}, over all its turns; bold: "
        "below 0.05. Risk difference: Pass@1 of A minus Pass@1 of B, its interval resampled by task. "
        "Odds ratio: tasks that only A passes per task that only B passes; a dash where B has none."
        f"{paired.note_on_samples(compared)}",
    ), [pair.family for pair in compared for _ in range(pair.turns)])  # fmt: skip


# What can vary, with the words for it, and how a cell is called in such a table.
AXES: Mapping[str, str] = {
    "agenda": "Agenda distribution (D)",
    "turns": "Session length (N)",
    "judge": "Judge",
    "prompts": "Prompts of the model",
}


SUSTAINED = Outcome(
    "share of turns sustained", lambda verdicts: (sustained(verdicts), len(verdicts)), "sustains", "the turns",
    {"turns": "A longer session has more turns at which code can break, so the share falls with the length by itself."},
)  # fmt: skip


def ablation_table(comparison: RefineComparison, axis: str) -> Table | None:
    """Cells of one model and dataset that differ in an axis alone; None if nothing varies along it."""
    groups: dict[tuple[str, ...], list[tuple[str | int, Outcomes]]] = defaultdict(list)
    for found in comparison.cells:
        cell = found.cell
        on = {key: words for key, words in cell.differences.items() if factor_of(key) == axis}
        fixed = ", ".join(words for key, words in cell.differences.items() if key not in on)
        # under the choice, or under the words of the options if the choice is not all
        chosen = on.keys() <= {axis, "agenda.turns", RESCORED}
        words = ", ".join(on.values()).removeprefix(f"{axis}=")
        value = getattr(cell, axis) if chosen and axis != "prompts" else words
        groups[cell.dataset, cell.model, fixed].append((value, found))
    series = {key: sorted(members, key=lambda pair: (isinstance(pair[0], str), pair[0]))
              for key, members in sorted(groups.items()) if len({value for value, _ in members}) > 1}  # fmt: skip
    if not series:
        return None
    several = any(fixed for *_, fixed in series)
    columns = (
        *columns_of(dataset="Dataset", model="Model", **({"fixed": "Fixed"} if several else {}), **{axis: NAMES[axis]}),
        Column("completed", "Sessions", "d"), *columns_of(".3f", pass_first="Pass@1 first", pass_last="last"),
        *with_interval("delta_pct", "Δ %", "+.1f"),
        *with_interval("mst", "MST", ".3f"), Column("mst_share", "MST / N", ".3f"),
        *with_interval("regression", "Regression", ".3f"),
        *columns_of(".3f", **{f"regression_{scope}": scope for scope in SCOPES}, adherence="Adherence"),
    )  # fmt: skip
    rows = [
        (dataset, model, *([fixed] if several else []), str(value), *_values(found))
        for (dataset, model, fixed), members in series.items() for value, found in members
    ]  # fmt: skip
    return Table(
        f"ablation_{axis}", f"{AXES[axis]}, side by side", columns, tuple(rows), group="ablations",
        note="Cells of one model and dataset that differ in this choice alone. MST grows with N by itself: compare "
        "MST / N, the share of a session that is sustained. Intervals: 95 %, resampled by task.",
    )  # fmt: skip


def _values(found: Outcomes) -> tuple[Value, ...]:
    metrics, mst = found.cell.metrics, found.measured("mst")
    return (
        *(metrics["completed"], metrics["pass_at_1"][0], metrics["pass_at_1"][-1]),
        *(*found.measured("delta_pct"), *mst, None if mst[0] is None else mst[0] / found.cell.turns),
        *regression(found, "overall"),
        *(metrics["regression"]["by_scope"][scope] for scope in SCOPES),
        found.adherence.rate,
    )


def regression(found: Outcomes, kind: str) -> Measured:
    """The rate of a kind of turns, such as `overall` or `by_scope.cosmetic`, with its interval for readers. The tasks
    behind it are counted from the sessions, since metrics.json has no such number."""
    value, ends = found.measured(f"regression.{kind}")
    return value, Interval.of(dict(found.regression.items())[kind].of_width(ends))


def by_language(comparison: RefineComparison) -> Table | None:
    """All pairs of cells of one model and setup in two languages, tasks paired by id; None without a pair."""
    compared = []
    for sides in combinations(comparison.in_order(), 2):
        a, b = sorted(sides, key=lambda found: (found.languages != {"python"}, sorted(found.languages)))
        single = len(a.languages) == len(b.languages) == 1
        alike = (a.cell.model, a.cell.setup) == (b.cell.model, b.cell.setup)
        if single and alike and a.languages != b.languages and (pair := paired.Pair(a, b)).tasks:
            compared.append(pair)
    if not compared:
        return None
    columns = (
        *columns_of(model="Model", setting="Setting", datasets="Datasets", a="A", b="B"), Column("tasks", "Tasks", "d"),
        *_sides("first", "Pass@1 first"), *_sides("last", "Pass@1 last"), *_sides("mst", "MST"),
    )  # fmt: skip
    return Table(
        "by_language", "By language, paired by task", columns, tuple(map(_in_languages, compared)), group="pairs",
        note="Cells of one model and setup in two programming languages, on the tasks and turns that both completed, "
        "paired by their ids. A − B: its 95 % interval is resampled by task, with both languages of a task together. "
        "Each language has its own instructions, so a turn of one asks for a change of the same type "
        "as in the other, and not for the same change.",
    )  # fmt: skip


def _sides(key: str, title: str) -> tuple[Column, ...]:
    sides = columns_of(".3f", **{f"{key}_a": f"{title} A", f"{key}_b": "B"})
    return (*sides, *with_interval(f"{key}_difference", "A − B", "+.3f"))


def _in_languages(pair: paired.Pair[Outcomes]) -> tuple[Value, ...]:
    sustained_by_task = [
        TaskRatio({task: (sum(map(sustained, rows)), len(rows)) for task, rows in zip(pair.tasks, side, strict=True)})
        for side in pair.verdicts
    ]
    values: list[Value] = []
    for a, b in (pair.at(0), pair.at(-1), sustained_by_task):
        values += a.rate, b.rate, paired.minus(a.rate, b.rate), paired.difference(pair.ratios(a), pair.ratios(b))
    datasets, languages = f"{pair.a.cell.dataset}, {pair.b.cell.dataset}", (*pair.a.languages, *pair.b.languages)
    return (pair.a.cell.model, pair.a.cell.setting, datasets, *languages, len(pair.tasks), *values)


def has_labels(comparison: RefineComparison) -> bool:
    """Whether the report was given people's labels."""
    return any(found.cell.labels is not None for found in comparison.cells)


def corrected(found: Outcomes, scope: str = "") -> Powered | str | None:
    """The corrected adherence, or the reason why it is missing; None without labels."""
    labels = found.cell.labels
    if not isinstance(labels, JudgeLabels):
        return labels
    judged = {scope: found.judged[scope]} if scope else found.judged
    return powered(labels, {part.cell_id for part in found.cell.parts}, judged)


def measured(share: Powered | str | None) -> Measured:
    """The share with its interval, if there is one."""
    return (share.value, Interval.of(share.interval)) if isinstance(share, Powered) else (None, None)


def corrected_rates(comparison: RefineComparison) -> Table:
    columns = (
        *columns_of(of="Of"), Column("judged", "Judged", "d"), *with_interval("raw", "Raw", ".3f"),
        *with_interval("powered", "PPI++", ".3f"), *columns_of(note="Note"),
    )  # fmt: skip
    rows = []
    for found in comparison.in_order():
        # a cell without labels says so once
        for scope in ("", *SCOPES) if isinstance(found.cell.labels, JudgeLabels) else ("",):
            whole = found.judged[scope] if scope else found.adherence
            if whole.by_task:
                share = corrected(found, scope)
                name = scope or "all turns"
                rows.append((found, (name, size(whole), *found.counted(whole), *measured(share), _note(share))))
    return named_table(
        comparison, columns, rows, name="adherence_corrected",
        title="Adherence, raw and corrected for the judge's errors", group="adherence",
        note=f"{MEANING} A reply without code follows nothing, which needs no judge.",
    )  # fmt: skip


def _note(*shares: Powered | str | None) -> str:
    return "; ".join(dict.fromkeys(f"not corrected: {share}" for share in shares if isinstance(share, str)))


def corrected_differences(compared: Sequence[paired.Pair[Outcomes]]) -> Table:
    """Adherence of A minus B, on all tasks of either."""
    columns = (
        *columns_of(dataset="Dataset", a="A", b="B"), *with_interval("raw", "Raw, A − B", "+.3f"),
        *with_interval("powered", "PPI++", "+.3f"), *columns_of(note="Note"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for pair in compared:
        raw: list[TaskRatio] = [found.adherence for found in (pair.a, pair.b)]
        shares = [corrected(found) for found in (pair.a, pair.b)]
        estimates = [share for share in shares if isinstance(share, Powered)]
        value, ends = powered_difference(*estimates) if len(estimates) == 2 else (None, None)
        rows.append((
            pair.a.cell.dataset, pair.a.cell.label, pair.b.cell.label, paired.minus(raw[0].rate, raw[1].rate),
            paired.difference(*map(pair.ratios, raw)), value, Interval.of(ends), _note(*shares),
        ))  # fmt: skip
    return Table(
        "adherence_differences", "Differences of adherence, raw and by people's labels", columns, tuple(rows),
        group="adherence",
        note="Raw: as the judge decided, which is right only if it errs equally, and little, in both cells; else the "
        f"difference may be one of the judge's leniency. {MEANING}",
    )  # fmt: skip
