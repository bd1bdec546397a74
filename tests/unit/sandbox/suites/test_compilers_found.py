"""Compilers of this machine: which one is taken for a version, and what a box must show of it."""

import os
from pathlib import Path
from typing import Any

import pytest

from codechat.sandbox import PYTHON, SANDBOXES
from codechat.sandbox.languages import language_of
from codechat.sandbox.languages.grammar import Compiled
from codechat.sandbox.suites import compilers
from codechat.sandbox.suites.compilers import Absent, Found, find_compiler, seen_from


def compiler(language: str) -> Any:
    known = language_of(language)
    assert isinstance(known, Compiled)
    return known.compiler


def config(*folders: Path) -> Any:
    return SANDBOXES.validate({"kind": "process", "toolchains": [str(each) for each in folders]})


def tool(folder: Path, name: str, script: str) -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compilers._ask.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def javac(folder: Path, version: str) -> Path:
    return tool(folder, "javac", f'echo "javac {version}"')


def test_the_oldest_that_can_check_a_version_is_taken(tmp_path: Path) -> None:
    folders = [javac(tmp_path / name, version) for name, version in (("a", "21.0.1"), ("b", "11.0.2"), ("c", "17"))]
    java = compiler("java")
    assert find_compiler(java, (8,), config(*folders)).version == (11, 0, 2)
    assert find_compiler(java, (11,), config(*folders)).version == (11, 0, 2)
    assert find_compiler(java, (12,), config(*folders)).version == (17,)
    assert find_compiler(java, (17,), config(*folders)).version == (17,)
    with pytest.raises(Absent, match=r"22.*21\.0\.1, 11\.0\.2, 17"):
        find_compiler(java, (22,), config(*folders))


def test_without_any_none_is_named(tmp_path: Path) -> None:
    broken = [
        tool(tmp_path / "fails", "javac", 'echo "javac 21"; exit 1'),
        tool(tmp_path / "silent", "javac", "echo nothing"),
    ]
    (javac(tmp_path / "not", "21") / "bin" / "javac").chmod(0o644)
    with pytest.raises(Absent) as caught:
        find_compiler(compiler("java"), (8,), config(*broken, tmp_path / "not", tmp_path / "none"))
    assert "there is" not in str(caught.value) and "sandbox.toolchains" in str(caught.value)


def test_a_compiler_on_the_path_is_found_and_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = tmp_path / "counted"
    folder = tool(tmp_path / "jdk", "javac", f'echo x >> {counted}; echo "javac 17"')
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/bin:/usr/bin")
    for _ in range(2):
        found = find_compiler(compiler("java"), (17,), config())
        assert (found.program, found.home) == (str(folder / "bin" / "javac"), str(folder))
        assert found.tools == (str(folder),)
    assert counted.read_text() == "x\n"


def test_only_the_same_minor_version_of_python_will_do(tmp_path: Path) -> None:
    three = tool(tmp_path / "three", "python3.2", f"case $1 in -V) echo Python 3.3.1;; *) echo {tmp_path}/three;; esac")
    with pytest.raises(Absent, match=r"3\.3\.1"):
        find_compiler(compiler("python"), (3, 2), config(three))
    own = config().libraries().minor
    assert find_compiler(compiler("python"), own, config()) == Found(PYTHON, "", own)


def test_a_box_sees_the_folder_and_what_its_links_point_to(tmp_path: Path) -> None:
    home, other, files = tmp_path / "home", tmp_path / "other", tmp_path / "files"
    for folder in (home / "inner", other, files):
        folder.mkdir(parents=True)
    (files / "one").write_text("")
    (home / "inner" / "file").symlink_to(files / "one")
    (home / "folder").symlink_to(other)
    (home / "own").symlink_to(home / "inner")
    (home / "system").symlink_to("/usr/lib")
    (home / "broken").symlink_to(tmp_path / "nowhere")
    (home / "plain").write_text("")
    found = list(seen_from(home))
    assert found[0] == str(home) and sorted(found[1:]) == sorted([str(files), str(other)])


def test_no_output_of_a_tool_that_does_not_run(tmp_path: Path) -> None:
    assert compilers._output_of(str(tmp_path / "nothing"), ()) == ""
    folder = tool(tmp_path / "x", "x", "echo out; echo err >&2")
    assert compilers._output_of(str(folder / "bin" / "x"), ()) == "out\nerr\n"
    assert os.access(folder / "bin" / "x", os.X_OK)
