"""Rows in SR-Eval's format, for tests: published ones are not committed."""

from typing import Any


def program(body: str) -> str:
    return f"def task_func(values):\n    {body}\n"


def unit_test(*lines: str) -> str:
    """A test case as SR-Eval writes it."""
    body = "\n".join(f"        {line}" for line in lines)
    return f"import unittest\n\n\nclass TestCases(unittest.TestCase):\n    def test_it(self):\n{body}\n"


def growing(name: str, turns: int = 3) -> dict[str, Any]:
    """A task that sums, then drops negative numbers, then doubles, …: a later test contradicts an earlier one."""
    steps = [
        ("Write task_func(values), which adds numbers up.", "return sum(values)", "self.assertEqual(task_func([1, -2]), -1)"),
        ("Leave negative numbers out. ", "return sum(v for v in values if v >= 0)", "self.assertEqual(task_func([1, -2]), 1)"),
        ("An empty list gives None.", "return sum(v for v in values if v >= 0) if values else None",
         "self.assertIsNone(task_func([]))"),
        ("Return a float.", "return float(sum(v for v in values if v >= 0)) if values else None",
         "self.assertIsInstance(task_func([2]), float)"),
        ("Refuse texts with a ValueError.",
         "if isinstance(values, str):\n        raise ValueError(values)\n"
         "    return float(sum(v for v in values if v >= 0)) if values else None",
         "self.assertRaises(ValueError, task_func, 'ab')"),
    ]  # fmt: skip
    return {
        "hash_id": name, "mt_id": 1, "total_turn": turns, "metadata": {"source": "mine"},
        "turn_datas": [
            {"turn_num": number, "instruction": text, "solution": program(body), "test": unit_test(test)}
            for number, (text, body, test) in enumerate(steps[:turns], 1)
        ],
    }  # fmt: skip


GROWING = growing("a" * 24)


def growing_java(name: str, turns: int = 3) -> dict[str, Any]:
    """A task that greets, then greets by name, then refuses an empty name."""
    steps = [
        ("Write a class Greeter with greet(), starting with:\n<code>", 'String greet() { return "Hello"; }',
         'assertEquals("Hello", new Greeter().greet());'),
        ("Greet by name.", 'String greet(String name) { return "Hello " + name; }',
         'assertEquals("Hello Ada", new Greeter().greet("Ada"));'),
        ("Refuse an empty name.",
         'String greet(String name) {\n        if (name.isEmpty()) throw new IllegalArgumentException();\n'
         '        return "Hello " + name;\n    }',
         'assertThrows(IllegalArgumentException.class, () -> new Greeter().greet(""));'),
    ]  # fmt: skip
    return {
        "hash_id": name, "mt_id": 1, "total_turn": turns, "metadata": {"source": "mine"},
        "turn_datas": [
            {"turn_num": number, "instruction": text, "solution": f"class Greeter {{\n    {body}\n}}\n",
             "test": "import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.Test;\n\n"
                     f"class GreeterTest {{\n    @Test void works() {{ {test} }}\n}}\n"}
            for number, (text, body, test) in enumerate(steps[:turns], 1)
        ],
    }  # fmt: skip


GROWING_JAVA = growing_java("c" * 24)
