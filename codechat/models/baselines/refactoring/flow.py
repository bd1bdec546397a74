"""Branches and loops in other forms: without `elif` and conditional expressions, conditions named, `for` as `while`."""

import libcst as cst

from codechat.models.baselines.refactoring import trees
from codechat.models.baselines.refactoring.base import Refusal, Source, transforms
from codechat.models.baselines.refactoring.trees import SPACE, Made, block, body_of, has, statements, text_of, whole


def _without_elif(module: cst.Module) -> cst.Module:
    """Every `elif` as an `if` in an `else` branch."""

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If) or not isinstance(node.orelse, cst.If):
            return node
        return node.with_changes(orelse=cst.Else(body=block([node.orelse.with_changes(leading_lines=[])])))

    return trees.rewrite(module, change)


@transforms("structural-avoid-elif")
def avoid_elif(source: Source) -> str:
    """No `elif`."""
    return _without_elif(source.module).code


@transforms("structural-transform-ternaries")
@transforms("structural-avoid-conditional-expressions")
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
    made: cst.If = statements(f"if {text_of(value.test)}:\n    pass")[0]
    body, orelse = (block([_spread(one.with_changes(leading_lines=[]))]) for one in (yes, no))
    return made.with_changes(body=body, orelse=cst.Else(body=orelse), leading_lines=line.leading_lines)


@transforms("structural-introduce-named-conditions")
def named_conditions(source: Source) -> str:
    """Every comparison that an `if` or `while` tests under a name; a `while` asks again at its end."""
    namer = source.namer()

    def change(original: cst.CSTNode, node: cst.CSTNode) -> Made:
        if not isinstance(node, cst.If | cst.While) or not isinstance(node.test, cst.Comparison | cst.BooleanOperation):
            return node
        name = namer("is_met", "holds", "applies", "is_so", "is_given", "fits")
        line = statements(f"{name} = {whole(node.test)}")[0].with_changes(leading_lines=node.leading_lines)
        space = "whitespace_after_while" if isinstance(node, cst.While) else "whitespace_before_test"
        node = node.with_changes(test=cst.Name(name), leading_lines=[], **{space: SPACE})
        if isinstance(node, cst.While) and has(node.body, cst.Continue):
            raise Refusal("a loop goes on before its end")
        if isinstance(node, cst.While):
            node = node.with_changes(body=block([*body_of(node), line.with_changes(leading_lines=[])]))
        return cst.FlattenSentinel([line, node])

    return trees.rewrite(_without_elif(trees.unjoin(source.module)), change).code


@transforms("structural-convert-for-to-while")
@transforms("semantic-convert-for-to-iterator")
@transforms("structural-convert-one-for-to-while", only_first=True)
@transforms("semantic-use-explicit-iterator", only_first=True)
@transforms("semantic-use-endless-loop", only_first=True)
@transforms("semantic-use-break", only_first=True)
@transforms("semantic-use-sentinel", only_first=True)
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
        if node.orelse is not None or node.asynchronous is not None or has(node.target, cst.StarredElement):
            raise Refusal("a loop has an else branch")
        walker, end, item = namer("walker", "steps"), namer("finished", "end"), namer("following", "upcoming")
        before = statements(f"{walker} = iter({text_of(node.iter)})\n{end} = object()")
        head = f"{item} = next({walker}, {end})\nif {item} is {end}:\n    break\n{text_of(node.target)} = {item}"
        made = statements("while True:\n    pass")[0].with_changes(body=block([*statements(head), *body_of(node)]))
        return trees.several([*before, made], node.leading_lines)

    return trees.rewrite(module, change).code
