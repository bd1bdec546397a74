"""Kotlin."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.customs import Customs
from codechat.languages.grammar import Grammar

QUESTIONS = """
(class_declaration name: (identifier) @class)
(object_declaration name: (identifier) @class)
(function_declaration name: (identifier) @function.name
  (function_value_parameters) @function.parameters) @function
(function_declaration name: (identifier) @function.name
  (function_value_parameters) @function.parameters . ":" . (_) @function.returns) @function
(parameter . (identifier) @parameter.name) @parameter
(parameter . (identifier) @variable)
(class_parameter (identifier) @variable)
(variable_declaration . (identifier) @variable)
(call_expression . (identifier) @call)
(call_expression . (navigation_expression (identifier) @call .))
(import (qualified_identifier) @import.path) @import
[(line_comment) (block_comment)] @comment
[(string_literal) (multiline_string_literal) (character_literal)] @string
(user_type (identifier) @type)
(lambda_literal) @feature.lambda
(when_expression) @feature.when
[(block) (class_body) (enum_class_body)] @block
(binary_expression operator: _ @operator)
(property_declaration "=" @operator)
(assignment "=" @operator)
"," @operator
"""

CUSTOMS = Customs(
    documentation="kotlindoc",
    documents=r"/\*\*(?!/)",
    constructs={"lambda expression": ("lambda",), "when expression": ("when",)},
)
register(Coded(("kotlin", "kt", "kts"), Grammar("tree_sitter_kotlin", QUESTIONS, "kotlin", customs=CUSTOMS)))
