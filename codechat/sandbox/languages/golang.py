"""Go."""

import re

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Customs, Grammar, Written

QUESTIONS = """
(type_spec name: (type_identifier) @class)
(function_declaration name: (identifier) @function.name parameters: (parameter_list) @function.parameters
  result: (_)? @function.returns) @function
(method_declaration name: (field_identifier) @function.name parameters: (parameter_list) @function.parameters
  result: (_)? @function.returns) @function
(method_elem name: (field_identifier) @function.name parameters: (parameter_list) @function.parameters
  result: (_)? @function.returns) @function
(import_spec name: (package_identifier) @alias path: (_) @alias.of)
(parameter_declaration name: (identifier) @parameter.name type: (_) @parameter.type) @parameter
(variadic_parameter_declaration name: (identifier) @parameter.name type: (_) @parameter.many) @parameter
(parameter_declaration name: (identifier) @variable) (variadic_parameter_declaration name: (identifier) @variable)
(type_spec name: (_) @alias type: (_) @alias.of) (type_alias name: (_) @alias type: (_) @alias.of)
(short_var_declaration left: (expression_list (identifier) @variable))
(range_clause left: (expression_list (identifier) @variable)) (var_spec name: (identifier) @variable)
(field_declaration name: (field_identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call)) (go_statement "go" @call)
(defer_statement "defer" @call)
(import_spec path: (_) @import.path) @import
(comment) @comment
[(interpreted_string_literal) (raw_string_literal) (rune_literal)] @string
(type_identifier) @type
(qualified_type) @qualified.type
(selector_expression operand: (identifier)) @qualified.value
(map_type) @makes.map
(slice_type) @makes.slice
(array_type) @makes.array (implicit_length_array_type) @makes.array
(channel_type) @makes.chan
(struct_type) @makes.struct
(call_expression function: (identifier) @makes.slice (#eq? @makes.slice "append"))
(go_statement) @feature.goroutine
(defer_statement) @feature.defer
(channel_type) @feature.channel (send_statement) @feature.channel (unary_expression operator: "<-") @feature.channel
[(block) (field_declaration_list)] @block
(binary_expression operator: _ @operator) (short_var_declaration ":=" @operator)
(assignment_statement operator: _ @operator) (var_spec "=" @operator) (const_spec "=" @operator) "," @operator
"""

# Where the packages of the standard library begin: `sync` is no part of another path.
_STANDARD = frozenset({
    "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto", "database", "embed",
    "encoding", "errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "io", "iter", "log", "maps",
    "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort", "strconv",
    "strings", "sync", "syscall", "testing", "text", "time", "unicode", "unsafe",
})  # fmt: skip
_ELEMENT_SET = "(assignment_statement left: (expression_list (index_expression))) @set"

_RECEIVED = '[(unary_expression operator: "<-") @set (range_clause right: (_) @over) @set]'


def _imports(library: str, path: str) -> bool:
    asked, parts = library.lower().split("/"), path.lower().split("/")
    if asked[0] in _STANDARD:
        return parts == asked
    return any(parts[start : start + len(asked)] == asked for start in range(len(parts)))


def form(text: str) -> str:
    """A type of Go in the common form: a map to nothing, or to what is true, is a set as well."""
    if re.match(r"\*?(?:func|<-\s*chan|chan)\b", text):
        return "function"
    if re.match(r"\*?(?:struct|interface)\s*\{\s*[^\s}]", text):
        return "record"
    held = re.fullmatch(r"\*?map\[([^\[\]]+)\]\s*(?:struct\s*\{\s*\}|bool)", text)
    return f"Map<{held[1]}, bool> | Set<{held[1]}>" if held else text


CUSTOMS = Customs(
    types=Written(kinds={"integer": "uintptr", "json": "rawmessage"}, form=form, untold="tuple"),
    documentation="godoc",
    documents=r"//|/\*",
    named=True,
    lone_braces=False,
    results_named=True,
    structures_qualified=True,
    packages=("list", "ring", "heap"),
    built_in={"map": "maps", "slice": "slices sort", "array": "slices sort", "chan": ""},
    constructs={"goroutine and channel": ("goroutine", "channel"), "defer statement": ("defer",)},
    written={
        **dict.fromkeys(("assign", "insert", "update"), _ELEMENT_SET),
        "send": "(send_statement) @set",
        **dict.fromkeys(("receive", "recv"), _RECEIVED),
    },
    imports=_imports,
)
register(Coded(("go", "golang"), Grammar("tree_sitter_go", QUESTIONS, "go", customs=CUSTOMS)))
