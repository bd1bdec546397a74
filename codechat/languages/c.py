"""C, and the questions that C++ has in common with it."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.grammar import Grammar

COMMON = """
(struct_specifier name: (type_identifier) @class body: (_))
(enum_specifier name: (type_identifier) @class body: (_))
(union_specifier name: (type_identifier) @class body: (_))
(type_definition declarator: (type_identifier) @class)
(parameter_declaration declarator: (identifier) @parameter.name) @parameter
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @parameter.name)) @parameter
(parameter_declaration declarator: (array_declarator declarator: (identifier) @parameter.name)) @parameter
(parameter_declaration declarator: (array_declarator
  declarator: (array_declarator declarator: (identifier) @parameter.name))) @parameter
(parameter_declaration declarator: (abstract_pointer_declarator)) @parameter
((parameter_declaration type: (_) @_type !declarator) @parameter (#not-eq? @_type "void"))
(declaration declarator: (identifier) @variable)
(init_declarator declarator: (identifier) @variable)
(init_declarator declarator: (pointer_declarator declarator: (identifier) @variable))
(init_declarator declarator: (array_declarator declarator: (identifier) @variable))
(declaration declarator: (array_declarator declarator: (identifier) @variable))
(declaration declarator: (pointer_declarator declarator: (identifier) @variable))
(parameter_declaration declarator: (identifier) @variable)
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @variable))
(parameter_declaration declarator: (array_declarator declarator: (identifier) @variable))
(field_declaration declarator: (field_identifier) @variable)
(field_declaration declarator: (pointer_declarator declarator: (field_identifier) @variable))
(field_declaration declarator: (array_declarator declarator: (field_identifier) @variable))
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(preproc_include path: (_) @import.path) @import
(comment) @comment
[(string_literal) (char_literal) (system_lib_string)] @string
[(type_identifier) (primitive_type) (sized_type_specifier)] @type
(array_declarator) @makes.array
[(compound_statement) (field_declaration_list) (enumerator_list)] @block
(binary_expression operator: _ @operator)
(init_declarator "=" @operator)
(assignment_expression operator: _ @operator)
"," @operator
"""


def functions(names: str, behind: str = "") -> str:
    """The patterns of functions whose name is one of the kinds `names`, by how many marks of pointer precede it.

    `behind` is a pattern of what may stand behind the parameters.
    """
    head = (
        f"(function_declarator declarator: {names} @function.name parameters: (_) @function.parameters"
        f" {behind}) @function.head"
    )
    wrapped = (
        head,
        f"(pointer_declarator declarator: {head})",
        f"(pointer_declarator declarator: (pointer_declarator declarator: {head}))",
    )
    defined = (f"(function_definition declarator: {each}) @function" for each in wrapped)
    declared = (f"(translation_unit (declaration declarator: {each}) @function)" for each in wrapped)
    return "\n".join((*defined, *declared))


register(Coded(("c", "h"), Grammar("tree_sitter_c", COMMON + functions("(identifier)"), "c"), labels=("c", "cpp")))
