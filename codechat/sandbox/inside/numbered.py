"""The objects of one call that can change, by number, and what a call cannot carry."""

from typing import Any


class NotCarried(Exception):
    """A value that cannot be carried; the text says what it is."""


class Numbered:
    """The mutable objects of one call's arguments, by the order in which they were met.

    `exhausts`: an iterator counts by the items that it yields, and is used up by that. `met` counts how often a value
    refers to each object.
    """

    def __init__(self, exhausts: bool = True) -> None:
        self.objects: list[Any] = []
        self.met: list[int] = []
        self.exhausts = exhausts
        self._places: dict[int, int] = {}

    def add(self, value: Any) -> None:
        """Give an object the next number."""
        self._places[id(value)] = len(self.objects)
        self.objects.append(value)
        self.met.append(1)

    def place(self, value: Any) -> int | None:
        """The number of an object that is met; None if it has none."""
        place = self._places.get(id(value))
        if place is not None:
            self.met[place] += 1
        return place
