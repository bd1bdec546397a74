"""Replies of SmolLM2-135M-Instruct, read by hand: outcome, whether the code has the name, and whether it parses."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Target
from codechat.sandbox.languages import extract

REPLIES = Path(os.environ.get("CODECHAT_TEST_DATA") or "absent").parent / "cases/real-model/refine_and_others.jsonl"
pytestmark = pytest.mark.skipif(not REPLIES.exists(), reason="beside CODECHAT_TEST_DATA there is no cases/real-model")


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in REPLIES.read_text().splitlines()]


def test_every_reply_is_read_as_by_hand() -> None:
    outcomes = Counter[str]()
    for row in rows():
        found, right = extract(row["reply"], Target(entry_point=row["entry_point"])), row["right"]
        outcomes[right["outcome"]] += 1
        where = f"{row['source']} {row['entry_point']} {row['turn']}: {found.reason}"
        assert (found.problem or "code") == right["outcome"], where
        assert (found.code is not None) == right["name_is_defined"], where
        assert ("does not parse" not in found.reason) == right["parses"], where
        assert found.lacks_name == (right["outcome"] == "no_code"), where
    assert outcomes == {"code": 66, "no_code": 35, "syntax_error": 25}


def test_replies_that_were_read_right_keep_their_code_and_program() -> None:
    for row in rows():
        if row["agrees"]:
            found, then = extract(row["reply"], Target(entry_point=row["entry_point"])), row["codechat"]
            assert (found.code, found.program) == (then["code"], then["program"]), (row["source"], row["turn"])
