"""How the user is told to call a tool, and that libraries do not phone home."""

import gc
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from codechat.base.environment import CACHES, SILENCED, cache_root, shell_command, silence
from codechat.base.errors import UserError
from codechat.cli.app import entry


def test_the_shortest_words_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "tool"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(tmp_path)
    assert shell_command("tool") == ".venv/bin/tool"
    monkeypatch.chdir("/usr")
    assert shell_command("tool") == str(folder / "tool")
    monkeypatch.setenv("PATH", str(folder))
    assert shell_command("tool") == "tool"
    assert shell_command("missing") == "missing"


def test_telemetry_is_off_unless_the_user_turns_it_on() -> None:
    environ = {"VLLM_NO_USAGE_STATS": "0"}
    silence(environ)
    assert environ == {**SILENCED, "VLLM_NO_USAGE_STATS": "0"}


def test_a_command_ends_without_a_search_for_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, within = gc.get_threshold(), []

    def command(words: Sequence[str]) -> int:
        within.append((*words, gc.get_threshold()[0]))
        return 3

    monkeypatch.setattr("codechat.cli.app.main", command)
    monkeypatch.setattr(sys, "argv", ["codechat", "--version"])
    try:
        with pytest.raises(SystemExit) as left:
            entry()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    assert left.value.code == 3
    assert within == [("--version", 400_000)]
    assert gc.get_threshold() == usual


def test_a_command_silences_its_libraries_before_it_loads_them(tmp_path: Path) -> None:
    script = (
        "import os, sys; from codechat.cli.app import main; assert 'mlflow' not in sys.modules; main(['--version']);"
        "from mlflow.telemetry.utils import is_telemetry_disabled; print(is_telemetry_disabled());"
        "from huggingface_hub import constants; print(constants.HF_HUB_DISABLE_TELEMETRY)"
    )
    environ = {name: value for name, value in os.environ.items() if name not in SILENCED}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.splitlines()[1:] == ["True", "True"]


def test_caches_are_temporary_if_the_users_folder_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CACHES)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none" / "caches"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cache_root() == tmp_path / "none" / "caches" / "codechat"
    # Root may write where a mode forbids it, so that a read-only folder is played.
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))
    folder = cache_root()
    assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
    assert cache_root() == folder
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(UserError, match="is another user's"):
        cache_root()
