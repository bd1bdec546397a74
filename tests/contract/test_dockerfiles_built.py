"""Dockerfiles of issues by a real engine: which of the candidates and repairs is taken, and what is left of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from codechat.testing import Call, OpenAIServer
from support.cab import issue, repository
from support.hosting import QUOTED, ROLES, Models, lines, reasons, run
from support.machine import Images

pytestmark = pytest.mark.engines

BUILDS, BREAKS = (
    "FROM tiny\nCOPY . /s\nRUN test -f /s/made.txt # {}\n",
    "FROM tiny\nCOPY . /s\nRUN echo wrong {} && exit 7\n",
)
HANGS, FILLS = (
    "FROM tiny\nCOPY . /s\nRUN sleep 98762 # {}\n",
    "FROM tiny\nCOPY . /s\nRUN head -c 99999999 /dev/zero > /f # {}\n",
)
CLONES, MOUNTS = (
    "FROM tiny\nRUN git clone https://github.com/eve/lib # {}\n",
    "FROM tiny\nRUN --mount=type=bind,target=/m ls # {}\n",
)
WRITTEN = {
    "first": [BUILDS],
    "third": [BREAKS, "no Dockerfile", "no Dockerfile", "no Dockerfile", BUILDS],
    "repaired": [BREAKS] * 6 + [BUILDS],
    "never": [BREAKS] * 8,
    "hangs": [HANGS, BUILDS],
    "fills": [FILLS, BUILDS],
    "refused": [CLONES, MOUNTS, BUILDS],
}  # fmt: skip
"""What the model answers for each issue, one reply after the other; three that are none are one candidate."""
TRIES = {
    "first": ["built"],
    "third": ["failed", "unread", "built"],
    "repaired": ["failed"] * 6 + ["built"],
    "hangs": ["failed", "built"],
    "fills": ["failed", "built"],
    "refused": ["refused", "refused", "built"],
}


def test_the_first_that_builds_by_number_and_what_is_left(tmp_path: Path, engine: None) -> None:
    commit = repository(tmp_path / "repos" / "ann__shop.git", {"made.txt": "yes"}, bare=True)
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(row(name, number, commit)) + "\n" for number, name in enumerate(WRITTEN, 1)))
    asked: dict[str, list[str]] = {name: [] for name in WRITTEN}

    def write(call: Call) -> str:
        parts = {name: text for name, _, text in QUOTED.findall(call.messages[0]["content"])}
        name = parts["THREAD"].partition("\n")[0].removeprefix("Title: ")
        asked[name].append(parts.get("LOG", ""))
        return WRITTEN[name][len(asked[name]) - 1].format(len(asked[name]))

    own = {"rows": str(items), "repos": str(tmp_path / "repos"), "skip": ["conditions"]}
    builds = {"build_s": 6.0, "disk_mb": 16, "memory_mb": 256, "max_rooms": 2}
    before = Images()
    with OpenAIServer(Models(others={"dockerfile": write}), models=ROLES) as server:
        run(tmp_path / "o", None, server, **own, builds=builds, until="dockerfiles")
        calls = server.answered
        run(tmp_path / "o", None, server, **own, builds=builds, until="dockerfiles")
        assert server.answered == calls, "nothing is asked or built again"
    made = {each["data"]["title"]: each for each in lines(tmp_path / "o" / "items.jsonl")}
    assert {name: each["provenance"]["dockerfile_tries"] for name, each in made.items()} == TRIES
    assert {name: each["provenance"]["dockerfile_by"] for name, each in made.items()} == {
        name: "repair" if name == "repaired" else "candidate" for name in TRIES
    }
    for name, each in made.items():
        assert each["data"]["dockerfile"] == BUILDS.format(len(WRITTEN[name]))
        assert each["data"]["build_network"] is False
    assert reasons(tmp_path / "o") == {"ann/shop#4": ("dockerfiles", "no build")}
    assert [bool(log) for log in asked["repaired"]] == [False] * 5 + [True] * 2
    assert "wrong 6" in asked["repaired"][6], "the repair sees the log of the last one"
    assert before.are_left(ended=2), "of what hung and of what wrote too much"


def row(name: str, number: int, commit: str) -> dict[str, Any]:
    whole = issue(title=name, language="c", commit_id=commit, number=number)
    data = {
        **whole,
        "repository": "ann/shop",
        "url": f"https://github.com/ann/shop/issues/{number}",
        "needs_build": True,
    }
    return {"id": f"ann/shop#{number}", "data": data, "provenance": {"stage": "classify"}}
