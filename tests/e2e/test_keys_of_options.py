"""Keys that only some options of a group have, and cells that two names describe."""

import re
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.cli.sweep import fit_words, run_sweep
from codechat.testing import OpenAIServer, dataset_tasks, reference_solver

SMALL = ("model=echo", "dataset.limit=1", "agenda.turns=2", "tracking=none", "hardware.workers=1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("judge.adherence.base_url=x", "judge=rules has no option judge.adherence\njudge=llm has it; "),
        ("judge.llm.adherence.base_url=x", "judge=rules has no option judge.llm\njudge=hybrid has it; "),
        (
            "dataset.path=x",
            "dataset=starter has no option dataset.path\ndataset=cab, dataset=codeif_bench, dataset=humaneval, ",
        ),
        ("protocol.roles=x", "protocol=refine has no option protocol.roles\nprotocol=assist has it; "),
        (
            "protocol.context=full",
            "protocol=refine has no option protocol.context\nprotocol=levels, protocol=repair, protocol=static, protocol=stepwise ",
        ),
        ("sampels=3", "there is no option sampels\ndid you mean 'samples'"),
        ("model.nmae=x", "there is no option model.nmae\ndid you mean 'name'"),
        ("+nonsense=1", "error: nonsense is not an option\n"),
    ],
)
def test_a_key_of_another_option_names_that_option(word: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word, "tracking=none"]) == 2
    assert said in capsys.readouterr().err


def test_a_sweep_sets_a_key_only_where_an_option_has_it() -> None:
    key, deep = "judge.adherence.base_url=http://h/v1", "model@judge.llm.adherence=gpt5"
    words = [(f"judge={name}", key, deep, "seed=1") for name in ("rules", "llm", "hybrid", "paper")]
    assert fit_words(words) == (
        [
            ("judge=rules", "seed=1"),
            ("judge=llm", key, "seed=1"),
            ("judge=hybrid", deep, "seed=1"),
            ("judge=paper", key, "seed=1"),
        ],
        [key, deep],
    )


def test_combinations_that_become_equal_are_one_cell() -> None:
    warm = [f"judge.adherence.temperature={value}" for value in (0, 0.5)]
    kept, dropped = fit_words([(judge, word) for judge in ("judge=rules", "judge=llm") for word in warm])
    assert kept == [("judge=rules",), *(("judge=llm", word) for word in warm)]
    assert dropped == warm


def test_a_key_that_no_option_of_the_sweep_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    misspelt = ("judge=llm", "judge.adherense.base_url=x")
    assert fit_words([misspelt, ("judge=rules", misspelt[1])])[0][0] == misspelt
    assert main(["-m", "judge=rules,llm", misspelt[1], "tracking=none"]) == 2
    assert "no option judge.adherense" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recipe", "words", "dropped"),
    [
        ("cab", ["environment=none", "model=gpt41_mini", "dataset.path=x"], "environment.fallback"),
        ("paper", ["judge=rules", "model=echo"], "judge.adherence.max_tokens"),
        ("rq1", ["model=echo"], "model.max_tokens"),
        ("multicodeif", ["model=reference", "judge=rules", "dataset.path=x"], "+model.extra_body.top_k"),
    ],
)
@pytest.mark.long
def test_a_recipes_keys_go_with_the_option_that_the_command_line_replaces(
    recipe: str, words: list[str], dropped: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every cell is composed, without the keys that the option in its place does not have."""
    monkeypatch.setattr("codechat.cli.sweep._launch", lambda *_: pytest.fail("composed"))
    with pytest.raises(pytest.fail.Exception, match="composed"):
        run_sweep([f"+sweep={recipe}", *words])
    assert f"whose options have it: {dropped}=" in capsys.readouterr().out
    with pytest.raises(UserError, match="no option"):
        run_sweep([f"+sweep={recipe}", *words, "judge.nothing=1"])


@pytest.mark.long
def test_judges_are_compared_with_servers_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(reference_solver(dataset_tasks("starter"))) as server:
        places = ("judge", "judge.llm")
        urls = [f"{at}.{role}.base_url={server.base_url}" for at in places for role in ("applicability", "adherence")]
        assert run_sweep(["+sweep=judge_ablation", *SMALL, *urls]) == 0
    printed = capsys.readouterr().out
    assert re.search(rf"^only .*judge\.llm\.adherence\.base_url={server.base_url}$", printed, re.MULTILINE)
    rows = printed.partition("sweep judge_ablation\n")[2]
    assert all(f"judge={name}" in rows for name in ("rules", "llm", "hybrid"))
    assert server.base_url not in rows.partition("compare")[0]


def test_a_cell_under_another_name_goes_on_in_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    with OpenAIServer(reference_solver(dataset_tasks("starter"))) as server:
        urls = [f"judge.{role}.base_url={server.base_url}" for role in ("applicability", "adherence")]
        assert main([*SMALL, "judge=llm", *urls]) == 0
        answered = server.answered
        assert main([*SMALL, "judge=paper", *urls]) == 0
        assert server.answered == answered
    assert "nothing was run" in capsys.readouterr().out
    assert [path.name.rpartition("-")[0] for path in Path("runs").iterdir()] == [
        "echo-starter-balanced-2-turns-1-tasks-judge-llm"
    ]
    assert main(["export", "runs=runs", "out=turns.csv"]) == 0


def test_a_pool_without_a_usable_row_is_listed_with_its_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    Path("pool.csv").write_text("text,scope\nFrobnicate it.,structural\n", encoding="utf-8")
    assert main(["list", "instructions", "instructions.path=pool.csv"]) == 2
    printed = capsys.readouterr().out
    assert "0 accepted instructions" in printed
    assert re.search("^.*pool.csv:2: .*verb 'frobnicate'", printed, re.MULTILINE)


def test_a_replay_is_called_after_the_recorded_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "runs_dir=first"]) == 0
    (recorded,) = Path("first").glob("*/sessions.jsonl")
    again = [*SMALL[1:], "model=replay", f"model.path={recorded}", "sandbox.allow_weak=true"]
    assert main([*again, "runs_dir=again"]) == 0
    assert main([*again, "runs_dir=named", "model.name=mine"]) == 0
    printed = capsys.readouterr().out
    assert "echo (replay) starter balanced 2 turns 1 tasks" in printed
    assert "\nmine starter balanced 2 turns 1 tasks" in printed
    (folder,) = Path("again").iterdir()
    assert folder.name.startswith("echo-replay-starter-balanced")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["agenda.distribution={cosmetic: 1, semantik: 3}"], "cosmetic, structural, semantic)\n"),
        (["import", "format=codeif", "source=no.jsonl", "out=x.jsonl"], "error: source: there is no file no.jsonl\n"),
        (["export", "run=runs", "out=x.csv"], "it holds cells: runs=runs takes all of them"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_its_command(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("runs/cell").mkdir(parents=True)
    Path("runs/cell/sessions.jsonl").touch()
    assert main(words) == 2
    assert said in capsys.readouterr().err
