"""Kotlin."""

import re

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Customs, Grammar, Written, parts

QUESTIONS = """
(class_declaration name: (identifier) @class) (object_declaration name: (identifier) @class)
(function_declaration name: (identifier) @function.name
  (function_value_parameters) @function.parameters) @function
(function_declaration name: (identifier) @function.name
  (function_value_parameters) @function.parameters . ":" . (_) @function.returns) @function
(parameter . (identifier) @parameter.name) @parameter
(function_value_parameters (parameter_modifiers (parameter_modifier "vararg")) .
  (parameter . (identifier) @parameter.name . ":" . (_) @parameter.many) @parameter)
(parameter . (identifier) @variable)
(type_alias type: (identifier) @alias (_) @alias.of .)
(call_expression . (identifier) @type (#match? @type "^[A-Z]"))
(class_parameter (identifier) @variable . ":") (variable_declaration . (identifier) @variable)
(call_expression . (identifier) @call) (call_expression . (navigation_expression (identifier) @call .))
(import (qualified_identifier) @import.path) @import
(import (qualified_identifier) @alias.of (identifier) @alias)
[(line_comment) (block_comment)] @comment
[(string_literal) (multiline_string_literal) (character_literal)] @string
(user_type (identifier) @type)
(lambda_literal) @feature.lambda
(when_expression) @feature.when
[(block) (class_body) (enum_class_body)] @block
(binary_expression operator: _ @operator)
(binary_expression left: (binary_expression left: (identifier) @type operator: "<") operator: ">"
  right: (parenthesized_expression))
(binary_expression left: (binary_expression left: (identifier) @call operator: "<") operator: ">"
  right: (parenthesized_expression))
(binary_expression left: (binary_expression left: (navigation_expression (identifier) @call .) operator: "<")
  operator: ">" right: (parenthesized_expression))
(binary_expression left: (binary_expression left: (identifier) operator: "<" @bracket) operator: ">"
  right: (parenthesized_expression))
(binary_expression left: (binary_expression left: (identifier) operator: "<") operator: ">" @bracket
  right: (parenthesized_expression))
(property_declaration "=" @operator) (assignment "=" @operator) "," @operator
"""


def form(text: str) -> str:
    """A type of Kotlin in the common form: without question marks, `Array<Int>` of an `IntArray`."""
    text = re.sub(r"^(?:(?:vararg|suspend|noinline|crossinline)\s+|@\w+\s+)+", "", text.strip())
    if re.search(r"->", text) and len(parts(text.replace("->", ";"), ";")) > 1:
        return "function"
    text = re.sub(r"[<,]\s*(?:out|in)\s+", lambda found: found[0][0], text).replace("?", "").removesuffix("!!")
    return re.sub(r"\b(U?(?:Int|Long|Short|Byte)|Char|Float|Double|Boolean)Array\b", r"Array<\1>", text)


_BUILDERS = {
    "list": "listOf listOfNotNull emptyList buildList mutableListOf arrayListOf toList toMutableList",
    "mutablelist": "mutableListOf arrayListOf toMutableList buildList",
    "arraylist": "arrayListOf mutableListOf",
    "set": "setOf emptySet buildSet mutableSetOf hashSetOf linkedSetOf sortedSetOf toSet toMutableSet",
    "mutableset": "mutableSetOf hashSetOf linkedSetOf sortedSetOf toMutableSet buildSet",
    "hashset": "hashSetOf",
    "linkedhashset": "linkedSetOf mutableSetOf",
    "treeset": "sortedSetOf",
    "map": "mapOf emptyMap buildMap mutableMapOf hashMapOf linkedMapOf sortedMapOf toMap toMutableMap",
    "mutablemap": "mutableMapOf hashMapOf linkedMapOf sortedMapOf toMutableMap buildMap",
    "hashmap": "hashMapOf",
    "linkedhashmap": "linkedMapOf mutableMapOf",
    "treemap": "sortedMapOf",
    "array": "arrayOf arrayOfNulls intArrayOf longArrayOf doubleArrayOf floatArrayOf charArrayOf booleanArrayOf",
    "intarray": "intArrayOf",
}
CUSTOMS = Customs(
    types=Written(
        kinds={
            "list": "mutablelist mutablecollection mutableiterable arraydeque abstractlist",
            "map": "mutablemap",
            "json": "jsonelement jsonarray",
            "integer": "ulong ushort ubyte",
            "wrapper": "deferred lazy stateflow mutablestateflow livedata",
        },
        form=form,
        inferred=r"[^{]*\)\s*=",
    ),
    documentation="kotlindoc",
    hyphened="`{}`",
    documents=r"/\*\*(?!/)",
    builders=_BUILDERS,
    constructs={"lambda expression": ("lambda",), "when expression": ("when",)},
)
register(Coded(("kotlin", "kt", "kts"), Grammar("tree_sitter_kotlin", QUESTIONS, "kotlin", customs=CUSTOMS)))
