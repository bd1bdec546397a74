"""Go."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.grammar import Grammar

QUESTIONS = """
(type_spec name: (type_identifier) @class)
(function_declaration name: (identifier) @function.name parameters: (parameter_list) @function.parameters
  result: (_)? @function.returns) @function
(method_declaration name: (field_identifier) @function.name parameters: (parameter_list) @function.parameters
  result: (_)? @function.returns) @function
(parameter_declaration name: (identifier) @parameter.name type: (_) @parameter.type) @parameter
(parameter_declaration name: (identifier) @variable)
(short_var_declaration left: (expression_list (identifier) @variable))
(range_clause left: (expression_list (identifier) @variable))
(var_spec name: (identifier) @variable)
(field_declaration name: (field_identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))
(go_statement "go" @call)
(defer_statement "defer" @call)
(import_spec path: (_) @import.path) @import
(comment) @comment
[(interpreted_string_literal) (raw_string_literal) (rune_literal)] @string
(type_identifier) @type
(qualified_type) @qualified.type
(selector_expression operand: (identifier)) @qualified.value
(map_type) @makes.map
(slice_type) @makes.slice
(array_type) @makes.array
(implicit_length_array_type) @makes.array
(channel_type) @makes.chan
(struct_type) @makes.struct
(call_expression function: (identifier) @makes.slice (#eq? @makes.slice "append"))
(go_statement) @feature.goroutine
(defer_statement) @feature.defer
(channel_type) @feature.channel
(send_statement) @feature.channel
(unary_expression operator: "<-") @feature.channel
[(block) (field_declaration_list)] @block
(binary_expression operator: _ @operator)
(short_var_declaration ":=" @operator)
(assignment_statement operator: _ @operator)
(var_spec "=" @operator)
(const_spec "=" @operator)
"," @operator
"""

register(Coded(("go", "golang"), Grammar("tree_sitter_go", QUESTIONS, "go")))
