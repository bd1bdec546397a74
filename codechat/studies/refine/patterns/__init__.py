"""Patterns: things that can be found in code by reading it, and the rules that decide instructions from them.

All functions are pure. From the bottom to the top: `reading` (code is read once, and asked whether anything uses a
value or a definition in it), `base` (patterns and rules), `finders` (one function per pattern), `rules` (does an
instruction apply, was it followed, and why reading alone cannot decide).
"""

from codechat.studies.refine.patterns.base import Occurrence, Pattern, Rule, patterns
from codechat.studies.refine.patterns.reading.code import Code, read
from codechat.studies.refine.patterns.rules import adherence, applicable, decidable, readable, rule_of, states

RULES_VERSION = 6
"""The version of the rules' decisions, part of the id of every cell that uses rules: raise it if any decision changes.

Versions 2 to 4 refused ever more changes that only look like the one asked for. Since version 5 an instruction to add
applies only if there is a place where the addition can be of use. Since version 6 a rule that sees the form and cannot
see the use is undecided; the many finders that looked for such shows are gone.
"""

READ = frozenset({"java", "javascript", "python"})
"""The languages that rules can be stated in: those whose grammars say what their nodes are, and Python."""

__all__ = [
    "READ", "RULES_VERSION", "Code", "Occurrence", "Pattern", "Rule", "adherence", "applicable", "decidable",
    "patterns", "read", "readable", "rule_of", "states",
]  # fmt: skip
