"""Zig."""

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Customs, Grammar

QUESTIONS = """
(variable_declaration . (identifier) @class [(struct_declaration) (enum_declaration) (union_declaration)])
(function_declaration name: (identifier) @function.name type: (_)? @function.returns) @function
(parameter name: (identifier) @variable) (variable_declaration (identifier) @variable . "=" )
(container_field name: (identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (field_expression member: (identifier) @call))
(comment) @comment
(block) @block
(struct_declaration "{" @block.open) @block
(enum_declaration "{" @block.open) @block
(union_declaration "{" @block.open) @block
(switch_expression "{" @block.open) @block
(binary_expression operator: _ @operator) (assignment_expression operator: _ @operator)
(variable_declaration ["=" "+=" "-=" "*=" "/=" "%="] @operator) "," @operator
[(string) (multiline_string) (character)] @string
(builtin_function (builtin_identifier) @_import (arguments (string) @import.path) (#eq? @_import "@import")) @import
"""

register(Coded(("zig",), Grammar("tree_sitter_zig", QUESTIONS, "zig", customs=Customs(hyphened='@"{}"'))))
