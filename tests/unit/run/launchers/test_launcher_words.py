"""Where cells run, and how fast, changes no id and no name of a sweep; the files of a sweep on SLURM."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.config import part_of
from codechat.base.errors import UserError
from codechat.cli.run import split_launcher
from codechat.cli.sweep import different, sweep_name
from codechat.models.hardware import CELLS_AT_ONCE, HARDWARE, cores
from codechat.run.launchers import LAUNCHERS, Job
from codechat.run.launchers.slurm import Array, grouped
from codechat.run.settings.compose import compose
from codechat.run.settings.config import GROUPS, CellConfig

CELL = ("model=openai", "model.name=a", "dataset.limit=2", "seed=3")
RUNNING = (
    "hardware.workers=3", "tracking.uri=http://a:1", "tracking.experiment=mine", "tracking.live=false", "runs_dir=elsewhere",
    "max_errors=2", "budget_usd=5", "model.max_concurrency=3", "hardware=local",
)  # fmt: skip
LAUNCHING = ("launcher=serial", "launcher=joblib", "launcher.jobs=4", "+launcher.jobs=null")


def name_of(words: list[str]) -> str:
    own = split_launcher(words)[1]
    return sweep_name(own, [compose(own)])


@settings(max_examples=10)
@given(
    st.lists(st.sampled_from([*RUNNING, "launcher=joblib"]), unique=True).flatmap(
        lambda more: st.permutations([*more, *CELL])
    )
)
@pytest.mark.long
def test_no_option_of_speed_or_place_changes_a_sweeps_name(words: list[str]) -> None:
    result = [word for word in words if word in CELL]
    assert name_of(words) == name_of(result)


def test_what_can_change_a_result_changes_the_name() -> None:
    names = [name_of([*CELL, *more]) for more in ([], ["agenda.turns=4"], ["agenda=iid"], ["protocol.prompts=plain"])]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("group", ["hardware", "tracking"])
def test_the_groups_of_speed_and_place_are_in_no_id(group: str) -> None:
    assert part_of(CellConfig.model_fields[group]) == "run"
    for component in GROUPS[group]:
        assert {name: part_of(field) for name, field in component.config.model_fields.items()
                if part_of(field) not in ("run", "place")} == {}  # fmt: skip


def test_a_launcher_is_no_part_of_a_cell() -> None:
    assert LAUNCHERS.group not in CellConfig.model_fields
    for component in LAUNCHERS:
        assert {part_of(field) for field in component.config.model_fields.values()} == {"run"}
    for words in ([], list(LAUNCHING)):
        assert split_launcher([*words, *CELL])[1] == list(CELL)


@pytest.mark.parametrize(
    ("words", "jobs"),
    [(["launcher.jobs=4", "launcher.jobs=2"], 2), (["++launcher.jobs=3"], 3), (["launcher.jobs=null"], None)],
)
def test_the_last_word_counts(words: list[str], jobs: int | None) -> None:
    chosen: Any = split_launcher(["launcher=serial", "launcher=joblib", *words])[0]
    assert (chosen.kind, chosen.jobs) == ("joblib", jobs)


@pytest.mark.parametrize("word", ["launcher", "~launcher.jobs", "launcher=none", "launcher.jobs=some", "launcher.jobs"])
def test_a_mistake_is_the_users(word: str) -> None:
    with pytest.raises(UserError):
        split_launcher([word])


def test_a_cell_takes_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def workers(*words: str) -> int:
        return HARDWARE.build(compose(words).config.hardware).workers

    assert workers() == cores()
    for at_once, share in ((1, cores()), (2, max(1, cores() // 2)), (10_000, 1)):
        monkeypatch.setenv(CELLS_AT_ONCE, str(at_once))
        assert workers() == share
        assert workers("hardware.workers=7") == 7


def test_a_cell_of_two_combinations_runs_once() -> None:
    cells = [compose([*CELL, *more]) for more in ([], ["agenda=balanced"], ["agenda.turns=4"], ["hardware.workers=2"])]
    assert different(cells) == [cells[0], cells[2], cells[3]]


def jobs_that_need(*servers: str) -> list[Job]:
    cell = compose(CELL)
    return [Job(number, cell, "sweep", (), frozenset(needed)) for number, needed in enumerate(servers)]


def test_cells_that_need_the_same_servers_are_one_element() -> None:
    groups = grouped(jobs_that_need("ab", "", "a", "ba", "", "a"))
    assert [[job.number for job in group] for group in groups] == [[0, 3], [1], [2, 5], [4]]


def test_elements_keep_their_numbers(tmp_path: Path) -> None:
    """What waits in the queue keeps its cells, whatever is submitted later."""
    array, first, second, third = Array(tmp_path), [("seed=1",), ("seed=2",)], [("a='\n'",)], [("seed=3",)]
    assert array.elements() == []
    assert array.add([first, second]) == [1, 2]
    array.leave(1, [0, 3])
    array.leave(2, [130])
    assert [array.status_of(words) for words in (*first, *second, *third)] == [0, 3, 130, None]
    assert array.add([third, second]) == [2, 3]
    assert array.elements() == [first, second, third]
    assert array.status_of(second[0]) is None, "it was submitted again"
    assert array.cells.read_text().count("\n") == 3
