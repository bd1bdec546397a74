"""Tasks on lists."""

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[([1, 2, 3, 4, 5, 6], 3), ([1, 2, 3, 4, 5], 2), ([], 4), ([1, 2, 3], 1)],
    plus=[
        ([1], 3), ([1, 2], 3), ([1, 2, 3], 3), ([1, 2, 3, 4], 3), ([7, 7, 8], 2), ([-1, 0, 1, -2], 2), ([0] * 5, 2),
        (list(range(20)), 6), (list(range(10)), 10), (list(range(10)), 11), ([5, 4, 3, 2, 1], 4), ([9, 8], 2),
    ],
)  # fmt: skip
def rotate_blocks(items: list[int], size: int) -> list[int]:
    """Cut a list into blocks of `size` items and move the first item of each block to the block's end.

    The last block may be shorter; it is rotated too. The given list is not changed; `size` is at least 1.

    >>> rotate_blocks([1, 2, 3, 4, 5, 6], 3)
    [2, 3, 1, 5, 6, 4]
    >>> rotate_blocks([1, 2, 3, 4, 5], 2)
    [2, 1, 4, 3, 5]
    """
    rotated: list[int] = []
    for start in range(0, len(items), size):
        block = items[start : start + size]
        rotated.extend(block[1:])
        rotated.append(block[0])
    return rotated


@topic.task(
    base=[([4, 4, 4, 2, 2, 9],), ([1, 2, 3],), ([],), ([5, 5],)],
    plus=[
        ([0],), ([0, 0, 1],), ([1, 0, 0],), ([1, 0, 1],), ([-1, -1, 1, 1],), ([7] * 30,), ([2, 2, 3, 3, 2, 2],),
        ([True, 1, 0],), ([1, 2, 2, 2, 1],), ([10**20, 10**20],), ([3, 3, 3, 4],), ([6, 7, 7],),
    ],
)  # fmt: skip
def run_lengths(values: list[int]) -> list[int]:
    """Return the length of each run of equal neighbours, from left to right.

    >>> run_lengths([4, 4, 4, 2, 2, 9])
    [3, 2, 1]
    >>> run_lengths([])
    []
    """
    lengths: list[int] = []
    for position, value in enumerate(values):
        if position > 0 and value == values[position - 1]:
            lengths[-1] += 1
        else:
            lengths.append(1)
    return lengths


@topic.task(
    base=[([[9, 11], [10, 12], [14, 15]],), ([[5, 6], [1, 2]],), ([],), ([[1, 5], [2, 3]],)],
    plus=[
        ([[1, 2], [2, 3]],), ([[1, 2], [3, 4]],), ([[3, 4], [1, 2], [2, 3]],), ([[1, 10], [2, 3], [4, 5]],),
        ([[0, 0]],), ([[0, 0], [0, 0]],), ([[-5, -3], [-4, 0], [1, 1]],), ([[1, 4], [0, 2]],), ([[1, 4], [0, 5]],),
        ([[2, 3], [4, 5], [6, 7], [1, 10]],), ([[5, 8], [5, 6]],), ([[1, 3], [2, 6], [8, 10], [9, 18]],),
        ([[1, 2], [1, 2], [1, 3]],), ([[10, 20], [20, 30], [31, 40]],), ([[1, 2], [5, 9], [6, 7]],),
    ],
)  # fmt: skip
def merge_bookings(bookings: list[list[int]]) -> list[list[int]]:
    """Merge room bookings, each [start, end], that overlap or touch, and return them sorted by start.

    Two bookings touch when one ends at the moment the other starts. The given list is not changed.

    >>> merge_bookings([[9, 11], [10, 12], [14, 15]])
    [[9, 12], [14, 15]]
    >>> merge_bookings([[3, 4], [1, 2], [2, 3]])
    [[1, 4]]
    """
    merged: list[list[int]] = []
    for start, end in sorted(bookings):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@topic.task(
    base=[([50, 80, 80, 20],), ([1, 2, 3],), ([],), ([7, 7, 7],)],
    plus=[
        ([0],), ([-1, -2, -3],), ([3, 2, 1],), ([10, 10, 9, 9, 8],), ([5, 1, 5, 1, 3],), ([100, -100, 0],),
        ([2, 2, 1, 3, 3],), ([10**9, 10**9 - 1],), (list(range(15)),), ([4] * 12,), ([1, 3, 2, 3, 1],),
    ],
)  # fmt: skip
def podium_ranks(scores: list[int]) -> list[int]:
    """Return each score's place, in the order given: 1 for the highest, equal scores sharing a place.

    No place is left out after a tie: the next lower score takes the next place.

    >>> podium_ranks([50, 80, 80, 20])
    [2, 1, 1, 3]
    >>> podium_ranks([7, 7, 7])
    [1, 1, 1]
    """
    places = {score: place for place, score in enumerate(sorted(set(scores), reverse=True), start=1)}
    return [places[score] for score in scores]


@topic.task(
    base=[([1, 3, 2, 5, 4],), ([1, 2, 2, 1],), ([],), ([4, 1, 4],)],
    plus=[
        ([1],), ([1, 2],), ([2, 1],), ([1, 2, 3],), ([3, 2, 1],), ([1, 2, 1],), ([2, 2, 2],), ([0, 1, 1, 1, 0],),
        ([0, 1, 1, 2, 0],), ([0, 2, 2, 3, 3, 1],), ([-3, -1, -2],), ([5, 1, 2, 1, 5],), ([1, 2, 2],), ([2, 2, 1],),
        ([0, 9, 0, 9, 0, 9, 0],), ([1, 3, 3, 2, 4, 4, 5, 1],), ([1, 5, 5, 1, 6, 1],),
    ],
)  # fmt: skip
def find_summits(heights: list[int]) -> list[int]:
    """Return the positions of the summits of a hike, given the height of the ground at each point.

    A summit is a stretch of equal heights with a lower neighbour on both sides; its position is that of its first
    point. The ends of the hike are never part of a summit.

    >>> find_summits([1, 3, 2, 5, 4])
    [1, 3]
    >>> find_summits([1, 2, 2, 1])
    [1]
    >>> find_summits([4, 1, 4])
    []
    """
    summits = []
    rising_at = None
    for position in range(1, len(heights)):
        if heights[position] > heights[position - 1]:
            rising_at = position
        elif heights[position] < heights[position - 1]:
            if rising_at is not None:
                summits.append(rising_at)
            rising_at = None
    return summits


@topic.task(
    base=[(["A", "K", "Q", "J", "10"], 2), (["A"], 3), ([], 2), (["x", "y", "z"], 1)],
    plus=[
        (["a", "b"], 2), (["a", "b", "c"], 2), (["a", "b", "c", "d"], 3), ([], 1), (["a", "a", "a"], 3),
        ([str(n) for n in range(17)], 4), ([str(n) for n in range(12)], 4), (["", "b"], 5), (["é", "ü", "ß"], 2),
        (["1", "2", "3", "4", "5", "6"], 6), (["1", "2", "3", "4", "5", "6"], 5),
    ],
)  # fmt: skip
def deal_cards(deck: list[str], players: int) -> list[list[str]]:
    """Deal a deck in turn to `players` players and return their hands; the last entry holds the cards left over.

    Every player gets the same number of cards, so that fewer cards than players are left over. `players` is at
    least 1.

    >>> deal_cards(["A", "K", "Q", "J", "10"], 2)
    [['A', 'Q'], ['K', 'J'], ['10']]
    >>> deal_cards(["A"], 3)
    [[], [], [], ['A']]
    """
    rounds = len(deck) // players
    dealt = deck[: rounds * players]
    hands = [dealt[player::players] for player in range(players)]
    hands.append(deck[rounds * players :])
    return hands
