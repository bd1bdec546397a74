"""The durable journal of a cell: every reply, decision and verdict, on disk before anything depends on it."""

from codechat.journal.endpoints import Met
from codechat.journal.ledger import Charge, Ledger
from codechat.journal.reading import read_values
from codechat.journal.store import Journal

__all__ = ["Charge", "Journal", "Ledger", "Met", "read_values"]
