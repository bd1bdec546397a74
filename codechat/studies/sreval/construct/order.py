"""The order of a task's steps: the analyzer's graph of dependencies is checked, not believed (SR-Eval, 3.1.2)."""

from collections.abc import Iterable, Sequence

Edge = tuple[int, int]
"""A step, counted from 1, and one that needs it."""


def graph_problem(steps: int, edges: Iterable[Edge]) -> str:
    """The reason why edges are no dependencies of steps that all grow from the first; empty if they are.

    They name steps that exist, form no cycle, and lead from the first step, which needs none, to every other.
    """
    edges = list(edges)
    unknown = sorted({step for edge in edges for step in edge if not 1 <= step <= steps})
    if unknown:
        return f"an edge names the step {unknown[0]}, and there are steps 1 to {steps}"
    if any(after == 1 for _, after in edges):
        return "an edge leads to step 1, which must need no other"
    depths = _depths(steps, edges)
    if len(depths) < steps:
        return f"the edges form a cycle over {_listed(set(range(1, steps + 1)) - set(depths))}, or lead from one there"
    roots = set(range(2, steps + 1)) - {after for _, after in edges}  # without a cycle, all that is not reached has one
    return f"no edge leads to {_listed(roots)}: every step but the first needs another" if roots else ""


def order_steps(steps: int, edges: Iterable[Edge], proposed: Sequence[int] = ()) -> tuple[int, ...]:
    """The proposed order if it is a topological order of a valid graph, else the steps by depth, then by number.

    The depth of a step is the length of the longest way to it from the first.
    """
    edges = list(edges)
    place = {step: index for index, step in enumerate(proposed)}
    if sorted(proposed) == list(range(1, steps + 1)) and all(place[one] < place[other] for one, other in edges):
        return tuple(proposed)
    depths = _depths(steps, edges)
    return tuple(sorted(depths, key=lambda step: (depths[step], step)))


def _depths(steps: int, edges: Sequence[Edge]) -> dict[int, int]:
    """The longest way to each step; steps on a cycle, and behind one, have none."""
    left, depths = set(range(1, steps + 1)), dict[int, int]()
    for depth in range(steps):
        held = {after for before, after in edges if before in left}
        free = left - held
        depths |= dict.fromkeys(free, depth)
        left -= free
    return depths


def _listed(steps: Iterable[int]) -> str:
    numbers = [str(step) for step in sorted(steps)]
    return f"step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
