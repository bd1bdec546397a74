"""Patterns: what can be found in code by reading it, and the rules that decide instructions from it. Pure functions.

From the bottom to the top: `reading` (code read once, and whether anything uses what stands in it), `base` (what a
pattern and a rule are), `finders` (what is there), `doubts` (what cannot be seen by reading), `rules` (both decisions).
"""

from codechat.patterns.base import Occurrence, Pattern, Rule, patterns
from codechat.patterns.reading.code import Code, read
from codechat.patterns.rules import adherence, applicable, rule_of

RULES_VERSION = 6
"""The version of what the rules decide. It becomes part of the id of every cell that uses the rules.

Raise it whenever a decision of a rule changes. Version 1: before what only passes a value through was refused. Version
2: before what has the form alone, or another form of what was to go, was refused. Version 3: before what is overwritten
unread, settled before it runs or kept with other words was refused. Version 4: before additions were asked for only if
there is something for them to be of use for. Version 5: before a rule that sees the form and cannot see the use was
undecided; until then it went by many more finders of such forms.
"""

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
