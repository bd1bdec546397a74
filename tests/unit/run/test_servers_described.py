"""What is kept and said of a cell's model servers, from what they told and counted."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.models.endpoints import ARGUMENTS, LLAMA_CPP, VLLM
from codechat.run.answering.servers import described, layout_of, servers_needed, tags_of_servers
from codechat.run.cell import build_cell
from codechat.run.journal.database import EndpointRecord
from codechat.run.journal.ledger import Charge, Ledger
from codechat.run.settings.compose import compose


def cell(folder: Path, *places: str) -> Any:
    return SimpleNamespace(folder=folder, endpoints=dict.fromkeys(places))


def journal(*met: EndpointRecord, used: tuple[Charge, ...] = ()) -> Any:
    return SimpleNamespace(endpoints=lambda: list(met), ledger=Ledger({each.payer: each for each in used}))


def met(place: str, facts: dict[str, Any], *fingerprints: str, address: str = "http://a/v1") -> EndpointRecord:
    return EndpointRecord(place, address, json.dumps(facts), fingerprints, 1.0)


def test_a_server_is_described_by_all_that_it_was(tmp_path: Path) -> None:
    facts = [{VLLM: "0.1", ARGUMENTS: "--a"}, {VLLM: "0.2"}, {VLLM: "0.1", ARGUMENTS: "--a"}, {"id": "m"}]
    told = journal(
        met("model", facts[0], "f1"), met("model", facts[1], "f2", "f1"), met("model", facts[2], "f3"),
        met("model", facts[3], "f4"), met("judge", facts[3], "f5"), met("protocol.roles.user", facts[1]),
        met("protocol.roles.expert", facts[0]),
        used=(Charge("model", 2, 0, 20, 4, 5), Charge("user", 1, 0, 9), Charge("expert", 1, 0, 9)),
    )  # fmt: skip
    found = described(cell(tmp_path, "model", "judge", "protocol.roles.user", "protocol.roles.expert"), told)
    assert found == {"servers": {
        "model": {VLLM: ["0.1", "0.2"], ARGUMENTS: ["--a"], "fingerprints": ["f1", "f2", "f3"], "prefix_hit_rate": 0.25},
        "protocol.roles.user": {VLLM: ["0.2"], ARGUMENTS: [], "fingerprints": [], "prefix_hit_rate": None},
        "protocol.roles.expert": {VLLM: ["0.1"], ARGUMENTS: ["--a"], "fingerprints": [], "prefix_hit_rate": 0},
    }}, "a server that was not told to say what is cached says nothing by none"  # fmt: skip
    assert tags_of_servers({"servers": {"model": found["servers"]["model"]}}) == {
        f"codechat.server.model.{VLLM}": "0.1, 0.2",
        f"codechat.server.model.{ARGUMENTS}": "--a",
        "codechat.server.model.fingerprints": "f1, f2, f3",
    }
    assert tags_of_servers(found)[f"codechat.server.protocol.roles.user.{VLLM}"] == "0.2"


def test_llama_cpp_says_nothing_of_what_it_had_cached(tmp_path: Path) -> None:
    told = journal(met("model", {LLAMA_CPP: "0.3", ARGUMENTS: "--a"}), used=(Charge("model", 1, 0, 9),))
    found = described(cell(tmp_path, "model"), told)
    assert found["servers"]["model"] == {
        LLAMA_CPP: ["0.3"], ARGUMENTS: ["--a"], "fingerprints": [], "prefix_hit_rate": None,
    }  # fmt: skip
    assert tags_of_servers(found) == {
        f"codechat.server.model.{LLAMA_CPP}": "0.3",
        f"codechat.server.model.{ARGUMENTS}": "--a",
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
