"""Returns: one at the end, named, or inlined."""

from itertools import pairwise
from typing import Any

import libcst as cst

from codechat.refactoring.base import Namer, Refusal, Source, transforms
from codechat.refactoring.conditions import without_elif
from codechat.refactoring.trees import (
    Made,
    block,
    docstring_split,
    expression,
    has,
    inside,
    is_generator,
    nodes,
    reads,
    rewritten,
    several,
    statements,
    text_of,
    unjoined,
)


@transforms("structural-use-named-results")
def named_results(source: Source) -> str:
    """`result = …; return result` for every computed value that is returned."""
    name = source.namer()("result", "outcome", "returned")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
        if not isinstance(small, cst.Return) or small.value is None or isinstance(small.value, cst.Name):
            return node
        assert isinstance(node, cst.SimpleStatementLine)
        value = text_of(small.value) if small.value.lpar else f"({text_of(small.value)})"
        made = statements(f"{name} = {value}\nreturn {name}")
        value_line = made[0].with_changes(leading_lines=node.leading_lines)
        return several([value_line, made[1].with_changes(trailing_whitespace=node.trailing_whitespace)])

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]


@transforms("structural-eliminate-passing-variables")
@transforms("structural-inline-passing-variables")
def inline_passing(source: Source) -> str:
    """`return value` for a variable assigned right before it is returned and read nowhere else."""
    source.without("nonlocal", "global", "locals", "finally")

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.IndentedBlock):
            return node
        body: list[Any] = []
        held: list[Any] = list(node.body)
        for one in held:
            value = _passed(body[-1], one) if body else None
            if value is None:
                body.append(one)
                continue
            made = one.body[0].with_changes(value=value, whitespace_after_return=cst.SimpleWhitespace(" "))
            leading = [*body[-1].leading_lines, *one.leading_lines]
            body[-1] = one.with_changes(body=[made], leading_lines=leading)
        return node.with_changes(body=body)

    return rewritten(unjoined(source.module), change).code  # type: ignore[no-any-return]


def _passed(first: Any, second: Any) -> cst.BaseExpression | None:
    if not isinstance(first, cst.SimpleStatementLine) or not isinstance(second, cst.SimpleStatementLine):
        return None
    assign, leave = first.body[0], second.body[0]
    if not isinstance(leave, cst.Return) or not isinstance(leave.value, cst.Name):
        return None
    if isinstance(assign, cst.Assign) and len(assign.targets) == 1:
        target: Any = assign.targets[0].target
    elif isinstance(assign, cst.AnnAssign):
        target = assign.target
    else:
        return None
    if not isinstance(target, cst.Name) or target.value != leave.value.value or assign.value is None:
        return None
    # A function defined inside the value may read the variable when it is called later.
    inner = has(assign.value, cst.Lambda, cst.GeneratorExp) and target.value in reads(assign.value)
    if inner:
        raise Refusal("a function inside the value reads the variable")
    return assign.value


@transforms("structural-ensure-single-return")
@transforms("structural-replace-early-returns")
@transforms("structural-avoid-early-returns")
def single_return(source: Source) -> str:
    """Every function with one return at its end: branches nest, a loop that returned is left by `break`.

    Refuses returns in nested loops, in loops that break for another reason, and in try, with and match statements.
    """
    module = without_elif(unjoined(source.module))
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
            return node
        returns = [one for one in nodes(node.body, into_functions=False) if isinstance(one, cst.Return)]
        body = list(node.body.body)
        last = body[-1]
        at_end = isinstance(last, cst.SimpleStatementLine) and last.body[0] in returns
        if not returns or (len(returns) == 1 and at_end):
            return node
        if is_generator(node) or node.asynchronous is not None:
            raise Refusal("a generator's returns end it")
        return node.with_changes(body=node.body.with_changes(body=_joined(body, namer)))

    return rewritten(module, change).code  # type: ignore[no-any-return]


def _joined(body: list[Any], namer: Namer) -> list[Any]:
    name = namer("result", "outcome", "returned", "final")
    doc, rest = docstring_split(body)
    tail = statements(f"return {name}")
    made, leaves = _Single(name).block(rest)
    start = [] if leaves else statements(f"{name} = None")
    return [*doc, *start, *made, *tail]


class _Single:
    """Turns returns into assignments to one name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def block(self, body: list[Any]) -> tuple[list[Any], bool]:
        """The statements with assignments for returns, and whether every way through them assigns."""
        made: list[Any] = []
        for number, one in enumerate(body):
            rest = body[number + 1 :]
            if isinstance(one, cst.SimpleStatementLine) and isinstance(one.body[0], cst.Return):
                value = one.body[0].value
                text = f"({text_of(value)})" if isinstance(value, cst.Tuple) and not value.lpar else None
                line = statements(f"{self.name} = {text or (inside(value) if value else 'None')}")[0]
                return [*made, line.with_changes(leading_lines=one.leading_lines)], True
            if isinstance(one, cst.SimpleStatementLine) and isinstance(one.body[0], cst.Raise):
                return [*made, one], True
            if not _returns(one):
                made.append(one)
                continue
            if isinstance(one, cst.If):
                return self._if(made, one, rest)
            if isinstance(one, cst.For | cst.While):
                return self._loop(made, one, rest)
            raise Refusal("a return inside a try, with or match statement")
        return made, False

    def _if(self, made: list[Any], one: cst.If, rest: list[Any]) -> tuple[list[Any], bool]:
        assert isinstance(one.body, cst.IndentedBlock)
        then, always = self.block(list(one.body.body))
        other: list[Any] = []
        if isinstance(one.orelse, cst.Else):
            assert isinstance(one.orelse.body, cst.IndentedBlock)
            other = list(one.orelse.body.body)
        if always:
            after, ends = self.block([*other, *rest])
        else:
            after, ends = self.block(other)
            if not rest:
                changed = one.with_changes(body=block(then), orelse=self._else(after))
                return [*made, changed], False
            if not ends:
                raise Refusal("only some ways through a branch return")
            then, ends = self.block([*one.body.body, *rest])
            return [*made, one.with_changes(body=block(then), orelse=self._else(after))], ends
        return [*made, one.with_changes(body=block(then), orelse=self._else(after))], ends

    @staticmethod
    def _else(body: list[Any]) -> cst.Else | None:
        return cst.Else(body=block(body)) if body else None

    def _loop(self, made: list[Any], one: Any, rest: list[Any]) -> tuple[list[Any], bool]:
        """The loop left by `break` at its returns, and what followed it in its `else` branch."""
        inner = [node for node in nodes(one.body, into_functions=False) if isinstance(node, cst.For | cst.While)]
        if one.orelse is not None or has(one.body, cst.Break) or any(_returns(node) for node in inner):
            raise Refusal("a loop is left in more than one way")

        def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
            small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
            if not isinstance(small, cst.Return):
                return node
            assert isinstance(node, cst.SimpleStatementLine)
            value = f"({text_of(small.value)})" if small.value else "None"
            lines = statements(f"{self.name} = {value}\nbreak")
            return several([lines[0].with_changes(leading_lines=node.leading_lines), lines[1]])

        if has(one.body, cst.Try, cst.FunctionDef, cst.Lambda, cst.ClassDef):
            raise Refusal("a return inside a try statement or beside a function in a loop")
        after, ends = self.block(rest)
        body = rewritten(one.body, change)
        return [*made, one.with_changes(body=body, orelse=self._else(after))], ends


def _returns(node: cst.CSTNode) -> bool:
    return any(isinstance(one, cst.Return) for one in nodes(node, into_functions=False))


@transforms("structural-reduce-returns")
def fewer_returns(source: Source) -> str:
    """`return a if condition else b` for an `if` that returns and the return right behind it; else one return."""
    done = False

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        nonlocal done
        if done or not isinstance(node, cst.IndentedBlock):
            return node
        body: list[Any] = list(node.body)
        for number, (one, two) in enumerate(pairwise(body)):
            values = _pair(one, two)
            if values is not None:
                done = True
                value = f"{inside(values[0])} if {inside(one.test)} else {inside(values[1])}"
                line = cst.SimpleStatementLine(body=[cst.Return(expression(value))], leading_lines=one.leading_lines)
                return node.with_changes(body=[*body[:number], line, *body[number + 2 :]])
        return node

    made = rewritten(unjoined(source.module), change).code
    return made if done else single_return(source)


def _pair(one: Any, two: Any) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    if not isinstance(one, cst.If) or one.orelse is not None or not isinstance(two, cst.SimpleStatementLine):
        return None
    assert isinstance(one.body, cst.IndentedBlock)
    first = one.body.body[0]
    if len(one.body.body) != 1 or not isinstance(first, cst.SimpleStatementLine):
        return None
    a, b = first.body[0], two.body[0]
    if not isinstance(a, cst.Return) or not isinstance(b, cst.Return) or a.value is None or b.value is None:
        return None
    starred = any(has(value, cst.StarredElement) for value in (a.value, b.value))
    return None if starred else (a.value, b.value)
