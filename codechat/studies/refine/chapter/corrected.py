"""Adherence corrected for the judge's errors, by people's labels of its decisions, beside the raw figures."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import isnan
from typing import Any

from codechat.base.domain import SCOPES
from codechat.report.data import Column, Drawing, Interval, Table, Value, columns_of, with_interval
from codechat.report.drawing import Look, Point, legend, lines, panels, share_range
from codechat.report.generic.paired import Pair, difference, minus, pairs
from codechat.report.generic.tables import named_table
from codechat.report.metrics.corrected import ALL, Correction, Share
from codechat.report.metrics.judge_errors import FEWEST, FEWEST_TRUE, JudgeLabels, ends
from codechat.report.metrics.powered import Powered, powered, powered_difference
from codechat.report.metrics.statistics import Figure, percent_change, percentile_interval
from codechat.report.metrics.tally import size
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineStudy, Slice

GROUP = "adherence"
MEANING = (
    "Corrected: the share of judged instructions that applied and were followed, as people would say, from the "
    "judge's verdicts and its sensitivity and specificity (Rogan–Gladen). It assumes that the judge errs as often in "
    "these cells as in the labelled ones, and as often at every turn and on passing as on failing code."
)
SIZES = (
    f"An estimate needs {FEWEST} labels of each verdict, {FEWEST_TRUE} that say followed, {FEWEST_TRUE} that say not, "
    "and sensitivity + specificity above 1 by its whole interval. Scope by scope if every scope has such labels, else "
    "by those of all scopes."
)
POWERED = (
    "Prediction-powered (PPI++): the cell's own labels, with all verdicts to take away noise. It assumes that the "
    "labels are a random draw of this cell's decisions, as `audit export` makes it, and nothing of the judge, who may "
    f"err more in one place than in another. It needs {FEWEST} labels of each verdict in the cell itself."
)
INTERVALS = "Intervals: 95 %, resampled by task, with the labels' uncertainty in them."
WHOLE = "all turns"
Measured = tuple[float | None, Interval | None]
Wanted = Callable[[Slice], bool]


def asked(study: RefineStudy) -> bool:
    """Whether the report was given people's labels."""
    return any(found.cell.labels is not None for found in study.cells)


def measured(share: Share | str | None) -> Measured:
    """A corrected share with its interval, if it could be told."""
    return (share.value, Interval.of(share.interval)) if isinstance(share, Share) else (None, None)


def everything(place: Slice) -> bool:
    """All judged changes."""
    return True


def tables(study: RefineStudy) -> Iterator[Table]:
    """All of them, if the report was given people's labels."""
    if asked(study):
        yield _rates(study)
        if compared := [pair for pair in pairs(study) if pair.a.cell.labels is pair.b.cell.labels is not None]:
            yield _differences(compared)
        yield _changes(study)
        yield _errors(study)


def at(turn: int) -> Wanted:
    """The changes of a turn."""
    return lambda place: place.turn == turn


def _of(scope: str) -> Wanted:
    return lambda place: place.scope == scope


def _tested(passed: bool) -> Wanted:
    return lambda place: place.passed is passed


def _slices(found: Outcomes) -> dict[str, Wanted]:
    return {
        WHOLE: everything,
        **{scope: _of(scope) for scope in SCOPES},
        **{f"turn {turn}": at(turn) for turn in range(1, found.cell.turns)},
        "passing code": _tested(True),
        "failing code": _tested(False),
    }


def _rates(study: RefineStudy) -> Table:
    columns = (
        *columns_of(of="Of"), Column("judged", "Judged", "d"), *with_interval("raw", "Raw", ".3f"),
        *with_interval("corrected", "Corrected", ".3f"), *with_interval("powered", "PPI++", ".3f"),
        *columns_of(errors="Errors of", note="Note"),
    )  # fmt: skip
    rows = []
    for found in study.in_order():
        # a cell without labels says so once
        slices = _slices(found) if isinstance(found.correction, Correction) else {WHOLE: everything}
        for name, wanted in slices.items():
            whole = Figure.union(found.judged_in(wanted).values())
            if whole.by_task:
                share = found.corrected(wanted)
                own = _powered(found, name)
                rows.append((
                    found,
                    (name, size(whole), *found.counted(whole), *measured(share), *_shown(own), *_words(share, own)),
                ))  # fmt: skip
    return named_table(
        study, columns, rows, name="adherence_corrected", title="Adherence, raw and corrected for the judge's errors",
        group=GROUP,
        note=f"{MEANING} A reply without code follows nothing, which needs no judge. {SIZES} {POWERED} {INTERVALS}",
    )  # fmt: skip


def _words(share: Share | str | None, own: Powered | str | None) -> tuple[str, str]:
    """Whose errors correct a share, and what to know of it, or of its prediction-powered estimate."""
    lacking = f"PPI++: {own}" if isinstance(own, str) else ""
    if not isinstance(share, Share):
        return "", "; ".join(filter(None, (f"not corrected: {share}", lacking)))
    cut = "would lie beyond what a share can be, and is cut" if share.cut else ""
    return "each scope's own" if share.by_scope else "all scopes together", "; ".join(filter(None, (cut, lacking)))


def _powered(found: Outcomes, name: str = WHOLE) -> Powered | str | None:
    """The prediction-powered adherence in all turns, or in a scope; None for what labels do not tell apart."""
    labels = found.cell.labels
    if not isinstance(labels, JudgeLabels) or name not in (WHOLE, *SCOPES):
        return None
    judged = found.judged_in(everything if name == WHOLE else _of(name))
    return powered(labels, {part.cell_id for part in found.cell.parts}, judged)


def _shown(own: Powered | str | None) -> Measured:
    return (own.value, Interval.of(own.interval)) if isinstance(own, Powered) else (None, None)


def _differences(compared: Sequence[Pair[Outcomes]]) -> Table:
    """Adherence of A minus B in three ways, on all tasks of either."""
    columns = (
        *columns_of(dataset="Dataset", a="A", b="B"), *with_interval("raw", "Raw, A − B", "+.3f"),
        *with_interval("corrected", "Corrected", "+.3f"), *with_interval("powered", "PPI++", "+.3f"),
        *columns_of(note="Note"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for pair in compared:
        both = (pair.a, pair.b)
        raw = [found.adherence for found in both]
        shares = [found.corrected(everything) for found in both]
        own = [_powered(found) for found in both]
        known = [share for share in shares if isinstance(share, Share)]
        estimates = [each for each in own if isinstance(each, Powered)]
        corrected: Measured = (None, None)
        powers: Measured = (None, None)
        if len(known) == 2:
            drawn = [share.drawn for share in known]
            interval = None if any(each is None for each in drawn) else Interval.of(ends(drawn[0] - drawn[1]))
            corrected = (known[0].value - known[1].value, interval)
        if len(estimates) == 2:
            value, reach = powered_difference(*estimates)
            powers = (value, Interval.of(reach))
        lacking = dict.fromkeys(
            [f"not corrected: {each}" for each in shares if isinstance(each, str)]
            + [f"PPI++: {each}" for each in own if isinstance(each, str)]
        )
        rows.append((
            pair.a.cell.dataset, pair.a.cell.label, pair.b.cell.label, minus(raw[0].rate, raw[1].rate),
            difference(*map(pair.ratios, raw)),
            *corrected, *powers, "; ".join(lacking),
        ))  # fmt: skip
    return Table(
        "adherence_differences", "Differences of adherence, raw and by people's labels", columns, tuple(rows),
        group=GROUP,
        note="Raw: as the judge decided; right if it errs equally, and little, in both cells. Corrected: Rogan–Gladen, "
        f"which assumes that it errs as often in A as in B. {POWERED} So the difference may be one of the judge's "
        f"leniency, and PPI++ alone sees that. {INTERVALS}",
    )  # fmt: skip


def _changes(study: RefineStudy) -> Table:
    last = study.last_turn
    columns = (
        Column("delta_raw", f"Δ1→{last} %, raw", "+.1f"), *with_interval("delta_corrected", "corrected", "+.1f"),
        Column("phi_raw", "Phi, raw", "+.3f"), *with_interval("phi_corrected", "corrected", "+.3f"),
        *columns_of(note="Note"),
    )  # fmt: skip
    rows = []
    for found in study.in_order():
        metrics = found.cell.metrics
        delta, phi = _delta(found), _phi(found)
        reasons = dict.fromkeys(each for each in (delta, phi) if isinstance(each, str))
        values = [each if isinstance(each, tuple) else (None, None) for each in (delta, phi)]
        note = f"not corrected: {'; '.join(reasons)}" if reasons else ""
        row = (metrics["iar_delta_pct"], *values[0], metrics["phi"]["value"], *values[1], note)
        rows.append((found, row))
    return named_table(
        study, columns, rows, name="adherence_corrected_changes",
        title="What follows from adherence, raw and corrected: its change, and Phi with passing", group=GROUP,
        note=f"{MEANING} Such errors make the raw Phi smaller than it is. The trend test of adherence is not repeated: "
        "it sees the ranks of the turns alone, which errors that are the same at all turns do not change. Phi of all "
        "models together, differences along an axis and single dialogues stay raw: a correction is of a cell's shares, "
        f"and does not say which verdicts are wrong. {INTERVALS}",
    )  # fmt: skip


def _delta(found: Outcomes) -> Measured | str:
    """The change of adherence from the first to the last follow-up, in per cent."""
    shares = [found.corrected(at(turn)) for turn in (1, found.cell.turns - 1)]
    known = [share for share in shares if isinstance(share, Share)]
    if len(known) < len(shares):
        return next(share for share in shares if isinstance(share, str))
    value = percent_change(*(share.value for share in known))
    if any(share.drawn is None for share in known):
        return value, None
    return value, _interval(percent_change(*pair) for pair in zip(*(s.drawn.tolist() for s in known), strict=True))


def _phi(found: Outcomes) -> Measured | str:
    """Phi of passing and following, from the corrected shares among passing and among failing code."""
    correction = found.correction
    if not isinstance(correction, Correction):
        return str(correction)
    sides = [found.judged_in(_tested(passed)) for passed in (True, False)]
    if not all(sides):
        return "all code passes, or all fails"
    shares = [correction.share(found.cell.source, side) for side in sides]
    known = [share for share in shares if isinstance(share, Share)]
    if len(known) < len(shares):
        return next(share for share in shares if isinstance(share, str))
    figures = [Figure.union(side.values()) for side in sides]
    value = _association([share.value for share in known], [size(figure) for figure in figures])
    sums = correction.bootstraps[found.cell.source].sums(figures)
    if sums is None or any(share.drawn is None for share in known):
        return value, None
    drawn = zip(*(share.drawn.tolist() for share in known), sums[:, :, 1].tolist(), strict=True)
    return value, _interval(_association(shares, sizes) for *shares, sizes in drawn)


def _interval(drawn: Iterable[float | None]) -> Interval | None:
    return Interval.of(percentile_interval(each for each in drawn if each is not None and not isnan(each)))


def _association(followed: Sequence[float], sizes: Sequence[float]) -> float | None:
    """Phi, from the shares of followed instructions among passing and failing code, and the numbers of both."""
    if min(sizes) <= 0:
        return None
    whole = sum(sizes)
    mean = sum(share * size for share, size in zip(followed, sizes, strict=True)) / whole
    if not 0 < mean < 1:
        return None
    return float((followed[0] - followed[1]) * (sizes[0] * sizes[1] / (mean * (1 - mean))) ** 0.5 / whole)


def _errors(study: RefineStudy) -> Table:
    columns = (
        *columns_of(judge="Judge", scope="Scope"),
        *columns_of("d", adhered="Labels, judged adhered"), *columns_of(".1f", adhered_followed="of these followed"),
        *columns_of("d", violated="Labels, judged violated"), *columns_of(".1f", violated_followed="of these followed"),
        *with_interval("sensitivity", "Sensitivity", ".3f"), *with_interval("specificity", "Specificity", ".3f"),
        *columns_of(note="Note"),
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    known: list[JudgeLabels] = []
    for found in study.in_order():
        labels = found.cell.labels
        if isinstance(labels, JudgeLabels) and all(labels is not each for each in known):
            known.append(labels)
    for labels in known:
        alone = Correction.alone(labels)
        for scope in (*(each for each in SCOPES if each in alone.scopes), ALL):
            own = alone.errors(scope)
            (adhered, violated), followed, sides = own.labels, own.followed, own.intervals
            note = f"nothing is corrected by these: {own.refusal}" if own.refusal else ""
            rows.append((
                labels.judge, "all scopes" if scope == ALL else scope, adhered, followed[0], violated, followed[1],
                own.sensitivity, Interval.of(sides[0]), own.specificity, Interval.of(sides[1]), note,
            ))  # fmt: skip
    return Table(
        "judge_errors", "How often the judge errs, by people's labels", columns, tuple(rows), group=GROUP,
        note="Sensitivity: the share of followed instructions that the judge calls adhered; specificity: that of the "
        "others which it calls violated, instructions that did not apply among them. Labels are weighted by the "
        f"decisions that they stand for. {SIZES} {INTERVALS}",
    )  # fmt: skip


def drawings(study: RefineStudy) -> Iterator[Drawing]:
    """The curves, if anything is corrected."""
    if any(isinstance(found.cell.labels, JudgeLabels) for found in study.cells):
        yield Drawing(
            "adherence_corrected", "Adherence over the turns, corrected for the judge's errors",
            "The share of judged instructions that were followed at each turn, corrected, with 95 % intervals that "
            "include the labels' uncertainty; dotted: as the judge decided.", GROUP, _draw,
        )  # fmt: skip


def _draw(study: RefineStudy, look: Look) -> Any:
    figure, axes = panels(study.datasets)
    heights: list[float] = []
    for panel, dataset in zip(axes, study.datasets, strict=True):
        heights += lines(panel, _curve, look, study.on(dataset))
        for found in study.on(dataset):
            raw = [(turn, found.adherence_at[turn].rate) for turn in range(1, found.cell.turns)]
            shown = [(turn, rate) for turn, rate in raw if rate is not None]
            if shown:
                panel.plot(*zip(*shown, strict=True), color=look.line(found.cell.label)["color"], linestyle=":")
                heights += [rate for _, rate in shown]
        panel.set_ylabel("Instructions followed")
    if not heights:
        return None
    for panel in axes:
        panel.set_ylim(share_range(heights))
    legend(figure, axes)
    return figure


def _curve(found: Outcomes) -> list[Point]:
    return [(turn, *measured(found.corrected(at(turn)))) for turn in range(1, found.cell.turns)]
