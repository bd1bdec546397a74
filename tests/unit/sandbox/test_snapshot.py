"""What a program changed in modules, classes and containers is as before when the next snippet runs."""

import sys
from types import ModuleType
from typing import Any

import pytest

from codechat.sandbox.inside import assertions, snapshot
from codechat.sandbox.inside.snapshot import Snapshot


def of(*contents: Any, packages: dict[str, Snapshot] | None = None, **modules: ModuleType) -> Snapshot:
    pairs = [pair for one in contents for pair in snapshot._contents(one)]
    return Snapshot(modules, [], [], pairs, frozenset(), packages or {})


def test_containers_hold_what_they_held() -> None:
    inner, kinds = [1, 2], {1}
    held: dict[str, Any] = {"one": 1, "inner": inner, "kinds": kinds}
    restore = snapshot._bindings(of(held))
    inner.append(3)
    kinds.add(2)
    held["more"] = 1
    del held["inner"]
    restore()
    assert held == {"one": 1, "inner": [1, 2], "kinds": {1}} and held["inner"] is inner and held["kinds"] is kinds


def test_modules_and_classes_have_the_names_that_they_had(monkeypatch: pytest.MonkeyPatch) -> None:
    mine: Any = ModuleType("mine")

    class Kind:
        limit = 1

    mine.number, mine.Kind = 1, Kind
    monkeypatch.setitem(sys.modules, "mine", mine)
    remembered = snapshot.remember(["mine"], sys.modules.keys() - {"mine"})
    assert set(remembered.modules) == {"mine"}
    bindings, classes = snapshot._bindings(remembered), snapshot._classes(remembered)
    mine.number, mine.Kind = 2, None
    changed: Any = Kind
    changed.limit, changed.more = 2, 3
    monkeypatch.setitem(sys.modules, "mine", ModuleType("other"))
    bindings()
    classes()
    assert (mine.number, mine.Kind, sys.modules["mine"]) == (1, Kind, mine)
    assert Kind.limit == 1 and not hasattr(Kind, "more")


def test_packages_that_snippets_import_are_restored_with_the_rest() -> None:
    remembered = of(packages={"json": of(mine=ModuleType("mine")), "other": of(its=ModuleType("its"))})
    assert "mine" in assertions._import_for(["import json.decoder"], remembered).modules
    assert "mine" in assertions._import_for(["x = 1", "from json import loads"], remembered).modules
    assert not {"mine", "its"} & set(assertions._import_for(["x = 1", "import ("], remembered).modules)
