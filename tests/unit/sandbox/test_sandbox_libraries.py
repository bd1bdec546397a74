"""The interpreter that `sandbox.python` names: what is told of a wrong one, and its part of a cell's identity."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DatasetConfig
from codechat.datasets.tasks import Dataset, Task
from codechat.run.cell.references import modules_of, packages_by_task, refuse_lacking, select_here
from codechat.sandbox import SANDBOXES, SandboxConfig
from codechat.sandbox.bubblewrap import _interpreter
from codechat.sandbox.interpreters import Libraries, libraries_at
from codechat.sandbox.languages.python.syntax import imported_modules, requirements
from codechat.sandbox.suites.assertions import Assertions
from codechat.studies.sreval.rows import Step, StepTask
from support.mistakes import mistake


def environment(folder: Path, *packages: tuple[str, str]) -> str:
    """A virtual environment with packages that hold nothing but their version; the path of its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    for name, version in packages:
        install(folder, name, version)
    return str(folder / "bin" / "python")


def install(folder: Path, name: str, version: str) -> None:
    (place,) = folder.glob("lib/python*/site-packages")
    for old in place.glob(f"{name}-*.dist-info"):
        (old / "METADATA").unlink()
        old.rmdir()
    info = place / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (place / name).mkdir(exist_ok=True)
    (place / name / "__init__.py").write_text(f"VERSION = {version!r}\n")


def config(python: str | None) -> SandboxConfig:
    values = {"kind": "process"} if python is None else {"kind": "process", "python": python}
    found = SANDBOXES.validate(values)
    assert isinstance(found, SandboxConfig)
    return found


def test_versions_of_interpreter_and_packages_count_and_the_path_does_not(tmp_path: Path) -> None:
    one = environment(tmp_path / "one", ("abacus", "1.0"), ("beads", "2"))
    same = environment(tmp_path / "same", ("beads", "2"), ("abacus", "1.0"))
    newer = environment(tmp_path / "newer", ("abacus", "1.1"), ("beads", "2"))
    fewer = environment(tmp_path / "fewer", ("abacus", "1.0"))
    identities = [json.dumps(config(python).identity()) for python in (one, same, newer, fewer, None)]
    assert identities[0] == identities[1]
    assert len(set(identities)) == 4
    assert "libraries" not in identities[4] and "python" not in identities[4]


def test_a_wrong_interpreter_is_told_of(tmp_path: Path) -> None:
    with mistake("sandbox.python", "none"):
        config(str(tmp_path / "none")).identity()
    silent, old = tmp_path / "silent", tmp_path / "old"
    silent.write_text("#!/bin/sh\nexit 0\n")
    told = {"version": "3.9.1", "minor": [3, 9], "prefix": "/", "base": "/", "path": [], "program": "/", "packages": []}
    old.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\n")
    for script in (silent, old):
        script.chmod(0o755)
    with mistake("sandbox.python", str(silent)):
        config(str(silent)).identity()
    with mistake("sandbox.python", "3.9.1", "3.11"):
        config(str(old)).identity()


def test_what_programs_find(tmp_path: Path) -> None:
    libraries = libraries_at(environment(tmp_path / "one", ("abacus", "1.0")))
    assert libraries.missing(["json", "abacus", "numpy", "beads"]) == ["numpy", "beads"]
    assert libraries_at(None).missing(["json", "numpy"]) == []
    assert os.path.basename(libraries.program).startswith("python")  # noqa: PTH119
    assert not libraries.hidden()


def test_codechat_among_the_packages_is_hidden(tmp_path: Path) -> None:
    (folder,) = libraries_at(environment(tmp_path / "one", ("codechat", "9"))).hidden()
    assert folder.endswith("site-packages/codechat")


def task(name: str, reference: str, test: str) -> StepTask:
    return StepTask(name, "Do.", steps=(Step("Do.", Assertions((test,)), reference),))


TASKS = (
    task("a", "import abacus\nimport json", "import numpy.linalg\nassert f()"),
    task("b", "def f():\n    import abacus.beads", "assert f()"),
    task(
        "c", "try:\n    import lost\nexcept ImportError:\n    lost = None", "open('own.py', 'w')\nimport own, candidate"
    ),
)


def test_which_modules_tasks_import() -> None:
    assert modules_of(TASKS[0]) == ["numpy.linalg", "abacus"]
    assert packages_by_task(TASKS) == {"abacus": ["a", "b"], "numpy": ["a"]}
    assert packages_by_task(TASKS, certain=False) == {"abacus": ["a", "b"], "lost": ["c"], "numpy": ["a"]}
    excel = task("d", "import pandas\npandas.read_excel('x')", "assert f()")
    assert set(packages_by_task([excel])) == {"pandas", "openpyxl"}


def test_imports_of_a_text() -> None:
    text = "from a import b, c\nfrom . import d\nimport e.f as g\nfrom h import *\ntry:\n    import i\nexcept OSError:\n    pass\n"
    assert imported_modules(text) == ["a", "a.b", "a.c", "e.f", "h", "i"]
    assert imported_modules("def (") == []


def test_missing_packages_are_told_with_their_tasks(tmp_path: Path) -> None:
    bare = config(environment(tmp_path / "bare"))
    with pytest.raises(UserError) as caught:
        refuse_lacking(bare, TASKS)
    lines = str(caught.value).splitlines()
    assert "2 of 3 tasks" in lines[0]
    assert lines[1:3] == ["abacus: a, b", "numpy: a"]
    assert "codechat requirements" in lines[3] and "dataset.runnable" in lines[3]
    refuse_lacking(config(environment(tmp_path / "whole", ("abacus", "1"), ("numpy", "1"))), TASKS)
    refuse_lacking(bare, (TASKS[2],))
    refuse_lacking(bare, (Task("e", "Do.", suite=Assertions(("import lost",)), reference="import lost"),))


def test_tasks_that_run_here_can_be_taken_alone(tmp_path: Path) -> None:
    bare = config(environment(tmp_path / "bare", ("numpy", "1")))
    more = (*TASKS, task("d", "import numpy", "assert f()"), task("e", "def f(): pass", "assert f()"))
    dataset = Dataset("growing", more, "content")

    def taken(**options: object) -> tuple[list[str], str]:
        tasks, remark = select_here(dataset, DatasetConfig.model_validate({"kind": "jsonl", **options}), bare)
        return [each.task_id for each in tasks], remark

    assert taken(limit=3) == (["a", "b", "c"], "")
    found, remark = taken(limit=2, runnable=True)
    assert found == ["c", "d"], "the limit counts tasks that run"
    assert "2 of 5" in remark and "abacus (2)" in remark
    assert taken(tasks=["c", "e"], runnable=True) == (["c", "e"], "")
    assert taken(tasks=["a"], runnable=True)[0] == []


def test_many_missing_packages_fit_a_message(tmp_path: Path) -> None:
    many = [task(f"t{number}", f"import lost_{number}", "assert f()") for number in range(9)]
    with pytest.raises(UserError) as caught:
        refuse_lacking(config(environment(tmp_path / "bare")), many)
    assert len(str(caught.value).splitlines()) <= 5
    assert "lost_8 (1)" in str(caught.value) and "t0, t1, t2 and 6 more" in str(caught.value)


def test_lines_for_pip() -> None:
    assert requirements(["sklearn", "keras", "flask_wtf", "abacus"], StepTask.fitting_versions) == [
        "abacus",
        f"flask-wtf=={StepTask.fitting_versions['flask-wtf']}",
        "keras==2.15.0",
        "scikit-learn==1.3.1",
        "tensorflow-cpu==2.15.1",
    ]
    assert requirements(["bs4"], {}) == ["beautifulsoup4"]


def test_a_systems_interpreter_keeps_its_path_and_any_other_shows_no_path_of_the_host() -> None:
    path = ("/usr/lib/python3", "/srv/packages")
    system = Libraries("/usr/bin/python3", Path("/usr"), path, "3", (3, 11))
    binds, paths, python = _interpreter(system)
    assert python == "/usr/bin/python3" and ("/usr/bin/python3", "/usr/bin/python3") in binds
    assert paths == ["/usr/lib/python3", "/packages/1"] and ("/srv/packages", "/packages/1") in binds
    own = Libraries("/opt/own/bin/python3", Path("/opt/own"), ("/opt/own/lib", "/srv/packages"), "3", (3, 11))
    binds, paths, python = _interpreter(own)
    assert python == "/python/bin/python3" and ("/opt/own", "/python") in binds
    assert paths == ["/python/lib", "/packages/1"] and not any(inside.startswith("/opt") for _, inside in binds)
