"""Patterns: what can be found in code by reading it, and the rules that decide instructions from it. Pure functions."""

from codechat.patterns.base import Occurrence, Pattern, patterns
from codechat.patterns.code import Code, read
from codechat.patterns.rules import Rule, adherence, applicable, rule_of

RULES_VERSION = 2
"""Placeholder until the rules refuse what passes a value through."""

__all__ = [
    "RULES_VERSION",
    "Code",
    "Occurrence",
    "Pattern",
    "Rule",
    "adherence",
    "applicable",
    "patterns",
    "read",
    "rule_of",
]
