"""Java: extracts its code from replies, finds the types that code declares; its grammar and its compiler."""

import re
from dataclasses import dataclass

from codechat.base.domain import Extraction, Target
from codechat.sandbox.languages import (
    is_stray,
    last_best,
    no_code,
    register,
    tagged,
    unfenced_code,
    without_fences,
    without_indent,
)
from codechat.sandbox.languages.definitions import FULL, definition, may_define
from codechat.sandbox.languages.grammar import (
    KINDS_OF_BRACES,
    Attempt,
    Compiler,
    Customs,
    Grammar,
    Version,
    Written,
    at_line,
)
from codechat.sandbox.languages.replies import Fences, split
from codechat.sandbox.languages.thoughts import without_thinking

_ERROR = re.compile(r"(?m)^[^\n:]+\.java:(\d+): error: (.*)((?:\n {2}.*)*)")
_IMPORT = re.compile(r"(?m)^[ \t]*import\s+(static\s+)?([\w.]+?)\.(\w+|\*)\s*;")
_PACKAGE = re.compile(r"package ([\w.]+) does not exist")
_SYMBOL = re.compile(r"symbol:\s+(\w+) (\S+)")
_LOCATION = re.compile(r"location:\s+(?:variable \S+ of type|\w+) ([\w.]+)")
_JDK = re.compile(r"(?:java|javax(?!\.annotation$)|jdk|sun)\.")
_JDK_ALONE = re.compile(r"(?:java|jdk|sun)(?:\.|$)")  # packages of javax are libraries too
_PUBLIC = re.compile(
    r"public\s+(?:(?:final|abstract|sealed|strictfp)\s+)*(?:class|interface|enum|record)\s+(\w{1,100})\b"
)
_FILE = re.compile(r"class \S+ is public, should be declared in a file")
_OVERRIDES = "method does not override or implement a method from a supertype"


class Javac(Compiler):
    """javac. If a library is missing, it still checks types, but no flow of control."""

    program = "javac"
    suffix = ".java"
    asks_version = ("-version",)
    sample = "class Program { }\n"
    newest: Attempt | None = ()
    bounds: Attempt = (
        *("-J-Xmx512m", "-J-Xss8m", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-XX:-UsePerfData"),
        *("-J-XX:-UseContainerSupport", "-J-XX:CompressedClassSpaceSize=128m", "-J-XX:ErrorFile=/dev/null"),
        *("-J-Duser.language=en", "-J-Duser.country=US", "-encoding", "UTF-8"),
        *("-proc:none", "-implicit:none", "-nowarn", "-Xlint:none", "-d", "."),
    )
    checks: Attempt = (
        *("-Xmaxerrs", "10000", "-XDdiags.showSource=false", "-XDdiags.formatterOptions=-simpleNames,-where"),
        *("-XDshould-stop.ifError=ATTR", "-XDshould-stop.ifNoError=FLOW"),
    )

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """The release: 8 of 1.8."""
        release = version[1] if version[0] == 1 and len(version) > 1 else version[0]
        return (("--release", str(release)),)

    def file_name(self, code: str) -> str:
        """The name of the first public type."""
        public = _PUBLIC.search(code)
        return f"{public[1] if public and public[1].isascii() else 'Program'}.java"

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        """The name of a further public type's file is a matter of files, and no error of the language (JLS 7.6)."""
        found = [match.groups() for match in _ERROR.finditer(output)]
        missing = _Missing.of(code, [said + more for _, said, more in found])
        sorted_out: tuple[list[str], list[str]] = ([], [])
        for line, said, more in found:
            outside = bool(_FILE.match(said)) or missing.explains(said, more)
            sorted_out[outside].append(at_line(line, f"{said} {more}"))
        return sorted_out


@dataclass(frozen=True)
class _Missing:
    """The packages that are not there, the names imported from them, whether these may be any types (`import a.*`) or
    any static members too (`import static a.B.*`), and whether a type of the program's own has members from them,
    because it extends or is annotated by one."""

    packages: frozenset[str]
    names: frozenset[str]
    types: bool
    statics: bool
    members: bool

    @classmethod
    def of(cls, code: str, errors: list[str]) -> "_Missing":
        absent = {package for each in errors for package in _PACKAGE.findall(each)}
        poorer = {_place(each) for each in errors if "location: package" in each}
        packages = {package for package in absent if not _JDK_ALONE.match(package)}
        packages |= {package for package in poorer if not _JDK.match(package)}
        gone = [
            (static, name)
            for static, package, name in _IMPORT.findall(code)
            if any(f"{package}.".startswith(f"{each}.") for each in packages)
        ]
        statics = any(static and name == "*" for static, name in gone)
        types = statics or ("", "*") in gone
        names = {name for _, name in gone if name != "*"}
        unknown = {found[2] for each in errors if (found := _SYMBOL.search(each)) and found[1] == "class" and types}
        # whether a type extends, implements or is annotated by one of the names
        heads = re.findall(r"(?:\b(?:extends|implements)\s+([^{;]{1,500})|@(\w+))", code)
        missing = names | unknown
        members = any(not missing.isdisjoint(re.findall(r"\w+", part)) for head in heads for part in head)
        return cls(frozenset(packages), frozenset(names), types, statics, members)

    def explains(self, said: str, more: str) -> bool:
        """Whether an error comes from something missing."""
        if package := _PACKAGE.match(said):
            return package[1] in self.packages
        if said == _OVERRIDES:
            return self.members
        symbol = _SYMBOL.search(more)
        if said != "cannot find symbol" or symbol is None:
            return False
        place, name = _place(more), re.split(r"[<(]", symbol[2])[0]
        if "location: package" in more:
            return place in self.packages
        a_type = symbol[1] == "class" or (symbol[1] == "variable" and name[:1].isupper())
        unbound = self.types if a_type else self.statics and not re.search(r"location:\s+variable", more)
        of_own = symbol[1] != "class" and self.members
        # what the version's own library lacks is no matter of others
        return not _JDK.match(place) and (name in self.names or of_own or unbound)


def _place(text: str) -> str:
    found = _LOCATION.search(text)
    return "" if found is None else found[1]


_TYPE = r"(?:(?:public|final|abstract|sealed|strictfp)\s+)*(?:class|interface|enum|record)\s"
_START = re.compile(rf"\s*(?:package\s|import\s|@\w|//|/\*|{_TYPE})")
# Texts, comments, braces and words, each whole, also if the code ends within one.
_PIECES = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*"?|\'(?:\\.|[^\'\\\n])*\'?|//[^\n]*|/\*.*?(?:\*/|\Z)|[{}.;*]|@?[\w$]+',
    re.DOTALL,
)
_DECLARING = frozenset({"class", "interface", "enum", "record", "@interface"})
QUESTIONS = """
(class_declaration name: (identifier) @class) (interface_declaration name: (identifier) @class)
(enum_declaration name: (identifier) @class) (record_declaration name: (identifier) @class)
(method_declaration type: (_) @function.returns name: (identifier) @function.name
  parameters: (_) @function.parameters) @function
(formal_parameter type: (_) @parameter.type name: (_) @parameter.name) @parameter
(spread_parameter (variable_declarator name: (_) @parameter.name)) @parameter
(formal_parameter name: (identifier) @variable) (variable_declarator name: (identifier) @variable)
(enhanced_for_statement name: (identifier) @variable)
(method_invocation name: (identifier) @call) (method_reference (identifier) @call .)
(import_declaration (_) @import.path) @import
[(line_comment) (block_comment)] @comment
[(string_literal) (character_literal)] @string
(type_identifier) @type (method_reference . (identifier) @type "new")
(array_type) @makes.array
(lambda_expression) @feature.lambda
[(block) (constructor_body) (class_body) (interface_body) (enum_body) (switch_block)] @block
(binary_expression operator: _ @operator) (variable_declarator "=" @operator)
(assignment_expression operator: _ @operator) "," @operator
"""


CUSTOMS = Customs(
    documentation="javadoc",
    documents=r"/\*\*(?!/)",
    types=Written(),
    methods={
        "": """add addall addfirst addlast clear contains containskey entryset get getfirst getlast isempty iterator
            keyset offer peek peekfirst peeklast poll pollfirst polllast pop push put putifabsent remove removefirst
            removelast set size sort values"""
    },
)


KINDS = KINDS_OF_BRACES | {
    "comment": "line_comment block_comment",
    "function": "method_declaration constructor_declaration compact_constructor_declaration lambda_expression",
    "lambda": "lambda_expression",
    "class": "class_declaration record_declaration enum_declaration interface_declaration",
    "for": "for_statement enhanced_for_statement",
    "each": "enhanced_for_statement",
    "switch": "switch_expression",
    "try": "try_statement try_with_resources_statement",
    "assert": "assert_statement",
    "block": "block constructor_body class_body",
    "number": """decimal_integer_literal hex_integer_literal octal_integer_literal binary_integer_literal
        decimal_floating_point_literal hex_floating_point_literal""",
    "string": "string_literal character_literal",
    "declaration": "local_variable_declaration field_declaration",
    "call": "method_invocation",
    "new": "object_creation_expression",
    "name": "identifier",
}


class Java:
    """Java in the version of the compiler that is at hand."""

    names = ("java",)
    grammar = Grammar("tree_sitter_java", QUESTIONS, "java", customs=CUSTOMS, kinds=KINDS)
    compiler = Javac()

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply, without its thoughts: one fenced block, or a reply that is nothing but code.

        Blocks tagged as Java come before others, closed ones before unclosed ones. The last is taken that declares the
        entry point as a type, or defines it otherwise; else the first of the best that has it as a word. Without an
        entry point it is the first that declares any type, else the first of all, so that the compiler says what is
        wrong.
        """
        answer = without_thinking(reply)
        fences = Fences(lambda tag: tag.lower() in self.names, _START)
        blocks = [block for block in split(answer, fences).blocks if block.text.strip() and not block.diff]
        blocks = [block for block in blocks if not is_stray(block)]
        others = [block for block in blocks if block.tag not in self.names]
        kinds = (*tagged(blocks, self.names), (others, "a fenced block of another tag, or of none"))
        found = [(without_indent(block), where) for kind, where in kinds for block in kind]
        outside = "" if found else without_fences(answer, fences)
        if _START.match(outside):
            found = [(outside.strip(), "a reply that is nothing but code")]
        if not found and not target.entry_point and (code := unfenced_code(outside, self.names)):
            found = [(code, "a reply without a fence")]
        if not found:
            return no_code("no fence holds code" if answer.strip() else "the reply is empty, but for what it thinks")
        name = target.entry_point

        def strength(code: str) -> int:
            return FULL + 1 if name in (self.defines(code) or ()) else definition(code, name)

        chosen = last_best(found, strength) if name else next((each for each in found if self.defines(each[0])), None)
        best = [(code, where) for code, where in found if where == found[0][1]]
        chosen = chosen or next(((code, where) for code, where in best if not name or may_define(code, name)), None)
        if chosen is None:
            return no_code(f"the code does not define {name}", lacks_name=True)
        code, where = chosen
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


register(Java())
