"""Python: extracts its code from replies and analyses its text.

`extraction` has the rules; `source` reads text that may be Python and makes the program without trial code. Here are
the grammar's questions for constraints, and how an interpreter checks a version. `syntax` is for other rooms.
"""

import re

from codechat.base.domain import Extraction, Target
from codechat.sandbox.languages import register
from codechat.sandbox.languages.grammar import Attempt, Compiler, Customs, Grammar, Version, Written, at_line
from codechat.sandbox.languages.python.extraction import extract
from codechat.sandbox.languages.python.source import module_names, parse, tidy
from codechat.sandbox.languages.python.target import target as target_interpreter

_LINE = re.compile(r'(?m)^ *File "[^"\n]*", line (\d+)')
_SAID = re.compile(r"(?m)^(?:(SyntaxError|IndentationError|TabError)|Sorry: (?:ValueError|UnicodeDecodeError)): (.*)")


class Interpreter(Compiler):
    """CPython's `py_compile`. It imports nothing that a program imports: libraries need not be there."""

    program = "python{version}"
    suffix = ".py"
    asks_version = ("-V",)
    asks_home = ("-c", "import sys; print(sys.base_prefix)")
    exact = True
    sample = "x = 1\n"
    bounds = ("-I", "-m", "py_compile")

    def options(self, version: Version, home: str) -> tuple[Attempt, ...]:
        """None: the interpreter is of the version."""
        return ((),)

    def errors(self, code: str, output: str) -> tuple[list[str], list[str]]:
        found = list(_SAID.finditer(output))
        if not found:
            return [], []
        lines = _LINE.findall(output)
        return [at_line(lines[-1] if lines else "?", found[-1][2])], []


QUESTIONS = """
(class_definition name: (identifier) @class)
(function_definition name: (identifier) @function.name parameters: (parameters) @function.parameters
  return_type: (_)? @function.returns) @function
(parameters [(identifier) @parameter.name
  (list_splat_pattern (identifier) @parameter.name)
  (dictionary_splat_pattern (identifier) @parameter.name)
  (default_parameter name: (identifier) @parameter.name)
  (typed_parameter (identifier) @parameter.name type: (_) @parameter.type)
  (typed_parameter (list_splat_pattern (identifier) @parameter.name) type: (_) @parameter.type)
  (typed_parameter (dictionary_splat_pattern (identifier) @parameter.name) type: (_) @parameter.type)
  (typed_default_parameter name: (identifier) @parameter.name type: (_) @parameter.type)] @parameter)
(parameters [(identifier) @variable
  (default_parameter name: (identifier) @variable)
  (typed_parameter . (identifier) @variable)
  (typed_default_parameter name: (identifier) @variable)])
(lambda_parameters (identifier) @variable) (assignment left: (identifier) @variable)
(assignment left: (pattern_list (identifier) @variable))
(assignment left: (attribute object: (identifier) @_self attribute: (identifier) @variable) (#eq? @_self "self"))
(named_expression name: (identifier) @variable) (for_statement left: (identifier) @variable)
(for_statement left: (pattern_list (identifier) @variable)) (for_in_clause left: (identifier) @variable)
(for_in_clause left: (pattern_list (identifier) @variable)) (as_pattern_target (identifier) @variable)
(call function: (identifier) @call) (call function: (attribute attribute: (identifier) @call)) (await "await" @call)
(import_statement name: (dotted_name) @import.path) @import
(import_statement name: (aliased_import name: (dotted_name) @import.path)) @import
(import_from_statement module_name: (_) @import.path) @import
(import_statement name: (aliased_import name: (dotted_name) @alias.of alias: (identifier) @alias))
(comment) @comment
(string) @string
(type (identifier) @type) (type (_ (identifier) @type)) (type (_ (_ (identifier) @type)))
(type (_ (_ (_ (identifier) @type)))) (call function: (identifier) @type)
(call function: (attribute object: (identifier) attribute: (identifier) @type)
  (#match? @type "^([A-Z]|deque$|defaultdict$)"))
(import_from_statement name: (aliased_import name: (dotted_name (identifier) @alias.of .) alias: (identifier) @alias))
(call function: (subscript value: (identifier) @type))
(call arguments: (argument_list (identifier) @type)
  (#any-of? @type "list" "dict" "set" "tuple" "deque" "Counter" "defaultdict" "OrderedDict"))
(class_definition superclasses: (argument_list (identifier) @type))
[(list) (list_comprehension)] @makes.list
[(dictionary) (dictionary_comprehension)] @makes.dict
[(set) (set_comprehension)] @makes.set
(tuple) @makes.tuple (expression_list) @makes.tuple (return_statement (expression_list) @makes.tuple)
(list_comprehension) @feature.list_comprehension
(dictionary_comprehension) @feature.dictionary_comprehension
(set_comprehension) @feature.set_comprehension
(yield) @feature.yield
(binary_operator operator: _ @operator) (comparison_operator operators: _ @operator) (assignment "=" @operator)
(augmented_assignment operator: _ @operator) (named_expression ":=" @operator) "," @operator
(module . (expression_statement (string)) @doc)
(class_definition body: (block . (expression_statement (string)) @doc))
(function_definition body: (block . (expression_statement (string)) @doc))
"""


_ELEMENT_SET = "[(assignment left: (subscript)) (augmented_assignment left: (subscript))] @set"
_ELEMENT_DELETED = "(delete_statement (subscript)) @set"
CUSTOMS = Customs(
    documentation="python docstring",
    docstrings=True,
    braces=False,
    types=Written(),
    typed=False,
    results_listed=True,
    constructs={
        "generator and yield": ("yield",),
        "list comprehension": ("list_comprehension",),
        "dictionary comprehension": ("dictionary_comprehension",),
        "set comprehension": ("set_comprehension",),
    },
    modules={"heapq": "heap|nlargest|nsmallest|merge"},
    written={
        **dict.fromkeys(("insert", "assign", "add"), _ELEMENT_SET),
        **dict.fromkeys(("delete", "remove"), _ELEMENT_DELETED),
    },
)


class Python:
    """Python 3 in the version of the interpreter that runs codechat."""

    names = (
        *("python", "py", "python3", "py3", "python2", "py2"),
        *("ipython", "ipython3", "ipy", "pycon", "python-repl", "py-repl"),
    )

    grammar = Grammar("tree_sitter_python", QUESTIONS, "python", customs=CUSTOMS)
    compiler = Interpreter()

    def extract(self, reply: str, target: Target) -> Extraction:
        """The code of a reply by the rules of `extraction`."""
        other = target_interpreter()
        return extract(reply, target.entry_point) if other is None else other.extract(reply, target.entry_point)

    def defines(self, code: str) -> frozenset[str] | None:
        """The names that the module binds in its own scope, imports included; None if it is not valid Python."""
        tree = parse(tidy(code)).tree
        return None if tree is None else frozenset(module_names(tree))


register(Python())
