"""From session records to metrics.json, tables and figures; recorded sessions can also be measured by themselves."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from codechat.base.errors import UserError
from codechat.base.files import write_atomically
from codechat.base.records import SessionRecord
from codechat.report import write_tables
from codechat.report.metrics import Effort
from codechat.report.metrics.counts import DECIDED, LOADED, REPLIES, count_decided, count_loaded, count_replies
from codechat.report.metrics.measures import FIELD, fault_of
from codechat.report.metrics.spending import Tariff
from codechat.run.answering.servers import described
from codechat.run.cell import Cell, parts_of
from codechat.run.cell.stopping import measures_of, stop_report
from codechat.run.journal import Journal
from codechat.run.protocols import PROTOCOLS
from codechat.run.running.sessions import Recorded
from codechat.run.settings.config import CellConfig


def measure(cell: Cell, journal: Journal, effort: Effort) -> dict[str, Any]:
    """The content of metrics.json: the protocol's metrics, and counts that every cell has. Raises `UserError`."""
    sessions, protocol = Recorded(cell, journal), cell.protocol
    found = protocol.metrics(sessions, seed=cell.config.seed, effort=effort)
    if fault := fault_of(found, protocol.measures):
        remedy = "docs/write-your-own.md says what the metrics of a protocol hold"
        raise UserError(f"protocol={cell.protocol_name}: the result of metrics() {fault}", remedy)
    decided, replies = Counter(count_decided(())), Counter(count_replies(()))
    for session in sessions:  # once for both: each pass reads the journal
        decided.update(count_decided((session,)))
        replies.update(count_replies((session,)))
    counts = {DECIDED: dict(decided), REPLIES: dict(replies), LOADED: count_loaded(cell.tasks)}
    counts |= {**described(cell, journal), **stop_report(cell, journal), FIELD: measures_of(cell).describe()}
    return {**found, **counts}


def effort_of(journal: Journal, tariff: Tariff, wall_s: float) -> Effort:
    """The effort of the cell over all its processes, which ran for `wall_s` seconds."""
    ledger = journal.ledger
    return Effort(
        wall_s=wall_s,
        retries=ledger.total("retries"),
        rate_limited=ledger.total("rate_limited"),
        cached_replies=ledger.total("cached_replies"),
        tariff=tariff,
        judged={} if tariff.has_one_price else journal.used(),
        spent=ledger.spent,
    )


def write_metrics(cell: Cell, metrics: Mapping[str, Any]) -> None:
    """Write metrics.json and the tables."""
    write_atomically(cell.folder / "metrics.json", json.dumps(metrics, indent=1, ensure_ascii=False) + "\n")
    write_tables(measures_of(cell), metrics, cell.folder / "tables")


def remeasure(values: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any] | None:
    """The protocol's metrics of the sessions, without costs; `values` are the content of a config.yaml.

    None if this version does not know its protocol or one of its options.
    """
    try:
        config = CellConfig.from_values(
            {name: value for name, value in values.items() if name in CellConfig.whole().model_fields}
        )
    except UserError:
        return None
    protocol = PROTOCOLS.build(config.protocol, parts_of(config, {}))
    return protocol.metrics(sessions, seed=config.seed, effort=Effort())
