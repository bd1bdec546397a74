"""Components by name: discovery, duplicates, typos, other packages."""

import re
import sys
from pathlib import Path
from typing import Literal

import pytest

from codechat.base.config import Config, defaults_of, original_option, result_option, run_option, validate
from codechat.base.errors import UserError, nearest
from codechat.base.registry import NoTraits, Registry
from support.mistakes import mistake


class KnobConfig(Config):
    kind: Literal["knob"] = result_option("knob", "which")
    size: int = result_option(3, "how large", ge=1)
    where: str | None = run_option(None, "where it runs")


class Required(Config):
    path: str = result_option(..., "which file")


def test_validation_names_key_problem_and_remedy() -> None:
    for values, message in (
        ({"size": "abc"}, r"x\.size: .*valid integer.*\(got 'abc'\)\nx\.size: how large"),
        ({"size": 0}, "greater than or equal to 1"),
        ({"sise": 4}, r"x\.sise is not an option\ndid you mean 'size'\?"),
    ):
        with pytest.raises(UserError, match=message):
            validate(KnobConfig, values, "x")
    with mistake("x.path=VALUE"):
        validate(Required, {}, "x")
    with pytest.raises(UserError, match=r"x\.path is required"):
        validate(Required, {"path": "???"}, "x")


def test_identity_holds_what_can_change_a_result_and_nothing_else() -> None:
    assert KnobConfig(where="there", size=4).identity() == {"kind": "knob", "size": 4}


def test_an_unclassified_field_is_a_bug() -> None:
    class Loose(Config):
        field: int = 3

    with pytest.raises(TypeError, match=r"result_option.*run_option.*place_option"):
        Loose().identity()


def test_defaults_mark_what_is_required() -> None:
    assert defaults_of(KnobConfig) == {"kind": "knob", "size": 3, "where": None}
    assert defaults_of(Required) == {"path": "???"}


def test_a_name_is_taken_once_and_needs_a_description() -> None:
    registry = Registry[None, NoTraits]("knob", "codechat.models.hardware", NoTraits, type(None))

    def factory(config: KnobConfig) -> None:
        """Turn it."""

    registry.register("knob", KnobConfig)(factory)
    other = type(factory)(factory.__code__, {"__name__": "elsewhere"}, "factory")
    other.__module__, other.__doc__ = "elsewhere", "Turn it otherwise."
    with pytest.raises(ValueError, match="'knob' is registered twice"):
        registry.register("knob", KnobConfig)(other)
    other.__doc__ = None
    with pytest.raises(ValueError, match="needs a docstring"):
        registry.register("silent", KnobConfig)(other)
    assert [component.summary for component in registry] == ["Turn it"]
    with mistake("'knop'", "'knob'"):
        registry["knop"]


class ScrewConfig(Config):
    tool: Literal["screw"] = original_option("screw", "which")
    kind: Literal["long", "knob"] = result_option("long", "what of it")


def test_a_component_may_keep_its_name_under_another_key() -> None:
    """Even if its option of the group's own key has the name of another component as its value."""
    registry = Registry[str, NoTraits]("knob", "codechat.models.hardware", NoTraits, str)

    @registry.register("knob", KnobConfig)
    def knob(config: KnobConfig) -> str:
        """Turn it."""
        return "turned"

    @registry.register("screw", ScrewConfig, key="tool")
    def screw(config: ScrewConfig) -> str:
        """Drive it."""
        return f"driven {config.kind}"

    for values, made in (
        ({"kind": "knob"}, "turned"),
        ({"tool": "screw"}, "driven long"),
        ({"tool": "screw", "kind": "knob"}, "driven knob"),
    ):
        config = registry.validate(values)
        assert registry.build(config) == made
        assert registry.of(config) is registry.chosen_by(values)
    assert registry.validate({"tool": "screw"}).identity() == {"tool": "screw", "kind": "long"}
    for values, message in (
        ({}, "knob.kind is required"),
        ({"kind": "screw"}, "knob.kind: Input should be"),
        ({"kind": "knop"}, "no knob is called 'knop'"),
        ({"tool": "screw", "kind": "short"}, "knob.kind: Input should be 'long' or 'knob'"),
    ):
        with pytest.raises(UserError, match=message):
            registry.build(registry.validate(values))
    with pytest.raises(TypeError, match="has no field 'tool'"):
        registry.register("drill", KnobConfig, key="tool")


PLUGIN = '''
from typing import Literal
from codechat.base.config import result_option
from codechat.base.domain import Reply
from codechat.models import MODELS, ModelConfig

class ParrotConfig(ModelConfig):
    kind: Literal["parrot"] = result_option("parrot", "which provider answers")
    name: str = result_option("parrot", "the name")

@MODELS.register("parrot", ParrotConfig)
class Parrot:
    """Says what it hears."""
    def __init__(self, config): ...
    async def check(self): ...
    async def complete(self, request): return Reply(request.messages[-1].content)
    async def aclose(self): ...
'''


def install(folder: Path, source: str, target: str) -> None:
    (folder / "parrot_plugin.py").write_text(source)
    info = folder / "parrot_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[codechat.model]\nparrot = {target}\n")


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    import os
    import subprocess

    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", "codechat", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), root))},
    )
    return done.returncode, done.stdout + done.stderr


def test_a_component_of_another_installed_package_is_found(tmp_path: Path) -> None:
    install(tmp_path, PLUGIN, "parrot_plugin")
    status, output = run(tmp_path, "list", "model")
    assert status == 0, output
    assert "Says what it hears" in output
    status, output = run(tmp_path, "--cfg", "model=parrot")
    assert status == 0, output
    assert "kind: parrot" in output


def test_a_broken_package_is_named(tmp_path: Path) -> None:
    install(tmp_path, "raise ImportError('no wings')", "parrot_plugin")
    status, output = run(tmp_path, "list", "model")
    assert status == 2
    assert "parrot-plugin" in output
    assert "no wings" in output


def test_nearest() -> None:
    assert re.findall(r"'(\w+)'", nearest("gpt6", ["gpt5", "gpt4", "echo"])) == ["gpt5", "gpt4"]
    assert nearest("zzz", ["a", "b"]) == "choose from: a, b"
    assert nearest("zzz", [f"name{n:02}" for n in range(20)]).endswith("… (20 in all)")
    assert "nothing" in nearest("x", [])


def test_a_user_error_has_five_lines_at_most() -> None:
    assert str(UserError("\n".join("abcdefgh"), "remedy")).splitlines() == ["a", "b", "c", "d", "… and 5 more lines"]
