"""The cell id is a hash of everything that can change a result, and of nothing else (contract, section 2)."""

import json
from pathlib import Path

import pytest

from codechat.base.config import Config, is_identity
from codechat.base.errors import UserError
from codechat.run.cell import Cell, build_cell
from codechat.run.settings.compose import compose
from codechat.run.settings.config import GROUPS, CellConfig

TASK = {
    "task_id": "mine/1",
    "prompt": 'def double(x):\n    """Twice x."""\n',
    "entry_point": "double",
    "canonical_solution": "    return 2 * x\n",
    "base_input": [[1]],
    "plus_input": [[0], [-3]],
    "atol": 0,
}


def cell(*overrides: str) -> Cell:
    return build_cell(compose(["model=echo", *overrides]))


@pytest.fixture(scope="module")
def reference() -> Cell:
    return cell()


CHANGES_NOTHING = [
    "judge.lookahead=4",
    "sandbox=process",
    "sandbox.allow_weak=true",
    "runs_dir=elsewhere",
    "max_errors=3",
    "hardware.workers=1",
    "tracking=none",
    "tracking.experiment=other",
    "tracking.uri=sqlite:///elsewhere.db",
    "model.max_concurrency=2",
    "dataset.limit=100000",
]

CHANGES_THE_RESULT = [
    "seed=1",
    "agenda=iid",
    "agenda.turns=9",
    "agenda.axis=change",
    "agenda=escalating",
    "dataset.limit=3",
    "model=gpt5",
    "judge=llm",
    "protocol.prompts.followup='Please: {{instruction}}'",
    "instructions.verbs={tweak: modify}",
]


@pytest.mark.parametrize("override", CHANGES_NOTHING)
def test_where_and_how_fast_is_not_part_of_it(reference: Cell, override: str) -> None:
    assert cell(override).id == reference.id


@pytest.mark.parametrize("override", CHANGES_THE_RESULT)
def test_what_can_change_a_result_is(reference: Cell, override: str) -> None:
    assert cell(override).id != reference.id


def test_decoding_and_name_count_but_the_endpoint_does_not() -> None:
    first = cell("model=openai", "model.name=a")
    for same in ("model.base_url=http://127.0.0.1:1/v1", "model.api_key_env=OTHER_KEY", "model.max_concurrency=3"):
        assert cell("model=openai", "model.name=a", same).id == first.id, same
    for other in ("model.name=b", "model.temperature=0.5", "model.max_tokens=77"):
        assert cell("model=openai", "model.name=a", other).id != first.id, other


def test_a_preset_is_the_same_cell_as_its_options_spelled_out() -> None:
    assert cell("agenda=balanced").id == cell("agenda=quota").id


def test_the_tasks_content_counts_and_their_path_does_not(tmp_path: Path) -> None:
    def write(name: str, **changes: object) -> str:
        (tmp_path / name).write_text(json.dumps({**TASK, **changes}) + "\n")
        return f"dataset.path={tmp_path / name}"

    first = cell("dataset=jsonl", write("a.jsonl"))
    assert cell("dataset=jsonl", write("b.jsonl")).id == first.id
    assert cell("dataset=jsonl", write("c.jsonl", plus_input=[[5]])).id != first.id


def test_every_option_of_every_component_is_classified() -> None:
    def walk(model: type[Config]) -> None:
        for field in model.model_fields.values():
            is_identity(field)
            assert field.description, f"{model.__name__} has an option without a description"
            if isinstance(field.annotation, type) and issubclass(field.annotation, Config):
                walk(field.annotation)

    walk(CellConfig)
    for registry in GROUPS.values():
        for component in registry:
            walk(component.config)


def test_the_folder_is_readable_and_ends_in_the_id(reference: Cell) -> None:
    assert reference.folder.parent == Path("runs")
    assert reference.folder.name == f"echo-starter-balanced-{reference.id[:8]}"
    assert (
        cell("agenda.turns=6", "dataset.limit=2", "seed=3", "tracking=none").name
        == "echo starter balanced 6 turns 2 tasks seed=3"
    )
    assert cell("model=gpt5").model_label == "gpt5"
    assert cell("model=openai", "model.name=org/m-1").model_label == "org/m-1"


@pytest.mark.parametrize("default", ["seed=0", "judge=rules", "agenda.sampling=quota", "protocol=refine", "model=echo"])
def test_a_default_spelled_out_is_the_same_folder(reference: Cell, default: str) -> None:
    assert cell(default).folder == reference.folder


@pytest.mark.parametrize("setting", ["seed=4", "judge.rules_first=false", "agenda.sampling=iid"])
def test_what_departs_from_the_default_is_in_the_name(setting: str) -> None:
    words = ["judge=hybrid"] if setting.startswith("judge.") else []
    assert cell(*words, setting).name.endswith(" ".join([*words, setting]))


def test_the_config_of_an_older_cell_is_read_without_retired_options() -> None:
    config = compose(["model=echo", "tracking.experiment=other"]).config
    values = config.model_dump(mode="json")
    values["tracking"]["traces"] = True
    assert CellConfig.from_values(values) == config
    with pytest.raises(UserError, match=r"tracking\.traces"):
        compose(["model=echo", "tracking.traces=true"])
