"""A cell of verifiable instructions: its id is of what can change a result there, its name of what varies."""

from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.run.cell import Cell, build_cell
from codechat.run.settings.compose import compose
from support.codeif import FUNCTION, REPOSITORY, write_rows


def cell(tmp_path: Path, *overrides: str, protocol: str = "static") -> Cell:
    path = write_rows(tmp_path / "tasks.jsonl", FUNCTION, REPOSITORY)
    words = ["model=echo", f"protocol={protocol}", "dataset=codeif_bench", f"dataset.path={path}", "dataset.limit=1"]
    return build_cell(compose([*words, *overrides]))


@pytest.mark.parametrize("protocol", ["static", "dynamic"])
def test_agenda_instructions_and_judge_do_not_count(tmp_path: Path, protocol: str) -> None:
    reference = cell(tmp_path, protocol=protocol)
    for change in ("agenda=iid", "agenda.turns=5", "judge=llm", "dataset.repos=/nowhere"):
        assert cell(tmp_path, change, protocol=protocol).id == reference.id, change
    for change in ("seed=1", "protocol.prompts.requirement='{{requirement}}'", "sandbox.memory_mb=512"):
        assert cell(tmp_path, change, protocol=protocol).id != reference.id, change


def test_context_and_harness_count(tmp_path: Path) -> None:
    changes = [
        "protocol.context=single",
        "protocol.context=multi",
        "protocol.context=n_round",
        "protocol.harness=official",
    ]
    ids = {cell(tmp_path, *change).id for change in ((), *((each,) for each in changes))}
    assert len(ids) == 5


def test_the_name_tells_what_varies_and_of_no_agenda(tmp_path: Path) -> None:
    name = cell(tmp_path, "protocol.context=multi").name
    assert name == "echo codeif_bench 1 tasks protocol=static protocol.context=multi"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("protocol.context=double", "protocol.context"),
        ("protocol.harness=mine", "protocol.harness"),
        ("protocol.turns=3", "protocol.turns"),
        ("dataset.limit=2", "1 of the chosen tasks"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, override: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        cell(tmp_path, override)
    assert len(str(caught.value).splitlines()) <= 5
