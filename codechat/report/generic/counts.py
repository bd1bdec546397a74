"""What the figures rest on: sessions left out, what else was counted, outcomes, tokens, money."""

from collections.abc import Iterable
from typing import Any, get_args

from codechat.domain import OUTCOMES, Decided
from codechat.metrics.decided import DECIDED, MEANING, inside_in
from codechat.metrics.measures import value_of
from codechat.metrics.statistics import rate
from codechat.report.data import Column, Table, Value
from codechat.report.generic.tables import named_table
from codechat.report.study import LoadedCell, Study, Verdicts

PLACES: tuple[Decided, ...] = get_args(Decided)
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


def counts(study: Study[Any], *, prefix: str = "", group: str = "data") -> Table:
    """What was left out of the figures, and every outcome; `prefix` begins the table's name."""
    keys, counted = ("sessions", "completed", "errored"), study.measures.counts
    titles = [
        *(key.capitalize() for key in keys), "Context overflow", *(count.label for count in counted),
        *(name.replace("_", " ") for name in OUTCOMES),
    ]  # fmt: skip
    names = [*keys, "overflowed", *(count.key for count in counted), *(f"outcome_{name}" for name in OUTCOMES)]
    rows: list[tuple[Verdicts, list[Value]]] = []
    for found in study.in_order():
        metrics = found.cell.metrics
        values = [*(metrics[key] for key in keys), found.overflowed, *(value_of(metrics, count) for count in counted)]
        rows.append((found, [*values, *map(metrics["outcomes"].get, OUTCOMES)]))
    unscored = [sum(verdicts.count(None) for verdicts in found.passed) for found, _ in rows]
    if any(unscored):
        titles, names = [*titles, "Not scored"], [*names, "not_scored"]
        rows = [(found, [*values, number]) for (found, values), number in zip(rows, unscored, strict=True)]
    inside = any(inside_in(found.cell.metrics) for found, _ in rows)
    if inside:
        titles, names = (
            [*titles, *(f"Decided {place}" for place in PLACES)],
            [*names, *map("decided_{}".format, PLACES)],
        )
        rows = [(found, [*values, *_decided(found)]) for found, values in rows]
    meanings = [f"{count.label}: {count.help}." for count in counted if count.help]
    meanings += [f"Decided inside: {MEANING}."] if inside else []
    return named_table(
        study, [Column(key, title, "d") for key, title in zip(names, titles, strict=True)], rows,
        name=f"{prefix}counts", title="Sessions, outcomes, and what is left out", group=group,
        note=" ".join(["Errored sessions (infrastructure failed) are in no figure.", *meanings,
                       "Outcomes are of turns that were not skipped."]),
    )  # fmt: skip


def _decided(found: Verdicts) -> list[Value]:
    counted = found.cell.metrics.get(DECIDED) or {}
    return [counted.get(place) for place in PLACES]


def payers_of(cells: Iterable[LoadedCell]) -> list[str]:
    """Every payer that any of the cells has, by name: model under test, judges, and further roles that were asked."""
    return list(dict.fromkeys(payer for cell in cells for payer in cell.metrics["tokens"]))


def _titled(payer: str) -> str:
    return payer.replace("_", " ").capitalize()


def costs(study: Study[Any], *, prefix: str = "", group: str = "data") -> Table:
    """Tokens, money and time per cell, for every payer apart."""
    columns: list[Column] = []
    payers = payers_of(found.cell for found in study.in_order())
    lacked = any(payer not in found.cell.metrics["tokens"] for found in study.in_order() for payer in payers)
    for payer in payers:
        columns += [Column(f"{payer}_{key}", f"{_titled(payer)}: {key.replace('_', ' ')}", ",d") for key in TOKENS]
        columns.append(Column(f"{payer}_usd", f"{_titled(payer)}: US$", ",.2f"))
    columns.append(Column("model_tokens_per_session", "Model: tokens per session", ",.0f"))
    columns += [Column("retries", "Retries", "d"), Column("wall_s", "Wall time, s", ",.1f")]
    return named_table(
        study, columns, ((found, _costs(found, payers)) for found in study.in_order()),
        name=f"{prefix}costs", title="Tokens, cost and time", group=group,
        note="Of completed sessions. Cached tokens are part of the input tokens. A dash: no price is known"
        + (", or the cell asked no such role." if lacked else "."),
    )  # fmt: skip


def _costs(found: Verdicts, payers: Iterable[str]) -> list[Value]:
    metrics = found.cell.metrics
    row: list[Value] = []
    for payer in payers:
        used = metrics["tokens"].get(payer, {})
        row += [*map(used.get, TOKENS), metrics["cost_usd"].get(payer)]
    used = metrics["tokens"]["model"]
    return [
        *row,
        rate(used["input_tokens"] + used["output_tokens"], metrics["completed"]),
        metrics["retries"],
        metrics["wall_s"],
    ]
