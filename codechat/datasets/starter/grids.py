"""Tasks on grids, given as rows of characters or numbers."""

from collections import deque

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), ([[1, 2], [3, 4]],), ([],), ([[5]],)],
    plus=[
        ([[1, 2, 3]],), ([[1], [2], [3]],), ([[1, 2, 3, 4], [5, 6, 7, 8]],), ([[1, 2], [3, 4], [5, 6]],), ([[]],),
        ([[0, 0], [0, 1]],), ([[-1, -2], [-3, -4], [-5, -6], [-7, -8]],),
        ([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]],),
        ([[row * 5 + column for column in range(5)] for row in range(5)],), ([[1, 2, 3], [4, 5, 6]],),
        ([[row * 4 + column for column in range(4)] for row in range(6)],),
    ],
)  # fmt: skip
def walk_inwards(grid: list[list[int]]) -> list[int]:
    """Read a rectangular grid of numbers clockwise along its border from the top left, then the border within, etc.

    >>> walk_inwards([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    [1, 2, 3, 6, 9, 8, 7, 4, 5]
    >>> walk_inwards([])
    []
    """
    visited: list[int] = []
    rest = [list(row) for row in grid]
    while rest and rest[0]:
        visited.extend(rest.pop(0))
        # a quarter turn to the left brings the next side to the top
        rest = [list(column) for column in zip(*rest, strict=True)][::-1]
    return visited


@topic.task(
    base=[(["##.", "...", ".##"],), (["#.#", ".#.", "#.#"],), ([],), (["..."],)],
    plus=[
        (["#"],), (["."],), (["####"],), (["#", "#", "."],), (["###", "#.#", "###"],), (["#.##", "#..#", "##.#"],),
        (["#..#", "....", "#..#"],), ([".#.", "###", ".#."],), (["##..", "##..", "..#.", "...#"],), (["#####"] * 5,),
        (["#.#.#.#"],), (["##.##", "..#..", "##.##"],), ([".#", "#."],),
    ],
)  # fmt: skip
def lake_sizes(rows: list[str]) -> list[int]:
    """Return the sizes of all lakes on a map, smallest first.

    On the map '#' is water and '.' is land; fields of water that share an edge belong to the same lake.

    >>> lake_sizes(["##.", "...", ".##"])
    [2, 2]
    >>> lake_sizes(["#.#", ".#.", "#.#"])
    [1, 1, 1, 1, 1]
    """
    water = {(y, x) for y, row in enumerate(rows) for x, field in enumerate(row) if field == "#"}
    sizes = []
    while water:
        open_fields = [water.pop()]
        size = 0
        while open_fields:
            y, x = open_fields.pop()
            size += 1
            for neighbour in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if neighbour in water:
                    water.remove(neighbour)
                    open_fields.append(neighbour)
        sizes.append(size)
    return sorted(sizes)


@topic.task(
    base=[(["..", ".."],), ([".#", "#."],), (["."],), (["...", "##.", "..."],)],
    plus=[
        (["#"],), (["#.", ".."],), (["..", ".#"],), (["...."],), ([".", ".", "."],), ([".#.", ".#.", "..."],),
        ([".#..."],),
        (["...#.", ".#.#.", ".#...", ".####", "....."],), ([".....", "####.", ".....", ".####", "....."],),
        ([".." * 5] * 6,),
        (["..#", "#.#", "#.."],), ([".#...", ".#.#.", "...#."],), ([".#.", "##.", "..."],), ([".#", ".."],),
        (["...", ".#.", "..."],),
        ([".....", ".###.", ".#.#.", ".###.", "....."],),
    ],
)  # fmt: skip
def fewest_moves(maze: list[str]) -> int:
    """Return the smallest number of moves from the top left to the bottom right field of a maze, or -1 without a way.

    A move goes to a field above, below, left or right. In the maze '.' is free and '#' is wall; the two corners may
    be wall, and then there is no way. The maze has at least one field.

    >>> fewest_moves(["...", "##.", "..."])
    4
    >>> fewest_moves([".#", "#."])
    -1
    """
    height, width = len(maze), len(maze[0])
    if maze[0][0] == "#":
        return -1
    moves = {(0, 0): 0}
    waiting = deque([(0, 0)])
    while waiting:
        y, x = waiting.popleft()
        if (y, x) == (height - 1, width - 1):
            return moves[y, x]
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            row, column = y + down, x + right
            inside = 0 <= row < height and 0 <= column < width
            if inside and maze[row][column] == "." and (row, column) not in moves:
                moves[row, column] = moves[y, x] + 1
                waiting.append((row, column))
    return -1


@topic.task(
    base=[(["...", "***", "..."],), (["**", "**"],), (["*"],), ([],)],
    plus=[
        (["..", ".."],), (["**", "*."],), (["***", "***", "***"],), ([".*.", ".*.", ".*."],), (["****"],),
        ([".*..", "..*.", "***.", "...."],),
        (["*.*", ".*.", "*.*"],), (["*...", "....", "...*"],), (["**..", "**..", "..**", "..**"],), (["*****"] * 4,),
        ([".***", "***."],),
        (["*", "*", "*"],),
    ],
)  # fmt: skip
def next_generation(rows: list[str]) -> list[str]:
    """Return the next generation of Conway's game of life on a board where everything outside is dead.

    In the rows '*' is a living cell and '.' a dead one. A living cell lives on with two or three living neighbours
    of the eight around it; a dead one comes to life with exactly three.

    >>> next_generation(["...", "***", "..."])
    ['.*.', '.*.', '.*.']
    >>> next_generation(["*"])
    ['.']
    """
    living = {(y, x) for y, row in enumerate(rows) for x, cell in enumerate(row) if cell == "*"}
    following = []
    for y, row in enumerate(rows):
        line = ""
        for x in range(len(row)):
            around = [(y + dy, x + dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
            count = sum(1 for place in around if place in living)
            if count == 3 or (count == 2 and (y, x) in living):
                line += "*"
            else:
                line += "."
        following.append(line)
    return following
