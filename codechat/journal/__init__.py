"""The durable journal of a cell: every reply, decision and verdict, on disk before anything depends on it."""

from codechat.journal.endpoints import Met
from codechat.journal.ledger import Charge, Ledger
from codechat.journal.reading import is_blank, read_values
from codechat.journal.store import Journal
from codechat.journal.taking import Account, account_of, borrow, origin_name, take_in

__all__ = [
    "Account",
    "Charge",
    "Journal",
    "Ledger",
    "Met",
    "account_of",
    "borrow",
    "is_blank",
    "origin_name",
    "read_values",
    "take_in",
]
