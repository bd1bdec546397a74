"""Tables and figures from metrics: reads what a cell left, never runs anything."""

from codechat.report.cell import write_figures, write_tables

__all__ = ["write_figures", "write_tables"]
