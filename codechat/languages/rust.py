"""Rust."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.grammar import Grammar

QUESTIONS = """
(struct_item name: (type_identifier) @class)
(enum_item name: (type_identifier) @class)
(union_item name: (type_identifier) @class)
(trait_item name: (type_identifier) @class)
(function_item name: (identifier) @function.name parameters: (parameters) @function.parameters
  return_type: (_)? @function.returns) @function
(function_signature_item name: (identifier) @function.name parameters: (parameters) @function.parameters
  return_type: (_)? @function.returns) @function
(parameter pattern: (_) @parameter.name type: (_) @parameter.type) @parameter
(parameter pattern: (identifier) @variable)
(closure_parameters (identifier) @variable)
(let_declaration pattern: (identifier) @variable)
(let_declaration pattern: (tuple_pattern (identifier) @variable))
(for_expression pattern: (identifier) @variable)
(for_expression pattern: (tuple_pattern (identifier) @variable))
(field_declaration name: (field_identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (scoped_identifier name: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @call)))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @call)))
(macro_invocation macro: (identifier) @call)
(token_tree (identifier) @call . (token_tree))
(use_declaration argument: (_) @import.path) @import
(use_as_clause path: (scoped_identifier name: (identifier) @alias.of) alias: (identifier) @alias)
(extern_crate_declaration name: (_) @import.path) @import
(scoped_identifier path: (identifier) @import.path) @import
(scoped_type_identifier path: (identifier) @import.path) @import
(scoped_use_list path: (identifier) @import.path) @import
(attribute (scoped_identifier path: (identifier) @import.path)) @import
[(line_comment) (block_comment)] @comment
[(string_literal) (raw_string_literal) (char_literal)] @string
(type_identifier) @type
(scoped_identifier path: (identifier) @type)
(token_tree (identifier) @type . "::")
(scoped_identifier path: (scoped_identifier name: (identifier) @type))
(generic_type type: (scoped_identifier name: (identifier) @type))
(tuple_type) @makes.tuple
(tuple_expression) @makes.tuple
(array_type) @makes.array
(array_expression) @makes.array
(macro_invocation macro: (identifier) @makes.vec (#eq? @makes.vec "vec"))
(match_expression) @feature.match
(if_expression condition: (let_condition)) @feature.if_let
(if_expression condition: (let_chain (let_condition))) @feature.if_let
(closure_expression) @feature.closure
(token_tree ["(" ","] . ["|" "||"]) @feature.closure
(token_tree (identifier) @_move . ["|" "||"] (#eq? @_move "move")) @feature.closure
[(block) (match_block) (declaration_list) (field_declaration_list) (enum_variant_list)] @block
(binary_expression operator: _ @operator)
(let_declaration "=" @operator)
(assignment_expression "=" @operator)
(compound_assignment_expr operator: _ @operator)
"," @operator
"""

register(Coded(("rust", "rs"), Grammar("tree_sitter_rust", QUESTIONS, "rust")))
