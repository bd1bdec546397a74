"""What a check between turns buys and costs: cells with a gate, compared with the same cells without one."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from codechat.base.records import GATE, UNDER_TEST
from codechat.report import drawing
from codechat.report.data import Drawing, Table, Value, columns_of, with_interval
from codechat.report.generic import paired
from codechat.report.generic.tables import named_table
from codechat.report.metrics.statistics import rate, sustained
from codechat.studies.refine.chapter.outcomes import Outcomes, RefineComparison
from codechat.studies.refine.gate_metrics import STANDING
from codechat.studies.refine.metrics import REFINE

GROUPS = {GATE: "What a check between turns buys"}
OPTIONS = ("protocol.gate", "protocol.prompts.gate")
"""The options in which a cell with a gate and its counterpart may differ; the first is the beginning of several."""


def tables(comparison: RefineComparison) -> Iterator[Table]:
    """A row for each cell with a gate, if there is one."""
    gated = list(_gated(comparison))
    if not gated:
        return
    columns = (
        *with_interval("asked_again", "Asked again", ".3f"), *with_interval("rolled_back", "Rolled back", ".3f"),
        *columns_of(".3f", pass_last="Pass@1 last", first_replies="first replies", standing="standing code",
                    pass_without="without gate"),
        *with_interval("pass_difference", "Gate − none", "+.3f"),
        *columns_of(".3f", mst="MST", mst_without="without gate"),
        *with_interval("mst_difference", "Gate − none", "+.3f"),
        *columns_of(",.0f", tokens="Tokens a session", tokens_tries="of them tries", tokens_without="without gate"),
    )  # fmt: skip
    rows = [(found, (*_own(found), *_compared(found, _without(comparison, found)))) for found in gated]
    yield named_table(
        comparison, columns, rows, name="gate", title="The gate: Pass@1 and MST with and without it", group=GATE,
        note="Asked again, rolled back: of the turns with an answer. A turn that is rolled back counts as failed, and "
        "the code before stands: standing code is the share of sessions whose code after the last turn passes. First "
        "replies: the share of sessions whose first reply at the last turn passes. Differences are paired by task with "
        "the cell that differs in the gate alone, if the report has it. Tokens: input and output of the model, of "
        "completed sessions. Intervals: 95 %, by task.",
    )  # fmt: skip


def drawings(comparison: RefineComparison) -> Iterator[Drawing]:
    """The curves of the code that stands, if a cell has a gate."""
    if any(_gated(comparison)):
        yield Drawing(
            "gate_standing", "Code that stands after each turn",
            "The share of sessions whose code after the turn passes the whole test suite: after a roll-back the code "
            "before; of a cell without a gate Pass@1; bands or whiskers: 95 % by task.",
            GATE, partial(drawing.curves, values=_standing, name="Standing code passes"),
        )  # fmt: skip


def _gated(comparison: RefineComparison) -> Iterator[Outcomes]:
    return (found for found in comparison.in_order() if GATE in found.cell.metrics)


def _standing(found: Outcomes) -> list[drawing.Point]:
    return drawing.points_of(STANDING if GATE in found.cell.metrics else REFINE.series[0])(found)


def _own(found: Outcomes) -> tuple[Value, ...]:
    metrics, gate = found.cell.metrics, found.cell.metrics[GATE]
    last = (metrics["pass_at_1"], gate["without"], gate["standing"])
    return (
        *found.measured(f"{GATE}.asked_again"), *found.measured(f"{GATE}.rolled_back"),
        *(values[-1] if values else None for values in last),
    )  # fmt: skip


def _compared(found: Outcomes, without: Outcomes | None) -> tuple[Value, ...]:
    """The figures with and without a gate, on the tasks that both cells completed."""
    tokens, tries = (_tokens(found.cell.metrics, payers) for payers in ((UNDER_TEST, GATE), (GATE,)))
    if without is None:
        return (*[None] * 3, found.cell.metrics["mst"], *[None] * 3, tokens, tries, None)
    pair = paired.Pair(found, without)
    passing, lasting = pair.at(-1), pair.figures(lambda verdicts: (sustained(verdicts), 1))
    differences = [
        (paired.minus(a.rate, b.rate), paired.difference(pair.ratios(a), pair.ratios(b))) for a, b in (passing, lasting)
    ]
    return (
        passing[1].rate, *differences[0], lasting[0].rate, lasting[1].rate, *differences[1],
        tokens, tries, _tokens(without.cell.metrics, (UNDER_TEST,)),
    )  # fmt: skip


def _tokens(metrics: Mapping[str, Any], payers: tuple[str, ...]) -> float | None:
    used = [metrics["tokens"][payer] for payer in payers]
    return rate(sum(each["input_tokens"] + each["output_tokens"] for each in used), metrics["completed"])


def _without(comparison: RefineComparison, found: Outcomes) -> Outcomes | None:
    """The cell that differs in the gate alone."""
    alike = (
        other
        for other in comparison.on(found.cell.dataset)
        if GATE not in other.cell.metrics and other.cell.model == found.cell.model and _rest(other) == _rest(found)
    )
    return next(alike, None)


def _rest(found: Outcomes) -> Mapping[str, str]:
    """The settings other than the gate's."""
    return {key: words for key, words in found.cell.differences.items() if not key.startswith(OPTIONS)}
