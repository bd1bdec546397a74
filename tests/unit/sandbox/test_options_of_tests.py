"""The options of sandboxes that kinds of tests add, and how a container is started."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from codechat import sandbox
from codechat.base.config import Config, run_option
from codechat.sandbox import SANDBOXES
from codechat.sandbox.docker import _options


class One(Config):
    mine: int = run_option(1, "one")


class Other(Config):
    mine: int = run_option(2, "other")


class Third(Config):
    kind: str = run_option("x", "third")


TWICE: list[list[Any]] = [[One, Other], [One, Third]]


@pytest.mark.parametrize("added", TWICE)
def test_no_option_stands_for_two_things(added: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "AddedOptions", SimpleNamespace(__subclasses__=lambda: added))
    name = "mine" if Other in added else "kind"
    with pytest.raises(TypeError, match=rf"{added[1].__name__}: sandbox.{name} is an option already"):
        sandbox._with_options_of_tests(sandbox.SandboxConfig)


def test_options_of_all_kinds_of_tests_come_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "AddedOptions", SimpleNamespace(__subclasses__=lambda: [One]))
    made: Any = sandbox._with_options_of_tests(sandbox.SandboxConfig)
    assert made(kind="x").mine == 1


def test_a_container_sees_the_packages_that_programs_may_import() -> None:
    config: Any = SANDBOXES.validate({"kind": "docker"})
    options = _options(config, ["/a/site-packages", "/b/dist-packages"], "/folder", ("/opt/tool",))
    volumes = [value for flag, value in pairwise(options) if flag == "--volume"]
    assert {"/folder:/meeting", "/a/site-packages:/packages/0:ro", "/b/dist-packages:/packages/1:ro"} <= set(volumes)
    assert any(each.startswith("/opt/tool:") and each.endswith(":ro") for each in volumes)
    assert "none" in options[options.index("--network") :][:2] and "--read-only" in options
