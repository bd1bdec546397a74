"""What the figures rest on: sessions left out, what else was counted, outcomes, tokens, money."""

from typing import Any

from codechat.domain import OUTCOMES
from codechat.metrics.measures import value_of
from codechat.report.data import Column, Table, Value
from codechat.report.generic.naming import named_table
from codechat.report.study import Study, Verdicts

PAYERS = ("model", "judge")
TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


def counts(study: Study[Any], *, prefix: str = "", group: str = "data") -> Table:
    """What was left out of the figures, and every outcome; `prefix` begins the table's name."""
    keys, counted = ("sessions", "completed", "errored"), study.measures.counts
    unscored = any(found.unscored for found in study.cells)
    columns = [
        *(Column(key, key.capitalize(), "d") for key in keys),
        Column("overflowed", "Context overflow", "d"),
        *(Column(count.key, count.label, "d") for count in counted),
        *(Column(f"outcome_{name}", name.replace("_", " "), "d") for name in OUTCOMES),
        *([Column("not_scored", "Not scored", "d")] if unscored else []),
    ]

    def values(found: Verdicts) -> list[Value]:
        metrics = found.cell.metrics
        numbers = [*(metrics[key] for key in keys), found.overflowed, *(value_of(metrics, count) for count in counted)]
        return [
            *numbers,
            *(metrics["outcomes"].get(name) for name in OUTCOMES),
            *([found.unscored] if unscored else []),
        ]

    meanings = [f"{count.label}: {count.help}." for count in counted if count.help]
    return named_table(
        study, columns, [(found, values(found)) for found in study.in_order()],
        name=f"{prefix}counts", title="Sessions, outcomes, and what is left out", group=group,
        note=" ".join(["Errored sessions (infrastructure failed) are in no figure.", *meanings,
                       "Outcomes are of turns that were not skipped."]),
    )  # fmt: skip


def costs(study: Study[Any], *, prefix: str = "", group: str = "data") -> Table:
    """Tokens, money and time per cell, for the model under test and for the judges apart."""
    columns = []
    for payer in PAYERS:
        name = payer.capitalize()
        columns += [Column(f"{payer}_{key}", f"{name}: {key.replace('_', ' ')}", ",d") for key in TOKENS]
        columns.append(Column(f"{payer}_usd", f"{name}: US$", ",.2f"))
    columns.append(Column("model_tokens_per_session", "Model: tokens per session", ",.0f"))
    columns += [Column("retries", "Retries", "d"), Column("wall_s", "Wall time, s", ",.1f")]
    return named_table(
        study, columns, ((found, _costs(found)) for found in study.in_order()),
        name=f"{prefix}costs", title="Tokens, cost and time", group=group,
        note="Of completed sessions. Cached tokens are part of the input tokens. A dash: no price is known.",
    )  # fmt: skip


def _costs(found: Verdicts) -> list[Value]:
    metrics = found.cell.metrics
    row: list[Value] = []
    for payer in PAYERS:
        row += [metrics["tokens"][payer][key] for key in TOKENS]
        row.append(metrics["cost_usd"][payer])
    used = metrics["tokens"]["model"]
    spent = used["input_tokens"] + used["output_tokens"]
    per_session = spent / metrics["completed"] if metrics["completed"] else None
    return [*row, per_session, metrics["retries"], metrics["wall_s"]]
