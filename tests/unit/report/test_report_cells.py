"""Loading finished cells: which folders are cells, what sets them apart, and what is told of damaged ones."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from codechat.base.environment import data_folder
from codechat.base.errors import UserError
from codechat.base.files import content_hash, from_yaml
from codechat.cli.commands.report import options_of
from codechat.report.build import build_report
from codechat.report.loading import Named, cell_folders, differences, load_cells
from support.mistakes import mistake
from support.refine_cells import Made, write_cell


def small(model: str = "m", **options: object) -> Made:
    return Made(model, tasks=3, turns=3, **options)  # type: ignore[arg-type]


def test_a_cells_folder_or_a_folder_of_cells(tmp_path: Path) -> None:
    one, two = (write_cell(small(model), tmp_path / "runs") for model in ("a", "b"))
    (tmp_path / "runs" / "notes").mkdir()
    assert [cell.folder for cell in load_cells([tmp_path / "runs"])] == [one, two]
    assert [cell.model for cell in load_cells([two, one, tmp_path / "runs"])] == ["a", "b"]
    (cell,) = load_cells([one])
    assert (cell.dataset, cell.agenda, cell.turns, cell.seed, cell.judge) == ("humaneval", "balanced", 3, 0, "rules")
    assert cell.label == "a"
    assert [session.task_id for session in cell.sessions()] == ["humaneval/0", "humaneval/1", "humaneval/2"]


def test_variants_tell_what_varies_and_nothing_else(tmp_path: Path) -> None:
    for made in (
        small("a"),
        small("a", agenda="iid"),
        small("a", agenda="iid", seed=1),
        small("b"),
        small("b", judge="llm"),
    ):
        write_cell(made, tmp_path)
    assert [cell.label for cell in load_cells([tmp_path])] == [
        "a (agenda=balanced, judge=rules, seed=0)",
        "a (agenda=iid, judge=rules, seed=0)",
        "a (agenda=iid, judge=rules, seed=1)",
        "b (agenda=balanced, judge=llm, seed=0)",
        "b (agenda=balanced, judge=rules, seed=0)",
    ]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_figures_that_are_no_finite_numbers_are_refused(text: str, tmp_path: Path) -> None:
    """Older versions wrote them, and the page stayed blank."""
    path = write_cell(small("a"), tmp_path) / "metrics.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "wall_s": "HERE"}).replace('"HERE"', text))
    with mistake("metrics.json", "wall_s", "run the cell again"):
        load_cells([tmp_path])


def edited(folder: Path, **changes: object) -> None:
    path = folder / "config.yaml"
    config = from_yaml(path.read_text())
    for key, value in changes.items():
        group, _, name = key.partition("__")
        config[group][name] = value
    path.write_text(yaml.safe_dump(config))


def test_options_of_one_choice_are_told_and_those_of_where_it_ran_are_not(tmp_path: Path) -> None:
    plain = write_cell(small("a"), tmp_path)
    other = tmp_path / "other"
    shutil.copytree(plain, other)
    sessions = (other / "sessions.jsonl").read_text().replace("a/humaneval/balanced", "a2/humaneval/balanced")
    (other / "sessions.jsonl").write_text(sessions)
    edited(other, model__temperature=0.7, model__base_url="http://127.0.0.1:2/v1")
    assert [cell.label for cell in load_cells([tmp_path], options_of)] == ["a (temperature=0)", "a (temperature=0.7)"]
    edited(other, model__temperature=None)
    labels = [cell.label for cell in load_cells([tmp_path], options_of)]
    assert len(set(labels)) == 2, "cells of equal settings are told apart"


def variants(*configs: dict[str, Any]) -> list[str]:
    cells = [Named("m", "d", config, f"{number}" * 16) for number, config in enumerate(configs)]
    return [", ".join(words.values()) for words in differences(cells, options_of)]


def test_groups_and_options_that_nobody_listed_are_told() -> None:
    """A variant follows from config.yaml and from what the options' own declarations say of them."""
    one, two = {"launcher": {"kind": "serial", "nodes": 1}}, {"launcher": {"kind": "serial", "nodes": 2}}
    assert variants(one, two) == ["launcher.nodes=1", "launcher.nodes=2"]
    runs = [{"hardware": {"kind": "local", "workers": number}, "max_errors": number} for number in (1, 2)]
    assert variants(*runs) == ["cell=00000000", "cell=11111111"]
    chosen = [{"sandbox": {"kind": kind}, "choices": {"sandbox": kind}} for kind in ("auto", "process")]
    assert variants(*chosen) == ["cell=00000000", "cell=11111111"]
    picked = [
        {"dataset": {"kind": "starter", "limit": limit}, "choices": {"dataset": "starter"}} for limit in (3, None)
    ]
    assert variants(*picked) == ["limit=3", "limit=null"]
    judged = [{"judge": {"kind": "llm", "max_reasks": number, "lookahead": number}} for number in (1, 2)]
    assert variants(*judged) == ["judge.max_reasks=1", "judge.max_reasks=2"]


OWN = "Implement the following Python function, and think of every corner that it may have before you write."


def prompted(text: str) -> dict[str, Any]:
    return {"protocol": {"kind": "refine", "prompts": {"initial": text}}, "choices": {"protocol": "refine"}}


def test_prompts_are_named_by_their_preset_or_their_hash() -> None:
    shipped = (data_folder("conf") / "prompts" / "refine" / "careful" / "initial.md").read_text()
    assert variants(prompted(shipped), prompted(OWN), prompted("Go!")) == [
        "prompts.initial=careful",
        f"prompts.initial=#{content_hash(OWN)[:6]}",
        "prompts.initial=Go!",
    ]


def test_an_option_that_an_older_cell_lacks_has_its_default() -> None:
    judge = {"kind": "llm", "lookahead": 1}
    assert variants({"judge": judge, "seed": 0}, {"judge": {**judge, "max_reasks": 2}, "seed": 1}) == [
        "seed=0",
        "seed=1",
    ]
    asked = [{"model": {"kind": "openai", "name": "m", "temperature": value}} for value in (None, 0.7)]
    assert variants(*asked) == ["temperature=null", "temperature=0.7"]


def test_cells_of_equal_settings_are_told_by_their_files_or_what_was_done_with_them() -> None:
    pools = [{"instructions": {"kind": "default", "path": f"/pools/{name}.csv"}} for name in ("mine", "yours")]
    assert variants(*pools) == ["instructions.path=mine.csv", "instructions.path=yours.csv"]
    assert variants({"seed": 0}, {"seed": 0, "rescored_from": "1" * 64}) == ["", "rescored"]
    judges = [{"judge": {"kind": kind}, "choices": {"judge": kind}} for kind in ("rules", "llm")]
    assert variants(judges[0], {**judges[1], "rescored_from": "1"}) == ["judge=rules", "judge=llm"]


def test_a_dataset_that_is_cut_is_told_where_it_is() -> None:
    cells = [
        Named("m", dataset, {"dataset": {"kind": "starter", "limit": limit}, "seed": seed})
        for dataset, limit, seed in (("starter", 3, 0), ("starter", 5, 1), ("mine", None, 0))
    ]
    assert [", ".join(words.values()) for words in differences(cells, options_of)] == [
        "limit=3, seed=0",
        "limit=5, seed=1",
        "seed=0",
    ]


def test_a_replayed_model_keeps_its_name(tmp_path: Path) -> None:
    for name, seed in (("gpt-4o", 0), ("gpt-4o", 1), ("claude", 0)):
        made = write_cell(small("replay", seed=seed), tmp_path / "runs")
        edited(made, model__kind="replay")
        config = from_yaml((made / "config.yaml").read_text())
        config = {**config, "seed": seed, "recorded_model": name}
        (made / "config.yaml").write_text(yaml.safe_dump(config))
        sessions = (made / "sessions.jsonl").read_text().replace("replay/humaneval", f"{name}/humaneval")
        (made / "sessions.jsonl").write_text(sessions)
        made.rename(made.with_name(f"{name}-{seed}"))
    assert [cell.label for cell in load_cells([tmp_path / "runs"])] == [
        "claude (replay, seed=0)",
        "gpt-4o (replay, seed=0)",
        "gpt-4o (replay, seed=1)",
    ]


def test_the_same_cell_twice_is_refused(tmp_path: Path) -> None:
    folder = write_cell(small(), tmp_path)
    shutil.copytree(folder, tmp_path / "copy")
    with pytest.raises(UserError, match="hold the same cell"):
        load_cells([tmp_path])


def test_unfinished_cells_are_named_apart(tmp_path: Path) -> None:
    done, running = (write_cell(small(model), tmp_path) for model in ("a", "b"))
    (running / "metrics.json").unlink()
    assert cell_folders(tmp_path) == ([done], [running])
    assert len(load_cells([tmp_path])) == 1
    with mistake(str(running)):
        load_cells([running])


def test_what_is_no_cell(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no folder"):
        load_cells([tmp_path / "missing"])
    with pytest.raises(UserError, match="holds no cell"):
        load_cells([tmp_path])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("metrics.json", "{", "metrics.json is damaged"),
        ("metrics.json", "[]", "holds no mapping"),
        ("metrics.json", '{"sessions": 3}', "not what this version writes: completed: Field required"),
        ("config.yaml", "a: [", "config.yaml is damaged"),
        ("sessions.jsonl", "", "holds no session"),
        ("sessions.jsonl", "{}\n", "sessions.jsonl:1: not a session record"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, name: str, content: str, told: str) -> None:
    folder = write_cell(small(), tmp_path)
    (folder / name).write_text(content)
    with pytest.raises(UserError, match=told):
        load_cells([folder])


def test_records_that_do_not_belong_to_the_metrics(tmp_path: Path) -> None:
    folder = write_cell(small(), tmp_path / "runs")
    lines = (folder / "sessions.jsonl").read_text().splitlines(keepends=True)
    (folder / "sessions.jsonl").write_text("".join(lines[:2]))
    with pytest.raises(UserError, match="counts 3 sessions"):
        build_report(load_cells([folder]), tmp_path / "out")


def test_cells_without_a_completed_session_are_left_out_and_told(tmp_path: Path) -> None:
    write_cell(small("good"), tmp_path / "runs")
    bad = write_cell(small("bad", errored=3), tmp_path / "runs")
    data = build_report(load_cells([tmp_path / "runs"]), tmp_path / "out")
    (note,) = data.notes
    assert "Left out" in note and bad.name in note
    assert [row[1] for row in data.tables[0].rows] == ["good"]
    with mistake():
        build_report(load_cells([bad]), tmp_path / "out")


def test_other_protocols_are_loaded_as_they_are(tmp_path: Path) -> None:
    folder = write_cell(small(), tmp_path)
    sessions = (folder / "sessions.jsonl").read_text().replace('"protocol":"refine"', '"protocol":"repair"')
    (folder / "sessions.jsonl").write_text(sessions)
    (folder / "metrics.json").write_text(json.dumps({"own": 1}))
    (cell,) = load_cells([folder])
    assert (cell.protocol, cell.metrics) == ("repair", {"own": 1})
