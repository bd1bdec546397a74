"""Tasks on numbers."""

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[(39,), (7,), (0,), (999,)],
    plus=[
        (10,), (11,), (25,), (77,), (679,), (6788,), (68889,), (2677889,), (9,), (99,), (100000,), (123456789,),
        (26888999,), (111,), (19,), (-39,), (-5,),
    ],
)  # fmt: skip
def digit_persistence(number: int) -> int:
    """Count how often the digits of a number have to be multiplied with each other until one digit is left.

    The sign of the number does not matter.

    >>> digit_persistence(39)
    3
    >>> digit_persistence(7)
    0
    """
    number = abs(number)
    rounds = 0
    while number >= 10:
        product = 1
        for digit in str(number):
            product *= int(digit)
        number = product
        rounds += 1
    return rounds


@topic.task(
    base=[(11, [1, 2, 5]), (3, [2]), (0, [5]), (6, [1, 3, 4])],
    plus=[
        (1, [2]), (2, [2]), (7, [2, 4]), (8, [2, 4]), (30, [25, 10, 1]), (40, [25, 20, 1]), (99, [50, 20, 5, 2, 1]),
        (10, []), (0, []), (5, [5, 5]), (14, [10, 7, 1]), (27, [4, 9]), (23, [4, 9]), (100, [7, 11, 13]),
        (12, [9, 6, 1]),
    ],
)  # fmt: skip
def fewest_coins(amount: int, coins: list[int]) -> int:
    """Return the smallest number of coins that make up an amount, or -1 where no combination does.

    Any number of coins of each value may be used; all values are positive.

    >>> fewest_coins(11, [1, 2, 5])
    3
    >>> fewest_coins(6, [1, 3, 4])
    2
    >>> fewest_coins(3, [2])
    -1
    """
    # best[n] is the answer for the amount n, found from the answers for smaller amounts
    best: list[int | None] = [0]
    for target in range(1, amount + 1):
        candidates = []
        for coin in coins:
            if coin <= target:
                rest = best[target - coin]
                if rest is not None:
                    candidates.append(rest + 1)
        best.append(min(candidates, default=None))
    answer = best[amount]
    return -1 if answer is None else answer


@topic.task(
    base=[(7, 3), (6, 3), (1, 2), (-7, 3)],
    plus=[
        (0, 5), (7, -3), (-7, -3), (10, 4), (4, 10), (-4, 10), (-1, 2), (-6, 3), (1, 1), (100, 99), (99, 100), (12, 18),
        (18, 12), (10**12 + 1, 10**6), (-9, 6), (5, 5), (0, -5),
        (1, -3), (5, -1), (1, -1),
    ],
)  # fmt: skip
def mixed_fraction(numerator: int, denominator: int) -> str:
    """Write a fraction as a mixed number in lowest terms: the whole part, a space, and the rest, as in '2 1/3'.

    Parts that are zero are left out, but zero itself is '0'. A negative number has one minus sign, in front. The
    denominator is not zero.

    >>> mixed_fraction(7, 3)
    '2 1/3'
    >>> mixed_fraction(-7, 3)
    '-2 1/3'
    >>> mixed_fraction(12, 18)
    '2/3'
    """

    def greatest_divisor(a: int, b: int) -> int:
        return a if b == 0 else greatest_divisor(b, a % b)

    negative = (numerator < 0) != (denominator < 0) and numerator != 0
    numerator, denominator = abs(numerator), abs(denominator)
    divisor = greatest_divisor(numerator, denominator)
    whole, rest = divmod(numerator // divisor, denominator // divisor)
    parts = []
    if whole > 0 or rest == 0:
        parts.append(str(whole))
    if rest > 0:
        parts.append(f"{rest}/{denominator // divisor}")
    sign = "-" if negative else ""
    return sign + " ".join(parts)


@topic.task(
    base=[(5,), (0,), (-1,), (8,)],
    plus=[*((number,) for number in range(-14, 15, 3)), (2,), (-4,), (121,), (-122,), (1000,), (3**10,), (10**15,)],
)
def balanced_ternary(number: int) -> str:
    """Write an integer in balanced ternary: base three with the digits '+' (one), '0' and '-' (minus one).

    The most significant digit comes first, without leading zeros; zero is '0'.

    >>> balanced_ternary(5)
    '+--'
    >>> balanced_ternary(8)
    '+0-'
    >>> balanced_ternary(-1)
    '-'
    """
    if number == 0:
        return "0"
    digits = ""
    while number != 0:
        remainder = number % 3
        if remainder == 2:
            remainder = -1
        digits = "0+-"[remainder] + digits
        number = (number - remainder) // 3
    return digits


@topic.task(
    base=[([1.0, 2.0, 3.0, 100.0], 1), ([5.0], 0), ([4.0, 8.0], 1), ([3.0, 1.0, 2.0], 1)],
    plus=[
        ([], 0), ([], 2), ([1.5], 1), ([1.0, 2.0, 3.0], 0), ([-1.0, 1.0], 0), ([-10.0, 0.5, 0.25, 10.0], 1),
        ([1e9, 1.0, 2.0, -1e9, 3.0], 1), ([0.1, 0.2, 0.3, 0.4, 0.5], 2), ([2.0, 2.0, 2.0, 2.0], 1),
        ([9.0, 1.0, 8.0, 2.0, 7.0, 3.0], 2), ([1.0, 2.0, 3.0, 4.0], 2), ([6.0, 2.0, 4.0], 5), ([1, 2, 4], 0),
    ],
    atol=1e-9,
)  # fmt: skip
def trimmed_mean(values: list[float], cut: int) -> float:
    """Return the mean of the values that are left when the `cut` smallest and the `cut` largest are dropped.

    Where nothing is left the result is 0.0.

    >>> trimmed_mean([1.0, 2.0, 3.0, 100.0], 1)
    2.5
    >>> trimmed_mean([4.0, 8.0], 1)
    0.0
    """
    kept = sorted(values)[cut : max(cut, len(values) - cut)]
    if not kept:
        return 0.0
    return sum(kept) / len(kept)


@topic.task(
    base=[(3, 4), (1, 5), (5, 6), (2, 3)],
    plus=[
        (1, 1), (2, 2), (2, 4), (4, 5), (7, 15), (6, 7), (3, 7), (5, 8), (9, 10), (1, 100), (99, 100), (4, 6), (8, 11),
        (0, 3),
    ],
)  # fmt: skip
def unit_fractions(numerator: int, denominator: int) -> list[int]:
    """Write a fraction between 0 and 1 as a sum of different unit fractions and return their denominators.

    Each step takes the largest unit fraction that is not greater than what is left. Zero gives an empty list.

    >>> unit_fractions(3, 4)
    [2, 4]
    >>> unit_fractions(5, 6)
    [2, 3]
    """
    denominators = []
    while numerator > 0:
        # the smallest whole number that is not below denominator / numerator
        unit = -(-denominator // numerator)
        denominators.append(unit)
        numerator = numerator * unit - denominator
        denominator *= unit
    return denominators
