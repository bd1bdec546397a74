"""How the user is told to call a tool."""

import os
import sys
from pathlib import Path

import pytest

from codechat.environment import shell_command


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
