"""Every shipped option is composed and run small, and every sweep is composed: YAML cannot rot."""

import csv
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.environment import data_folder
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.cli.app import main
from codechat.cli.commands.listing import options_of
from codechat.cli.sweep import expand, read_recipe, run_sweep
from codechat.run.run import Outcome
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose, presets_of
from codechat.studies.cab.chapter.tables import paper, paper_name
from codechat.testing import Answer, OpenAIServer, dataset_tasks, reference_solver
from support.codeif import write_rows
from support.mistakes import mistake
from support.multicodeif import chain, constrained
from support.provider_servers import AWS, SERVERS
from support.sreval import growing
from support.standin_vllm import install_local

STARTER = dataset_tasks("starter")
PRESETS = sorted(path.stem for path in (data_folder("conf") / "model").glob("*.yaml"))
APART = {"learned", "cells", "removals"}
"""Agendas with a file of their own, and of types that not every task has: tests/e2e/test_session_lengths.py runs them."""
SMALL = ("dataset.limit=1", "agenda.turns=3", "tracking=none", "hardware.workers=1")


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(reference_solver(STARTER)) as running:
        yield running


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*overrides: str) -> Outcome:
    return run_composed(compose([*SMALL, *overrides]))


def served(*nodes: str, url: str) -> list[str]:
    return [word for node in nodes for word in (f"{node}.base_url={url}", f"{node}.api_key_env=null")]


@pytest.mark.long
def test_model_presets_are_composed_and_those_that_reason_are_given_time(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their limit is no part of an id: a longer one makes no other cell."""
    install_local(here, monkeypatch)
    reasoning = [
        name for name in PRESETS if name.startswith(("gpt5", "gpt_oss")) or name.endswith(("_thinking", "_r1"))
    ]
    assert len(reasoning) >= 13
    for preset in sorted(set(PRESETS) - set(SERVERS)):
        open_ones = ["model.name=m", "model.command=[sh]", "model.base_url=http://127.0.0.1:9/v1"]
        given = open_ones if preset == "command" else []
        composed = compose([*SMALL, f"model={preset}", "model.api_key_env=null", *given])
        assert composed.choices["model"] == preset
        config: Any = composed.config.model
        if hasattr(config, "timeout_s"):
            usual = 600 if config.kind == "agent" else 300
            assert config.timeout_s == (1800 if preset in reasoning else usual), preset
            assert "timeout_s" not in config.identity()


@pytest.mark.parametrize("preset", ["gpt5", "gpt_oss_20b_low", "qwen3_30b_thinking", "qwen25_coder_7b"])
def test_a_preset_of_each_kind_runs(here: Path, server: OpenAIServer, preset: str) -> None:
    outcome = run(f"model={preset}", *served("model", url=server.base_url))
    assert outcome.status == 0
    assert outcome.metrics is not None
    assert outcome.metrics["pass_at_1"] == [1.0] * 3
    session = json.loads((outcome.folder / "sessions.jsonl").read_text())
    assert session["model"] == preset


@pytest.mark.parametrize("preset", sorted(set(PRESETS) & set(SERVERS)))
def test_presets_that_leave_the_name_open(here: Path, preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mistake("model.name is required", "model.name="):
        compose([*SMALL, f"model={preset}"])
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    with SERVERS[preset](reference_solver(STARTER)) as speaking:
        outcome = run(f"model={preset}", "model.name=small-1", *served("model", url=speaking.base_url))
    assert outcome.status == 0
    assert outcome.metrics is not None
    assert outcome.metrics["pass_at_1"] == [1.0] * 3
    session = json.loads((outcome.folder / "sessions.jsonl").read_text())
    assert session["model"] == "small-1"


@pytest.mark.parametrize(("preset", "at"), [("llm", "judge"), ("paper", "judge"), ("hybrid", "judge.llm")])
def test_judge_presets(here: Path, server: OpenAIServer, preset: str, at: str) -> None:
    outcome = run(f"judge={preset}", *served(f"{at}.applicability", f"{at}.adherence", url=server.base_url))
    assert outcome.status == 0
    assert outcome.metrics is not None
    assert outcome.metrics["undecided"] == 0


def test_prompt_presets_are_two_cells_and_an_ablation(here: Path, server: OpenAIServer) -> None:
    model = ("model=gpt5_nano", *served("model", url=server.base_url))
    plain, careful = (run(*model, f"protocol.prompts={name}") for name in ("plain", "careful"))
    assert plain.status == careful.status == 0 and plain.folder != careful.folder
    asked = json.loads((plain.folder / "sessions.jsonl").read_text())["turns"][1]
    assert asked["request"][-1]["content"] == asked["instruction"]["text"], "the instruction alone"
    assert main(["report", "runs=runs", "out=report"]) == 0
    table = list(csv.DictReader((here / "report/tables/ablation_prompts.csv").read_text().splitlines()))
    assert [row["prompts"] for row in table] == ["careful", "plain"]


@pytest.mark.parametrize("preset", presets_of("llm"))
def test_judges_prompt_presets(here: Path, server: OpenAIServer, preset: str) -> None:
    places = served("judge.applicability", "judge.adherence", url=server.base_url)
    outcome = run("judge=paper", f"judge.prompts={preset}", *places)
    assert outcome.metrics is not None and outcome.metrics["undecided"] == 0


@pytest.mark.parametrize(
    ("preset", "turns"),
    [
        ("balanced", 2),
        ("fixed", 2),
        ("removals", 4),
        *((preset, 11) for preset in sorted({*options_of("agenda")} - APART)),
    ],
)
def test_agenda_presets(here: Path, preset: str, turns: int) -> None:
    outcome = run(f"agenda={preset}", f"agenda.turns={turns}")
    assert outcome.status == 0
    assert outcome.metrics is not None
    assert len(outcome.metrics["pass_at_1"]) == turns
    assert outcome.metrics["skipped_turns"] == 0


@pytest.mark.parametrize("turns", [25, 50])
def test_long_sessions_are_served(here: Path, turns: int) -> None:
    outcome = run(f"agenda.turns={turns}")
    assert outcome.metrics is not None
    assert len(outcome.metrics["pass_at_1"]) == turns
    (session,) = [json.loads(line) for line in (outcome.folder / "sessions.jsonl").read_text().splitlines()]
    ids = [turn["instruction"]["id"] for turn in session["turns"] if turn["instruction"]]
    assert len(ids) == len(set(ids)), "an instruction is asked for once"


@pytest.mark.parametrize("group", ["sandbox", "tracking", "hardware", "protocol", "instructions"])
def test_the_other_groups(here: Path, group: str) -> None:
    needed = {
        "paper": ["instructions.path=pool.csv", "judge=llm"],  # the paper's pool is not shipped
        "server": ["tracking.uri=http://127.0.0.1:5000"],
        "recorded": ["model=replay", "model.path=sessions.jsonl"],
        "refined": ["model=replay", "model.path=sessions.jsonl"],
    }
    Path("pool.csv").write_text("text,scope\nUse a set.,semantic\n")
    for option in options_of(group):
        composed = compose([*SMALL, f"{group}={option}", *needed.get(option, [])])
        assert composed.choices[group] == option


@pytest.mark.long
@pytest.mark.parametrize("path", sorted(data_folder("sweeps").glob("*.yaml")), ids=lambda path: path.stem)
def test_sweeps_are_composed(path: Path) -> None:
    recipe = read_recipe(path.stem)
    assert recipe.question.endswith("?")
    assert path.read_text().startswith("# ")
    cells = {
        tuple(map(str, words))
        for grid in recipe.grids
        for words in expand([f"{k}={_values(v)}" for k, v in grid.items()])
    }
    assert len(cells) > 1 or path.stem == "session_length", "whose one cell is cut"
    for words in cells:
        published = {"dataset=codeif_bench", "dataset=sreval_python", "dataset=multicodeif", "dataset=cab"} & set(words)
        compose([*words, *(["dataset.path=tasks.jsonl"] if published else [])])


@pytest.mark.parametrize(("name", "cells"), [("codeif_static", 2), ("codeif_dynamic", 1), ("codeif_cot", 2)])
def test_codeif_recipes_run(here: Path, name: str, cells: int) -> None:
    """With one model for all and a task of one's own: the shapes of their cells, offline."""
    row = {
        "task_id": "mine/0", "prompt": "Write double(x).", "entry_point": "double",
        "canonical_solution": "def double(x):\n    return 2 * x\n", "tests": ["assert double(2) == 4"],
        "requirements": [{"type": "Code Standard", "text": "Keep it short.", "tests": ["assert double(3) == 6"]}],
    }  # fmt: skip
    (here / "mine.jsonl").write_text(json.dumps(row) + "\n")
    given = ["model=echo", "dataset=jsonl", "dataset.path=mine.jsonl", "tracking=none", "hardware.workers=1"]
    assert run_sweep([f"+sweep={name}", *given]) == 0
    folders = list((here / "runs").iterdir())
    assert len(folders) == cells
    for folder in folders:
        assert json.loads((folder / "metrics.json").read_text())["overall"]["ca_all"] == 1


@pytest.mark.parametrize(("name", "cells"), [("sreval_rq1", 2), ("sreval_rq2", 5)])
@pytest.mark.long
def test_sreval_recipes_run(here: Path, name: str, cells: int) -> None:
    """With one model for all and a task of one's own: the shapes of their cells, offline, and the tables they are for."""
    (here / "tasks.jsonl").write_text(json.dumps(growing("a" * 24)) + "\n")
    given = ["model=reference", "dataset.path=tasks.jsonl", "tracking=none", "hardware.workers=1"]
    assert run_sweep([f"+sweep={name}", *given]) == 0
    settings = [from_yaml(path.read_text())["protocol"] for path in (here / "runs").glob("*/config.yaml")]
    asked = {(each["prompting"], each["context"]) for each in settings}
    assert len(asked) == len(settings) == cells and {each["harness"] for each in settings} == {"official"}
    assert main(["report", "runs=runs", "out=report"]) == 0
    table = list(csv.DictReader((here / "report/tables/stepwise_prompting_function.csv").read_text().splitlines()))
    (column,) = (key for key in table[0] if key.startswith("python") and key.endswith("avg_acc"))
    assert "not_as_published" in column.replace(" ", "_"), "a task of one's own is not the benchmark"
    assert len(table) == cells and {row[column] for row in table} == {"1.0"}
    assert {row["source"] for row in table} == {"measured"}, "a single task is not the paper's dataset"


@pytest.mark.long
def test_the_multicodeif_recipe_decodes_as_the_paper_does(here: Path) -> None:
    """With one model for all, a task of a rule, one of a judge, and a chain."""
    judged = {"category": "situation", "constraint_type": "situation", "answer": "fn f() {}"}
    write_rows(here / "tasks.jsonl", constrained(), constrained(task_id="situation/1", **judged), *chain())
    given = ["model=openai", "model.name=m", "dataset.path=tasks.jsonl", "tracking=none", "hardware.workers=1"]
    with OpenAIServer(lambda call: Answer("REASON: none.\nVERDICT: KEPT")) as server:
        assert (
            run_sweep(
                [
                    "+sweep=multicodeif",
                    "judge.check=false",
                    *given,
                    *served("model", "judge.constraint", url=server.base_url),
                ]
            )
            == 0
        )
    found = [json.loads(path.read_text()) for path in (here / "runs").glob("*/metrics.json")]
    assert sorted(metrics["completed"] for metrics in found) == [1, 2]
    assert sum("ifrepair" in metrics for metrics in found) == sum("avg_ssr" in metrics for metrics in found) == 1
    asked = [call.body for call in server.calls if call.body["model"] == "m"]
    decoding = {"temperature": 0.2, "max_tokens": 4096, "top_p": 0.9, "top_k": 1}
    assert len(asked) > 6 and all(decoding.items() <= body.items() for body in asked)


def test_the_papers_recipes_have_its_limits_and_prompts() -> None:
    """As the replication package is said to have them (docs/paper.md, second hand)."""
    limits = {}
    for grid in read_recipe("rq1").grids:
        assert grid["protocol.prompts"] == "paper" and grid["judge"] == "paper"
        assert grid["judge.applicability.max_tokens"] == grid["judge.adherence.max_tokens"] == 8192
        models = grid["model"] if isinstance(grid["model"], list) else [grid["model"]]
        limits |= {model: (grid.get("model.max_tokens"), grid.get("model.reasoning_effort")) for model in models}
    open_models = ("llama31_8b", "llama33_70b", "qwen25_coder_7b", "qwen25_coder_14b", "qwen25_coder_32b")
    assert limits == {
        **dict.fromkeys(open_models, (1024, None)), "deepseek_v3": (4096, None),
        **dict.fromkeys(("gpt5", "gpt5_nano"), (None, "medium")),
    }  # fmt: skip


def test_the_cab_recipe_has_the_papers_models() -> None:
    recipe = from_yaml((data_folder("sweeps") / "cab.yaml").read_text())
    (grid,) = recipe["grids"]
    named = [paper_name(model) for model in grid["model"]]
    assert sorted(named) == sorted(paper()["recent"])
    roles = compose(
        [f"model@protocol.roles.{role}={grid[f'model@protocol.roles.{role}']}" for role in ("user", "judge")]
        + ["protocol=assist", "dataset=cab", "dataset.path=x"]
    ).config.protocol.roles  # type: ignore[attr-defined]
    assert {paper_name(roles.user.name), paper_name(roles.judge.name)} == {"Sonnet 3.7"}


def test_presets_of_served_models_have_a_port_each() -> None:
    presets = [from_yaml(path.read_text()) for path in (data_folder("conf") / "model").glob("*.yaml")]
    ports = [preset["base_url"] for preset in presets if "127.0.0.1" in preset.get("base_url", "")]
    assert len(ports) > 10
    assert len(set(ports)) == len(ports)


def _values(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def test_yaml_starts_with_its_description() -> None:
    for path in data_folder("conf").glob("*/*.yaml"):
        assert path.read_text().startswith("# "), path
        assert isinstance(from_yaml(path.read_text()), dict), path


def test_a_sweep_runs_all_its_cells(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_sweep([*SMALL, "agenda=balanced,escalating", "seed=1,2"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(" done ") == 4
    assert printed.splitlines()[-1].startswith("compare  ")
    assert "report runs=runs/" in printed
    assert len(list((here / "runs").iterdir())) == 4


def test_a_mistake_in_one_cell_is_told_before_any_runs(here: Path) -> None:
    with mistake("agenda.turns", "equal to 2"):
        run_sweep([*SMALL[:1], "agenda.turns=5,1", "tracking=none"])
    assert not (here / "runs").exists()


def test_a_failed_cell_does_not_stop_the_others(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = {
        "task_id": "t",
        "prompt": "",
        "entry_point": "f",
        "canonical_solution": "def f(x):\n    return x\n",
        "base_input": [[1]],
        "plus_input": [],
        "atol": 0,
    }
    (here / "good.jsonl").write_text(json.dumps(task) + "\n")
    status = run_sweep([*SMALL, "dataset=jsonl", "dataset.path=missing.jsonl,good.jsonl"])
    assert status == 2
    captured = capsys.readouterr()
    assert "missing.jsonl" in captured.err
    assert "not run" in captured.out
    assert " done " in captured.out


@pytest.mark.long
@pytest.mark.usefixtures("rendered")
def test_smoke_runs_offline_and_reports(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_sweep(["+sweep=smoke", "tracking=none", "dataset.limit=1"]) == 0
    printed = capsys.readouterr().out
    assert printed.count(" done ") == 16
    command = shlex.split(printed.splitlines()[-1].removeprefix("compare  "))
    assert main(command[1:]) == 0
    assert (here / "report-smoke" / "index.html").stat().st_size > 100_000


def test_a_recipe_names_its_sweep(here: Path) -> None:
    (here / "sweeps").mkdir()
    (here / "sweeps" / "mine.yaml").write_text(
        "# Is it so?\nquestion: Is it so?\ngrids:\n  - agenda: [balanced, iid]\n"
    )
    assert run_sweep(["+sweep=mine", *SMALL]) == 0
    assert len(list((here / "runs").iterdir())) == 2
    assert run_sweep(["+sweep=mine", *SMALL, "agenda=fixed"]) == 0
    assert len(list((here / "runs").iterdir())) == 3, "the command line takes the place of the recipe's value"
    (here / "sweeps" / "bad.yaml").write_text("cells: 3\n")
    with pytest.raises(UserError, match="is no recipe"):
        run_sweep(["+sweep=bad"])
    with pytest.raises(UserError, match="did you mean 'mine'"):
        run_sweep(["+sweep=mime"])
