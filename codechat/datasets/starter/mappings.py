"""Tasks on dictionaries."""

from typing import Any

from codechat.datasets.starter.topic import Topic

topic = Topic()


@topic.task(
    base=[(["red fox", "red hen"],), (["One one ONE"],), ([],), (["", "a"],)],
    plus=[
        (["a b", "b c", "c a"],), (["a a", "a"],), (["x"] * 4,), (["Ünder über", "über"],), (["  "],), (["tab\ttab"],),
        (["A", "b", "a B"],), (["end.", "end"],), (["z y x", "x y z", "y"],), (["new\nline", "line"],), (["", "", ""],),
    ],
)  # fmt: skip
def word_index(pages: list[str]) -> dict[str, list[int]]:
    """Build the index of a book: for each word, in lower case, the numbers of the pages that it is on.

    Pages are numbered from 1. The page numbers of a word rise, and none is there twice. Words are separated by
    white space.

    >>> word_index(["red fox", "red hen"])
    {'red': [1, 2], 'fox': [1], 'hen': [2]}
    >>> word_index(["One one ONE"])
    {'one': [1]}
    """
    index: dict[str, list[int]] = {}
    for number, page in enumerate(pages, start=1):
        for word in page.lower().split():
            numbers = index.setdefault(word, [])
            if number not in numbers:
                numbers.append(number)
    return index


@topic.task(
    base=[({"nut": 3, "bolt": 1}, {"nut": -3, "gear": 2}), ({}, {"a": 1}), ({"a": 1}, {}), ({}, {})],
    plus=[
        ({"a": 1}, {"a": 1}), ({"a": 1}, {"a": -1}), ({"a": 1}, {"a": -2}), ({"a": 0}, {}), ({}, {"a": 0}),
        ({"a": -1}, {"a": 2}), ({"a": 5, "b": 2, "c": 3}, {"b": -1, "c": -3, "d": 7}), ({"é": 10**12}, {"é": 1}),
        ({"": 1}, {"": 1}), ({"a": -3}, {"b": 1}), ({"x": 2, "y": 2}, {"x": -1, "y": -2}),
    ],
)  # fmt: skip
def update_stock(stock: dict[str, int], changes: dict[str, int]) -> dict[str, int]:
    """Apply changes to a stock of parts and return the new stock, without the parts of which none are left.

    A part missing from one of the two counts as 0 there. A part whose count is not positive is left out. The
    arguments are not changed.

    >>> update_stock({"nut": 3, "bolt": 1}, {"nut": -3, "gear": 2})
    {'bolt': 1, 'gear': 2}
    """
    updated = dict(stock)
    for part, change in changes.items():
        updated[part] = updated.get(part, 0) + change
    return {part: count for part, count in updated.items() if count > 0}


@topic.task(
    base=[
        ({"db": {"port": 5432}}, "db.port", 0),
        ({"db": {"port": 5432}}, "db.host", "none"),
        ({"hosts": ["a", "b"]}, "hosts.1", None),
    ],
    plus=[
        ({}, "a", 1), ({"a": 1}, "a", 2), ({"a": 1}, "a.b", 2), ({"a": None}, "a", 2),
        ({"a": {"b": {"c": [1, 2]}}}, "a.b", 0),
        ({"a": [10, 20]}, "a.2", -1), ({"a": [10, 20]}, "a.0", -1), ({"a": [10, 20]}, "a.x", -1), ({"a": []}, "a.0", 5),
        ({"a": [{"b": 7}]}, "a.0.b", 5), ({"a": "text"}, "a.0", 5), ({"1": "one"}, "1", 5), ({"a": {"": 3}}, "a.", 5),
        ({"a": [1]}, "a.-1", 9), ({"a": {"0": "zero"}}, "a.0", 9), ({"é": {"ü": False}}, "é.ü", True),
    ],
)  # fmt: skip
def look_up(settings: dict[str, Any], path: str, default: Any) -> Any:
    """Find a value in nested settings by a path of names with dots between them.

    In a dictionary a name is a key; in a list it is a position written in digits, counted from 0. Where a step
    leads nowhere, the default is returned.

    >>> look_up({"db": {"port": 5432}}, "db.port", 0)
    5432
    >>> look_up({"hosts": ["a", "b"]}, "hosts.1", None)
    'b'
    >>> look_up({"db": {"port": 5432}}, "db.host", "none")
    'none'
    """
    here: Any = settings
    for name in path.split("."):
        if isinstance(here, dict) and name in here:
            here = here[name]
        elif isinstance(here, list) and name.isdigit() and int(name) < len(here):
            here = here[int(name)]
        else:
            return default
    return here


@topic.task(
    base=[(["pear", "Plum", "apple"],), ([],), (["b", "B", "a"],), (["kiwi"],)],
    plus=[
        (["", "x"],), (["", ""],), (["élan", "Éclair", "echo"],), (["1st", "2nd", "1up"],), (["dup", "dup"],),
        (["Zoo", "apple", "zebra", "Ape"],), (["a"] * 3,), (["_x", "-y"],), (["abc", "ab", "a"],), (["B", "b"],),
        (["ba", "Bb", "bc"],),
    ],
)  # fmt: skip
def group_by_initial(words: list[str]) -> dict[str, list[str]]:
    """Group words by their first letter in upper case.

    Within a group words are sorted as Python sorts strings, and none is there twice. Empty words are ignored.

    >>> group_by_initial(["pear", "Plum", "apple"])
    {'P': ['Plum', 'pear'], 'A': ['apple']}
    >>> group_by_initial(["", "x"])
    {'X': ['x']}
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        if word == "":
            continue
        initial = word[0].upper()
        if initial not in groups:
            groups[initial] = []
        groups[initial].append(word)
    return groups


@topic.task(
    base=[(["ann", "bob", "ann"],), (["bob", "ann"],), ([],), (["", "cy", ""],)],
    plus=[
        ([""],), (["", ""],), (["x"],), (["b", "a", "b", "a", "c"],), (["c", "b", "a"],), (["  ", "z"],),
        (["Ann", "ann", "ann"],),
        (["a "] * 2 + ["a"],), (["é", "e", "é"],), (["d"] * 5 + ["e"] * 6,), (["b", "b", "a"],), ([" b", "b", "a"],),
    ],
)  # fmt: skip
def election_winner(ballots: list[str]) -> str:
    """Return the name on most ballots; among equals, the one that comes first in the alphabet.

    White space around a name does not count, and ballots without a name are ignored. Without any valid ballot the
    result is an empty string.

    >>> election_winner(["ann", "bob", "ann"])
    'ann'
    >>> election_winner(["bob", "ann"])
    'ann'
    """
    votes: dict[str, int] = {}
    for ballot in ballots:
        name = ballot.strip()
        if name:
            votes[name] = votes.get(name, 0) + 1
    winner = ""
    for name in sorted(votes):
        if not winner or votes[name] > votes[winner]:
            winner = name
    return winner


@topic.task(
    base=[([["ann", "bob", 10], ["bob", "cy", 4]],), ([["a", "b", 5], ["b", "a", 5]],), ([],), ([["a", "a", 3]],)],
    plus=[
        ([["a", "b", 0]],), ([["a", "b", 1], ["a", "b", 2]],), ([["a", "b", -4]],), ([["é", "ü", 10**15]],),
        ([["a", "b", 1], ["b", "c", 1], ["c", "a", 1]],), ([["a", "b", 2], ["c", "b", 3], ["b", "d", 5]],),
        ([["", "x", 1]],), ([["a", "b", 7], ["b", "a", 3]],), ([["z", "y", 1], ["x", "y", 1]],),
        ([["a", "b", 1], ["c", "d", 1], ["b", "a", 1]],),
    ],
)  # fmt: skip
def settle_balances(transfers: list[list[Any]]) -> dict[str, int]:
    """Return everybody's balance after a list of transfers, each [payer, receiver, amount].

    All start with 0. People whose balance is 0 at the end are left out.

    >>> settle_balances([["ann", "bob", 10], ["bob", "cy", 4]])
    {'ann': -10, 'bob': 6, 'cy': 4}
    >>> settle_balances([["a", "b", 5], ["b", "a", 5]])
    {}
    """
    balances: dict[str, int] = {}
    for payer, receiver, amount in transfers:
        balances[payer] = balances.get(payer, 0) - amount
        balances[receiver] = balances.get(receiver, 0) + amount
    for name in list(balances):
        if balances[name] == 0:
            del balances[name]
    return balances
