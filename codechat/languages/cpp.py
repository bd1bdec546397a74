"""C++."""

from codechat.languages import register
from codechat.languages.c import COMMON, functions
from codechat.languages.coded import Coded
from codechat.languages.grammar import Grammar

_NAMES = "[(identifier) (field_identifier) (destructor_name) (operator_name)]"
_QUALIFIED = "(qualified_identifier name: (_) @function.name)"
_HEAD = f"(function_declarator declarator: {_QUALIFIED} parameters: (_) @function.parameters) @function.head"
_PLAIN = (
    f"(function_declarator declarator: {_NAMES} @function.name parameters: (_) @function.parameters) @function.head"
)
QUESTIONS = f"""
{COMMON}
{functions(_NAMES)}
(function_definition declarator: {_HEAD}) @function
(function_definition declarator: (reference_declarator {_HEAD})) @function
(function_definition declarator: (pointer_declarator {_HEAD})) @function
(function_definition declarator: (reference_declarator {_PLAIN})) @function
(class_specifier name: (type_identifier) @class body: (_))
(alias_declaration name: (type_identifier) @class)
(parameter_declaration declarator: (reference_declarator (identifier) @parameter.name)) @parameter
(optional_parameter_declaration declarator: (identifier) @parameter.name) @parameter
(parameter_declaration declarator: (reference_declarator (identifier) @variable))
(optional_parameter_declaration declarator: (identifier) @variable)
(for_range_loop declarator: (identifier) @variable)
(for_range_loop declarator: (reference_declarator (identifier) @variable))
(init_declarator declarator: (reference_declarator (identifier) @variable))
(structured_binding_declarator (identifier) @variable)
(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (field_expression field: (template_method name: (field_identifier) @call)))
(raw_string_literal) @string
(lambda_expression) @feature.lambda
(declaration_list) @block
"""

register(Coded(("cpp", "c++", "cc", "cxx", "hpp"), Grammar("tree_sitter_cpp", QUESTIONS, "cpp")))
