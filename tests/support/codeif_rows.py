"""Task files in CodeIF-Bench's two formats, written for the tests."""

import json
from pathlib import Path
from typing import Any

FUNCTION: dict[str, Any] = {
    "task_id": 7,
    "prompt": "Write a python function called 'double' that doubles a number.",
    "test": ["assert double(2) == 4", "assert double(0) == 0"],
    "code": "def double(x): \r\n    return 2 * x",
    "requirements": {
        "Functionality Extension": {
            "requirement": "With times=n it multiplies by n.",
            "unit_test": "assert double(2, times=3) == 6",
        },
        "Exception Handling": {
            "requirement": "Raise TypeError for a text.",
            "unit_test": ["try:\n    double('a')\n    assert False\nexcept TypeError:\n    pass"],
        },
        "Edge Case Handling": {"requirement": "None gives 0.", "unit_test": "assert double(None) == 0"},
        "Code Standard": {"requirement": "Follow PEP 8.", "unit_test": "assert True"},
    },
    "multi-turn": ["Exception Handling", "Code Standard"],
}

REPOSITORY: dict[str, Any] = {
    "namespace": "shop.basket.Basket.total",
    "type": "method",
    "project_path": "Shopping/shop",
    "completion_path": "Shopping/shop/shop/basket.py",
    "signature_position": [5, 5],
    "body_position": [6, 6],
    "dependency": {"intra_class": ["shop.basket.Basket.items"], "intra_file": [], "cross_file": []},
    "requirement": {"Functionality": "The sum of the prices.", "Arguments": ":return: int."},
    "tests": ["tests/test_basket.py::test_total"],
    "indent": 8,
    "code": "    def total(self):\n        return sum(self.items)\n",
    "prompt": "Write the method 'total'.",
    "context": "class Basket: ...",
    "requirements": {
        "Context Usage Correctness Verification": {
            "requirement": "Use the items of the basket.",
            "unit_test": ["def test_items(): ..."],
            "test": "tests/test_basket.py::test_items",
        }
    },
    "multi-turn": ["Context Usage Correctness Verification"],
}


def write_rows(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path
