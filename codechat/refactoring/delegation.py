"""A function's whole body moved or wrapped: into a helper, a class, a try statement, a lock."""

import re
from string import Template

import libcst as cst

from codechat.patterns.functions import mutated_parameter
from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.detours import LOOKERS, detour
from codechat.refactoring.trees import (
    block,
    docstring_split,
    entry,
    has,
    is_generator,
    nodes,
    reads,
    replaced,
    statements,
    text_of,
    unjoined,
)


def _call(params: cst.Parameters) -> str:
    """The arguments that pass every parameter on."""
    words = [one.name.value for one in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param):
        words.append(f"*{params.star_arg.name.value}")
    words.extend(f"{one.name.value}={one.name.value}" for one in params.kwonly_params)
    if params.star_kwarg:
        words.append(f"**{params.star_kwarg.name.value}")
    return ", ".join(words)


def _bare(params: cst.Parameters) -> str:
    """The parameters without hints and defaults: the helper is given all of them."""
    words = [one.name.value for one in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param):
        words.append(f"*{params.star_arg.name.value}")
    elif params.kwonly_params:
        words.append("*")
    words.extend(one.name.value for one in params.kwonly_params)
    if params.star_kwarg:
        words.append(f"**{params.star_kwarg.name.value}")
    return ", ".join(words)


@transforms("structural-create-helper", before="def $name($bare):\n    pass", value="$name($call)")
@transforms(
    "structural-define-class",
    before="class $Name:\n    def run(self$comma$bare):\n        pass",
    value="$Name().run($call)",
)
@transforms(
    "structural-implement-static-method",
    before="class $Name:\n    @staticmethod\n    def run($bare):\n        pass",
    value="$Name.run($call)",
)
@transforms(
    "structural-define-abstract-base",
    imports=["abc"],
    before="class $Base(abc.ABC):\n    @abc.abstractmethod\n    def run(self$comma$bare):\n"
    "        raise NotImplementedError\n\n\nclass $Name($Base):\n    def run(self$comma$bare):\n        pass",
    value="$Name().run($call)",
)
def delegate(source: Source, before: str, value: str, imports: list[str] | None = None) -> str:
    """The body moved behind a definition; a function that calls itself would go twice as deep, so it keeps its body."""
    source.without(*LOOKERS)
    namer = source.namer()
    stem = source.entry_point.strip("_")
    camel = "".join(part.capitalize() for part in stem.split("_"))
    names = {"name": namer(f"_{stem}_steps"), "Name": namer(f"{camel}Steps"), "Base": namer("Steps", "AnySteps")}
    function = entry(source.module, source.entry_point)
    if source.entry_point in reads(function.body):
        return _identity(source, before, value, imports, names)
    if "self" in source.words or any(re.match(r"__\w*[^_]_?$", word) for word in source.words):
        raise Refusal("a name would mean something else in a class")
    if "lambda" in text_of(function.params) or has(function.params, cst.NamedExpr):
        raise Refusal("a default is computed")
    if imports:
        source = source.with_text(with_definitions(source, imports=imports))
    module = source.module
    function = entry(module, source.entry_point)
    bare = _bare(function.params)
    names |= {"bare": bare, "call": _call(function.params), "comma": ", " if bare else ""}
    body = function.body if isinstance(function.body, cst.IndentedBlock) else _suite(module, source.entry_point)
    doc, rest = docstring_split(body.body)
    made = statements(Template(before).substitute(names))
    last = [node for node in nodes(made[-1]) if isinstance(node, cst.FunctionDef)][-1]
    made[-1] = replaced(made[-1], {last.body: block(rest)})
    call = statements(f"return {Template(value).substitute(names)}")
    changed = function.with_changes(body=block([*doc, *call]))
    gap = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    made[0] = made[0].with_changes(leading_lines=[*function.leading_lines])
    return replaced(module, {function: cst.FlattenSentinel([*made, changed.with_changes(leading_lines=gap)])}).code  # type: ignore[no-any-return]


def _suite(module: cst.Module, name: str) -> cst.IndentedBlock:
    body = entry(unjoined(module), name).body
    assert isinstance(body, cst.IndentedBlock)
    return body


def _identity(source: Source, before: str, value: str, imports: list[str] | None, names: dict[str, str]) -> str:
    """The same definitions for a part of the work alone: handing on a value."""
    filled = {**names, "bare": "value", "call": "CALL", "comma": ", "}
    module = Template(before).substitute(filled)
    head, _, _ = module.rpartition("pass")
    call = Template(value).substitute(filled).replace("CALL", "$value")
    return detour(source, value=call, module=f"{head}return value", imports=imports)


@transforms("semantic-include-finally", template="try:\n    pass\nfinally:\n    $finished = True")
@transforms("semantic-add-try", template="try:\n    pass\nexcept Exception:\n    raise")
@transforms(
    "semantic-use-lock", template="with $LOCK:\n    pass", module="$LOCK = threading.RLock()", imports=["threading"]
)
def wrap(source: Source, template: str, module: str = "", imports: list[str] | None = None) -> str:
    """The body inside another statement."""
    names = {"LOCK": source.namer()("LOCK", "CALL_LOCK"), "finished": source.namer()("finished", "is_done")}
    if module:
        source.runs_once(source.entry_point)
        if is_generator(entry(source.module, source.entry_point)):
            raise Refusal("a generator would hold the lock between its values")
        definition = Template(module).substitute(names)
        source = source.with_text(with_definitions(source, definition, imports=imports or []))
    tree = unjoined(source.module)
    function = entry(tree, source.entry_point)
    doc, rest = docstring_split(function.body.body)
    around = statements(Template(template).substitute(names))[0]
    made = around.with_changes(body=block(rest))
    return replaced(tree, {function.body: block([*doc, made])}).code  # type: ignore[no-any-return]


@transforms("semantic-include-call-counter")
def call_counter(source: Source) -> str:
    """A module-level counter raised at every call."""
    name = source.namer()("calls", "call_count", "number_of_calls")
    source = source.with_text(with_definitions(source, f"{name} = 0"))
    return at_start(source, f"global {name}\n{name} += 1")


@transforms("structural-implement-decorator")
def decorator(source: Source) -> str:
    """A decorator that marks the function and gives back the function itself."""
    namer = source.namer()
    name = namer("marked", "registered")
    definition = f"def {name}(function):\n    function.{name} = True\n    return function"
    if entry(source.module, source.entry_point).decorators:
        raise Refusal("the function has decorators")
    source = source.with_text(with_definitions(source, definition))
    function = entry(source.module, source.entry_point)
    made = function.with_changes(decorators=[cst.Decorator(cst.Name(name))])
    return replaced(source.module, {function: made}).code  # type: ignore[no-any-return]


def at_start(source: Source, text: str) -> str:
    """Statements put in front of the function's own."""
    tree = unjoined(source.module)
    function = entry(tree, source.entry_point)
    doc, rest = docstring_split(function.body.body)
    made = function.body.with_changes(body=[*doc, *statements(text), *rest])
    return replaced(tree, {function.body: made}).code  # type: ignore[no-any-return]


@transforms("semantic-use-copy", always=True)
@transforms("semantic-avoid-mutating-arguments", always=False)
def copies(source: Source, always: bool) -> str:
    """A parameter that is surely a list, dict or set of the caller replaced by a copy at the start."""
    function = entry(source.module, source.entry_point)
    inner = sum(isinstance(node, cst.FunctionDef) for node in nodes(source.module))
    if source.entry_point in reads(function.body) or inner > 1:
        raise Refusal("a call inside the program may count on the change")
    mutated = {found.what.strip("'") for found in mutated_parameter(source.code)}
    if always:
        if mutated:
            raise Refusal("an argument is changed for the caller")
        chosen = [one.name.value for one in function.params.params if _is_container(function, one)][:1]
    else:
        chosen = sorted(mutated)
    if any(node.default is not None for node in nodes(function.params) if isinstance(node, cst.Param)):
        raise Refusal("a default may be kept from call to call")
    if not chosen or (always and is_generator(function)):
        raise Refusal("no parameter that can surely be copied")
    source = source.with_text(with_definitions(source, imports=["copy"]))
    return at_start(source, "\n".join(f"{name} = copy.copy({name})" for name in chosen))


def _is_container(function: cst.FunctionDef, param: cst.Param) -> bool:
    """Whether it is annotated so, or its length is taken: an iterator has none."""
    hint = text_of(param.annotation.annotation) if param.annotation else ""
    if re.match(r"(typing\.)?(list|dict|set|tuple|str|int|float|bool)\b", hint, re.IGNORECASE):
        return True
    return f"len({param.name.value})" in text_of(function.body)
