"""C#."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.grammar import Grammar

QUESTIONS = """
(class_declaration name: (identifier) @class)
(struct_declaration name: (identifier) @class)
(interface_declaration name: (identifier) @class)
(enum_declaration name: (identifier) @class)
(record_declaration name: (identifier) @class)
(method_declaration returns: (_) @function.returns name: (identifier) @function.name
  parameters: (_) @function.parameters) @function
(local_function_statement type: (_) @function.returns name: (identifier) @function.name
  parameters: (_) @function.parameters) @function
(parameter type: (_) @parameter.type name: (identifier) @parameter.name) @parameter
(parameter name: (identifier) @variable)
(variable_declarator name: (identifier) @variable)
(foreach_statement left: (identifier) @variable)
(property_declaration name: (identifier) @variable)
(invocation_expression function: (identifier) @call)
(invocation_expression function: (generic_name (identifier) @call))
(invocation_expression function: (member_access_expression name: (identifier) @call))
(invocation_expression function: (member_access_expression name: (generic_name (identifier) @call)))
(conditional_access_expression (invocation_expression function: (member_binding_expression name: (identifier) @call)))
(await_expression "await" @call)
(member_access_expression name: (identifier) @property.member)
(using_directive [(identifier) (qualified_name)] @import.path) @import
(comment) @comment
[(string_literal) (verbatim_string_literal) (raw_string_literal) (interpolated_string_expression)
  (character_literal)] @string
(_ type: (identifier) @type)
(generic_name (identifier) @type)
(array_type) @makes.array
(tuple_type) @makes.tuple
(lambda_expression) @feature.lambda
[(block) (declaration_list) (enum_member_declaration_list) (switch_body)] @block
(binary_expression operator: _ @operator)
(assignment_expression operator: _ @operator)
(variable_declarator "=" @operator)
(property_declaration "=" @operator)
"," @operator
"""

register(Coded(("csharp", "c#", "cs"), Grammar("tree_sitter_c_sharp", QUESTIONS, "csharp"), labels=("cs",)))
