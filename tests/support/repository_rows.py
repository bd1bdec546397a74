"""A small repository made up for tests, and tasks on it in SR-Eval's and DevEval's form: published ones are not here."""

import json
from pathlib import Path
from typing import Any

PROJECT = "Text/shop"
FILES = {
    "shop/__init__.py": "",
    "shop/basket.py": '''"""A basket."""

import functools

RATE = 2


def loud(function):
    @functools.wraps(function)
    def call(*given):
        return function(*given)

    call.loud = True
    return call


class Basket:
    def __init__(self, *prices):
        self.prices = prices

    @loud
    def total(self, rate=RATE):
        """The sum."""
        return rate * sum(self.prices)

    def first(self):
        return self.prices[0]
''',
    "tests/test_basket.py": """import unittest

from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def setUp(self):
        self.basket = Basket(1, -2)

    def test_total(self):
        self.assertEqual(self.basket.total(), -2)

    # the end of the class


def test_first():
    assert Basket(3).first() == 3
""",
}
TOTAL = {
    "hash_id": "shop.basket.Basket.total",
    "total_turn": 3,
    "turn_datas": [
        {
            "turn_num": 1,
            "instruction": "Write total(self, rate), the sum times the rate.",
            "solution": "@loud\ndef total(self, rate=RATE):\n    return rate * sum(self.prices)",
            "test": "def test_total_turn1(self):\n    self.assertEqual(self.basket.total(), -2)",
        },
        {
            "turn_num": 2,
            "instruction": "Leave negative prices out.",
            "solution": "def total(self, rate=RATE):\n    return rate * sum(each for each in self.prices if each >= 0)",
            "test": "def test_total_turn2(self):\n    self.assertEqual(self.basket.total(), 2)\n\n"
            "def test_loud_turn2(self):\n    self.assertTrue(self.basket.total.loud)",
        },
        {
            "turn_num": 3,
            "instruction": "Give a float.",
            "solution": "    def total(self, rate=RATE):\n"
            "        return float(rate * sum(each for each in self.prices if each >= 0))",
            "test": "def test_total_turn3(self):\n    self.assertIsInstance(self.basket.total(), float)",
        },
    ],
}
PLACE = {
    "hash_id": "shop.basket.Basket.total",
    "namespace": "shop.basket.Basket.total",
    "project_path": PROJECT,
    "completion_path": f"{PROJECT}/shop/basket.py",
    "signature_position": [22, 22],
    "body_position": [24, 24],
    "indent": 8,
    "tests": ["tests/test_basket.py::BasketTest::test_total"],
}


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def write_lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_shop(root: Path) -> list[str]:
    """The repository, its tasks and their places below a folder; the words that choose them."""
    write_files(root / "repos" / PROJECT, FILES)
    write_lines(root / "tasks.jsonl", TOTAL)
    write_lines(root / "places.jsonl", PLACE)
    return [
        "dataset=sreval_python_repository",
        f"dataset.path={root}/tasks.jsonl",
        f"dataset.places={root}/places.jsonl",
        f"dataset.repos={root}/repos",
    ]
