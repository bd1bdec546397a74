"""JavaScript and TypeScript."""

import re

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import KINDS_OF_BRACES, Customs, Grammar, Written, brackets_end, parts

_PAGE = re.compile(r"\s*<(?:!doctype|html|head|body|template|script|!--)", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b[^<>]{0,500}>(.*?)(?:</script\b|\Z)", re.IGNORECASE | re.DOTALL)
_SOURCE = re.compile(r"<script\b[^<>]{0,500}?\bsrc\s*=\s*[\"']?([^\"'\s<>]+)", re.IGNORECASE)


def scripts(text: str) -> str:
    """The text with spaces for everything but its scripts, if it is a page; lines and places stay."""
    if not _PAGE.match(text):
        return text
    kept, end = [], 0
    for script in _SCRIPT.finditer(text):
        kept += [_blank(text[end : script.start(1)]), script[1]]
        end = script.end(1)
    return "".join((*kept, _blank(text[end:])))


def sources(text: str) -> list[tuple[str, int]]:
    """The addresses of the scripts that a page loads, each with its line, from 1; none if the text is no page."""
    if not _PAGE.match(text):
        return []
    return [(found[1], text.count("\n", 0, found.start()) + 1) for found in _SOURCE.finditer(text)]


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


QUESTIONS_OF_BOTH = """
(function_declaration name: (identifier) @function.name parameters: (_) @function.parameters) @function
(generator_function_declaration name: (identifier) @function.name parameters: (_) @function.parameters) @function
(method_definition name: [(property_identifier) (private_property_identifier)] @function.name
  parameters: (_) @function.parameters) @function
(variable_declarator name: (identifier) @function.name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @variable) (variable_declarator name: (array_pattern (identifier) @variable))
(variable_declarator name: (object_pattern (shorthand_property_identifier_pattern) @variable))
(for_in_statement left: (identifier) @variable) (arrow_function parameter: (identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: (property_identifier) @call)) (await_expression "await" @call)
(import_statement source: (string) @import.path) @import (export_statement source: (string) @import.path) @import
(call_expression function: (identifier) @_require arguments: (arguments . (string) @import.path)
  (#eq? @_require "require")) @import
(call_expression function: (import) arguments: (arguments . (string) @import.path)) @import
(import_statement (import_clause (identifier) @alias) source: (string (string_fragment) @alias.of))
(import_statement (import_clause (namespace_import (identifier) @alias)) source: (string (string_fragment) @alias.of))
(variable_declarator name: (identifier) @alias value: (call_expression function: (identifier) @_require
  arguments: (arguments . (string (string_fragment) @alias.of))) (#eq? @_require "require"))
[(comment) (html_comment)] @comment
[(string) (template_string) (regex)] @string
[(statement_block) (class_body) (switch_body)] @block
(binary_expression operator: _ @operator) (variable_declarator "=" @operator) (assignment_expression "=" @operator)
(augmented_assignment_expression operator: _ @operator) "," @operator
(array) @makes.array
(object) @makes.object
(arrow_function) @feature.arrow_function
(spread_element) @feature.spread
(await_expression) @feature.await (for_in_statement "await") @feature.await
(arrow_function "async") @feature.async (function_expression "async") @feature.async
(function_declaration "async") @feature.async (method_definition "async") @feature.async
"""
QUESTIONS_OF_JAVASCRIPT = f"""
{QUESTIONS_OF_BOTH}
(class_declaration name: (identifier) @class)
(formal_parameters (identifier) @variable) (formal_parameters (assignment_pattern left: (identifier) @variable))
(formal_parameters (identifier) @parameter)
(new_expression constructor: (identifier) @type)
(rest_pattern) @feature.rest
"""


def imports(library: str, path: str) -> bool:
    """Whether a path is of the package, which may be one of a scope, or the runtime's own (`node:fs`)."""
    path, library = path.removeprefix("node:"), library.removeprefix("node:")
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
KINDS_OF_JAVASCRIPT = KINDS_OF_BRACES | {
    "comment": "comment html_comment",
    "function": """function_declaration generator_function_declaration method_definition function_expression
        generator_function arrow_function""",
    "lambda": "arrow_function",
    "class": "class_declaration",
    "for": "for_statement for_in_statement",
    "each": "for_in_statement",
    "switch": "switch_statement",
    "try": "try_statement",
    "block": "statement_block class_body",
    "number": "number",
    "string": "string template_string",
    "template": "template_string",
    "declaration": "lexical_declaration variable_declaration",
    "augmented": "augmented_assignment_expression",
    "call": "call_expression",
    "new": "new_expression",
    "pattern": "array_pattern object_pattern",
    "regex": "regex",
    "name": """identifier shorthand_property_identifier shorthand_property_identifier_pattern property_identifier
        private_property_identifier""",
}
register(
    Coded(
        ("javascript", "js", "jsx", "mjs", "node"),
        Grammar(
            "tree_sitter_javascript",
            QUESTIONS_OF_JAVASCRIPT,
            "javascript",
            within=scripts,
            customs=CUSTOMS_OF_JAVASCRIPT,
            kinds=KINDS_OF_JAVASCRIPT,
        ),
        labels=("javascript", "typescript"),
    )
)


QUESTIONS_OF_TYPESCRIPT = f"""
{QUESTIONS_OF_BOTH.replace("[(comment) (html_comment)] @comment", "(comment) @comment")}
(_ name: (_) @function.name parameters: (_) @function.parameters return_type: (_) @function.returns) @function
(class_declaration name: (type_identifier) @class) (interface_declaration name: (type_identifier) @class)
(type_alias_declaration name: (type_identifier) @class) (enum_declaration name: (identifier) @class)
(required_parameter pattern: (_) @parameter.name type: (_)? @parameter.type) @parameter
(optional_parameter pattern: (_) @parameter.name type: (_)? @parameter.type) @parameter
(required_parameter pattern: (identifier) @variable)
(variable_declarator name: (identifier) @function.name value: (arrow_function
  parameters: (_) @function.parameters return_type: (_)? @function.returns)) @function
(variable_declarator name: (identifier) @function.name
  value: (arrow_function parameter: (identifier)) @function.parameters) @function
(public_field_definition name: [(property_identifier) (private_property_identifier)] @function.name
  value: [(arrow_function parameters: (_) @function.parameters return_type: (_)? @function.returns)
    (function_expression parameters: (_) @function.parameters return_type: (_)? @function.returns)]) @function
(pair key: (property_identifier) @function.name value: (arrow_function
  parameters: (_) @function.parameters return_type: (_)? @function.returns)) @function
(variable_declarator name: (identifier) @function.name value: (function_expression
  parameters: (_) @function.parameters return_type: (_)? @function.returns)) @function
[(method_signature name: (_) @function.name parameters: (_) @function.parameters)
  (function_signature name: (_) @function.name parameters: (_) @function.parameters)
  (abstract_method_signature name: (_) @function.name parameters: (_) @function.parameters)] @function
(arrow_function parameter: (identifier) @parameter @parameter.name)
(array_pattern (identifier) @variable) (catch_clause parameter: (identifier) @variable)
(formal_parameters (_ pattern: (object_pattern (shorthand_property_identifier_pattern) @variable)))
(type_alias_declaration name: (_) @alias value: (_) @alias.of)
(import_specifier name: (identifier) @alias @alias.of !alias)
(import_specifier name: (identifier) @alias.of alias: (identifier) @alias)
(import_require_clause source: (string) @import.path) @import
(call_expression function: (await_expression (identifier) @call) type_arguments: (_))
(call_expression function: (await_expression (member_expression property: (property_identifier) @call))
  type_arguments: (_))
(abstract_class_declaration name: (type_identifier) @class)
(optional_parameter pattern: (identifier) @variable)
(required_parameter pattern: (rest_pattern (identifier) @variable))
(public_field_definition name: [(property_identifier) (private_property_identifier)] @variable !value)
(public_field_definition name: [(property_identifier) (private_property_identifier)] @variable
  value: [(identifier) (array) (object) (string) (template_string) (number) (true) (false) (null) (undefined)
    (new_expression) (call_expression) (member_expression) (binary_expression) (unary_expression) (as_expression)])
(property_signature name: (property_identifier) @variable)
(public_field_definition "=" @operator) (type_alias_declaration "=" @operator) (enum_assignment "=" @operator)
(interface_declaration body: (_) @block) [(enum_body)] @block
(type_identifier) @type (predefined_type) @type
(generic_type name: (nested_type_identifier name: (type_identifier) @type))
(call_expression function: (member_expression object: (identifier) @type)
  (#any-of? @type "Array" "Object" "Map" "Promise"))
(array_type) @makes.array
(tuple_type) @makes.tuple
(object_type) @makes.object
(new_expression constructor: (identifier) @type)
"""

_ALIKE = str.maketrans({"`": "'", '"': "'"})


_MEANT = (
    (r"(?:\s*\N{RIGHTWARDS ARROW}|\(.*\N{RIGHTWARDS ARROW}|(?:abstract\s+)?new\b)", "function"),
    (r"(?:asserts\s+)?\w+\s+is\s|(?:true|false)$", "boolean"),
    (r"-?\d", "number"),
    (r"keyof\s", "string"),
)


def form(text: str) -> str:
    """A type of TypeScript in the common form: `(A, B)` of a tuple, `Map<K, V>` of an object with an index."""
    text = re.sub(r"'[^'\n]*'", "string", text.translate(_ALIKE)).replace("=>", "\N{RIGHTWARDS ARROW}")
    return " | ".join(map(_member, parts(text.strip().lstrip("|&"), "|&")))


def _member(text: str) -> str:
    text = re.sub(r"^(?:readonly|unique|infer)\s+", "", text)
    end = brackets_end(text)
    for pattern, meant in _MEANT:
        if re.match(pattern, text[end:] if meant == "function" else text):
            return meant
    if text.startswith("["):
        inside = [re.sub(r"^(?:\.\.\.)?(?:\w+\??\s*:\s*)?|\?$", "", part) for part in parts(text[1 : end - 1], ",")]
        made, lists = f"({', '.join(inside)},)", text[end:].count("[")
        return "Array<" * lists + (made if len(inside) < 2 else made.replace(",)", ")")) + ">" * lists
    if text.startswith("{") and end == len(text):
        held = re.match(r"\{\s*(?:readonly\s+)?\[\s*\w+\s*(?::|in)([^\]]*)\]\s*\??\s*:\s*([^;,]*)", text)
        return f"Map<{held[1].strip()}, {held[2].rstrip(' }')}>" if held else "object"
    return text


CUSTOMS_OF_TYPESCRIPT = Customs(
    types=Written(
        kinds={
            "integer": "number bigint",
            "float": "number",
            "list": """readonlyarray iterableiterator arraylike int8array uint8array int16array uint16array int32array
                uint32array float32array float64array""",
            "set": "readonlyset weakset",
            "map": "record readonlymap weakmap",
            "json": "object jsonarray",
            "wrapper": "readonly partial required nonnullable awaited promiselike maybe nullable ref",
        },
        form=form,
        inferred=".",
    ),
    constructs=CUSTOMS_OF_JAVASCRIPT.constructs,
    imports=imports,
    sources=sources,
)
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
