"""A Python package that adds up prices, and loses a cent."""

from codechat.studies.cab.starter.issue import MAINTAINER, USER, StarterIssue
from codechat.studies.cab.starter.repository import Commit

README = """\
# till

Adds up the prices of a receipt.

    from till.receipt import total
    total([1.10, 2.20])
"""
RECEIPT = '''\
"""Receipts."""


def total(prices):
    """The sum of the prices, to the cent."""
    return round(sum(prices), 2)


def lines(names, prices):
    """The lines of a receipt, one a purchase, and the total."""
    rows = [f"{name:<20}{price:>8}" for name, price in zip(names, prices)]
    return rows + [f"{'total':<20}{total(prices):>8}"]
'''
TESTS = """\
from till.receipt import total


def test_total():
    assert total([1.10, 2.20]) == 3.30
"""
MENDED = RECEIPT.replace(
    "    return round(sum(prices), 2)\n",
    "    exact = sum((Decimal(str(price)) for price in prices), Decimal(0))\n"
    '    return exact.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)\n',
).replace('"""Receipts."""\n', '"""Receipts."""\n\nfrom decimal import ROUND_HALF_UP, Decimal\n')
TESTS_MENDED = """\
from decimal import Decimal

from till.receipt import total


def test_total():
    assert total([1.10, 2.20]) == Decimal("3.30")
    assert total([2.675]) == Decimal("2.68")
"""

ISSUE = StarterIssue(
    name="till",
    language="python",
    commits=(
        Commit("Add up prices", {"README.md": README, "till/__init__.py": "", "till/receipt.py": RECEIPT}),
        Commit("Test the total", {"tests/test_receipt.py": TESTS}),
        Commit("Round half a cent up", {"till/receipt.py": MENDED, "tests/test_receipt.py": TESTS_MENDED}),
    ),
    asked_at=1,
    title="The total is one cent too low",
    body="I sell a thing for 2.675 a piece. `total([2.675])` gives 2.67, and our accountant wants 2.68. Is that a bug, "
    "and what can I do about it today?",
    conditions=(
        "Explains that binary floats cannot hold the price exactly",
        "Names the function total in receipt.py as the place that rounds",
        "Shows how to round half a cent up with Decimal",
    ),
    thread=(
        (
            MAINTAINER,
            "It is the place that rounds: the function `total` in `till/receipt.py` calls `round` on a sum of floats. "
            "Binary floats cannot hold the price 2.675 exactly; what is stored is a little less, so it goes down.",
        ),
        (USER, "I see. And how do I get 2.68 without waiting for a release?"),
        (
            MAINTAINER,
            "Show the price as a text to `Decimal`, and round half a cent up yourself:\n\n"
            "```python\nfrom decimal import ROUND_HALF_UP, Decimal\n\n"
            'sum([Decimal("2.675")]).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)  # 2.68\n```\n\n'
            "The next release does the same within `total`.",
        ),
        (USER, "That works, thanks."),
    ),
)
