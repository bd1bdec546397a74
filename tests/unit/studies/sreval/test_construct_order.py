"""The graph of a task's steps, against brute force."""

import itertools
import random
from collections import Counter

import pytest

from codechat.studies.sreval.construct.algorithm import Edge, graph_problem, order_steps


def orders(steps: int, edges: list[Edge]) -> list[tuple[int, ...]]:
    """Every order of the steps in which each stands behind those that it needs."""
    return [
        order
        for order in itertools.permutations(range(1, steps + 1))
        if all(one in order and other in order and order.index(one) < order.index(other) for one, other in edges)
    ]


def is_valid(steps: int, edges: list[Edge]) -> bool:
    """Whether there is an order, and every step lies on a way from the first, to which none leads."""
    reached = {1}
    for _ in range(steps):
        reached |= {after for before, after in edges if before in reached}
    return bool(orders(steps, edges)) and reached == set(range(1, steps + 1)) and all(after != 1 for _, after in edges)


def longest_way(edges: list[Edge], step: int) -> int:
    return max((1 + longest_way(edges, before) for before, after in edges if after == step), default=0)


def test_a_thousand_graphs_are_judged_as_by_brute_force() -> None:
    """Half are made along a hidden order, so that many are valid; a tenth names a step that is not there."""
    dice, seen = random.Random(8), Counter[str]()
    for number in range(1000):
        steps = dice.randint(1, 5)
        hidden = [1, *dice.sample(range(2, steps + 1), steps - 1)]
        pairs = [(dice.choice(hidden[:index]), hidden[index]) for index in range(1, steps)]
        last = steps + (number % 10 == 0)
        pairs += [(dice.randint(1, last), dice.randint(1, last)) for _ in range(dice.randint(0, 3))]
        edges = (
            [pair for pair in pairs if number % 2 or hidden.index(pair[0]) < hidden.index(pair[1])]
            if last == steps
            else pairs
        )
        valid = is_valid(steps, edges)
        problem = graph_problem(steps, edges)
        assert (problem == "") is valid, (steps, edges, problem)
        seen["valid" if valid else problem.split(" ")[3]] += 1
        if valid:
            possible = orders(steps, edges)
            proposed = tuple(dice.sample(range(1, steps + 1), steps))
            ours = tuple(sorted(range(1, steps + 1), key=lambda step: (longest_way(edges, step), step)))
            assert ours in possible
            assert order_steps(steps, edges, proposed) == (proposed if proposed in possible else ours)
    assert seen["valid"] > 300 and len(seen) >= 4 and min(seen.values()) >= 20, seen


@pytest.mark.parametrize(
    ("steps", "edges", "words"),
    [
        (3, [(1, 2), (2, 4)], "step 4, and there are steps 1 to 3"),
        (3, [(1, 2), (2, 0)], "step 0"),
        (3, [(1, 2)], "no edge leads to step 3"),
        (3, [], "no edge leads to steps 2, 3"),
        (3, [(1, 2), (2, 3), (3, 2)], "cycle over steps 2, 3"),
        (2, [(1, 2), (2, 2)], "cycle over step 2"),
        (2, [(1, 2), (2, 1)], "leads to step 1"),
        (1, [], ""),
    ],
)
def test_a_problem_is_said_in_words(steps: int, edges: list[Edge], words: str) -> None:
    problem = graph_problem(steps, edges)
    assert words in problem and bool(words) == bool(problem)


@pytest.mark.parametrize("proposed", [(), (1, 2), (1, 2, 2, 3), (2, 1, 3, 4), (0, 1, 2, 3)])
def test_an_order_that_is_none_is_replaced(proposed: tuple[int, ...]) -> None:
    assert order_steps(4, [(1, 4), (1, 3), (3, 2)], proposed) == (1, 3, 4, 2)
