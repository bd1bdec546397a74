"""TypeScript."""

from codechat.languages import register
from codechat.languages.coded import Coded
from codechat.languages.customs import Customs
from codechat.languages.grammar import Grammar
from codechat.languages.javascript import COMMON, imports
from codechat.languages.markup import scripts, sources

QUESTIONS = f"""
{COMMON.replace("[(comment) (html_comment)] @comment", "(comment) @comment")}
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

CUSTOMS = Customs(imports=imports, sources=sources)
register(
    Coded(
        ("typescript", "ts", "tsx"),
        Grammar("tree_sitter_typescript", QUESTIONS, "typescript", "language_typescript", scripts, CUSTOMS),
    )
)
