"""C++."""

from codechat.languages import register
from codechat.languages.c import COMMON, functions
from codechat.languages.coded import Coded
from codechat.languages.customs import Customs
from codechat.languages.grammar import Grammar

_NAMES = "[(identifier) (field_identifier) (destructor_name) (operator_name)]"
_QUALIFIED = "(qualified_identifier name: (_) @function.name)"
_BEHIND = "(trailing_return_type (_) @function.returns)?"
_ENDS = f"parameters: (_) @function.parameters {_BEHIND}) @function.head"
_HEAD = f"(function_declarator declarator: {_QUALIFIED} {_ENDS}"
_PLAIN = f"(function_declarator declarator: {_NAMES} @function.name {_ENDS}"
QUESTIONS = f"""
{COMMON}
{functions(_NAMES, _BEHIND)}
(function_definition declarator: {_HEAD}) @function
(function_definition declarator: (reference_declarator {_HEAD})) @function
(function_definition declarator: (pointer_declarator {_HEAD})) @function
(function_definition declarator: (reference_declarator {_PLAIN})) @function
(field_declaration declarator: {_PLAIN}) @function
(field_declaration declarator: (reference_declarator {_PLAIN})) @function
(field_declaration declarator: (pointer_declarator declarator: {_PLAIN})) @function
(declaration_list (declaration declarator: {_PLAIN}) @function)
(template_declaration (declaration declarator: {_PLAIN}) @function)
(translation_unit (declaration declarator: (reference_declarator {_PLAIN})) @function)
(class_specifier name: (type_identifier) @class body: (_))
(alias_declaration name: (type_identifier) @class)
(parameter_declaration declarator: (reference_declarator (identifier) @parameter.name)) @parameter
(optional_parameter_declaration declarator: (identifier) @parameter.name) @parameter
(optional_parameter_declaration declarator: (reference_declarator (identifier) @parameter.name)) @parameter
(parameter_declaration declarator: (abstract_reference_declarator)) @parameter
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

CUSTOMS = Customs(
    methods={
        "": """at back begin clear count emplace emplace_back empty end erase find front insert merge pop_back pop_front
            push_back push_front reserve resize reverse size sort swap""",
        **dict.fromkeys(("stack", "queue", "priority_queue"), "push pop top front back"),
    }
)
register(Coded(("cpp", "c++", "cc", "cxx", "hpp"), Grammar("tree_sitter_cpp", QUESTIONS, "cpp", customs=CUSTOMS)))
