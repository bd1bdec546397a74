"""Haskell."""

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Customs, Grammar

QUESTIONS = """
(class name: (name) @class) (data_type name: (name) @class) (newtype name: (name) @class)
(function name: (variable) @function.name) @function (declarations (bind name: (variable) @function.name) @function)
(local_binds (bind name: (variable) @variable)) (patterns (variable) @variable)
(patterns (parens (apply (variable) @variable))) (patterns (parens (apply (apply (variable) @variable))))
(bind pattern: (variable) @variable)
(import module: (_) @import.path) @import
[(comment) (haddock)] @comment
[(string) (char)] @string
(name) @type
(list) @makes.list
(tuple) @makes.tuple
"""

CUSTOMS = Customs(braces=False, capitalised=True)
register(Coded(("haskell", "hs"), Grammar("tree_sitter_haskell", QUESTIONS, "haskell", customs=CUSTOMS)))
