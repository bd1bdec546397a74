"""The starter tests are worth something: they notice almost every small change to a reference.

A mutant is the reference with one comparison, operator, constant or condition changed. Some mutants are equivalent to
the reference (`<` for `<=` where equality cannot occur), so the bar is not 100 %.
"""

import ast
import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice

import pytest

from codechat.datasets import DATASETS
from codechat.datasets.tasks import Task
from codechat.sandbox.suites.calls import Calls

pytestmark = pytest.mark.long

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
    ast.Div: ast.Mult,
}  # fmt: skip

CHANGEABLE = (ast.Compare, ast.BinOp, ast.AugAssign, ast.Constant, ast.If, ast.IfExp, ast.BoolOp)

RUNNER = """
import json, resource, signal, sys

def stop(*_):
    raise TimeoutError

def results(source, name, calls):
    space = {"__name__": "candidate"}
    try:
        exec(compile(source, "candidate", "exec"), space)
        return [repr(space[name](*call)) for call in json.loads(calls)]
    except Exception as error:
        return type(error).__name__

resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
signal.signal(signal.SIGALRM, stop)
survivors = []
for name, calls, reference, mutants in json.load(sys.stdin):
    expected = results(reference, name, calls)
    assert isinstance(expected, list), (name, expected)
    for mutant in mutants:
        signal.setitimer(signal.ITIMER_REAL, 0.25)
        try:
            same = results(mutant, name, calls) == expected
        except TimeoutError:
            same = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        if same:
            survivors.append([name, mutant])
json.dump(survivors, sys.stdout)
"""


def mutants(source: str) -> Iterator[str]:
    """Every program that differs from `source` in one place."""
    tree = ast.parse(source)
    for index, node in enumerate(ast.walk(tree)):
        for variant in range(2) if isinstance(node, CHANGEABLE) else ():
            changed = copy.deepcopy(tree)
            if change(next(islice(ast.walk(changed), index, None)), variant):
                yield ast.unparse(changed)


def change(node: ast.AST, variant: int) -> bool:
    """Change a node in place; false where there is nothing to change in this variant."""
    match node:
        case ast.Compare(ops=[operator, *_]) if variant == 0:
            node.ops[0] = COMPARISONS[type(operator)]()
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if variant == 0 and type(operator) in OPERATORS:
            node.op = OPERATORS[type(operator)]()
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            node.value = value + (1, -1)[variant]
        case ast.If() | ast.IfExp():
            node.test = ast.Constant(value=bool(variant))
        case ast.BoolOp() if variant == 0:
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case _:
            return False
    return True


@pytest.fixture(scope="module")
def outcome() -> tuple[dict[str, int], dict[str, list[str]]]:
    """Per task: how many mutants there are, and those that no input tells from the reference."""
    tasks: tuple[Task, ...] = DATASETS.build(DATASETS.validate({"kind": "starter"})).tasks
    work = []
    for task in tasks:
        assert task.reference is not None and isinstance(task.suite, Calls)
        calls = json.dumps(task.suite.inputs)
        work.append((task.target.entry_point, calls, task.reference, sorted(set(mutants(task.reference)))))
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUNNER],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    survivors: dict[str, list[str]] = {name: [] for name, *_ in work}
    for name, mutant in json.loads(done.stdout):
        survivors[name].append(mutant)
    return {name: len(made) for name, _, _, made in work}, survivors


def test_each_task_kills_most_of_its_mutants(outcome: tuple[dict[str, int], dict[str, list[str]]]) -> None:
    made, survivors = outcome
    weak = {name: len(survivors[name]) for name in made if len(survivors[name]) > made[name] * 0.4}
    assert min(made.values()) >= 1 and weak == {}


def test_ninety_percent_of_all_mutants_are_killed(outcome: tuple[dict[str, int], dict[str, list[str]]]) -> None:
    made, survivors = outcome
    alive = sum(map(len, survivors.values()))
    assert alive / sum(made.values()) < 0.10, f"{alive} of {sum(made.values())} survive"
