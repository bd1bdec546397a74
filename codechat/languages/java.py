"""Java: extracts its code from replies, finds the types that code declares, and has a grammar."""

import re
from collections.abc import Iterator

from codechat.domain import Extraction, Target
from codechat.languages import register
from codechat.languages.blocks import Block, Fences, split
from codechat.languages.customs import Customs
from codechat.languages.grammar import Grammar
from codechat.languages.javac import Javac
from codechat.languages.plain import no_code, without_indent
from codechat.languages.thinking import without_thinking
from codechat.languages.unfenced import without_prose

_TYPE = r"(?:(?:public|final|abstract|sealed|strictfp)\s+)*(?:class|interface|enum|record)\s"
_START = re.compile(rf"\s*(?:package\s|import\s|@\w|//|/\*|{_TYPE})")
# Texts, comments, braces and words, each whole, also where the code ends within one.
_PIECES = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?|//[^\n]*|/\*.*?(?:\*/|\Z)|[{}.;*]|@?[\w$]+',
    re.DOTALL,
)
_DECLARING = frozenset({"class", "interface", "enum", "record", "@interface"})
QUESTIONS = """
(class_declaration name: (identifier) @class)
(interface_declaration name: (identifier) @class)
(enum_declaration name: (identifier) @class)
(record_declaration name: (identifier) @class)
(method_declaration type: (_) @function.returns name: (identifier) @function.name
  parameters: (_) @function.parameters) @function
(formal_parameter type: (_) @parameter.type name: (_) @parameter.name) @parameter
(spread_parameter (variable_declarator name: (_) @parameter.name)) @parameter
(formal_parameter name: (identifier) @variable)
(variable_declarator name: (identifier) @variable)
(enhanced_for_statement name: (identifier) @variable)
(method_invocation name: (identifier) @call)
(method_reference (identifier) @call .)
(import_declaration (_) @import.path) @import
[(line_comment) (block_comment)] @comment
[(string_literal) (character_literal)] @string
(type_identifier) @type
(method_reference . (identifier) @type "new")
(array_type) @makes.array
(lambda_expression) @feature.lambda
[(block) (constructor_body) (class_body) (interface_body) (enum_body) (switch_block)] @block
(binary_expression operator: _ @operator)
(variable_declarator "=" @operator)
(assignment_expression operator: _ @operator)
"," @operator
"""

CUSTOMS = Customs(
    documentation="javadoc",
    documents=r"/\*\*(?!/)",
    methods={
        "": """add addall addfirst addlast clear contains containskey entryset get getfirst getlast isempty iterator
            keyset offer peek peekfirst peeklast poll pollfirst polllast pop push put putifabsent remove removefirst
            removelast set size sort values"""
    },
)


class Java:
    """Java in the version of the compiler that is at hand."""

    names = ("java",)
    grammar = Grammar("tree_sitter_java", QUESTIONS, "java", customs=CUSTOMS)
    compiler = Javac()

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply, without its `<think>` parts: one fenced block, or a reply that is nothing but code.

        Blocks tagged as Java come before others, closed ones before unclosed ones. Of these the first is taken that
        declares the entry point as a type, else the first of the best that has it as a word. Without an entry point it
        is the first that declares any type, else the first of all, so that the compiler says what is wrong.
        """
        answer = without_thinking(reply)
        fences = Fences(lambda tag: tag.lower() in self.names, _START)
        blocks = [block for block in split(answer, fences).blocks if block.text.strip() and not block.diff]
        found = [(without_indent(block), where) for block, where in self._ranked(blocks)]
        if not found and _START.match(answer):
            found = [(answer.strip(), "a reply that is nothing but code")]
        if not found and not target.entry_point and "```" not in answer and (code := without_prose(answer)):
            found = [(code, "a reply without a fence")]
        if not found:
            return no_code("no fence holds code" if answer.strip() else "the reply is empty, but for what it thinks")
        typed = [(self.defines(code) or frozenset(), code, where) for code, where in found]
        name = target.entry_point
        word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
        chosen = [(code, where) for types, code, where in typed if (name in types if name else types)]
        best = [(code, where) for _, code, where in typed if where == found[0][1]]
        chosen = chosen or [(code, where) for code, where in best if not name or word.search(code)]
        if not chosen:
            return no_code(f"the code does not define {name}")
        code, where = chosen[0]
        return Extraction(code, code, None, where)

    def defines(self, code: str) -> frozenset[str] | None:
        """The types that the code declares at top level; None if its braces do not match."""
        depth, found = 0, set[str]()
        before, declaring = "", False
        for match in _PIECES.finditer(code):
            piece = match.group()
            if piece[0] in "\"'/":
                continue
            depth += (piece == "{") - (piece == "}")
            if depth < 0:
                return None
            if declaring and depth == 0 and piece.isidentifier():
                found.add(piece)
            declaring = piece in _DECLARING and before != "."
            before = piece
        return frozenset(found) if depth == 0 else None

    def _ranked(self, blocks: list[Block]) -> Iterator[tuple[Block, str]]:
        """The blocks, those first that are most surely meant, each with what it is."""
        tagged = [block for block in blocks if block.tag in self.names]
        yield from ((block, "a fenced block") for block in tagged if block.closed)
        yield from ((block, "an unclosed fence") for block in tagged if not block.closed)
        others = (block for block in blocks if block.tag not in self.names)
        yield from ((block, "a fenced block of another tag, or of none") for block in others)


register(Java())
