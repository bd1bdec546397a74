"""Import paths of before the rooms were rearranged: each works, and says where the name went."""

import importlib
import subprocess
import sys
import warnings

import pytest

from codechat.moved import MOVED, VERBS, moved_verb, new_name

IMPORTED = "import importlib, sys, warnings; warnings.simplefilter('ignore'); importlib.import_module(sys.argv[1])"


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_path_is_the_present_module(old: str) -> None:
    with warnings.catch_warnings(action="ignore"):  # of the packages around it
        importlib.import_module(f"codechat.{old}")
    with pytest.warns(DeprecationWarning, match=f"codechat.{old} is now codechat.{MOVED[old]}"):
        sys.modules.pop(f"codechat.{old}", None)
        found = importlib.import_module(f"codechat.{old}")
    present = importlib.import_module(f"codechat.{MOVED[old]}")
    assert found is present and present.__spec__ is not None and present.__spec__.name == present.__name__


def test_what_is_in_a_moved_package_moved_with_it() -> None:
    assert new_name("codechat.engine.settings.compose") == "codechat.run.settings.compose"
    assert new_name("codechat.suites.calls.oracle") == "codechat.sandbox.suites.calls.oracle"
    assert new_name("codechat.models.baselines") is None and new_name("codechats.tasks") is None


def test_one_import_by_an_old_path_is_enough_in_a_fresh_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, "codechat.engine.cell.fitting"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_that_was_a_method_is_a_function(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"Kit.{name} is now"):
        assert callable(moved_verb(name))


def test_other_names_are_no_verbs() -> None:
    with pytest.raises(AttributeError):
        moved_verb("nothing")
