"""Texts on a command line: prompts from files or as they stand, and no exception of Hydra's lexer."""

import os
import shutil
from pathlib import Path

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf

from codechat.base.environment import data_folder
from codechat.base.errors import UserError
from codechat.cli.sweep import expand
from codechat.run.cell import build_cell
from codechat.run.settings.compose import compose, compose_values, read_words
from support.mistakes import mistake

KEY = "protocol.prompts.initial"
TEXT = 'Write this (please), don\'t explain: {{prompt}} "now" [x] $5 ${y} \\'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def initial(*words: str) -> str:
    values, _ = compose_values(words)
    text: str = values["protocol"]["prompts"]["initial"]
    return text


@pytest.mark.parametrize("text", [TEXT, "{{prompt}}", "It's {{prompt}}", "a, b: {{prompt}}", "[{{prompt}}]", "1"])
def test_a_prompt_is_taken_as_it_stands(text: str) -> None:
    assert initial(f"{KEY}={text}") == text


def test_a_prompt_that_is_quoted_for_hydra_is_read_as_before() -> None:
    assert initial(f"""{KEY}='It\\'s {{{{prompt}}}}'""") == "It's {{prompt}}"


@pytest.mark.parametrize("name", ["my.md", "my prompt (1).md", "deep/er/my,.md"])
def test_a_prompt_comes_from_a_file(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("@first: {{prompt}}\n")
    for word in (f"{KEY}=@{name}", f'{KEY}="@{name}"', f"{KEY}=@{folder / name}"):
        assert initial(word) == "@first: {{prompt}}\n"


def test_the_cell_id_depends_on_the_text_and_not_on_the_path(folder: Path) -> None:
    def identity(word: str) -> str:
        return build_cell(compose([word, "dataset.limit=1"])).id

    for name in ("a.md", "b.md"):
        (folder / name).write_text("Do it: {{prompt}}")
    first = identity(f"{KEY}=@a.md")
    assert first == identity(f"{KEY}=@b.md") == identity(f"{KEY}=Do it: {{{{prompt}}}}")
    (folder / "a.md").write_text("Do it now: {{prompt}}")
    assert first != identity(f"{KEY}=@a.md")


def test_codechats_own_prompt_from_a_file_is_the_default_cell(folder: Path) -> None:
    (folder / "same.md").write_text(initial())
    usual, same = (build_cell(compose([*words, "dataset.limit=1"])) for words in ([], [f"{KEY}=@same.md"]))
    assert (usual.id, usual.name) == (same.id, same.name)


def test_other_options_take_text_that_hydra_cannot_read() -> None:
    values, _ = compose_values(["model=openai", "model.name=gpt (new): it's", "runs_dir=/tmp/a (b)/c"])
    assert values["model"]["name"] == "gpt (new): it's"
    assert values["runs_dir"] == "/tmp/a (b)/c"


def test_a_sweep_takes_texts_and_several_files() -> None:
    text = f"{KEY}={TEXT}"
    assert expand([text, "seed=1,2"]) == [(text, "seed=1"), (text, "seed=2")]
    assert expand([f"{KEY}=@a.md,@b.md"]) == [(f"{KEY}=@a.md",), (f"{KEY}=@b.md",)]


MISTAKES = {
    f"{KEY}=@mi.md": "there is no prompt file mi.md\ndid you mean 'my.md' or 'latin.md'?",
    f"{KEY}=@latin.md": "the prompt file latin.md is not UTF-8 text\nsave it as UTF-8",
    "model.name=[a": "cannot read the value of model.name: [a\n"
    "close its brackets and quotes; one text is quoted for the shell and within: 'model.name=\"[a\"'",
    "model.name='a": "cannot read the value of model.name: 'a\n"
    "close its brackets and quotes; one text is quoted for the shell and within: 'model.name=\"'\"'\"'a\"'",
    "model.name=a,b": "Ambiguous value for argument 'model.name=a,b'\n"
    "put -m in front to sweep over the values, or quote the value, for the shell and within: 'model.name=\"a,b\"'",
    "model=gpt (new)": "cannot read the value of model: gpt (new)\n"
    "close its brackets and quotes; one text is quoted for the shell and within: 'model=\"gpt (new)\"'",
    "model.nme=a (b)": "there is no option model.nme\ndid you mean 'name'? (options of model)",
    "model@protocol.roles.boss=gpt5": "there is no role protocol.roles.boss\n"
    "leave it out: protocol=refine asks model=NAME alone",
    "agenda=10": "no agenda is called '10'\nchoose from: additions, balanced, blocks, cells, changes, cosmetic, escalating, "
    "fixed, iid, learned, modifications, quota, removals, semantic, structural, … (16 in all) "
    "(`codechat list agenda` describes them)",
    "judge={a: 'ruls'}": "no judge is called '{a: ruls}'\ndid you mean 'rules'? (`codechat list judge` describes them)",
    "judge=null": "no judge is called 'null'\ndid you mean 'llm'? (`codechat list judge` describes them)",
    "seed": "cannot read 'seed'\nsettings are written key=value",
    "~seed(": "cannot read '~seed('\nsettings are written key=value",
}


@pytest.mark.parametrize("word", MISTAKES)
def test_what_cannot_be_read_is_told_with_the_option_and_the_quotes(folder: Path, word: str) -> None:
    (folder / "my.md").write_text("{{prompt}}")
    (folder / "latin.md").write_bytes(b"\xe9 {{prompt}}")
    with pytest.raises(UserError) as raised:
        compose([*([] if word.startswith("model=") else ["model=openai"]), word])
    assert str(raised.value) == MISTAKES[word]


def test_a_prompt_that_is_added_to_a_judge_without_prompts_is_told() -> None:
    with mistake("judge.prompts"):
        compose(["+judge.prompts.solution=1.5"])


def test_a_role_that_a_protocol_lacks_is_told_with_those_that_it_has() -> None:
    with pytest.raises(UserError) as raised:
        compose(["protocol=assist", "model@protocol.roles.usr=gpt5"])
    mistake, remedy = str(raised.value).splitlines()
    assert "protocol.roles.usr" in mistake
    assert "'protocol.roles.user'" in remedy and "'protocol.roles.judge'" in remedy


@pytest.mark.parametrize(
    ("words", "mistake", "remedy"),
    [
        (["model=echo", "model.base_url=http://x"], "model=echo", "model=openai, model=provider"),
        (["judge=rules", "model@judge.adherence=gpt5"], "'model@judge.adherence'", "judge=llm"),
        (["judge=llm", "judge.name=m"], "judge.name", "judge.applicability.name"),
        (["agenda.turns=3", "protocol.harnes=official"], "protocol.harnes", "(options of protocol)"),
    ],
)  # fmt: skip
def test_an_option_of_another_kind_is_told_with_who_has_it(words: list[str], mistake: str, remedy: str) -> None:
    with pytest.raises(UserError) as raised:
        compose(words)
    told = str(raised.value).splitlines()
    assert mistake in told[0] and remedy in told[1]


def by_hydra(words: list[str]) -> object:
    """What Hydra alone composes of a cell's words, which are written for it."""
    with initialize_config_dir(config_dir=str(data_folder("conf")), version_base="1.3"):
        config = hydra_compose("config", read_words(words).overrides)
    return OmegaConf.to_container(config, resolve=True)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["seed=3"],
        ["seed=3", "model=echo", "dataset.limit=2", "agenda=cosmetic", "seed=4"],
        ["model=gpt5", "model.temperature=0.25", "model.base_url='http://${seed}'", "seed=7"],
        ["stop={width: 0.5}", "agenda.turns=3"],
        ["dataset.tasks=[HumanEval/1, 'HumanEval/2']", "budget_usd=null"],
        ["+seed_of_mine=1", "seed=2", "++seed_of_mine=2"],
        ["++seed=1", "seed=2", "++seed=3"],
        ["seed=2", "~judge", "dataset.limit=1"],
        ["judge=llm", "model@judge.adherence=gpt5", "judge.adherence.temperature=1", "hardware=h100_3"],
        ["protocol=stepwise", "hydra.verbose=true", "seed=5"],
    ],
)
def test_values_are_composed_as_hydra_does(words: list[str]) -> None:
    compose_values([])  # every kind is an option by now
    try:
        expected = by_hydra(words)
    except HydraException:
        with pytest.raises(UserError):
            compose_values(words)
    else:
        for _ in range(2):
            assert compose_values(words)[0] == expected


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(data_folder("conf"), conf)
    monkeypatch.setattr("codechat.run.settings.compose.data_folder", lambda name: tmp_path / name)
    file = conf / "model" / "rewritten.yaml"
    (conf / "model" / ".#rewritten.yaml").symlink_to("someone@somewhere")  # as an editor leaves it
    for temperature in (0.25, 0.5):
        file.write_text(f"kind: openai\nname: m\ntemperature: {temperature}\n")
        os.utime(file, ns=(0, int(temperature * 1e9)))
        assert compose_values(["model=rewritten"])[0]["model"]["temperature"] == temperature
    values, _ = compose_values(["model=rewritten"])
    values["model"]["temperature"] = 9
    assert compose_values(["model=rewritten"])[0]["model"]["temperature"] == 0.5, "what was given out is nobody else's"
