"""What is kept and said of a cell's model servers, from what they told and counted."""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.models.endpoints import ARGUMENTS, VLLM
from codechat.models.serving.probing import PrefixCounts
from codechat.run.answering.servers import (
    COUNTS,
    _counts,
    _sums,
    described,
    layout_of,
    servers_needed,
    tags_of_servers,
)
from codechat.run.cell import build_cell
from codechat.run.journal.database import Met
from codechat.run.settings.compose import compose


def cell(folder: Path, *places: str) -> Any:
    return SimpleNamespace(folder=folder, endpoints=dict.fromkeys(places))


def journal(*met: Met) -> Any:
    return SimpleNamespace(met=lambda: list(met))


def met(place: str, facts: dict[str, Any], *fingerprints: str, address: str = "http://a/v1") -> Met:
    return Met(place, address, json.dumps(facts), fingerprints, 1.0)


def counts(folder: Path, **places: tuple[float, float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / COUNTS).write_text(json.dumps({place: asdict(PrefixCounts(*each)) for place, each in places.items()}))


def test_counts_of_processes_and_shards_are_summed_by_place(tmp_path: Path) -> None:
    assert _counts(tmp_path / "absent") == {}
    counts(tmp_path, model=(10, 4), judge=(1, 1))
    counts(tmp_path / "b", model=(5, 5))
    sums = _sums(map(_counts, (tmp_path / COUNTS, tmp_path / "b" / COUNTS)))
    assert sums == {"model": PrefixCounts(15, 9), "judge": PrefixCounts(1, 1)}


def test_a_server_is_described_by_all_that_it_was(tmp_path: Path) -> None:
    counts(tmp_path, model=(10, 4))
    counts(tmp_path / "shards" / "0-of-2", model=(10, 1))
    facts = [{VLLM: "0.1", ARGUMENTS: "--a"}, {VLLM: "0.2"}, {VLLM: "0.1", ARGUMENTS: "--a"}, {"id": "m"}]
    told = journal(
        met("model", facts[0], "f1"), met("model", facts[1], "f2", "f1"), met("model", facts[2], "f3"),
        met("model", facts[3], "f4"), met("judge", facts[3], "f5"), met("user", facts[1]),
    )  # fmt: skip
    found = described(cell(tmp_path, "model", "judge", "user"), told)
    assert found == {"servers": {
        "model": {VLLM: ["0.1", "0.2"], ARGUMENTS: ["--a"], "fingerprints": ["f1", "f2", "f3"], "prefix_hit_rate": 0.25},
        "user": {VLLM: ["0.2"], ARGUMENTS: [], "fingerprints": [], "prefix_hit_rate": None},
    }}  # fmt: skip
    assert tags_of_servers(found) == {
        f"codechat.server.model.{VLLM}": "0.1, 0.2",
        f"codechat.server.model.{ARGUMENTS}": "--a",
        "codechat.server.model.fingerprints": "f1, f2, f3",
        f"codechat.server.user.{VLLM}": "0.2",
    }


def test_without_such_a_server_nothing_is_said(tmp_path: Path) -> None:
    assert described(cell(tmp_path, "model"), journal(met("model", {"id": "m"}), met("judge", {VLLM: "1"}))) == {}
    assert tags_of_servers({}) == {}


@pytest.mark.parametrize(
    "words", [["model=echo"], ["model=openai", "model.name=m", "model.base_url=http://127.0.0.1:9/v1"]]
)
def test_a_cell_that_starts_no_server_has_no_layout(tmp_path: Path, words: list[str]) -> None:
    one = build_cell(compose([*words, f"runs_dir={tmp_path}", "dataset.limit=1"]))
    assert layout_of(one) == () and servers_needed(one.config) == frozenset()
