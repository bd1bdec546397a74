"""A(N, D): counts, order, reproducibility, and the presets' meaning."""

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codechat.base.config import validate
from codechat.base.domain import CHANGES, SCOPES, Instruction
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.base.seeding import generator
from codechat.studies.refine.agendas import AGENDAS, TYPES, AgendaConfig, draw, type_of

AXES = st.sampled_from(["scope", "change", "cell"])


def test_balanced_ten_turns_are_three_of_each_scope_in_varying_order() -> None:
    config = AgendaConfig()
    agendas = [draw(config, generator(0, f"task/{number}", "agenda")) for number in range(50)]
    assert all(Counter(agenda) == dict.fromkeys(SCOPES, 3) for agenda in agendas)
    assert len({tuple(agenda) for agenda in agendas}) > 40, "the order is shuffled per session"


def test_remainders_go_to_the_largest_and_ties_to_the_session() -> None:
    # 5 follow-up turns over weights .5/.3/.2: exact 2.5, 1.5, 1.0 -> 2+1+1, one left between the first two
    config = AgendaConfig(turns=6, distribution={"cosmetic": 0.5, "structural": 0.3, "semantic": 0.2})
    seen = Counter(tuple(sorted(Counter(draw(config, random.Random(seed))).items())) for seed in range(300))
    first = (("cosmetic", 3), ("semantic", 1), ("structural", 1))
    second = (("cosmetic", 2), ("semantic", 1), ("structural", 2))
    assert set(seen) == {first, second}
    assert 90 < seen[first] < 210, "a fair tie"


def test_a_type_without_weight_never_gets_a_remainder() -> None:
    config = AgendaConfig(turns=3, distribution={"cosmetic": 0, "structural": 0, "semantic": 1})
    assert draw(config, random.Random(1)) == ["semantic", "semantic"]


def test_escalating_goes_from_cosmetic_to_semantic() -> None:
    agenda = draw(AgendaConfig(order="grouped"), random.Random(0))
    assert agenda == ["cosmetic"] * 3 + ["structural"] * 3 + ["semantic"] * 3


def test_a_sequence_is_repeated_or_cut() -> None:
    config = AgendaConfig(turns=6, axis="change", sequence=["add", "remove"])
    assert draw(config, random.Random(0)) == ["add", "remove", "add", "remove", "add"]
    assert draw(AgendaConfig(turns=2, sequence=["semantic", "cosmetic"]), random.Random(0)) == ["semantic"]


def test_iid_follows_the_distribution_without_its_counts() -> None:
    config = AgendaConfig(turns=10, sampling="iid", distribution={"cosmetic": 0.7, "semantic": 0.3})
    agendas = [Counter(draw(config, random.Random(seed))) for seed in range(400)]
    share = sum(agenda["cosmetic"] for agenda in agendas) / (400 * 9)
    assert 0.66 < share < 0.74
    assert len({agenda["cosmetic"] for agenda in agendas}) > 4
    assert not any(agenda["structural"] for agenda in agendas)


@given(axis=AXES, turns=st.integers(2, 80), seed=st.integers(), data=st.data())
def test_any_length_any_distribution(axis: str, turns: int, seed: int, data: st.DataObject) -> None:
    types = TYPES[axis]  # type: ignore[index]
    weights = data.draw(
        st.lists(st.floats(0, 100), min_size=len(types), max_size=len(types)).filter(lambda w: sum(w) > 0.01)
    )
    for sampling in ("quota", "iid"):
        config = AgendaConfig(
            turns=turns, axis=axis, distribution=dict(zip(types, weights, strict=True)), sampling=sampling
        )  # type: ignore[arg-type]
        agenda = draw(config, random.Random(seed))
        assert len(agenda) == turns - 1
        assert agenda == draw(config, random.Random(seed)), "reproducible"
        counts = Counter(agenda)
        assert all(config.weights()[name] > 0 for name in counts)
        if sampling == "quota":
            for name, weight in config.weights().items():
                assert abs(counts[name] - weight * (turns - 1)) < 1 + 1e-6, "within one of the exact share"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"turns": 1}, "turns: .* 2"),
        ({"turns": "abc"}, "valid integer"),
        ({"distribution": {"cosmetik": 1}}, "'cosmetik' .*axis scope"),
        ({"distribution": {"cosmetic": 0}}, "not all 0"),
        ({"distribution": {"cosmetic": -1, "semantic": 3}}, "at least 0"),
        ({"axis": "change", "sequence": ["semantic"]}, "axis change"),
        ({"sequence": []}, "at least 1 item"),
        ({"turnz": 3}, "agenda.turnz"),
        ({"axis": "scop"}, "'scope', 'change' or 'cell'"),
    ],
)
def test_mistakes_are_told(values: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        validate(AgendaConfig, values, "agenda")


def test_an_unknown_sampling_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="did you mean 'quota'"):
        AGENDAS.validate({"sampling": "quotas"})


def test_type_of_an_instruction() -> None:
    instruction = Instruction("x", "Add x.", "semantic", "add")
    assert [type_of(instruction, axis) for axis in ("scope", "change", "cell")] == ["semantic", "add", "semantic/add"]
    assert len(TYPES["cell"]) == len(SCOPES) * len(CHANGES)


def test_the_contract_s_presets_are_there() -> None:
    folder = Path(__file__).parents[4] / "conf" / "agenda"
    presets = {path.stem: from_yaml(path.read_text()) for path in folder.glob("*.yaml")}
    assert set(presets) >= {"balanced", "cosmetic", "structural", "semantic", "escalating", "iid", "weighted", "fixed"}
