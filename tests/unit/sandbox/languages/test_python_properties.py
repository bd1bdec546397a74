"""What holds of the extraction of Python for every text."""

import ast
import time
import warnings
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.domain import Target
from codechat.sandbox.languages import extract, without_thinking
from codechat.sandbox.languages.python.extraction import Strength, strength

FRAGMENTS = st.sampled_from(
    [
        *(
            "```",
            "````",
            "~~~",
            "```python\n",
            "```py title='a'\n",
            "\n```\n",
            "\n~~~\n",
            "   ```python\n",
            "- ```\n",
            "return x```\n",
        ),
        *("<think>", "</think>", "\n<think>\n", "\n</think>\n", "`<think>`", "'</think>'"),
        *(
            "def f(x):\n    return x\n",
            "def f(x):\n",
            "    return g(x)\n",
            "def g(x):\n    return 1\n",
            "def f(x): ...\n",
        ),
        *(
            "class Solution:\n    def f(self, x):\n        return x\n",
            "f = g\n",
            "from a import f\n",
            "import pytest\n",
        ),
        *(
            "print(f(1))\n",
            "print(1); x = f(2); y = x\n",
            "assert f(1)\n",
            "for x in y: print(x)\n",
            "x = f(1)\n",
            "@g\n",
        ),
        *(
            "if __name__ == '__main__':\n    f(1)\n",
            "def test_f():\n    f(1)\n",
            "test_f()\n",
            "from __future__ import annotations\n",
        ),
        *(
            ">>> f(1)\n",
            "@@ -1 +1 @@\n",
            "Here it is:\n",
            "Note: this\n",
            "# about\n",
            "'''",
            '"""',
            "\\\n",
            "((((",
            "})",
            "'",
            "\t",
            "\r\n",
        ),
        *("\r", "\f", "\0", "\ufeff", "\ud800", "\u2028", "é", "\n", "\n\n", "    ", ";", "[" * 300, "-" * 5000),
    ]
)
REPLIES = st.one_of(
    st.text(),
    st.lists(FRAGMENTS, max_size=25).map("".join),
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=5))).map("".join),
)
NAMES = st.one_of(st.sampled_from(["f", "g", "test_f", "print", "", "Solution"]), st.text(max_size=5))
BODIES = st.sampled_from(
    ["return x", "if x:\n        return '```'\n    return 0", "'''<think>'''\n    return x", "return [\nx]"]
)
HEADS = st.sampled_from(["import math\n\n", "", "# first\n", '"""</think>"""\n', "LIMIT = 3\n\n@staticmethod\n"])
PROSE = st.sampled_from(
    ["", "Sure!\n\n", "<think>\nfirst\n```python\ndef f(x):\n    return 7\n```\n</think>\n", "1. So:\n"]
)
FENCES = st.sampled_from(
    [("```python\n", "\n```"), ("```\n", "\n```"), ("~~~py\n", "\n~~~"), ("````Python x=1\n", "\n````")]
)

NAMED = Target(entry_point="f")


@settings(max_examples=400)
@given(REPLIES, NAMES)
def test_it_never_raises_and_its_fields_agree(reply: str, entry_point: str) -> None:
    found = extract(reply, Target(entry_point=entry_point))
    assert found.reason
    assert len(found.reason.splitlines()) == 1
    assert (found.program is None) == (found.problem is not None)
    assert (found.code is None) == (found.problem == "no_code")
    if found.program is not None:
        assert found.code is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(found.program)
        assert found.program.count("\n") > found.code.count("\n")
        assert any(isinstance(node, ast.stmt) for node in tree.body)


@settings(max_examples=300)
@given(REPLIES)
def test_extracting_again_changes_nothing(reply: str) -> None:
    first = extract(reply, NAMED)
    if first.problem is None:
        assert first.code is not None
        again = extract(first.code, NAMED)
        assert (again.code, again.program, again.problem) == (first.code, first.program, None)


@settings(max_examples=400)
@given(REPLIES)
def test_without_an_entry_point_the_code_is_found_as_well(reply: str) -> None:
    named, found = extract(reply, NAMED), extract(reply, Target())
    if named.code is not None and named.problem is None:
        tree = ast.parse(named.code)
        assert found.problem is None or strength(tree, "") < Strength.FULL
    if found.problem is None:
        assert found.code is not None
        assert found.program == f"{found.code}\n"
        assert extract(found.code, Target()).code == found.code
    assert "define ''" not in found.reason


@settings(max_examples=200)
@given(
    PROSE,
    HEADS,
    BODIES,
    FENCES,
    st.sampled_from(["", "\nThat is all.", "\n\n```\n3\n```\n", "\n\n```python\nprint(f(1))\n```"]),
)
def test_a_fenced_function_comes_back(prose: str, head: str, body: str, fence: tuple[str, str], after: str) -> None:
    code = f"{head}def f(x):\n    {body}"
    found = extract(f"{prose}{fence[0]}{code}{fence[1]}{after}", NAMED)
    assert (found.problem, found.code, found.program) == (None, code, code + "\n")


@settings(max_examples=300)
@given(REPLIES)
def test_history_is_the_reply_with_parts_removed(reply: str) -> None:
    shown = without_thinking(reply)
    rest = iter(reply)
    assert all(character in rest for character in shown)
    if "think" not in reply.lower():
        assert shown == reply


ADVERSARIES: dict[str, Callable[[int], str]] = {
    "backticks": lambda n: "`" * n,
    "backtick lines": lambda n: "```\n" * (n // 4),
    "tildes": lambda n: "~~~ a\n" * (n // 6),
    "blocks": lambda n: "```python\ndef g(): h()\n```\n" * (n // 27),
    "unclosed blocks": lambda n: "```python\nx```\n" * (n // 15),
    "open tags": lambda n: "<think> " * (n // 8),
    "closing tags": lambda n: "</think>\n" * (n // 9),
    "pairs of tags": lambda n: "a <think>b</think> " * (n // 19),
    "brackets": lambda n: "```python\nf = " + "(" * n,
    "minus signs": lambda n: "```python\nf = " + "-" * n + "1\n```",
    "one long line": lambda n: "```python\ndef f(): return 1\n" + "print(1); " * (n // 10) + "\n```",
    "shared lines": lambda n: "def f(): return 1\n" + "x = 1; print(x)\n" * (n // 16),
    "chained tests": lambda n: (
        "def f(): return 1\n" + "".join(f"def test_{i}(): test_{i + 1}()\n" for i in range(n // 32))
    ),
    "one name, many results": lambda n: "def f(): return 1\n" + "x = f()\nprint(x)\n" * (n // 17),
    "spaces": lambda n: "```python\n" + " " * n + "x",
    "indentation": lambda n: ("\n" + " " * 999) * (n // 1000) + "def f(): x y",
    "quotes": lambda n: "def f(:\n" + "'" * n,
    "broken definitions": lambda n: "So:\n" + "def f(\n" * (n // 7),
    "definitions among prose": lambda n: "So!\n" + "def f(x): return x\nNow this.\n" * (n // 29),
    "null bytes": lambda n: "```python\n" + "\0" * n,
    "surrogates": lambda n: "```python\n" + "\ud800" * n,
    "carriage returns": lambda n: "\r" * n,
    "a word": lambda n: "def " + "a" * n,
    "functions": lambda n: "```python\n" + "def f(x):\n    return [x]\n" * (n // 24) + "```",
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_time_grows_with_length_alone(name: str) -> None:
    """Four times the text takes at most ten times as long: a square would take sixteen."""
    make = ADVERSARIES[name]
    best = {n: min(timed(make(n)) for _ in range(3)) for n in (20_000, 80_000)}
    assert best[80_000] < 10 * max(best[20_000], 0.003), best


def test_a_reply_of_a_megabyte() -> None:
    prose = "This is a sentence of the explanation, `x = 1`.\n" * 20_000
    function = "def f(x):\n    return x"
    reply = f"{prose}```python\n{function}\n```\n{prose}"[: 10**6 + 10**5]
    assert timed(reply) < 2
    assert extract(reply, NAMED).code == function


def timed(reply: str) -> float:
    start = time.process_time()
    extract(reply, NAMED)
    without_thinking(reply)
    return time.process_time() - start
