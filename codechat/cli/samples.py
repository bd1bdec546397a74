"""`samples=k`: the same cell with k seeds, so that every task has k samples."""

from collections.abc import Iterator, Sequence

from codechat.engine.settings.compose import key_of
from codechat.errors import UserError

KEY = "samples"
MEANING = "run so many seeds, from seed on: a cell each, which reports pool"
FIRST = 0  # the seed of a cell whose words name none


def split_samples(words: Sequence[str]) -> tuple[int, list[str]]:
    """The number of seeds that the words ask for, and the other words. Raises `UserError`."""
    own = [word for word in words if key_of(word) == KEY]
    numbers = {word.partition("=")[2] for word in own}
    if not own:
        return 1, list(words)
    if len(numbers) > 1 or not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise UserError(f"cannot read {' '.join(own)}", f"{KEY} is one whole number from 1 on: {KEY}=3")
    return int(numbers.pop()), [word for word in words if word not in own]


def with_seeds(combination: tuple[str, ...], samples: int) -> Iterator[tuple[str, ...]]:
    """The combination with its seed and with each of the `samples` - 1 that follow it."""
    seed = next((word.partition("=")[2] for word in reversed(combination) if key_of(word) == "seed"), str(FIRST))
    if samples == 1 or not seed.lstrip("-").isdecimal():  # what is no number is refused when the words are composed
        yield combination
        return
    others = tuple(word for word in combination if key_of(word) != "seed")
    yield from ((*others, f"seed={int(seed) + number}") for number in range(samples))
