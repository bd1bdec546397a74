"""Tasks whose data or whose solution nests."""

from typing import Any

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[([1, [2, [3]]],), ([],), ([[[]]],), ([4, 5],)],
    plus=[
        ([[4]],), ([0, [0]],), ([-1, [-1]],), ([[1], [2], [3]],), ([[[[[1]]]]],), ([1, [2], 3, [[4]]],),
        ([10**9, [10**9]],),
        ([[], [1], [[]]],), ([[1, [2, 3], 4], 5],), ([-5, [5]],), ([[2, -1]],),
    ],
)  # fmt: skip
def depth_weighted_sum(items: list[Any]) -> int:
    """Add up the numbers in nested lists, each multiplied by the number of lists around it.

    >>> depth_weighted_sum([1, [2, [3]]])
    14
    >>> depth_weighted_sum([])
    0
    """

    def add_up(values: list[Any], depth: int) -> int:
        total = 0
        for value in values:
            if isinstance(value, list):
                total += add_up(value, depth + 1)
            else:
                total += value * depth
        return total

    return add_up(items, 1)


@topic.task(
    base=[(3, [1, 2]), (0, [1]), (4, [3]), (4, [2, 1])],
    plus=[
        (1, [1]), (1, [2]), (2, [2]), (5, [2, 3]), (5, [3, 2]), (6, [1, 5]), (4, []), (0, []), (7, [7, 3, 4]),
        (6, [2, 4, 6]),
        (5, [1, 2]),
    ],
)  # fmt: skip
def climb_plans(steps: int, strides: list[int]) -> list[list[int]]:
    """List every way of climbing a number of steps with the given strides, as lists of strides.

    Plans that begin with a stride given earlier come first, and so on for the strides that follow. Strides are
    positive and different. There is one way of climbing no step: the empty plan.

    >>> climb_plans(3, [1, 2])
    [[1, 1, 1], [1, 2], [2, 1]]
    >>> climb_plans(4, [3])
    []
    """
    if steps == 0:
        return [[]]
    plans: list[list[int]] = []
    for stride in strides:
        if stride <= steps:
            rest = climb_plans(steps - stride, strides)
            plans.extend([stride, *plan] for plan in rest)
    return plans


@topic.task(
    base=[({"src": {"main.py": {}, "lib": {"io.py": {}}}, "readme": {}},), ({},), ({"a": {}},)],
    plus=[
        ({"a": {"b": {"c": {}}}},), ({"b": {}, "a": {}},), ({"a": {"x": {}}, "b": {"x": {}}},), ({"": {"y": {}}},),
        ({"é": {"ü": {}, "ö": {}}},), ({"z": {"y": {}, "x": {}}, "a": {}},),
        ({"1": {"2": {"3": {}, "4": {}}, "5": {}}},),
        ({"a b": {"c d": {}}},), ({"a": {"b": {}, "c": {"d": {}}}, "e": {}},),
        ({"only": {"one": {"way": {"down": {}}}}},),
    ],
)  # fmt: skip
def leaf_paths(tree: dict[str, Any]) -> list[str]:
    """List the paths to all leaves of a tree, names joined by '/', in the order of the tree.

    The tree is a dictionary from a name to the tree below it; a leaf has an empty dictionary below it.

    >>> leaf_paths({"src": {"main.py": {}, "lib": {"io.py": {}}}, "readme": {}})
    ['src/main.py', 'src/lib/io.py', 'readme']
    """
    paths: list[str] = []
    for name, below in tree.items():
        if below:
            paths.extend(f"{name}/{path}" for path in leaf_paths(below))
        else:
            paths.append(name)
    return paths


@topic.task(
    base=[("pic{1,2}.png",), ("plain",), ("{a,b}{c,d}",), ("",)],
    plus=[
        ("{a}",), ("{,x}",), ("a{}b",), ("x{a,b{c,d}}y",), ("{{a,b},c}",), ("{a,a}",), ("1{2,3}4{5,6}7",), ("{é,ü}!",),
        ("no,braces,here",), ("{a,b}",), ("{a,{b,{c,d}}}",), ("pre{x}post{y,z}",), ("a,{b,c}",),
    ],
)  # fmt: skip
def expand_braces(pattern: str) -> list[str]:
    """Expand a pattern with alternatives in braces, such as 'pic{1,2}.png', into all the strings it stands for.

    Alternatives are separated by commas and may hold braces themselves; a comma outside braces is an ordinary
    character. The strings come in the order of the alternatives, the leftmost braces varying slowest; equal strings
    are all kept. Braces are always balanced.

    >>> expand_braces("pic{1,2}.png")
    ['pic1.png', 'pic2.png']
    >>> expand_braces("{a,b}{c,d}")
    ['ac', 'ad', 'bc', 'bd']
    >>> expand_braces("x{a,b{c,d}}y")
    ['xay', 'xbcy', 'xbdy']
    """
    opening = pattern.find("{")
    if opening == -1:
        return [pattern]
    depth = 0
    begin = opening + 1
    alternatives: list[str] = []
    position = opening
    for position in range(opening, len(pattern)):
        character = pattern[position]
        if character == "{":
            depth += 1
        elif character == "," and depth == 1:
            alternatives.append(pattern[begin:position])
            begin = position + 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                alternatives.append(pattern[begin:position])
                break
    endings = expand_braces(pattern[position + 1 :])
    choices = [choice for alternative in alternatives for choice in expand_braces(alternative)]
    return [pattern[:opening] + choice + ending for choice in choices for ending in endings]


@topic.task(
    base=[(1,), (2,), (3,), (0,)],
    plus=[*((bits,) for bits in range(4, 12)), (-1,), (-5,)],
)
def gray_codes(bits: int) -> list[str]:
    """List the reflected Gray code of the given number of bits, from all zeros: neighbours differ in one bit.

    The list for n bits is the list for n - 1 bits with '0' in front of each, then the same list backwards with '1'
    in front. Without any bit there is one code, the empty string.

    >>> gray_codes(2)
    ['00', '01', '11', '10']
    >>> gray_codes(0)
    ['']
    """
    if bits <= 0:
        return [""]
    shorter = gray_codes(bits - 1)
    return ["0" + code for code in shorter] + ["1" + code for code in reversed(shorter)]


@topic.task(
    base=[(4, 4), (5, 2), (0, 3), (3, 0)],
    plus=[
        (1, 1),
        (2, 1),
        (6, 3),
        (7, 7),
        (10, 10),
        (10, 4),
        (3, 10),
        (15, 5),
        (20, 20),
        (12, 1),
        (0, 0),
        (9, 8),
        (2, 2),
    ],
)
def count_partitions(total: int, largest: int) -> int:
    """Count the ways to write a total as a sum of positive whole numbers that are at most `largest`.

    The order of the numbers does not matter. Zero can be written in one way, as the empty sum.

    >>> count_partitions(4, 4)
    5
    >>> count_partitions(5, 2)
    3
    """
    known: dict[tuple[int, int], int] = {}

    def count(rest: int, limit: int) -> int:
        if rest == 0:
            return 1
        if rest < 0 or limit == 0:
            return 0
        if (rest, limit) not in known:
            # either the number `limit` is used once more, or never again
            known[rest, limit] = count(rest - limit, limit) + count(rest, limit - 1)
        return known[rest, limit]

    return count(total, largest)
