"""The changes from one text's lines to another's, in time that texts made to be slow cannot stretch.

Lines that occur once in both texts hold the two together (a patience diff); between them, small gaps are compared line
by line. `difflib` takes a minute for two texts of 2,000 equal lines in another order.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

MOST_STEPS = 400_000
"""Pairs of lines that are compared; beyond, the lines of a gap count as replaced."""

Change = tuple[str, int, int, int, int]
"""`equal`, `replace`, `delete` or `insert`; from and to in the old lines, from and to in the new."""
Pair = tuple[int, int]


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """The changes in order; they cover all lines of both."""
    found: list[Change] = []
    i = j = 0
    for a, b in [*_pairs(old, new), (len(old), len(new))]:
        if i < a or j < b:
            found.append(("replace" if i < a and j < b else "delete" if i < a else "insert", i, a, j, b))
        if a < len(old) and b < len(new):
            if found and found[-1][0] == "equal" and (found[-1][2], found[-1][4]) == (a, b):
                found[-1] = ("equal", found[-1][1], a + 1, found[-1][3], b + 1)
            else:
                found.append(("equal", a, a + 1, b, b + 1))
        i, j = a + 1, b + 1
    return found


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[Pair]:
    """The lines that are the same in both, in order."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        yield start, start
        start += 1
    tail = 0
    while tail < most - start and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    ends = (len(old) - tail, len(new) - tail)
    steps = MOST_STEPS
    i = j = start
    for a, b in [*_anchors(old[start : ends[0]], new[start : ends[1]], start), ends]:
        size = (a - i) * (b - j)
        if 0 < size <= steps:
            steps -= size
            yield from ((i + x, j + y) for x, y in _longest(old[i:a], new[j:b]))
        if a < ends[0]:
            yield a, b
        i, j = a + 1, b + 1
    yield from zip(range(ends[0], len(old)), range(ends[1], len(new)), strict=True)


def _anchors(old: Sequence[str], new: Sequence[str], offset: int) -> list[Pair]:
    """Lines that occur once in both texts: the most of them that keep their order."""
    once = {line for line, count in Counter(old).items() if count == 1}
    once &= {line for line, count in Counter(new).items() if count == 1}
    places = {line: place for place, line in enumerate(new) if line in once}
    pairs = [(place, places[line]) for place, line in enumerate(old) if line in once]
    ends: list[int] = []  # the least end of a chain by its length
    last: list[int] = []  # that chain's last pair
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [place], [number]
    chain: list[Pair] = []
    number = last[-1] if last else -1
    while number >= 0:
        chain.append((pairs[number][0] + offset, pairs[number][1] + offset))
        number = before[number]
    return chain[::-1]


def _longest(old: Sequence[str], new: Sequence[str]) -> Iterator[Pair]:
    """A longest common subsequence, by the table of the lengths that remain."""
    rows = [[0] * (len(new) + 1)]
    for line in reversed(old):
        row, below = [0] * (len(new) + 1), rows[-1]
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if line == new[j] else max(below[j], row[j + 1])
        rows.append(row)
    i = j = 0
    while i < len(old) and j < len(new):
        below, row = rows[len(old) - i - 1], rows[len(old) - i]
        if old[i] == new[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif below[j] >= row[j + 1]:
            i += 1
        else:
            j += 1
