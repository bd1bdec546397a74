"""What only carries a value through is no use of the construct that carries it; what does anything with it is one."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.domain import Instruction
from codechat.patterns import adherence, applicable, read
from codechat.patterns.substance.carrying import carriers

CLASSES = """
import collections, functools, heapq, io, itertools, types
from dataclasses import dataclass
from typing import NamedTuple


class Node:
    def __init__(self, value):
        self.value = value
        self.next = None


@dataclass
class Box:
    value: object


class Pair(NamedTuple):
    value: object


class Lazy:
    def __init__(self, compute):
        self.compute = compute

    @functools.cached_property
    def value(self):
        return self.compute()


def same(value):
    return value


def descend(value, depth):
    return descend(value, depth - 1) if depth else value


"""
WRAPPERS = [
    "collections.Counter({{'result': {}}})['result']", "collections.deque([{}]).popleft()", "[{}][0]", "({},)[0]",
    "{{'result': {}}}['result']", "{{1: {}}}.get(1)", "dict(result={})['result']", "next(iter([{}]))",
    "next(reversed([{}]))", "[one for one in [{}]][0]", "[*[{}]][0]", "max([{}])", "(lambda: {})()",
    "(lambda given: given)({})", "functools.partial(lambda given: given, {})()", "{{'finish': lambda: {}}}['finish']()",
    "functools.reduce(lambda one, other: other, [{}], None)", "types.SimpleNamespace(value={}).value", "Node({}).value",
    "Box({}).value", "Box(value={}).value", "Pair({}).value", "Lazy(lambda: {}).value", "same({})", "descend({}, 1)",
]  # fmt: skip


def carried(code: str) -> set[str]:
    """The source of what carries, as far as it stands in `f`."""
    found = read(code)
    inside = {node for one in found.functions if one.name == "f" for node in ast.walk(one)}
    return {ast.unparse(node) for node in carriers(found) & inside if isinstance(node, ast.expr)}


def called(code: str, *arguments: object) -> object:
    space: dict[str, object] = {"__name__": "program"}
    exec(compile(code, "program", "exec"), space)
    return space["f"](*arguments)  # type: ignore[operator]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_is_wrapped_and_unwrapped_at_once_carries(wrapper: str) -> None:
    code = f"{CLASSES}def f(values):\n    return {wrapper.format('sum(values)')}\n"
    assert called(code, [1, 2]) == 3
    assert ast.unparse(ast.parse(wrapper.format("sum(values)"))) in carried(code)
    assert "sum(values)" not in carried(code)


@given(st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=4), st.sampled_from(["sum(values)", "len(values) * 2"]))
def test_wrappers_in_wrappers_carry_and_what_they_carry_does_not(wrappers: list[str], value: str) -> None:
    text = value
    for wrapper in wrappers:
        text = wrapper.format(text)
    code = f"{CLASSES}def f(values):\n    return {text}\n"
    assert called(code, [1, 2]) == called(f"def f(values):\n    return {value}\n", [1, 2])
    found = read(code)
    kept = {node for node in found.nodes if isinstance(node, ast.expr) and ast.unparse(node) == value}
    assert len(kept) == 1
    assert not carriers(found) & {node for one in kept for node in ast.walk(one)}
    whole = [node for node in found.nodes if isinstance(node, ast.Return)][-1].value
    assert whole in carriers(found)


@pytest.mark.parametrize(
    "lines",
    [
        "tally = collections.Counter({'result': total})\nreturn tally['result']",
        "stack = []\nstack.append(total)\nreturn stack.pop()",
        "parts = collections.defaultdict(list)\nparts['result'] = total\nreturn parts['result']",
        "heap = []\nheapq.heappush(heap, total)\nreturn heapq.heappop(heap)",
        "held = {}\nheld[total] = total\nreturn held[total]",
        "box = Box(total)\nreturn box.value",
        "compute = lambda: total\nreturn compute()",
        "def compute():\n    return total\nreturn compute()",
        "def prepare():\n    return lambda: total\nreturn prepare()()",
        "def each(given):\n    for one in given:\n        yield one\nreturn sum(each([total]))",
        "steps = {'finish': lambda: total + 1}\nreturn steps['finish']() - 1",
        "buffer = io.StringIO()\nbuffer.write(str(total))\nreturn int(buffer.getvalue())",
        "for _ in range(3):\n    held = [total]\n    result = held[0]\nreturn result",
        "return sum(one for one in map(lambda one: one, itertools.chain([total])))",
    ],
)
def test_the_same_through_a_variable_carries(lines: str) -> None:
    body = "".join(f"    {line}\n" for line in ["total = sum(values)", *lines.split("\n")])
    code = f"{CLASSES}def f(values):\n{body}"
    assert called(code, [1, 2]) == 3
    assert carried(code)
    assert not carried(f"{CLASSES}def f(values):\n    total = sum(values)\n    return total\n")


@pytest.mark.parametrize(
    "body",
    [
        "return collections.Counter(values).most_common(1)[0]",
        "tally = collections.Counter(values)\nreturn tally[1]",
        "counts = {}\nfor value in values:\n    counts[value] = value\nreturn counts[1]",
        "held = [0]\nfor value in values:\n    held[0] += value\nreturn held[0]",
        "best = [values[0]]\nfor value in values:\n    best[0] = max(best[0], value)\nreturn best[0]",
        "stack = [values]\nwhile stack:\n    top = stack.pop()\n    stack.extend(one for one in top if one)\nreturn 0",
        "found = []\nfor value in values:\n    found.append(value)\nreturn found.pop()",
        "held = [sum(values)]\nreturn held",
        "held = [sum(values)]\nreturn held[0] + len(held)",
        "pair = {'sum': sum(values), 'count': len(values)}\nreturn pair['sum'] / pair['count']",
        "mean = lambda: sum(values) / len(values)\nreturn mean()",
        "def mean():\n    return sum(values) / len(values)\nreturn mean()",
        "return sorted(values, key=lambda value: value)[0]",
        "first = functools.partial(max, 0)\nreturn first(values[0])",
        "return functools.reduce(lambda one, other: one + other, values, 0)",
        "queue = collections.deque([values])\nwhile queue:\n    queue.extend(queue.popleft()[1:])\nreturn 1",
        "memo = {}\ndef walk(n):\n    if n not in memo:\n        memo[n] = walk(n - 1) if n else 0\n    return memo[n]\nreturn walk(3)",
        "low, high = (values[0], values[-1])\nreturn print(*values, *sorted(values))",
        "return [value for value in iter(values)][0]",
        "return {True: 'yes', False: 'no'}[bool(values)]",
        "return next(iter(values)), any(value > 1 for value in values)",
        "parts = []\nfor value in values:\n    parts.append(str(value))\nreturn ''.join(parts)",
        "found = {}\nfound.update(zip(values, values))\nreturn found[1]",
        "seen = [values[0]]\nother = list(seen)\nother.append(2)\nreturn seen[0] + other[1]",
        "box = [values]\nreturn [each for each in box[0]] + box",
    ],
)
def test_real_uses_do_not_carry(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    assert carried(f"import collections, functools\ndef f(values):\n{lines}") == set()


def test_variables_that_name_one_another_are_read_without_recursion() -> None:
    made = "".join(f"    a{number} = [{number}]\n" for number in range(1000))
    taken = "".join(f"    print(a{number}[a{number - 1}[0]])\n" for number in range(1, 1000))
    assert "a500[a499[0]]" in carried(f"def f(values):\n{made}{taken}    return a999\n")


def test_a_class_or_function_that_does_more_is_no_carrier() -> None:
    code = CLASSES + "def f(values):\n    node = Node(sum(values))\n    node.next = Node(1)\n    return node.value\n"
    assert "Node(sum(values))" not in carried(code)
    counting = "class Tally:\n    def __init__(self, value):\n        self.value = value + 1\n\n\n"
    assert carried(f"{counting}def f(values):\n    return Tally(sum(values)).value\n") == set()
    traced = "def trace(function):\n    print(function)\n    return function\n\n\n@trace\ndef same(value):\n    return value\n\n\n"
    assert carried(f"{traced}def f(values):\n    return same(sum(values))\n") == set()


BEFORE = "def f(values):\n    total = sum(values)\n    return total\n"
USE = Instruction("one", "Use a Counter.", "semantic", "add", {"pattern": "use", "names": ["collections.Counter"]})


def test_what_carries_does_not_fulfil_a_request_and_says_why() -> None:
    after = f"import collections\n{BEFORE.replace('return total', 'return collections.Counter(dict(a=total))[0]')}"
    judged = adherence(BEFORE, after, USE)
    assert judged.verdict == "violated"
    assert judged.reason.startswith("what was added only passes a value on: 1 use of collections.Counter")
    real = f"import collections\n{BEFORE.replace('sum(values)', 'len(collections.Counter(values))')}"
    assert adherence(BEFORE, real, USE).verdict == "adhered"
    assert adherence(after, real, USE).verdict == "adhered"


def test_what_carries_still_hinders_that_the_request_is_made_again() -> None:
    """It is there, whatever it is worth: who reads the code would not ask for a Counter."""
    after = f"import collections\n{BEFORE.replace('return total', 'return collections.Counter(dict(a=total))[0]')}"
    assert not applicable(after, USE).applicable


def test_the_definitions_that_serve_it_alone_carry_too() -> None:
    ask = Instruction("two", "Create a helper.", "structural", "add", {"pattern": "helper"})
    helper = "def same(value):\n    return value\n\n\n"
    after = helper + BEFORE.replace("return total", "return same(total)")
    assert adherence(BEFORE, after, ask).reason.startswith("what was added only passes a value on")
    working = helper.replace("return value", "return value + 0 * value")
    assert adherence(BEFORE, working + after.removeprefix(helper), ask).verdict == "adhered"
