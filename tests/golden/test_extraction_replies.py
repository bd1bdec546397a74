"""Replies in six languages, in the forms that models give, labelled by reading: the lines that are the code.

A reply of `extraction_replies.txt` begins with a line `=== LANGUAGE FIRST-LAST COLUMNS NAME`: its code is these lines,
counted from 1, without so many columns at the left. The labels were written before extraction was run on them.
"""

from pathlib import Path

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract

REPLIES = (Path(__file__).parent / "extraction_replies.txt").read_text(encoding="utf-8").split("=== ")[1:]


def test_there_are_as_many_replies_as_promised() -> None:
    assert len(REPLIES) >= 160


@pytest.mark.parametrize("language", ["go", "java", "javascript", "kotlin", "python", "rust"])
def test_the_labelled_lines_are_the_code(language: str) -> None:
    own = [reply.rstrip("\n").split("\n") for reply in REPLIES if reply.startswith(f"{language} ")]
    assert len(own) >= 20
    for head, *lines in own:
        _, places, columns, name = head.split(" ", 3)
        first, last = map(int, places.split("-"))
        label = "\n".join(line[int(columns) :] for line in lines[first - 1 : last])
        found = extract("\n".join(lines), Target(language, "f" if language == "python" else ""))
        assert found.code == label, (name, found)
