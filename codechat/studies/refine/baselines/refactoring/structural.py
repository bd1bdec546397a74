"""Structural and semantic changes: branches and loops, what a function computes, what is done around its calls."""

import symtable
from collections.abc import Iterator
from string import Template

import libcst as cst

from codechat.studies.refine.baselines.refactoring import trees
from codechat.studies.refine.baselines.refactoring.trees import Made, Refusal, Source, define, statements, transforms

_KINDS: dict[type[cst.CSTNode], str] = {
    cst.List: "list", cst.ListComp: "list", cst.Dict: "dict", cst.DictComp: "dict", cst.Set: "set", cst.SetComp: "set",
    cst.Tuple: "tuple", cst.FormattedString: "str",
}  # fmt: skip
_MAKERS = {"len": "int", "sorted": "list", "str": "str", "list": "list", "set": "set", "dict": "dict", "tuple": "tuple"}
_WORK = (cst.BinaryOperation, cst.Call, cst.BooleanOperation, cst.Comparison, cst.ListComp)
_LAZY = (cst.BooleanOperation, cst.IfExp, cst.ListComp, cst.SetComp, cst.DictComp)
_FIXED = (cst.Parameters, cst.MatchCase, cst.FormattedString, cst.ConcatenatedString, cst.Decorator, cst.Annotation)
_LOG = "logging.getLogger(__name__).debug"
_FAILED = f"try:\n    pass\nexcept Exception:\n    {_LOG}('$entry failed', exc_info=True)\n    raise"
_DONE = f"try:\n    pass\nfinally:\n    {_LOG}('$entry is done')"
_LOCKED = "with $LOCK:\n    pass"
_BEGIN = "$started = time.perf_counter()"
_TOOK = f"try:\n    pass\nfinally:\n    {_LOG}('$entry took %.6f s', time.perf_counter() - $started)"
_HASHABLE = {"int", "str", "float", "bool", "bytes"}
_IMPURE = {"global", "nonlocal", "print", "open", "input", "random", "time", "secrets", "datetime", "os", "sys"}
_DECORATOR = f"""
def $logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        result = function(*args, **kwargs)
        {_LOG}("%s is done", function.__name__)
        return result

    return wrapper
"""


def _without_elif(module: cst.Module) -> cst.Module:
    """Every `elif` as an `if` in an `else` branch."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.If):
            return node
        return node.with_changes(orelse=cst.Else(body=trees.block([node.orelse.with_changes(leading_lines=[])])))

    return trees.rewrite(module, change)


@transforms("structural-avoid-elif")
def avoid_elif(source: Source) -> str:
    """No `elif`."""
    return _without_elif(source.module).code


@transforms("structural-transform-ternaries", "structural-avoid-conditional-expressions")
def from_ternary(source: Source) -> str:
    """`if` and `else` for every statement whose whole value is a conditional expression."""
    return trees.rewrite(trees.unjoin(source.module), lambda original, node: _spread(node)).code


def _spread(line: cst.CSTNode) -> cst.CSTNode:
    found = trees.small(line)
    chosen = isinstance(found, cst.Return) or (isinstance(found, cst.Assign) and trees.assigned(line))
    value = getattr(found, "value", None) if chosen else None
    if not isinstance(value, cst.IfExp) or not isinstance(line, cst.SimpleStatementLine) or found is None:
        return line
    yes, no = (line.with_changes(body=[found.with_changes(value=one)]) for one in (value.body, value.orelse))
    made: cst.If = statements(f"if {trees.text_of(value.test)}:\n    pass")[0]
    body, orelse = (trees.block([_spread(one.with_changes(leading_lines=[]))]) for one in (yes, no))
    return made.with_changes(body=body, orelse=cst.Else(body=orelse), leading_lines=line.leading_lines)


@transforms("structural-introduce-named-conditions")
def named_conditions(source: Source) -> str:
    """Every comparison that an `if` or `while` tests under a name; a `while` asks again at its end."""
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If | cst.While) or not isinstance(node.test, cst.Comparison | cst.BooleanOperation):
            return node
        name = namer("is_met", "holds", "applies", "is_so", "is_given", "fits")
        line = statements(f"{name} = {trees.whole(node.test)}")[0].with_changes(leading_lines=node.leading_lines)
        space = "whitespace_after_while" if isinstance(node, cst.While) else "whitespace_before_test"
        node = node.with_changes(test=cst.Name(name), leading_lines=[], **{space: trees.SPACE})
        if isinstance(node, cst.While) and trees.has(node.body, cst.Continue):
            raise Refusal("a loop continues before its end")
        if isinstance(node, cst.While):
            node = node.with_changes(body=trees.block([*trees.body_of(node), line.with_changes(leading_lines=[])]))
        return cst.FlattenSentinel([line, node])

    return trees.rewrite(_without_elif(trees.unjoin(source.module)), change).code


@transforms("structural-convert-for-to-while", "semantic-convert-for-to-iterator")
@transforms("structural-convert-one-for-to-while", "semantic-use-explicit-iterator", "semantic-use-endless-loop",
            "semantic-use-break", "semantic-use-sentinel", only_first=True)  # fmt: skip
def for_to_while(source: Source, only_first: bool = False) -> str:
    """`while True` over an explicit iterator, left by `break` as soon as `next` gives a sentinel."""
    module = trees.unjoin(source.module)
    loops = [node for node in trees.nodes(module) if isinstance(node, cst.For)]
    chosen = set(loops[:1] if only_first else loops)
    source.builtin("iter", "next", "object")
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if original not in chosen or not isinstance(node, cst.For):
            return node
        if node.orelse is not None or node.asynchronous is not None or trees.has(node.target, cst.StarredElement):
            raise Refusal("a loop has an else branch")
        walker, end, item = namer("walker", "steps"), namer("finished", "end"), namer("following", "upcoming")
        before = statements(f"{walker} = iter({trees.text_of(node.iter)})\n{end} = object()")
        head = f"{item} = next({walker}, {end})\nif {item} is {end}:\n    break\n{trees.text_of(node.target)} = {item}"
        body = trees.block([*statements(head), *trees.body_of(node)])
        made = statements("while True:\n    pass")[0].with_changes(body=body)
        return trees.several([*before, made], node.leading_lines)

    return trees.rewrite(module, change).code


def _computed(tree: cst.CSTNode) -> Iterator[tuple[cst.SimpleStatementLine, cst.BaseExpression, str]]:
    """Line, value and variable ("" for a return) of computed values that are returned or assigned outside loops."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.SimpleStatementLine):
            found = trees.small(node)
            target, value = ("", found.value) if isinstance(found, cst.Return) else trees.assigned(node) or ("", None)
            plain = isinstance(value, cst.Name | cst.Integer | cst.SimpleString | cst.Float)
            if value is not None and not plain and not trees.has(value, *trees.EFFECTS):
                yield node, value, target
        elif not isinstance(node, cst.For | cst.While | cst.FunctionDef | cst.ClassDef):
            stack.extend(reversed(node.children))


def _kind(value: cst.BaseExpression) -> str:
    return _MAKERS.get(trees.text_of(value.func), "") if isinstance(value, cst.Call) else _KINDS.get(type(value), "")


@transforms("semantic-add-assertion", template="assert isinstance({name}, {kind})")
@transforms("semantic-add-debug-check", template="if __debug__:\n    assert isinstance({name}, {kind})")
@transforms("semantic-log-progress", template='logging.getLogger(__name__).debug("{name} is %r", {name})')
def follow(source: Source, template: str) -> str:
    """A type check, or a log, of the first value; returned values get a name. Recursive functions log nothing."""
    source.without(*trees.LOOKERS)
    source.builtin("isinstance", *_MAKERS)
    logs = template.startswith("logging")
    if logs and source.entry_point in trees.reads(trees.entry(source.module, source.entry_point).body):
        raise Refusal("the function calls itself")
    source = source.with_text(define(source, imports=["logging"])) if logs else source
    module = trees.unjoin(source.module)
    for line, value, target in _computed(trees.entry(module, source.entry_point).body):
        if logs or _kind(value):
            name = target or source.namer()("result", "outcome", "returned")
            added = statements(template.format(name=name, kind=_kind(value)))
            named = [line] if target else statements(f"{name} = {trees.whole(value)}")
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
        first, last = statements(f"{name} = {trees.whole(found.value)}\nreturn {name}")
        made = [first, last.with_changes(trailing_whitespace=node.trailing_whitespace)]
        return trees.several(made, node.leading_lines)

    return trees.rewrite(trees.unjoin(source.module), change).code


@transforms("structural-create-helper", nested=False)
@transforms("structural-define-nested-helper", nested=True)
def extract_helper(source: Source, nested: bool) -> str:
    """The largest computation moved into a function; parts that may not be evaluated read only sure variables."""
    source.without(*trees.LOOKERS, "global", "nonlocal", "del")
    module = trees.unjoin(source.module)
    function, table = trees.entry(module, source.entry_point), _table(module.code, source.entry_point)
    known, found = set(table.get_parameters()), []
    for top in function.body.body:
        for line, value, target in _computed(top):
            local = _free(value).intersection(table.get_locals())
            keeps = trees.has(value, cst.Lambda, cst.GeneratorExp) or source.entry_point in trees.reads(value)
            if local and trees.has(value, *_WORK) and not keeps and (known >= local or not trees.has(value, *_LAZY)):
                read = dict.fromkeys(one.value for one in trees.variables(value) if one.value in local)
                found.append((len(list(trees.nodes(value))), line, value, target, ", ".join(read)))
        known |= {pair[0] for pair in [trees.assigned(top)] if pair}
    if not found:
        raise Refusal("no computation that can be moved")
    _, line, value, target, given = max(found, key=lambda one: one[0])
    name = source.namer()(f"compute_{target or source.entry_point.strip('_')}", "compute")
    helper = statements(f"def {name}({given}):\n    return {trees.whole(value)}")[0]
    made = statements(f"{target} = {name}({given})" if target else f"return {name}({given})")[0]
    changed = made.with_changes(trailing_whitespace=line.trailing_whitespace)
    if nested:
        return trees.replace(module, {line: trees.several([helper, changed], line.leading_lines)}).code
    gap = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    below = trees.replace(function, {line: changed.with_changes(leading_lines=line.leading_lines)})
    below = below.with_changes(leading_lines=[*gap, *(one for one in function.leading_lines if one.comment)])
    return trees.replace(module, {function: trees.several([helper, below], gap)}).code


def _table(text: str, name: str) -> symtable.Function:
    tables = symtable.symtable(text, "program", "exec").get_children()
    found = [one for one in tables if isinstance(one, symtable.Function) and one.get_name() == name]
    if not found:
        raise Refusal("the function is ambiguous")
    return found[-1]


def _free(value: cst.BaseExpression) -> set[str]:
    ahead: list[symtable.SymbolTable] = [_table(f"def helper():\n    return {trees.whole(value)}", "helper")]
    free: set[str] = set()
    while ahead:
        table = ahead.pop()
        ahead += table.get_children()
        free |= {one.get_name() for one in table.get_symbols() if one.is_global()}
    return free


@transforms("structural-introduce-named-constants")
@transforms("structural-define-constant", only_first=True)
def named_constants(source: Source, only_first: bool = False) -> str:
    """A module-level constant for every number other than 0 and 1 (or the first): none in defaults and patterns."""
    namer, names = source.namer(), dict[str, str]()
    swaps: dict[cst.CSTNode, cst.CSTNode] = {}
    stack: list[cst.CSTNode] = list(reversed(source.module.body))
    while stack and not (only_first and swaps):
        node = stack.pop()
        named = isinstance(node, cst.Assign) and all(trees.text_of(target.target).isupper() for target in node.targets)
        if isinstance(node, _FIXED) or named:
            stack += [node.body] if isinstance(node, cst.MatchCase) else []
            continue
        if isinstance(node, cst.Integer | cst.Float) and node.evaluated_value not in (0, 1):
            text = trees.text_of(node).strip("()")
            if text not in names:
                names[text] = namer("NUMBER_" + "".join(c if c.isalnum() else "_" for c in text).upper())
            swaps[node] = cst.Name(names[text])
        stack.extend(reversed(node.children))
    if not swaps:
        raise Refusal("no number to name")
    made = source.with_text(trees.replace(source.module, swaps).code)
    return define(made, "\n".join(f"{name} = {text}" for text, name in names.items()))


def _ordinary(source: Source) -> cst.FunctionDef:
    """The entry point; refuses a recursive function and a generator."""
    function = trees.entry(source.module, source.entry_point)
    if source.entry_point in trees.reads(function.body) or trees.has(function.body, cst.Yield, into_functions=False):
        raise Refusal("the function calls itself or is a generator")
    return function


@transforms("semantic-add-try", template=_FAILED, imports=["logging"])
@transforms("semantic-include-finally", template=_DONE, imports=["logging"])
@transforms("semantic-include-timing", before=_BEGIN, template=_TOOK, imports=["logging", "time"])
@transforms("semantic-use-lock", module="$LOCK = threading.RLock()", template=_LOCKED, imports=["threading"])
@transforms("semantic-include-call-counter", module="$calls = 0", before="global $calls\n$calls += 1")
def wrap(source: Source, before: str = "", template: str = "", module: str = "", imports: tuple[str, ...] = ()) -> str:
    """Statements in front of the function's own, or another statement around them."""
    source.builtin("Exception")
    if template:
        _ordinary(source)
    namer = source.namer()
    names = {name: namer(name, f"call_{name}") for name in ("started", "LOCK", "calls")} | {"entry": source.entry_point}
    definitions = [Template(module).substitute(names)] if module else []
    tree = trees.unjoin(source.with_text(define(source, *definitions, imports=imports)).module)
    function = trees.entry(tree, source.entry_point)
    head = trees.small(function.body.body[0])
    documented = isinstance(head, cst.Expr) and isinstance(head.value, cst.SimpleString | cst.ConcatenatedString)
    doc, rest = list(function.body.body[:documented]), list(function.body.body[documented:])
    if template:
        rest = [statements(Template(template).substitute(names))[0].with_changes(body=trees.block(rest))]
    first = statements(Template(before).substitute(names))
    return trees.replace(tree, {function.body: trees.block([*doc, *first, *rest])}).code


@transforms(
    "structural-implement-decorator", "structural-use-closure", text=_DECORATOR, imports=["functools", "logging"]
)
@transforms("semantic-apply-cache", text="", imports=["functools"])
def decorate(source: Source, text: str, imports: tuple[str, ...]) -> str:
    """A decorator that logs every call; or a typed cache, if hints show that arguments and results are immutable."""
    function = _ordinary(source)
    if not text:
        source.without(*_IMPURE)
        source.builtin(*_HASHABLE)
    hints = [node.annotation for node in trees.nodes(function.params) if isinstance(node, cst.Param)]
    fixed = {trees.text_of(one.annotation) if one else "" for one in (*hints, function.returns)} <= _HASHABLE
    if function.decorators or not (text or fixed):
        raise Refusal("the function is decorated, or its arguments and results may be changed")
    name = source.namer()("logged", "log_calls")
    decorator = f"@{name}" if text else "@functools.lru_cache(maxsize=None, typed=True)"
    definitions = [Template(text).substitute(logged=name)] if text else []
    module = source.with_text(define(source, *definitions, imports=imports)).module
    made = statements(f"{decorator}\ndef f():\n    pass")[0].decorators
    function = trees.entry(module, source.entry_point)
    return trees.replace(module, {function: function.with_changes(decorators=made)}).code


@transforms("semantic-avoid-append")
def extend(source: Source) -> str:
    """`values.extend([value])` for `values.append(value)`, if no class of the program's own may be meant."""
    source.without("class")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        method = node.func if isinstance(node, cst.Call) and len(node.args) == 1 else None
        if not isinstance(node, cst.Call) or not isinstance(method, cst.Attribute) or method.attr.value != "append":
            return node
        given = cst.List([cst.Element(node.args[0].value)])
        return node.with_changes(func=method.with_changes(attr=cst.Name("extend")), args=[cst.Arg(given)])

    return trees.rewrite(source.module, change).code
