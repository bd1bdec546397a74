"""What a function computes: moved to a helper, checked, logged, named; numbers named."""

import symtable
from collections.abc import Iterator

import libcst as cst

from codechat.models.baselines.refactoring import trees
from codechat.models.baselines.refactoring.base import Refusal, Source, define, transforms
from codechat.models.baselines.refactoring.trees import LOOKERS, Made, entry, has, nodes, statements, text_of, whole


def _computed(tree: cst.CSTNode) -> Iterator[tuple[cst.SimpleStatementLine, cst.BaseExpression, str]]:
    """The lines in a statement or block, outside loops, that return or assign what they compute.

    Gives line, value and variable, which is empty for a return.
    """
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.SimpleStatementLine):
            found = trees.small(node)
            target, value = ("", found.value) if isinstance(found, cst.Return) else trees.assigned(node) or ("", None)
            plain = isinstance(value, cst.Name | cst.Integer | cst.SimpleString | cst.Float)
            if value is not None and not plain and not has(value, *trees.EFFECTS):
                yield node, value, target
        elif not isinstance(node, cst.For | cst.While | cst.FunctionDef | cst.ClassDef):
            stack.extend(reversed(node.children))


_KINDS: dict[type[cst.CSTNode], str] = {
    cst.List: "list", cst.ListComp: "list", cst.Dict: "dict", cst.DictComp: "dict", cst.Set: "set", cst.SetComp: "set",
    cst.Tuple: "tuple", cst.FormattedString: "str",
}  # fmt: skip
_MAKERS = {"len": "int", "sorted": "list", "str": "str", "list": "list", "set": "set", "dict": "dict", "tuple": "tuple"}


def _kind(value: cst.BaseExpression) -> str:
    """The type of a value as far as its expression alone shows it."""
    return _MAKERS.get(text_of(value.func), "") if isinstance(value, cst.Call) else _KINDS.get(type(value), "")


@transforms("semantic-add-assertion", template="assert isinstance({name}, {kind})")
@transforms("semantic-add-debug-check", template="if __debug__:\n    assert isinstance({name}, {kind})")
@transforms("semantic-log-progress", template='logging.getLogger(__name__).debug("{name} is %r", {name})')
def follow(source: Source, template: str) -> str:
    """A check of the first value whose type is sure, or a log of the first value; a returned value gets a name first.

    Nothing is logged by a function that calls itself, which would pay for that too often.
    """
    source.without(*LOOKERS)
    source.builtin("isinstance", *_MAKERS)
    logs = template.startswith("logging")
    if logs and source.entry_point in trees.reads(entry(source.module, source.entry_point).body):
        raise Refusal("the function calls itself")
    source = source.with_text(define(source, imports=["logging"])) if logs else source
    module = trees.unjoin(source.module)
    for line, value, target in _computed(entry(module, source.entry_point).body):
        if logs or _kind(value):
            name = target or source.namer()("result", "outcome", "returned")
            added = statements(template.format(name=name, kind=_kind(value)))
            named = [line] if target else statements(f"{name} = {whole(value)}")
            last = [] if target else statements(f"return {name}")
            return trees.replace(module, {line: trees.several([*named, *added, *last], line.leading_lines)}).code
    raise Refusal("no value to work with")


@transforms("structural-use-named-results")
def named_results(source: Source) -> str:
    """`result = …; return result` for every computed value that is returned."""
    name = source.namer()("result", "outcome", "returned")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        found = trees.small(node)
        if not isinstance(found, cst.Return) or found.value is None or isinstance(found.value, cst.Name):
            return node
        assert isinstance(node, cst.SimpleStatementLine)
        first, last = statements(f"{name} = {whole(found.value)}\nreturn {name}")
        made = [first, last.with_changes(trailing_whitespace=node.trailing_whitespace)]
        return trees.several(made, node.leading_lines)

    return trees.rewrite(trees.unjoin(source.module), change).code


_WORK = (cst.BinaryOperation, cst.Call, cst.BooleanOperation, cst.Comparison, cst.ListComp)
_LAZY = (cst.BooleanOperation, cst.IfExp, cst.ListComp, cst.SetComp, cst.DictComp)


@transforms("structural-create-helper", nested=False)
@transforms("structural-define-nested-helper", nested=True)
def extract_helper(source: Source, nested: bool) -> str:
    """The largest computation moved into a function, which is given the variables that it reads.

    What may not be evaluated, such as the second part of an `and`, may read only what surely has a value.
    """
    source.without(*LOOKERS, "global", "nonlocal", "del")
    module = trees.unjoin(source.module)
    function, table = entry(module, source.entry_point), _table(module.code, source.entry_point)
    known, found = set(table.get_parameters()), []
    for top in function.body.body:
        for line, value, target in _computed(top):
            local = _free(value).intersection(table.get_locals())
            keeps = has(value, cst.Lambda, cst.GeneratorExp) or source.entry_point in trees.reads(value)
            if local and has(value, *_WORK) and not keeps and (known >= local or not has(value, *_LAZY)):
                read = dict.fromkeys(one.value for one in trees.variables(value) if one.value in local)
                found.append((len(list(nodes(value))), line, value, target, ", ".join(read)))
        known |= {pair[0] for pair in [trees.assigned(top)] if pair}
    if not found:
        raise Refusal("no computation that can be moved")
    _, line, value, target, given = max(found, key=lambda one: one[0])
    name = source.namer()(f"compute_{target or source.entry_point.strip('_')}", "compute")
    helper = statements(f"def {name}({given}):\n    return {whole(value)}")[0]
    made = statements(f"{target} = {name}({given})" if target else f"return {name}({given})")[0]
    changed = made.with_changes(trailing_whitespace=line.trailing_whitespace)
    if nested:
        return trees.replace(module, {line: trees.several([helper, changed], line.leading_lines)}).code
    gap = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    below = trees.replace(function, {line: changed.with_changes(leading_lines=line.leading_lines)})
    below = below.with_changes(leading_lines=[*gap, *(one for one in function.leading_lines if one.comment)])
    return trees.replace(module, {function: trees.several([helper, below], gap)}).code


def _table(text: str, name: str) -> symtable.Function:
    """What Python knows of the names of a module's function."""
    tables = symtable.symtable(text, "program", "exec").get_children()
    found = [one for one in tables if isinstance(one, symtable.Function) and one.get_name() == name]
    if not found:
        raise Refusal("the function cannot be told apart")
    return found[-1]


def _free(value: cst.BaseExpression) -> set[str]:
    """The names that an expression reads and does not bind."""
    ahead: list[symtable.SymbolTable] = [_table(f"def helper():\n    return {whole(value)}", "helper")]
    free: set[str] = set()
    while ahead:
        table = ahead.pop()
        ahead += table.get_children()
        free |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return free


_FIXED = (cst.Parameters, cst.MatchCase, cst.FormattedString, cst.ConcatenatedString, cst.Decorator, cst.Annotation)


@transforms("structural-introduce-named-constants")
@transforms("structural-define-constant", only_first=True)
def named_constants(source: Source, only_first: bool = False) -> str:
    """A module-level constant for every number other than 0 and 1 (or the first): none in defaults and patterns."""
    namer, names = source.namer(), dict[str, str]()
    swaps: dict[cst.CSTNode, cst.CSTNode] = {}
    stack: list[cst.CSTNode] = list(reversed(source.module.body))
    while stack and not (only_first and swaps):
        node = stack.pop()
        named = isinstance(node, cst.Assign) and all(text_of(target.target).isupper() for target in node.targets)
        if isinstance(node, _FIXED) or named:
            stack += [node.body] if isinstance(node, cst.MatchCase) else []
            continue
        if isinstance(node, cst.Integer | cst.Float) and node.evaluated_value not in (0, 1):
            text = text_of(node).strip("()")
            if text not in names:
                names[text] = namer("NUMBER_" + "".join(c if c.isalnum() else "_" for c in text).upper())
            swaps[node] = cst.Name(names[text])
        stack.extend(reversed(node.children))
    if not swaps:
        raise Refusal("no number to name")
    made = source.with_text(trees.replace(source.module, swaps).code)
    return define(made, "\n".join(f"{name} = {text}" for text, name in names.items()))
