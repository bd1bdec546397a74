"""Rust: its grammar and its compiler."""

import re
from collections import Counter
from dataclasses import dataclass

from codechat.sandbox.languages import Coded, register
from codechat.sandbox.languages.grammar import Attempt, Compiler, Customs, Grammar, Version, Written, at_line, parts

QUESTIONS = """
(struct_item name: (type_identifier) @class) (enum_item name: (type_identifier) @class)
(union_item name: (type_identifier) @class) (trait_item name: (type_identifier) @class)
(function_item name: (identifier) @function.name parameters: (parameters) @function.parameters
  return_type: (_)? @function.returns) @function
(function_signature_item name: (identifier) @function.name parameters: (parameters) @function.parameters
  return_type: (_)? @function.returns) @function
(parameter pattern: (_) @parameter.name type: (_) @parameter.type) @parameter
(parameter pattern: (identifier) @variable) (closure_parameters (identifier) @variable)
(let_declaration pattern: (identifier) @variable) (let_declaration pattern: (tuple_pattern (identifier) @variable))
(for_expression pattern: (identifier) @variable) (for_expression pattern: (tuple_pattern (identifier) @variable))
(field_declaration name: (field_identifier) @variable)
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (scoped_identifier name: (identifier) @call))
(call_expression function: (generic_function function: (identifier) @call))
(call_expression function: (generic_function function: (field_expression field: (field_identifier) @call)))
(call_expression function: (generic_function function: (scoped_identifier name: (identifier) @call)))
(macro_invocation macro: (identifier) @call) (token_tree (identifier) @call . (token_tree))
(use_declaration argument: (_) @import.path) @import
(type_item name: (_) @alias type: (_) @alias.of)
(use_as_clause path: (identifier) @alias.of alias: (identifier) @alias)
(use_as_clause path: (scoped_identifier name: (identifier) @alias.of) alias: (identifier) @alias)
(extern_crate_declaration name: (_) @import.path) @import (scoped_identifier path: (identifier) @import.path) @import
(scoped_identifier path: (scoped_identifier)) @import (scoped_type_identifier path: (scoped_identifier)) @import
(token_tree (identifier) @import.path . "::") @import (scoped_type_identifier path: (identifier) @import.path) @import
(attribute (scoped_identifier path: (identifier) @import.path)) @import
[(line_comment) (block_comment)] @comment
[(string_literal) (raw_string_literal) (char_literal)] @string
(type_identifier) @type (scoped_identifier path: (identifier) @type) (token_tree (identifier) @type . "::")
(scoped_identifier path: (scoped_identifier name: (identifier) @type))
(generic_type type: (scoped_identifier name: (identifier) @type))
(tuple_type) @makes.tuple (tuple_expression) @makes.tuple
(array_type) @makes.array (array_expression) @makes.array
(macro_invocation macro: (identifier) @makes.vec (#eq? @makes.vec "vec"))
(match_expression) @feature.match
(if_expression condition: (let_condition)) @feature.if_let
(if_expression condition: (let_chain (let_condition))) @feature.if_let
(closure_expression) @feature.closure (token_tree ["(" ","] . ["|" "||"]) @feature.closure
(token_tree (identifier) @_move . ["|" "||"] (#eq? @_move "move")) @feature.closure
[(block) (match_block) (declaration_list) (field_declaration_list) (enum_variant_list)] @block
(binary_expression operator: _ @operator) (let_declaration "=" @operator) (assignment_expression "=" @operator)
(compound_assignment_expr operator: _ @operator) "," @operator
"""

_ERROR = re.compile(r"(?m)^[^\n:]+:(\d+):\d+: error(?:\[(E\d+)\])?: (.*)")
_CRATE = re.compile(
    r"(?:undeclared crate or module|unresolved module or unlinked crate|module or crate|missing crate"
    r"|can't find crate for) `(\w+)`"
)
_USE = re.compile(r"\buse\s+(?:::)?(\w+)\s*::([^;]{0,2000});")
_DECLARED = re.compile(r"\b(?:struct|enum|union|trait|type)\s+(\w+)")
_NAMES = frozenset({"E0404", "E0405", "E0412", "E0422", "E0423", "E0425", "E0433", "E0531", "E0532", "E0574"})
_KINDS = frozenset({"E0277", "E0369", "E0599"})  # of a type that lacks something
_UNKNOWN = frozenset({"E0282", "E0283"})  # types that cannot be inferred
_NO_FILE = "E0583"


class Rustc(Compiler):
    """rustc. If a crate is missing, it checks only syntax and names of most programs."""

    program = "rustc"
    suffix = ".rs"
    asks_version = ("--version",)
    asks_home = ("--print", "sysroot")
    sample = "fn main() {}\n"
    bounds: Attempt = ("--emit=metadata", "--out-dir=.", "--cap-lints=allow", "--error-format=short", "--color=never")
    checks: Attempt = ("--crate-type=lib",)  # else it asks for a main, which a library has not

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """The editions that the version has, from 2018 on, the one that most programs are written in first."""
        editions = (("2021", (1, 56)), ("2024", (1, 85)), ("2018", (1, 31)))
        had = [edition for edition, since in editions if version >= since] or ["2015"]
        return tuple((f"--sysroot={home}", "--edition", edition) for edition in had)

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        found = [match.groups() for match in _ERROR.finditer(output)]
        missing = {crate for _, _, said in found for crate in _CRATE.findall(said)}
        imported = [names for crate, names in _USE.findall(code) if crate in missing]
        own, foreign = _Missing.of(code, imported), bool(missing)
        sorted_out: tuple[list[str], list[str]] = ([], [])
        for line, number, said in found:
            outside = (
                number == _NO_FILE
                or bool(_CRATE.search(said))
                or (number in _NAMES and own.names)
                or (number in _KINDS and (own.traits or (foreign and own.is_declared(said))))
                or (number in _UNKNOWN and foreign)
                or (not number and foreign and said.startswith("cannot find attribute"))
                or (not number and own.names and said.startswith("cannot find"))
            )
            sorted_out[outside].append(at_line(line, said))
        return sorted_out


@dataclass(frozen=True)
class _Missing:
    """The things that missing crates may have brought: any `names`, `traits` with methods of any type, and methods
    derived for the types that the program declares."""

    names: bool
    traits: bool
    declared: frozenset[str]

    @classmethod
    def of(cls, code: str, imported: list[str]) -> "_Missing":
        """An imported name that is never used counts as a trait, whose methods are used."""
        every = any("*" in names for names in imported)
        words = Counter(re.findall(r"\w+", code))
        unused = any(words[word] == 1 for names in imported for word in re.findall(r"\b[A-Z]\w*", names))
        return cls(every, every or unused, frozenset(_DECLARED.findall(code)))

    def is_declared(self, said: str) -> bool:
        """Whether an error is of a type that the program declares."""
        return not self.declared.isdisjoint(re.findall(r"\w+", said))


RUSTC = Rustc()


@dataclass(frozen=True)
class Rust(Coded):
    """Rust in the version that a task names."""

    compiler: Compiler = RUSTC


def _imports(library: str, path: str) -> bool:
    """Whether one of the paths that a tree of `use` stands for is the crate or module, or lies in it."""
    wanted = library.replace("-", "_")
    return any(each == wanted or each.startswith(f"{wanted}::") for each in _paths(path))


def _paths(tree: str) -> list[str]:
    """The paths of a tree such as `std::{fs, io::{self, Read}}`, without other names given to them."""
    before, brace, inside = tree.strip().partition("{")
    if not brace:
        return [re.split(r"(?<!\s)\s+as\s", before)[0].removeprefix("::")]
    each = (path for part in parts(inside.rpartition("}")[0], ",") for path in _paths(part))
    return [f"{before.strip()}{path}".removeprefix("::").removesuffix("::self") for path in each]


def form(text: str) -> str:
    """A type of Rust in the common form: without further bounds; what is nothing is no tuple."""
    text = parts(text, "+")[0] if "+" in text else text.strip()
    return "nothing" if text == "()" else text


CUSTOMS = Customs(
    documentation="rustdoc",
    documents=r"///(?!/)|/\*\*(?!/)|//!|/\*!",
    types=Written(kinds={"wrapper": "asref into borrow oncecell lazylock"}, form=form),
    constructs={"match expression": ("match",), "if let syntax sugar": ("if_let",), "closures": ("closure",)},
    methods={
        "": """append clear contains contains_key drain extend get get_mut insert iter len pop_back pop_front push_back
            push_front remove retain truncate""",
        **dict.fromkeys(("vec", "smallvec", "arrayvec", "binaryheap"), "push pop peek"),
    },
    imports=_imports,
)
register(Rust(("rust", "rs"), Grammar("tree_sitter_rust", QUESTIONS, "rust", customs=CUSTOMS)))
