"""Presets in `conf/` of the working folder: for every group, by both entry points, and never in place of another."""

import subprocess
import sys
from pathlib import Path

import pytest

from codechat.base.environment import data_folder
from codechat.base.errors import UserError
from codechat.cli.commands.listing import options_of
from codechat.run.settings.compose import compose, presets_of


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The `conf` of a working folder, whose name needs quotes."""
    folder = tmp_path / 'it\'s, [mine] = "own" {1}' / "conf"
    for group in ("agenda", "model", "judge", "prompts/refine/terse"):
        (folder / group).mkdir(parents=True)
    monkeypatch.chdir(folder.parent)
    return folder


def test_an_own_preset_is_an_option_of_its_group(conf: Path) -> None:
    (conf / "agenda" / "mine.yaml").write_text("# All my turns\ndefaults: [fixed]\nsequence: [cosmetic, structural]\n")
    (conf / "model" / "house.yaml").write_text("defaults: [echo]\nname: house\n")
    composed = compose(["agenda=mine", "agenda.turns=3", "model=house"])
    assert composed.choices["agenda"] == "mine"
    assert composed.config.model.name == "house"
    same = compose(["agenda=fixed", "agenda.sequence=[cosmetic,structural]", "agenda.turns=3", "model=house"])
    assert composed.config == same.config
    assert options_of("agenda")["mine"] == "All my turns"


def test_own_prompts_are_a_preset_of_their_protocol(conf: Path) -> None:
    name = next(path.name for path in (data_folder("conf") / "prompts" / "refine").glob("*/*.md"))
    (conf / "prompts" / "refine" / "terse" / name).write_text("Be terse: {{ prompt }}")
    assert "terse" in presets_of("refine")
    prompts = compose(["protocol.prompts=terse"]).config.protocol.model_dump()["prompts"]
    assert prompts[Path(name).stem] == "Be terse: {{ prompt }}"


def test_both_entry_points_find_own_presets(conf: Path) -> None:
    (conf / "agenda" / "mine.yaml").write_text("# All my turns\ndefaults: [quota]\n")
    for command in ([str(Path(sys.executable).parent / "codechat")], [sys.executable, "-m", "codechat"]):
        ran = subprocess.run([*command, "list", "agenda"], capture_output=True, text=True, check=True)
        assert "All my turns" in ran.stdout


@pytest.mark.parametrize(("group", "name"), [("agenda", "balanced"), ("judge", "rules")])
def test_a_name_of_codechat_with_other_content_is_refused_where_it_is_chosen(conf: Path, group: str, name: str) -> None:
    (conf / group / f"{name}.yaml").write_text("defaults: [quota]\nturns: 3\n" if group == "agenda" else "kind: none\n")
    with pytest.raises(UserError, match=rf"{group}={name} .*{name}\.yaml") as caught:
        compose([f"{group}={name}"])
    assert "another name" in str(caught.value)


def test_a_copy_of_a_shipped_preset_is_no_conflict(conf: Path) -> None:
    before = compose([]).config
    (conf / "agenda" / "balanced.yaml").write_bytes((data_folder("conf") / "agenda" / "balanced.yaml").read_bytes())
    assert compose([]).config == before


@pytest.mark.parametrize("text", ["[", "nokey: 1\n", "- a\n", "\tx", "defaults: [nowhere]\n"])
def test_a_preset_that_cannot_be_read_is_a_mistake(conf: Path, text: str) -> None:
    (conf / "agenda" / "mine.yaml").write_text(text)
    with pytest.raises(UserError):
        compose(["agenda=mine"])
