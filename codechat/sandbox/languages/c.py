"""C and C++."""

import re

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Customs, Grammar, Written

QUESTIONS_OF_BOTH = """
(struct_specifier name: (type_identifier) @class body: (_)) (enum_specifier name: (type_identifier) @class body: (_))
(union_specifier name: (type_identifier) @class body: (_)) (type_definition declarator: (type_identifier) @class)
(parameter_declaration declarator: (identifier) @parameter.name) @parameter
(parameter_declaration declarator: (pointer_declarator declarator: (identifier) @parameter.name)) @parameter
(parameter_declaration declarator: (array_declarator declarator: (identifier) @parameter.name)) @parameter
(parameter_declaration declarator: (array_declarator
  declarator: (array_declarator declarator: (identifier) @parameter.name))) @parameter
(parameter_declaration declarator: (abstract_pointer_declarator)) @parameter
((parameter_declaration type: (_) @_type !declarator) @parameter (#not-eq? @_type "void"))
(declaration declarator: (identifier) @variable) (init_declarator declarator: (identifier) @variable)
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
(binary_expression operator: _ @operator) (init_declarator "=" @operator)
(assignment_expression operator: _ @operator) "," @operator
"""


def functions(names: str, behind: str = "") -> str:
    """The patterns of functions whose name is one of the kinds `names`, by how many marks of pointer precede it.
    `behind` is a pattern of the code that may follow the parameters."""
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


def form(text: str) -> str:
    """A type of C or C++ in the common form: a pointer to characters is a text, the length of an array is left out."""
    if re.fullmatch(
        r"(?:(?:const|static|unsigned|signed)\s+)*char\s*(?:const\s*)?(?:\*|\[\s*\w*\s*\])(?:\s*const)?", text
    ):
        return "string"
    return re.sub(r"\b(array<.{0,300}),\s*\w+\s*>", r"\1>", text)


CUSTOMS_OF_C = Customs(types=Written(form=form, untold="list set map tuple json matrix"))
register(
    Coded(
        ("c", "h"),
        Grammar("tree_sitter_c", QUESTIONS_OF_BOTH + functions("(identifier)"), "c", customs=CUSTOMS_OF_C),
        labels=("c", "cpp"),
    )
)


_NAMES = "[(identifier) (field_identifier) (destructor_name) (operator_name)]"
_QUALIFIED = "(qualified_identifier name: (_) @function.name)"
_BEHIND = "(trailing_return_type (_) @function.returns)?"
_ENDS = f"parameters: (_) @function.parameters {_BEHIND}) @function.head"
_HEAD = f"(function_declarator declarator: {_QUALIFIED} {_ENDS}"
_PLAIN = f"(function_declarator declarator: {_NAMES} @function.name {_ENDS}"
QUESTIONS_OF_CPP = f"""
{QUESTIONS_OF_BOTH}
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
(class_specifier name: (type_identifier) @class body: (_)) (alias_declaration name: (type_identifier) @class)
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

CUSTOMS_OF_CPP = Customs(
    types=Written(form=form),
    methods={
        "": """at back begin clear count emplace emplace_back empty end erase find front insert merge pop_back pop_front
            push_back push_front reserve resize reverse size sort swap""",
        **dict.fromkeys(("stack", "queue", "priority_queue"), "push pop top front back"),
    },
)
register(
    Coded(
        ("cpp", "c++", "cc", "cxx", "hpp"), Grammar("tree_sitter_cpp", QUESTIONS_OF_CPP, "cpp", customs=CUSTOMS_OF_CPP)
    )
)
