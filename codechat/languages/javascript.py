"""JavaScript and TypeScript."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.customs import Customs
from codechat.languages.grammar import Grammar
from codechat.languages.markup import scripts, sources

QUESTIONS_OF_BOTH = """
(function_declaration name: (identifier) @function.name parameters: (_) @function.parameters) @function
(generator_function_declaration name: (identifier) @function.name parameters: (_) @function.parameters) @function
(method_definition name: [(property_identifier) (private_property_identifier)] @function.name
  parameters: (_) @function.parameters) @function
(variable_declarator name: (identifier) @function.name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @variable)
(variable_declarator name: (array_pattern (identifier) @variable))
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @variable))
(for_in_statement left: (identifier) @variable)
(arrow_function parameter: (identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: (property_identifier) @call))
(await_expression "await" @call)
(import_statement source: (string) @import.path) @import
(export_statement source: (string) @import.path) @import
(call_expression function: (identifier) @_require arguments: (arguments . (string) @import.path)
  (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string) @import.path)) @import
[(comment) (html_comment)] @comment
[(string) (template_string) (regex)] @string
[(statement_block) (class_body) (switch_body)] @block
(binary_expression operator: _ @operator)
(variable_declarator "=" @operator)
(assignment_expression "=" @operator)
(augmented_assignment_expression operator: _ @operator)
"," @operator
(array) @makes.array
(object) @makes.object
(arrow_function) @feature.arrow_function
(spread_element) @feature.spread
(await_expression) @feature.await
(for_in_statement "await") @feature.await
(arrow_function "async") @feature.async
(function_expression "async") @feature.async
(function_declaration "async") @feature.async
(method_definition "async") @feature.async
"""
QUESTIONS_OF_JAVASCRIPT = f"""
{QUESTIONS_OF_BOTH}
(class_declaration name: (identifier) @class)
(formal_parameters (identifier) @variable)
(formal_parameters (assignment_pattern left: (identifier) @variable))
(formal_parameters (identifier) @parameter)
(new_expression constructor: (identifier) @type)
(rest_pattern) @feature.rest
"""


def imports(library: str, path: str) -> bool:
    """Whether a path is of the package, which may be one of a scope."""
    package = "/".join(path.split("/")[: 2 if path.startswith("@") else 1])
    return package in (library, f"@{library}") or path.startswith((f"@{library}/", f"{library}/"))


CUSTOMS_OF_JAVASCRIPT = Customs(
    constructs={
        "async/await": ("async", "await"),
        "arrow functions": ("arrow_function",),
        "spread operator": ("spread",),
    },
    imports=imports,
    sources=sources,
)
register(
    Coded(
        ("javascript", "js", "jsx", "mjs", "node"),
        Grammar(
            "tree_sitter_javascript",
            QUESTIONS_OF_JAVASCRIPT,
            "javascript",
            within=scripts,
            customs=CUSTOMS_OF_JAVASCRIPT,
        ),
        labels=("javascript", "typescript"),
    ),
)


QUESTIONS_OF_TYPESCRIPT = f"""
{QUESTIONS_OF_BOTH.replace("[(comment) (html_comment)] @comment", "(comment) @comment")}
(_ name: (_) @function.name parameters: (_) @function.parameters return_type: (_) @function.returns) @function
(class_declaration name: (type_identifier) @class)
(interface_declaration name: (type_identifier) @class)
(type_alias_declaration name: (type_identifier) @class)
(enum_declaration name: (identifier) @class)
(required_parameter pattern: (_) @parameter.name type: (_)? @parameter.type) @parameter
(optional_parameter pattern: (_) @parameter.name type: (_)? @parameter.type) @parameter
(required_parameter pattern: (identifier) @variable)
(type_identifier) @type
(predefined_type) @type
(new_expression constructor: (identifier) @type)
"""

CUSTOMS_OF_TYPESCRIPT = Customs(imports=imports, sources=sources)
register(
    Coded(
        ("typescript", "ts", "tsx"),
        Grammar(
            "tree_sitter_typescript",
            QUESTIONS_OF_TYPESCRIPT,
            "typescript",
            "language_typescript",
            scripts,
            CUSTOMS_OF_TYPESCRIPT,
        ),
    )
)
