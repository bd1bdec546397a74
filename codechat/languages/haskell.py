"""Haskell."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.grammar import Grammar

QUESTIONS = """
(class name: (name) @class)
(data_type name: (name) @class)
(newtype name: (name) @class)
(function name: (variable) @function.name) @function
(bind name: (variable) @function.name) @function
(function patterns: (patterns (variable) @variable))
(bind pattern: (variable) @variable)
(import module: (_) @import.path) @import
[(comment) (haddock)] @comment
[(string) (char)] @string
(name) @type
(list) @makes.list
(tuple) @makes.tuple
"""

register(Coded(("haskell", "hs"), Grammar("tree_sitter_haskell", QUESTIONS, "haskell")))
