"""Tasks that simulate something step by step."""

from collections import OrderedDict

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[("FFRF",), ("",), ("RRRR",), ("FLFLFLF",)],
    plus=[
        ("F",), ("RF",), ("LF",), ("BB",), ("LLF",), ("RB",), ("FxF",), ("F" * 50,), ("FRFRFRFR",), ("RRF",),
        ("RRRF",), ("LLLF",),
        ("BLB",), ("FFLFFRBB",), ("LLLLLF",), ("RRRRRF",), ("f",),
    ],
)  # fmt: skip
def drive_robot(commands: str) -> list[int]:
    """Drive a robot and return [x, y], the place where it ends.

    It starts at [0, 0] and looks north, where y grows; x grows to the east. 'F' and 'B' move it one field forwards
    and backwards, 'L' and 'R' turn it by a quarter on the spot. Other characters do nothing.

    >>> drive_robot("FFRF")
    [1, 2]
    >>> drive_robot("RRRR")
    [0, 0]
    """
    x, y = 0, 0
    dx, dy = 0, 1
    for command in commands:
        if command == "F":
            x, y = x + dx, y + dy
        elif command == "B":
            x, y = x - dx, y - dy
        elif command == "L":
            dx, dy = -dy, dx
        elif command == "R":
            dx, dy = dy, -dx
    return [x, y]


@topic.task(
    base=[
        (2, [["put", "a", 1], ["put", "b", 2], ["get", "a"], ["put", "c", 3], ["get", "b"], ["get", "a"]]),
        (1, [["get", "x"]]),
        (2, []),
    ],
    plus=[
        (1, [["put", "a", 1], ["put", "b", 2], ["get", "a"], ["get", "b"]]),
        (1, [["put", "a", 1], ["put", "a", 2], ["get", "a"]]),
        (2, [["put", "a", 1], ["put", "b", 2], ["put", "a", 3], ["put", "c", 4], ["get", "a"], ["get", "b"]]),
        (0, [["put", "a", 1], ["get", "a"]]),
        (3, [["put", "a", 0], ["get", "a"], ["put", "b", -1], ["get", "b"], ["get", "c"]]),
        (2, [["put", "a", 1], ["put", "b", 2], ["put", "c", 3], ["get", "a"], ["get", "b"], ["get", "c"]]),
        (
            2,
            [["put", "a", 1], ["put", "b", 2], ["get", "a"], ["get", "a"], ["put", "c", 3], ["get", "b"], ["get", "c"]],
        ),
        (3, [["put", str(n), n] for n in range(10)] + [["get", str(n)] for n in range(10)]),
        (2, [["get", "a"], ["put", "a", 5], ["get", "a"], ["get", "A"]]),
        (2, [["put", "é", 1], ["put", "ü", 2], ["get", "é"], ["put", "ß", 3], ["get", "ü"]]),
        (2, [["put", "a", 1], ["put", "b", 2], ["get", "x"], ["put", "c", 3], ["get", "a"], ["get", "b"]]),
    ],
)
def replay_cache(capacity: int, operations: list[list[str | int]]) -> list[int | None]:
    """Replay operations on a cache that forgets the least recently used entry when it is full; return what was read.

    ["put", key, value] stores a value, ["get", key] reads one, None where the key is unknown. Both count as a use.
    Where the cache would hold more than `capacity` entries, the one whose last use is longest ago is dropped.

    >>> replay_cache(1, [["put", "a", 1], ["put", "b", 2], ["get", "a"], ["get", "b"]])
    [None, 2]
    """

    class Cache:
        def __init__(self) -> None:
            self.entries: OrderedDict[str | int, int] = OrderedDict()

        def get(self, key: str | int) -> int | None:
            if key not in self.entries:
                return None
            self.entries.move_to_end(key)
            return self.entries[key]

        def put(self, key: str | int, value: int) -> None:
            self.entries[key] = value
            self.entries.move_to_end(key)
            if len(self.entries) > capacity:
                self.entries.popitem(last=False)

    cache = Cache()
    results = []
    for operation in operations:
        if operation[0] == "put":
            cache.put(operation[1], int(operation[2]))
        else:
            results.append(cache.get(operation[1]))
    return results


@topic.task(
    base=[([10] * 12,), ([0] * 20,), ([5] * 21,), ([3, 4] * 10,)],
    plus=[
        ([9, 1] * 10 + [9],), ([10, 3, 4] + [0] * 16,), ([5, 5, 3] + [0] * 17,), ([0] * 18 + [10, 10, 10],),
        ([0] * 18 + [7, 3, 5],),
        ([10, 10, 4, 2] + [0] * 14,), ([0, 10, 3] + [0] * 17,), ([1] * 20,),
        ([10, 5, 5, 10, 5, 5, 10, 5, 5, 10, 5, 5, 10, 5, 5, 10],),
        ([8, 2, 10, 3, 5] + [0] * 14,), ([0, 0, 9, 1, 0, 10, 0, 1, 2, 3, 4, 5, 5, 0, 0, 10, 1, 0, 10, 10, 8],),
        ([4, 5, 5, 5] + [1] * 16,),
    ],
)  # fmt: skip
def bowling_score(rolls: list[int]) -> int:
    """Score a complete game of ten-pin bowling from the pins knocked down by each roll.

    The game has ten frames of at most two rolls. All ten pins with the first roll (strike) end the frame and count
    the next two rolls in addition; all ten with two rolls (spare) count the next roll in addition. After a strike or
    spare in the tenth frame the extra rolls are at the end of the list and only count there.

    >>> bowling_score([10] * 12)
    300
    >>> bowling_score([5] * 21)
    150
    """
    score = 0
    roll = 0
    for _frame in range(10):
        if rolls[roll] == 10:
            score += 10 + rolls[roll + 1] + rolls[roll + 2]
            roll += 1
        else:
            pins = rolls[roll] + rolls[roll + 1]
            score += pins
            if pins == 10:
                score += rolls[roll + 2]
            roll += 2
    return score


@topic.task(
    base=[
        ({"cake": ["flour", "egg"], "flour": [], "egg": []},), ({},), ({"a": ["b"], "b": ["a"]},),
        ({"b": [], "a": []},),
    ],
    plus=[
        ({"a": ["a"]},), ({"a": ["x"]},), ({"c": ["b"], "b": ["a"], "a": []},), ({"a": ["b", "c"], "b": ["c"]},),
        ({"d": ["b", "c"], "b": ["a"], "c": ["a"]},), ({"z": [], "y": ["z"], "x": []},),
        ({"a": ["b"], "b": ["c"], "c": ["a"], "d": []},),
        ({"a": ["b", "b"]},), ({"é": ["ü"], "ü": []},), ({"m": ["n"], "o": ["n"], "n": []},),
        ({"a": [], "b": ["a"], "c": ["a"], "d": ["c", "b"]},),
        ({"1": ["10"], "2": []},),
    ],
)  # fmt: skip
def plan_steps(needs: dict[str, list[str]]) -> list[str]:
    """Order steps so that each comes after everything it needs; return an empty list where that is impossible.

    `needs` maps a step to the steps that it needs; a step that is only needed by others needs nothing itself. Of the
    steps that could come next, the first in the alphabet is taken.

    >>> plan_steps({"cake": ["flour", "egg"], "flour": [], "egg": []})
    ['egg', 'flour', 'cake']
    >>> plan_steps({"a": ["b"], "b": ["a"]})
    []
    """
    waiting: dict[str, set[str]] = {}
    for step, needed in needs.items():
        waiting.setdefault(step, set()).update(needed)
        for other in needed:
            waiting.setdefault(other, set())
    plan: list[str] = []
    while waiting:
        ready = sorted(step for step, needed in waiting.items() if needed <= set(plan))
        if not ready:
            return []
        plan.append(ready[0])
        del waiting[ready[0]]
    return plan
