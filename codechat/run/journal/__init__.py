"""The durable journal of a cell: every reply, decision and verdict, on disk before anything depends on it."""

from codechat.run.journal.database import EndpointRecord
from codechat.run.journal.ledger import Charge, Ledger
from codechat.run.journal.other_journals import (
    Account,
    account_of,
    copy_sessions,
    is_blank,
    merge_journal,
    origin_name,
    read_values,
)
from codechat.run.journal.store import Journal

__all__ = [
    "Account",
    "Charge",
    "EndpointRecord",
    "Journal",
    "Ledger",
    "account_of",
    "copy_sessions",
    "is_blank",
    "merge_journal",
    "origin_name",
    "read_values",
]  # fmt: skip
