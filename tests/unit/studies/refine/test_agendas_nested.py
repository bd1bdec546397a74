"""Agendas of several lengths: which begin alike, what blocks hold, and that no two arms of the sweep are equal."""

import json
import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.base.domain import CHANGES, SCOPES
from codechat.base.environment import data_folder
from codechat.base.seeding import generator
from codechat.cli.sweep import read_recipe
from codechat.run.settings.compose import compose
from codechat.studies.refine.agendas import TYPES, AgendaConfig, draw, nests
from codechat.testing import dataset_tasks
from support.mistakes import mistake
from support.refine_cells import AUDIT_POOL

TASKS = [task.task_id for task in dataset_tasks("starter")]
PRESETS = sorted(path.stem for path in (data_folder("conf") / "agenda").glob("*.yaml"))


@pytest.fixture
def dialogues(tmp_path: Path) -> str:
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"turns": [one.text for one in AUDIT_POOL[::8]]}) + "\n")
    return f"agenda.from={path}"


def agendas(words: list[str], turns: int) -> list[list[str]]:
    config = compose([*words, f"agenda.turns={turns}"]).config.part("agenda")
    return [draw(config, generator(0, task, "agenda"), AUDIT_POOL) for task in TASKS]


def alike(words: list[str]) -> int:
    """The tasks whose agenda of 20 turns begins with the one of 10 turns."""
    pairs = zip(agendas(words, 10), agendas(words, 20), strict=True)
    return sum(longer[: len(shorter)] == shorter for shorter, longer in pairs)


def test_ten_of_ten_long_agendas_begin_like_short_ones_in_blocks_and_none_by_quota() -> None:
    assert sum(a == b[:9] for a, b in zip(agendas([], 10)[:10], agendas([], 20)[:10], strict=True)) == 0
    assert alike(["agenda=blocks"]) == len(TASKS) >= 10


@pytest.mark.parametrize("preset", PRESETS)
def test_a_report_knows_which_agendas_begin_alike(preset: str, dialogues: str) -> None:
    words = [f"agenda={preset}", *([dialogues] if preset == "learned" else [])]
    options = compose(words).config.part("agenda").model_dump(mode="json")
    single = len({name for agenda in agendas(words, 20) for name in agenda}) == 1
    assert nests(options) == (alike(words) == len(TASKS)) or single, "agendas of one type nest, which needs no table"
    assert alike(["agenda=quota", "agenda.order=grouped"]) == 0


@pytest.mark.parametrize(
    ("axis", "distribution", "size"),
    [
        ("scope", None, 3),
        ("change", None, 3),
        ("cell", None, 9),
        ("scope", {"cosmetic": 0.4, "structural": 0.3, "semantic": 0.3}, 10),
        ("scope", {"cosmetic": 4, "structural": 3, "semantic": 3}, 10),
        ("change", {"add": 1}, 1),
        ("scope", {"cosmetic": 0.99, "semantic": 0.01}, 100),
    ],
)
def test_every_block_has_the_distribution_exactly(axis: str, distribution: dict[str, float] | None, size: int) -> None:
    config = AgendaConfig(axis=axis, distribution=distribution, order="blocks", turns=4 * size + 2)  # type: ignore[arg-type]
    assert len(config.block()) == size
    agenda = draw(config, random.Random(5))
    blocks = [Counter(agenda[at : at + size]) for at in range(0, 4 * size, size)]
    assert len(agenda) == 4 * size + 1 and all(block == blocks[0] for block in blocks)
    assert all(count == config.weights()[name] * size for name, count in blocks[0].items()) or size >= 10


@given(axis=st.sampled_from(["scope", "change", "cell"]), ends=st.tuples(st.integers(2, 60), st.integers(2, 60)),
       seed=st.integers(), data=st.data())  # fmt: skip
def test_any_shorter_agenda_in_blocks_begins_the_longer_one(
    axis: str, ends: tuple[int, int], seed: int, data: st.DataObject
) -> None:
    weights = data.draw(st.dictionaries(st.sampled_from(TYPES[axis]), st.integers(1, 9), min_size=1))  # type: ignore[index]
    shorter, longer = (
        draw(AgendaConfig(axis=axis, distribution=weights, order="blocks", turns=turns), random.Random(seed))  # type: ignore[arg-type]
        for turns in sorted(ends)
    )
    assert longer[: len(shorter)] == shorter and len(longer) == max(ends) - 1


def test_a_distribution_without_an_exact_block_is_refused() -> None:
    for weights in ("{cosmetic: 1, semantic: 100}", "{cosmetic: 1, semantic: 1.4142135}"):
        with mistake("agenda.order=blocks", "agenda.distribution"):
            compose(["agenda=blocks", f"agenda.distribution={weights}"])
    assert compose(["agenda=blocks", "agenda.distribution={cosmetic: 1, semantic: 99}"]).config


def test_no_two_arms_of_the_sweep_are_equal() -> None:
    (grid,) = read_recipe("agenda_distribution").grids
    arms = {name: agendas([f"agenda={name}"], 10) for name in grid["agenda"]}
    axes = {compose([f"agenda={name}"]).config.part("agenda").axis for name in arms}
    assert axes == {"scope", "change", "cell"} and {*SCOPES} <= arms.keys()
    assert {*CHANGES} == {arms[name][0][0] for name in ("additions", "removals", "modifications")}
    for one, other in combinations(arms, 2):
        assert arms[one] != arms[other], f"{one} and {other}"
    assert sorted(map(sorted, agendas(["agenda=weighted"], 10))) == sorted(map(sorted, arms["balanced"])), "left out"
