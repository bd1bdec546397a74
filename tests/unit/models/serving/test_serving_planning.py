"""Where servers are put on GPUs: cases worked out by hand, and properties of every layout."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codechat.models.endpoints import Weights
from codechat.models.serving import Machine, Placement, Server, lay_out
from codechat.models.serving.planning import KV_GB, SCARCE, DoesNotFit, machine_of
from codechat.run.answering.servers import servers_needed
from codechat.run.settings.compose import compose


def server(name: str, size: float | None, **weights: object) -> Server:
    return Server(name, Weights.model_validate(weights), size)


SMALL, MIDDLE, HUGE = server("7b", 15.2), server("32b", 65.5), server("70b", 141)
JUDGES = (server("20b", 13), server("120b", 61))
THREE = Machine(3, 80)


def gpus(machine: Machine, *servers: Server) -> dict[str, tuple[int, ...]]:
    return {each.name: place.gpus for each, place in lay_out(machine, servers).items()}


def test_three_servers_have_a_gpu_each() -> None:
    places = lay_out(THREE, [SMALL, *JUDGES])
    assert {each.name: (place.gpus, place.fraction) for each, place in places.items()} == {
        "120b": ((0,), 0.9), "7b": ((1,), 0.9), "20b": ((2,), 0.9),
    }  # fmt: skip
    assert [round(place.kv_gb or 0, 1) for place in places.values()] == [56.8, 59, 11]


def test_on_one_h200_they_share_it_and_get_the_same_room() -> None:
    places = lay_out(Machine(1, 141), [SMALL, *JUDGES])  # 126.9 GB less 89.2 GB of weights: 12.57 GB each
    assert [round(place.kv_gb or 0, 2) for place in places.values()] == [12.57, 12.57, 12.57]
    parts = {each.name: place.fraction for each, place in places.items()}
    assert parts == {"7b": 0.1969, "20b": 0.1813, "120b": 0.5217}
    assert 0.89 < sum(part or 0 for part in parts.values()) <= 0.9


def test_two_servers_share_where_the_third_leaves_room() -> None:
    assert gpus(Machine(2, 80), SMALL, *JUDGES) == {"7b": (1,), "20b": (1,), "120b": (0,)}


def test_weights_too_large_for_a_gpu_are_shared_by_as_few_as_hold_them() -> None:
    assert lay_out(Machine(8, 80), [HUGE, *JUDGES]) == {
        HUGE: Placement((0, 1, 4, 5), 0.9, pytest.approx(36.75)),  # two hold it; idle ones make room
        JUDGES[0]: Placement((3,), 0.9, pytest.approx(59)),
        JUDGES[1]: Placement((2,), 0.9, pytest.approx(11)),
    }
    assert lay_out(Machine(8, 80), [server("480b", 500)])[server("480b", 500)].gpus == tuple(range(8))


def test_a_server_on_the_processor_takes_no_gpu() -> None:
    local = Server("135m", Weights(), 900, "llama_cpp")
    places = lay_out(Machine(1, 80), [local, SMALL])
    assert places == {local: Placement(), **lay_out(Machine(1, 80), [SMALL])}


def test_the_70b_with_both_judges_is_refused_with_what_would_fit() -> None:
    with pytest.raises(DoesNotFit) as refusal:
        lay_out(THREE, [HUGE, *JUDGES])
    needed, remedy = str(refusal.value).splitlines()
    assert "3 GPUs of 80 GB" in needed and needed.endswith(": 70b 141 GB, 20b 13 GB, 120b 61 GB")
    ways = ("weights.quantization=fp8", "hardware=h100_8", "model@judge.adherence", "codechat rescore", "base_url")
    assert [way for way in ways if way not in remedy] == []


def test_the_paper_s_presets_say_what_their_weights_take() -> None:
    needed = servers_needed(compose(["model=llama33_70b", "judge=paper"]).config)
    assert sorted(each.weights_gb or 0 for each in needed) == [13, 61, 141]
    with pytest.raises(DoesNotFit):
        lay_out(THREE, list(needed))
    fp8 = servers_needed(compose(["model=llama33_70b", "judge=paper", "model.weights.quantization=fp8"]).config)
    assert sorted(each.weights_gb or 0 for each in fp8) == [13, 61, 70.5]
    assert len({place.gpus for place in lay_out(THREE, list(fp8)).values()}) == 3


def test_servers_are_placed_beside_those_that_run() -> None:
    first = lay_out(THREE, [SMALL, *JUDGES])
    assert lay_out(THREE, [MIDDLE], [first[judge] for judge in JUDGES])[MIDDLE].gpus == (1,)
    with pytest.raises(DoesNotFit):
        lay_out(Machine(2, 80), [HUGE], [Placement((0,), 0.9)])
    shared = lay_out(Machine(1, 141), [SMALL, *JUDGES])
    beside = lay_out(Machine(1, 141), [SMALL], [shared[judge] for judge in JUDGES])
    assert beside[SMALL].fraction == pytest.approx(shared[SMALL].fraction, abs=0.001)


def test_unknown_sizes_get_gpus_of_their_own() -> None:
    unknown = server("own", None)
    assert gpus(Machine(2, 80), unknown, JUDGES[0]) == {"own": (0,), "20b": (1,)}
    with pytest.raises(DoesNotFit, match="own of unknown size"):
        lay_out(Machine(1, 80), [unknown, JUDGES[0]])
    assert gpus(Machine(3, None), SMALL, *JUDGES) == {"120b": (0,), "7b": (1,), "20b": (2,)}


def test_without_gpus_nothing_is_laid_out() -> None:
    assert lay_out(Machine(0), [HUGE]) == {HUGE: Placement()}


def test_options_describe_the_machine() -> None:
    config = compose(["model=echo", "hardware=h100_3", "hardware.memory_fraction=0.8"]).config.hardware
    assert machine_of(config) == Machine(3, 80, 0.8)
    assert machine_of(compose(["model=echo", "hardware=cpu"]).config.hardware) == Machine(0)


SIZES = st.floats(1, 200).map(lambda size: round(size, 1))


@given(
    count=st.integers(1, 4),
    memory=st.sampled_from([24.0, 48.0, 80.0, 141.0]),
    sizes=st.lists(SIZES, min_size=1, max_size=4),
)
@example(count=4, memory=80.0, sizes=[129.0])  # two GPUs hold it, and the idle two make room for conversations
def test_a_layout_overfills_nothing_and_is_refused_only_if_there_is_none(
    count: int, memory: float, sizes: Sequence[float]
) -> None:
    machine = Machine(count, memory)
    servers = [server(str(number), size) for number, size in enumerate(sizes)]
    try:
        places = lay_out(machine, servers)
    except DoesNotFit:
        assert not fits(machine, list(sizes))
        return
    assert set(places) == set(servers)
    for gpu in range(count):
        here = {each: place for each, place in places.items() if gpu in place.gpus}
        assert sum(place.fraction or 0 for place in here.values()) <= machine.fraction + 1e-9
        assert len(here) == 1 or all(len(place.gpus) == 1 for place in here.values())
    for each, place in places.items():
        own = (place.fraction or 0) * memory
        assert own - (each.weights_gb or 0) / len(place.gpus) >= KV_GB - 0.02 * memory / 100
        assert len(place.gpus) in {fewest(machine, each.weights_gb or 0), wide(machine, each.weights_gb or 0)}


def fewest(machine: Machine, size: float) -> int:
    """How many GPUs hold the weights and the least memory for conversations."""
    count = 1
    while size / count + KV_GB > (machine.usable_gb or 0):
        count *= 2
    return count


def wide(machine: Machine, size: float) -> int:
    """How many GPUs the weights may get if some are idle: twice the fewest, if those have little for conversations."""
    count = fewest(machine, size)
    left = (machine.usable_gb or 0) - size / count
    return 2 * count if count > 1 and left < SCARCE * (machine.memory_gb or 0) else count


def fits(machine: Machine, sizes: list[float]) -> bool:
    """The same question, by trying every GPU for every small server."""
    usable, free = machine.usable_gb or 0, machine.gpus
    small = []
    for size in sizes:
        share = fewest(machine, size)
        if share > 1:
            free -= share
        else:
            small.append(size + KV_GB)

    def packed(left: list[float], loads: list[float]) -> bool:
        return not left or any(
            packed(left[1:], [*loads[:gpu], load + left[0], *loads[gpu + 1 :]])
            for gpu, load in enumerate(loads)
            if load + left[0] <= usable + 1e-9
        )

    return free >= 0 and packed(small, [0.0] * free)


def test_idle_gpus_go_to_a_large_server_that_has_little_room_for_conversations() -> None:
    """70B on two cards of 80 GB: 72 − 70.5 = 1.5 GB each; on four 72 − 35.25 = 36.75 GB, no longer scarce."""
    eight, three = Machine(8, 80.0), Machine(3, 80.0)
    places = lay_out(eight, [HUGE, SMALL])
    assert len(places[HUGE].gpus) == 4
    assert places[HUGE].kv_gb == pytest.approx(36.75)
    assert not set(places[HUGE].gpus) & set(places[SMALL].gpus)
    assert len(lay_out(three, [HUGE])[HUGE].gpus) == 2, "one idle GPU is not enough"
    assert len(lay_out(eight, [HUGE], [Placement((gpu,), 0.9) for gpu in range(5)])[HUGE].gpus) == 2
