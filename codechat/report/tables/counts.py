"""What the figures rest on: sessions left out, turns skipped or undecided, outcomes, tokens, money."""

from typing import Any

from codechat.domain import OUTCOMES
from codechat.metrics import Measures
from codechat.metrics.measures import value_of
from codechat.report.data import Column, Table, Value
from codechat.report.outcomes import Study
from codechat.report.study import Cells
from codechat.report.tables.entrants import Naming

PAYERS = ("model", "judge")
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


def counts(study: Cells[Any], measures: Measures, *, prefix: str = "", group: str = "data") -> Table:
    """What was left out of the figures, and every outcome; `prefix` begins the table's name."""
    naming = Naming(study)
    keys = ("sessions", "completed", "errored")
    columns = (
        *(Column(key, key.capitalize(), "d") for key in keys),
        Column("overflowed", "Context overflow", "d"),
        *(Column(count.key, count.label, "d") for count in measures.counts),
        *(Column(f"outcome_{name}", name.replace("_", " "), "d") for name in OUTCOMES),
    )
    rows: list[tuple[Value, ...]] = []
    for found in study.in_order():
        metrics = found.cell.metrics
        rows.append((*naming.of(found), *(metrics[key] for key in keys), found.overflowed,
                     *(value_of(metrics, count) for count in measures.counts),
                     *(metrics["outcomes"].get(name) for name in OUTCOMES)))  # fmt: skip
    told = [f"{count.label}: {count.help}." for count in measures.counts if count.help]
    return Table(
        f"{prefix}counts", "Sessions, outcomes, and what is left out", (*naming.columns, *columns), tuple(rows),
        group=group,
        note=" ".join(["Errored sessions (infrastructure failed) are in no figure.", *told,
                       "Outcomes are of turns that were not skipped."]),
    )  # fmt: skip


def phi(study: Study) -> Table:
    """Correctness against adherence: Phi with its 2 × 2 counts (paper, VI-B)."""
    naming = Naming(study)
    cells = ("pass_adhered", "pass_violated", "fail_adhered", "fail_violated")
    columns = (
        Column("phi", "Phi", "+.3f"),
        *(Column(key, key.replace("_", ", ").capitalize(), "d") for key in cells),
        Column("undecided", "Undecided", "d"),
    )
    rows: list[tuple[Value, ...]] = []
    for found in study.in_order():
        table = found.cell.metrics["phi"]
        named = naming.of(found)
        rows.append((*named, table["value"], *(table[key] for key in cells), found.cell.metrics["undecided"]))
    return Table(
        "phi", "Correctness and adherence", (*naming.columns, *columns), tuple(rows), group="adherence",
        note="Over judged follow-up turns. Phi is 1 where a turn passes exactly when it adheres, 0 where the two are "
        "unrelated; a dash where all turns pass, fail, adhere or violate.",
    )  # fmt: skip


def costs(study: Cells[Any], *, prefix: str = "", group: str = "data") -> Table:
    """Tokens, money and time per cell, for the model under test and for the judges apart."""
    naming = Naming(study)
    columns = [*naming.columns]
    for payer in PAYERS:
        name = payer.capitalize()
        columns += [Column(f"{payer}_{key}", f"{name}: {key.replace('_', ' ')}", ",d") for key in TOKENS]
        columns.append(Column(f"{payer}_usd", f"{name}: US$", ",.2f"))
    columns += [
        Column("model_tokens_per_session", "Model: tokens per session", ",.0f"),
        Column("retries", "Retries", "d"),
        Column("wall_s", "Wall time, s", ",.1f"),
    ]
    rows: list[tuple[Value, ...]] = []
    for found in study.in_order():
        metrics = found.cell.metrics
        row: list[Value] = [*naming.of(found)]
        for payer in PAYERS:
            row += [metrics["tokens"][payer][key] for key in TOKENS]
            row.append(metrics["cost_usd"][payer])
        used = metrics["tokens"]["model"]
        spent = used["input_tokens"] + used["output_tokens"]
        row += [spent / metrics["completed"] if metrics["completed"] else None, metrics["retries"], metrics["wall_s"]]
        rows.append(tuple(row))
    return Table(
        f"{prefix}costs", "Tokens, cost and time", tuple(columns), tuple(rows), group=group,
        note="Of completed sessions. Cached tokens are part of the input tokens. A dash: no price is known.",
    )  # fmt: skip
