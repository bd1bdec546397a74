"""Rules in languages other than Python: what can be found in the neutral tree that a language's grammar gives."""

from codechat.studies.refine.patterns.trees.finders import TREE_PATTERNS, tree_clause
from codechat.studies.refine.patterns.trees.flow import doubt_in

__all__ = ["TREE_PATTERNS", "doubt_in", "tree_clause"]
