"""Conditions tested in another way: under a name, by a table, an enumeration, a match statement."""

from typing import Any

import libcst as cst

from codechat.refactoring.base import Refusal, Source, transforms, with_definitions
from codechat.refactoring.conditions import merge_ifs, to_ternary, without_elif
from codechat.refactoring.trees import (
    EFFECTS,
    Made,
    expression,
    has,
    inside,
    nodes,
    replaced,
    rewritten,
    several,
    statements,
    text_of,
    unjoined,
)


def first_if(module: cst.Module) -> cst.If:
    """The first `if` of a function whose condition assigns nothing."""
    for node in nodes(module):
        if isinstance(node, cst.FunctionDef):
            for inner in nodes(node.body):
                if isinstance(inner, cst.If) and not has(inner.test, *EFFECTS):
                    return inner
    raise Refusal("no if statement to change")


def wrapped_test(source: Source, template: str) -> str:
    """The first condition put into the template's place."""
    source = source.with_text(_spaced(source))
    node = first_if(source.module)
    return replaced(source.module, {node.test: expression(template.format(inside(node.test)))}).code  # type: ignore[no-any-return]


@transforms("structural-use-walrus")
def walrus(source: Source) -> str:
    """The first condition kept under a name by the walrus operator."""
    return wrapped_test(source, f"({source.namer()('holds', 'is_so')} := {{}})")


def _spaced(source: Source) -> str:
    """`if(x)` as `if (x)`: what takes the condition's place need not begin with a bracket."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if isinstance(node, cst.If) and node.whitespace_before_test.empty:
            return node.with_changes(whitespace_before_test=cst.SimpleWhitespace(" "))
        return node

    return rewritten(source.module, change).code  # type: ignore[no-any-return]


@transforms("structural-use-any-or-all")
def use_any(source: Source) -> str:
    """The first condition asked of the only element there is."""
    source.builtin("any")
    return wrapped_test(source, "any([{}])")


@transforms("structural-define-enum")
def use_enum(source: Source) -> str:
    """The first condition told apart by the members of an enumeration."""
    source.builtin("bool")
    source.runs_once()
    name = source.namer()("Case", "Answer")
    definition = f"class {name}(enum.Enum):\n    YES = True\n    NO = False"
    first_if(source.module)
    source = source.with_text(with_definitions(source, definition, imports=["enum"]))
    return wrapped_test(source, f"{name}(bool({{}})) is {name}.YES")


@transforms("semantic-use-lookup-table")
def lookup_table(source: Source) -> str:
    """The first condition looked up in a table of both answers."""
    source.builtin("bool")
    name = source.namer()("CHOICES", "ANSWERS")
    first_if(source.module)
    source = source.with_text(with_definitions(source, f"{name} = {{True: True, False: False}}"))
    return wrapped_test(source, f"{name}[bool({{}})]")


@transforms("structural-use-conditional-expression")
def conditional_expression(source: Source) -> str:
    """A conditional expression for an `if`/`else` that chooses a value, or else for the first condition."""
    made = to_ternary(source)
    return made if made != unjoined(source.module).code else wrapped_test(source, "True if {} else False")


@transforms("structural-reduce-ifs")
def reduce_ifs(source: Source) -> str:
    """One `if` less: as a conditional expression, merged with another, or as a match statement."""
    same = unjoined(source.module).code
    return next((made for made in (to_ternary(source), merge_ifs(source)) if made != same), "") or to_match(source)


@transforms("structural-use-match")
def to_match(source: Source) -> str:
    """The first `if` that is no `elif` as a match on the truth of its condition."""
    source.builtin("bool")
    module = without_elif(unjoined(source.module))
    node = first_if(module)
    made = statements(f"match bool({text_of(node.test)}):\n    case True:\n        pass\n    case _:\n        pass")[0]
    cases = [made.cases[0].with_changes(body=node.body)]
    if isinstance(node.orelse, cst.Else):
        cases.append(made.cases[1].with_changes(body=node.orelse.body))
    made = made.with_changes(cases=cases, leading_lines=node.leading_lines)
    return replaced(module, {node: made}).code  # type: ignore[no-any-return]


@transforms("structural-replace-elif-chains")
def chains_to_match(source: Source) -> str:
    """Every chain with an `elif` as a match whose cases are guards, tried in the same order."""
    module = unjoined(source.module)
    chained = {node.orelse for node in nodes(module) if isinstance(node, cst.If)}

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or original in chained or not isinstance(node.orelse, cst.If):
            return node
        cases = []
        branch: Any = node
        while isinstance(branch, cst.If):
            case = statements(f"match 0:\n    case _ if {inside(branch.test)}:\n        pass")[0].cases[0]
            cases.append(case.with_changes(body=branch.body))
            branch = branch.orelse
        if branch is not None:
            case = statements("match 0:\n    case _:\n        pass")[0].cases[0]
            cases.append(case.with_changes(body=branch.body))
        made = statements("match True:\n    case _:\n        pass")[0]
        return made.with_changes(cases=cases, leading_lines=node.leading_lines)

    return rewritten(module, change).code  # type: ignore[no-any-return]


@transforms("structural-introduce-named-conditions")
def named_conditions(source: Source) -> str:
    """Every comparison that an `if` or `while` tests under a name; a `while` asks again at its end."""
    module = without_elif(unjoined(source.module))
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        asks = isinstance(node, cst.If | cst.While) and isinstance(node.test, cst.Comparison | cst.BooleanOperation)
        if not asks or not isinstance(node, cst.If | cst.While):
            return node
        name = namer("is_met", "holds", "applies", "is_so", "is_given", "fits")
        line = statements(f"{name} = {inside(node.test)}")[0]
        space = "whitespace_after_while" if isinstance(node, cst.While) else "whitespace_before_test"
        made = node.with_changes(test=cst.Name(name), leading_lines=[], **{space: cst.SimpleWhitespace(" ")})
        if isinstance(made, cst.While):
            if has(original.body, cst.Continue):  # type: ignore[attr-defined]
                raise Refusal("a loop goes on before its end")
            body = made.body.with_changes(body=[*made.body.body, line])
            made = made.with_changes(body=body)
        return several([line.with_changes(leading_lines=node.leading_lines), made])

    return rewritten(module, change).code  # type: ignore[no-any-return]
