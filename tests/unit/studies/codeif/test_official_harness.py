"""What CodeIF-Bench's own harness takes for code, and which tests it runs."""

import pytest

from codechat.datasets.tasks import Requirement
from codechat.sandbox.suites.assertions import Assertions
from codechat.studies.codeif.protocol_static import Mode, official_code, official_source, official_tests

TASK = Assertions(("assert f(1) == 1", "assert f(2) == 2"))
EDGE = Requirement("Edge Case Handling", "Edge Case Handling", "", Assertions(("edge",)))
STANDARD = Requirement("Code Standard", "Code Standard", "", Assertions(("style one", "style two")))
EXTENSION = Requirement(
    "Functionality Extension", "Functionality Extension", "", Assertions(("more",)), accumulates=False
)

REPLIES = {
    "a fence": ("Here:\n```python\nx = 1\n```\nand\n```python\nx = 2\n```", "x = 1"),
    "no fence": ("x = 1", "x = 1"),
    "another language": ("```py\nx = 1\n```", "```py\nx = 1\n```"),
    "a capital": ("```Python\nx = 1\n```", "```Python\nx = 1\n```"),
    "a space behind": ("```python \nx = 1\n```", "```python \nx = 1\n```"),
    "the second is the first of python": ("```\npip\n```\n```python\nx = 1\n```", "x = 1"),
    "never closed": ("```python\nx = 1", "```python\nx = 1"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_the_first_python_fence_or_everything(name: str) -> None:
    reply, code = REPLIES[name]
    for mode in ("base", "single_round"):
        assert official_code(mode, reply).rstrip("\n") == code  # type: ignore[arg-type]


DOCUMENTED = '''def f(x):
    """
    Return x.
    """

    # a comment stays
   \t
    return x


def g(x):
    """Return x."""
    return x
'''


def test_docstrings_and_empty_lines_go_except_in_base() -> None:
    reply = f"```python\n{DOCUMENTED}```"
    assert official_code("base", reply) == DOCUMENTED
    kept = 'def f(x):\n    # a comment stays\n    return x\ndef g(x):\n    """Return x."""\n    return x'
    for mode in ("single_round", "multi_round", "n_round"):
        assert official_code(mode, reply) == kept  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "asked", "snippets"),
    [
        ("base", [], TASK.snippets),
        ("single_round", [EDGE], (*TASK.snippets, "edge")),
        ("single_round", [EDGE, STANDARD], (*TASK.snippets, "style one", "style two")),
        ("multi_round", [EDGE, EXTENSION], ("more",)),
        ("n_round", [EDGE, STANDARD], (*TASK.snippets, "edge", "style one", "style two")),
        ("n_round", [EDGE, EXTENSION], None),
        ("n_round", [EXTENSION, EDGE], (*TASK.snippets, "edge")),
    ],
)
def test_which_tests_are_run(mode: Mode, asked: list[Requirement], snippets: tuple[str, ...] | None) -> None:
    assert official_tests(mode, TASK, asked, asked[-1] if asked else None) == snippets


def test_tests_follow_on_lines_of_their_own() -> None:
    assert official_source("x = 1", ("assert x", "assert 2")) == "x = 1\nassert x\nassert 2"
