"""Every option does what it was declared to do: one that can change a result changes the cell id, any other does not.

The options are walked, not listed: a new one is held to its declaration as soon as it is there.
"""

import atexit
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codechat.base.config import Config, is_identity, original_option, place_option, result_option, run_option
from codechat.base.domain import Target
from codechat.datasets.tasks import Dataset, Task
from codechat.models.gguf import GgufConfig
from codechat.run.settings.compose import compose
from codechat.run.settings.config import GROUPS, CellConfig, cell_id
from codechat.studies.refine.instructions import Pool

TASKS = (Task("t/1", "Do it.", Target("python", "f")),)
DATASET = Dataset("own", TASKS, "content")
POOL = Pool((), "pool")
WEIGHTS = Path(tempfile.gettempdir()) / f"codechat-weights-{os.getpid()}.gguf"
WEIGHTS.write_bytes(b"GGUF")
atexit.register(WEIGHTS.unlink)
Place = tuple[str, ...]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


def identity(config: CellConfig) -> str:
    return cell_id(config, DATASET, TASKS, {"instructions": POOL})


def filled(model: type[Config]) -> Config:
    """A config with something for every required option; nothing is validated, but a GGUF file is read."""
    given = WEIGHTS if model is GgufConfig else Path(__file__)
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if not field.is_required():
            values[name] = field.get_default(call_default_factory=True)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, Config):
            values[name] = filled(field.annotation)
        else:
            values[name] = str(given) if name in ("path", "from") else f"some {name}"
    return model.model_construct(**values)


def options(config: Config, place: Place = (), counts: bool = True) -> Iterator[tuple[Place, bool]]:
    """The places of all options, and whether they may change a result: only if all around them may."""
    for name, field in type(config).model_fields.items():
        value, here = getattr(config, name), (*place, name)
        inner = counts and is_identity(field)
        if isinstance(value, Config):
            yield from options(value, here, inner)
        else:
            yield here, inner


def changed(config: Any, place: Place, value: Any) -> Any:
    name, *rest = place
    new = changed(getattr(config, name), tuple(rest), value) if rest else value
    return config.model_copy(update={name: new})


def every_option() -> list[tuple[CellConfig, Place, bool]]:
    """Those of every component, in a protocol that uses most groups, and of the cell itself; each once.

    Those of a group that it does not use cannot count. A protocol's own kind is left out, since another protocol uses
    other groups.
    """
    start = compose(["model=openai", "model.name=a"]).config
    found, unused = {}, GROUPS.keys() - start.uses
    for group, registry in GROUPS.items():
        for component in registry:
            config = start.model_copy(update={group: filled(component.config)})
            for place, counts in options(config):
                kind = type(getattr(config, place[0])).__name__ if len(place) > 1 else ""
                if place != ("protocol", "kind"):
                    found[kind, place] = (config, place, counts and place[0] not in unused)
    return list(found.values())


EVERY = every_option()


def test_there_are_options_of_both_sorts_in_every_room() -> None:
    assert {place[0] for _, place, counts in EVERY if counts} >= {"model", "dataset", "agenda", "judge", "seed"}
    assert {place[0] for _, place, counts in EVERY if not counts} >= {"hardware", "tracking", "runs_dir", "model"}
    assert len(EVERY) > 100


def needs(config: Any, place: Place) -> tuple[Place, Any] | None:
    """The place of the option within which an option counts, and a value of it for which it does; None if always."""
    if place == ("protocol", "prompts", "gate"):
        return ("protocol", "gate"), "tests"
    for name in place[:-1]:
        config = getattr(config, name)
    other, values = config.within.get(place[-1], ("", ())) if isinstance(config, Config) else ("", ())
    return ((*place[:-1], other), values[0]) if values else None


@pytest.mark.parametrize(("config", "place", "counts"), EVERY, ids=[".".join(place) for _, place, _ in EVERY])
@settings(max_examples=3)  # of each of 478 options
@given(value=VALUES)
def test_an_option_acts_as_it_is_declared(config: CellConfig, place: Place, counts: bool, value: Any) -> None:
    if place in (
        ("model", "path"),
        ("judge", "path"),
        ("protocol", "path"),
        ("agenda", "from"),
    ):  # a recording, a model or dialogues have to be there: its content counts, its place does not
        here = Path(getattr(getattr(config, place[0]), place[1]))
        elsewhere = here.parent / ".." / here.parent.name / here.name
        assert identity(changed(config, place, str(elsewhere))) == identity(config)
        return
    if isinstance(config.model, GgufConfig) and place == ("model", "weights", "revision"):  # the file's own is taken
        return
    if place == ("sandbox", "python"):  # so does an interpreter: tests/unit/sandbox/test_sandbox_libraries.py
        return
    if needed := needs(config, place):
        assert identity(changed(config, place, value)) == identity(config)
        config = changed(config, *needed)
    equal = identity(changed(config, place, ["one"])) == identity(changed(config, place, value))
    assert equal == (not counts or value == ["one"])


class Plain(Config):
    """Options of all sorts, some within mappings and lists."""

    kind: str = result_option("plain", "always counts")
    first: int = original_option(1, "counts at its default")
    later: int = result_option(2, "counts unless it has its default")
    fast: bool = run_option(False, "never counts")
    path: str = place_option("here", "never counts")
    inner: dict[str, Any] = result_option({}, "configs by name")
    several: list[Any] = result_option([], "configs in a list")


def test_an_option_added_later_changes_no_id_until_it_is_set() -> None:
    assert Plain().identity() == {"kind": "plain", "first": 1}
    assert Plain(later=3, fast=True, path="there").identity() == {"kind": "plain", "first": 1, "later": 3}


def test_mappings_and_lists_of_configs_count_by_their_identities() -> None:
    config = Plain(inner={"user": Plain(fast=True)}, several=[Plain(later=5), 7])
    assert config.identity()["inner"] == {"user": {"kind": "plain", "first": 1}}
    assert config.identity()["several"] == [{"kind": "plain", "first": 1, "later": 5}, 7]


class Versioned(Config):
    """Something that was mended twice."""

    version: ClassVar[int] = 3

    kind: str = result_option("versioned", "which")


class Holder(Config):
    """Holds it."""

    kind: str = result_option("holder", "which")
    part: Versioned = result_option(Versioned(kind="usual"), "the part")


def test_a_version_counts_from_the_second_on_and_earlier_identities_can_be_had() -> None:
    config = Holder(part=Versioned(kind="other"))
    assert config.identity()["part"] == {"kind": "other", "version": 3}
    assert config.identity(1)["part"] == {"kind": "other", "version": 2}
    assert config.identity(2)["part"] == config.identity(9)["part"] == {"kind": "other"}
    assert config.versions() == 3


def test_what_a_protocol_does_not_use_does_not_count() -> None:
    words = ["model=echo", "protocol=static"]
    config = compose(words).config
    for other in ("agenda=iid", "judge=llm", "instructions.verbs={tweak: modify}"):
        assert cell_id(compose([*words, other]).config, DATASET, TASKS, {}) == cell_id(config, DATASET, TASKS, {})
    other = compose([*words, "sandbox.memory_mb=512"]).config
    assert cell_id(other, DATASET, TASKS, {}) != cell_id(config, DATASET, TASKS, {})


@given(st.booleans())
def test_an_arm_of_an_ablation_has_cells_of_its_own(own: bool) -> None:
    config = compose(["dataset=jsonl", "dataset.path=x.jsonl"]).config

    def made(name: str) -> str:
        return cell_id(config, Dataset(name, TASKS, "content", own=own), TASKS, {"instructions": POOL})

    assert made("shop") == made("shop_of_bob")
    assert (made("shop_without_alignment") != made("shop")) is own
    assert (made("shop_without_both") != made("shop_without_alignment")) is own
