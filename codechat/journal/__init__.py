"""The durable journal of a cell: every reply, decision and verdict, on disk before anything depends on it."""

from codechat.journal.database import Met
from codechat.journal.ledger import Charge, Ledger
from codechat.journal.other_journals import Account, account_of, borrow, is_blank, origin_name, read_values, take_in
from codechat.journal.store import Journal

__all__ = [
    "Account", "Charge", "Journal", "Ledger", "Met", "account_of", "borrow", "is_blank", "origin_name", "read_values",
    "take_in",
]  # fmt: skip
