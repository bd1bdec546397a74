"""Patterns: what can be found in code by reading it, and the rules that decide instructions from it. Pure functions.

The inner rooms, from the bottom to the top: `reading` (code read once), `substance` (does what is there do anything),
`finders` (what is there), `places` (where an addition makes sense), `purpose` (is what was added what was asked for),
`remnants` (is what was to go gone). `rules` decides by all of them.
"""

from codechat.patterns.base import Occurrence, Pattern, patterns
from codechat.patterns.reading.code import Code, read
from codechat.patterns.rules import Rule, adherence, applicable, rule_of

RULES_VERSION = 6
"""The version of what the rules decide. It becomes part of the id of every cell that uses the rules.

Raise it whenever a decision of a rule changes. Version 1: before what only passes a value through was refused. Version
2: before what has the form alone, or another form of what was to go, was refused. Version 3: before what is
overwritten unread, settled before it runs, left under the main guard or kept with other words was refused. Version 4:
before additions were asked for only where there is something for them to be of use for.
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
