"""The names that the published harness looks at."""

import ast
import re

from codechat.constraints.published import captured, tokens
from codechat.languages.python.syntax import parse

_METHODS_OF_REACT = {
    *("constructor", "componentDidMount", "componentWillUnmount", "render", "getDerivedStateFromProps"),
    "shouldComponentUpdate",
}
# The names of classes and of functions. In Go the type of a method's receiver counts as a function.
_QUERIES = {
    "python": (
        "(class_definition name: (identifier) @name)",
        "(function_definition name: (identifier) @name)",
    ),
    "java": ("(class_declaration name: (identifier) @name)", "(method_declaration name: (identifier) @name)"),
    "javascript": (
        """(class_declaration name: (identifier) @name)
        (variable_declarator name: (identifier) @name value: (new_expression constructor: (identifier) @name
          arguments: (arguments (string (string_fragment) @name))))""",
        """(function_declaration name: (identifier) @name)
        (method_definition name: (property_identifier) @name)
        (variable_declarator name: (identifier) @name value: (arrow_function))""",
    ),
    "cpp": (
        "[(class_specifier name: (type_identifier) @name) (struct_specifier name: (type_identifier) @name)]",
        """(function_definition declarator: (function_declarator declarator: [(identifier) @name
          (field_identifier) @name (qualified_identifier name: (identifier) @name)]))""",
    ),
    "go": (
        "(type_declaration (type_spec name: (type_identifier) @name type: (struct_type)))",
        """(function_declaration name: (identifier) @name)
        (method_declaration receiver: (parameter_list (parameter_declaration
          type: [(pointer_type (type_identifier) @name) (type_identifier) @name])) name: (field_identifier) @name)""",
    ),
    "kotlin": (
        "[(class_declaration name: (identifier) @name) (object_declaration name: (identifier) @name)]",
        """(function_declaration name: (identifier) @name)
        (callable_reference (user_type (identifier) @name) (identifier) @name)""",
    ),
    "rust": (
        """[(struct_item name: (type_identifier) @name) (enum_item name: (type_identifier) @name)
        (trait_item name: (type_identifier) @name)]""",
        "(function_item name: (identifier) @name)",
    ),
    "csharp": (
        """[(class_declaration name: (identifier) @name) (struct_declaration name: (identifier) @name)
        (interface_declaration name: (identifier) @name)]""",
        "[(method_declaration name: (identifier) @name) (constructor_declaration name: (identifier) @name)]",
    ),
    "haskell": ("(class name: (name) @name)", "(function name: (variable) @name)"),
    "zig": (
        "(variable_declaration (identifier) @name (struct_declaration))",
        "(function_declaration name: (identifier) @name)",
    ),
}


def names_seen(code: str, language: str) -> dict[str, set[str]]:
    """The names of classes, functions and variables in a code."""
    classes, functions = (
        {node.text.decode("utf-8", "replace") for node in captured(language, query, code, "name")}
        for query in _QUERIES[language]
    )
    if language == "python":
        functions = {name for name in functions if not re.fullmatch(r"__.*__", name)}
    if language == "javascript":
        functions = {name for name in functions - _METHODS_OF_REACT if not name.startswith("__")}
    others = {text for kind, text in tokens(code, language) if kind == "Token.Name"} - classes - functions
    variables = {name for name in others if len(name) >= 5 and not re.match(r"_|[A-Z0-9_]+\Z", name)}
    return {"class": classes, "function": functions, "variable": variables}


_STRINGS = """
(import_statement (string) @name)
(call_expression function: (_) @_require arguments: (arguments (string) @name) (#eq? @_require "require"))
"""
_PATHS = {
    "javascript": _STRINGS,
    "typescript": _STRINGS,
    "go": "(import_spec (interpreted_string_literal (interpreted_string_literal_content) @name))",
    "rust": "[(extern_crate_declaration) (use_declaration)] @name",
}


def imports_seen(name: str, code: str, language: str) -> bool:
    """Whether the published harness sees an import of a library."""
    if language == "python":
        return name in _imported(code)
    nodes = captured(language, _PATHS[language], code, "name")
    return any(name in node.text.decode("utf-8", "replace") for node in nodes)


def _imported(code: str) -> set[str]:
    tree = parse(code)
    nodes = [] if tree is None else list(ast.walk(tree))
    whole = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return whole | {node.module.split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
