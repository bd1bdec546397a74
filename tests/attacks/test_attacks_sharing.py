"""No attack gets the verdict of an honest program: none has its code key, whatever was tested before.

The attacks' own verdicts are those of the other files here: a program is tested as ever unless an equal one was.
"""

from ast import dump, parse
from itertools import combinations

import pytest
from attack_assertions import ASSERTION_ATTACKS, LIES, NOT_GUARDED
from attack_forging import FORGING
from attack_harming import HARMING
from attack_malformed import MALFORMED
from attack_outside import OUTSIDE_ATTACKS
from attack_stalling import STALLING
from attack_texts import ATTACKS
from attack_values import VALUES

from codechat.sandbox.languages.python.code_key import code_key

CORPORA = {
    "assertions": ASSERTION_ATTACKS | LIES | NOT_GUARDED,
    "calls": FORGING | HARMING | MALFORMED | VALUES,
    "outside": OUTSIDE_ATTACKS,
    "stalling": STALLING,
    "texts": ATTACKS,
}
HONEST = [
    "import math\ndef solve(n):\n    return [math.sqrt(n), math.sqrt(n + 1), math.sqrt(n + 2)]\n",
    "def solve(n: int) -> int:\n    return n * n\n",
    "def solve(n):\n    return n * n\n",
    "def f(n):\n    return n * 2\n",
    "def f(x):\n    return x\n",
]
MASKS = {
    "an encoding": "# coding: utf-7\n{}\n# +AAo-import os",
    "a lone line end": "{}\n#\rdef solve(n): return 0\n",
    "a lone line end before": "#\rdef solve(n): return 0\n{}",
    "a form feed": "{}\n\f\x0cdef solve(n): return 0\n",
    "a name of other letters": "{}\ndef ſolve(n): return 0\n",
    "a name of wide letters": "{}\nｓｏｌｖｅ = 0\n",
    "a line that goes on": "{}\n# \\\ndef solve(n): return 0\n",
    "an end of file": "{}\n\x1a\ndef solve(n): return 0\n",
    "a null": "{}\n#\x00\ndef solve(n): return 0\n",
    "half a character": "{}\n#\ud800\ndef solve(n): return 0\n",
    "a docstring that is none": "{}\n'''a''' and globals().update(solve=len)\n",
    "an annotation that acts": "{}\ndef g(x: [globals().update(solve=len)]): ...\n",
    "an annotation that acts by a name": "{}\nclass list:\n    def __class_getitem__(c, i): global solve; solve = len\n"
    "def g(x: list[int]): ...\n",
    "an annotation that is bound": "{}\ndef g(x: (solve := len)): ...\n",
    "a default that acts": "{}\ndef g(x=globals().update(solve=len)): ...\n",
    "under __debug__": "{}\nif __debug__:\n    solve = len\n",
    "a right-to-left mark": "{}\n'\u202e'; solve = len; '\u2066'\n",
    "a deletion": "{}\ndel solve\n",
    "a long text": "{}\n" + "#" * 20_000 + "\nsolve = len\n",
}
"""What one reader might take for a comment, and another for code: `{}` is an honest program."""


@pytest.mark.parametrize("corpus", CORPORA)
def test_no_attack_has_the_code_of_an_honest_program(corpus: str) -> None:
    honest = {found for one in HONEST if (found := code_key(one))}
    assert len(honest) == len(HONEST)
    for name, program in CORPORA[corpus].items():
        assert code_key(program) not in honest, name


@pytest.mark.parametrize("mask", MASKS)
def test_what_only_looks_like_form_is_none(mask: str) -> None:
    honest = "def solve(n):\n    return n * n\n"
    masked = code_key(MASKS[mask].replace("{}", honest))
    if masked is not None and masked == code_key(honest):
        space: dict[str, object] = {}
        exec(MASKS[mask].replace("{}", honest), space)  # the tests' own program
        assert space["solve"](7) == 49, "another program has the code of an honest one"  # type: ignore[operator]


def test_most_masks_are_another_program() -> None:
    honest = "def solve(n):\n    return n * n\n"
    equal = [name for name, text in MASKS.items() if code_key(text.replace("{}", honest)) == code_key(honest)]
    assert equal == ["an encoding"]  # a comment, for whoever reads a text and not a file


def test_equal_attacks_are_equal_texts_but_for_form() -> None:
    """Within a corpus, programs of one code differ in nothing that runs."""
    for corpus in CORPORA.values():
        known = [(name, program, found) for name, program in corpus.items() if (found := code_key(program))]
        for (name, program, one), (other, text, another) in combinations(known, 2):
            assert one != another or dump(parse(program)) == dump(parse(text)), (name, other)
