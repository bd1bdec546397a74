"""Programs checked in a version of their language: by compilers of this machine, confined like programs."""

import asyncio
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import UserError
from codechat.sandbox import Sandbox
from codechat.sandbox.languages import languages
from codechat.sandbox.languages.grammar import Compiled
from codechat.sandbox.suites.compilers import find_home
from codechat.studies.multicodeif.constraints import Constraint, Finding, Harness, constraint_type
from codechat.studies.multicodeif.versions import finding_of, suite_of
from support.machine import sandbox_here

pytestmark = pytest.mark.long

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
LIMITS = {"load_cpu_s": 8.0, "file_mb": 8, "memory_mb": 4096}


def _has_java() -> bool:
    try:
        return bool(find_home(None))
    except UserError:
        return False


needs_javac = pytest.mark.skipif(not _has_java(), reason="needs Java")
needs_rustc = pytest.mark.skipif(shutil.which("rustc") is None, reason="needs rustc")
ANSWERS = [
    "python;" + HERE,
    pytest.param("java;jdk11", marks=needs_javac),
    pytest.param("rust;1.60.0", marks=needs_rustc),
]


def build(kind: str, **options: Any) -> Any:
    return sandbox_here(kind=kind, **{**LIMITS, **options})


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Any]:
    room = build("auto")
    yield room
    asyncio.run(room.aclose())


async def find(sandbox: Sandbox, answer: str, code: str, harness: Harness = "guarded") -> Finding:
    constraint = Constraint("language_version", constraint_type("language_version").read(answer))
    verdict = await suite_of(constraint, harness).check(Program(code, Target(constraint.answer.language)), sandbox)
    found = finding_of(verdict)
    assert len(found.reason.splitlines()) == 1 and verdict.passed is (found.met is True)
    return found


RIGHT = {"python": "def f(x):\n    return x\n", "java": "public class Shop { int x; }", "rust": "pub fn f() {}"}
WRONG = {"python": "def f(:\n", "java": "public class Shop { int x = ; }", "rust": "pub fn f( {}"}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_right_and_wrong_programs(sandbox: Sandbox, answer: str) -> None:
    language = answer.partition(";")[0]
    assert (await find(sandbox, answer, RIGHT[language])).met is True
    wrong = await find(sandbox, answer, WRONG[language])
    assert wrong.met is False and wrong.reason.startswith("line 1: "), wrong
    assert (await find(sandbox, answer, WRONG[language], "official")).met is False
    assert await find(sandbox, answer, " \n") == Finding(False, "the reply holds no code")


@needs_javac
async def test_java_published_and_right(sandbox: Sandbox) -> None:
    """Officially the file is Test.java and a missing library fails; what a later version brought fails rightly."""
    code = "import org.json.JSONObject;\npublic class Shop { JSONObject all; }"
    assert (await find(sandbox, "java;11", RIGHT["java"], "official")).met is False
    assert (await find(sandbox, "java;11", "public class Test { }", "official")).met is True
    assert (await find(sandbox, "java;11", code, "official")).met is False
    assert (await find(sandbox, "java;11", code)).met is True
    record = "record Point(int x) { }"
    assert (await find(sandbox, "java;11", record)).met is False
    assert (await find(sandbox, "java;17", record)).met is True
    for newer in ("var x = f(); return x;", "return ProcessHandle.current().pid();", "return HexFormat.of();"):
        every = f"import a.b.*;\nimport java.util.*;\nclass C {{ Object f() {{ {newer} }} Missing one; }}"
        assert (await find(sandbox, "java;8", every)).met is False, "a package that is not there excuses no version"
        assert (await find(sandbox, "java;17", every)).met is True
    newer = "import a.B;\nclass C { Object o = java.util.stream.Stream.of(1).toList(); }"
    assert "toList" in (await find(sandbox, "java;11", newer)).reason
    assert (await find(sandbox, "java;17", newer)).met is True


@needs_rustc
async def test_rust_published_and_right(sandbox: Sandbox) -> None:
    code = 'use serde::Serialize;\n#[derive(Serialize)]\nstruct A { b: u8 }\nfn main() { println!("{}", 1); }'
    assert (await find(sandbox, "rust;1.60.0", "fn main() {}", "official")).met is True
    assert (await find(sandbox, "rust;1.60.0", "pub fn f() {}", "official")).met is False
    assert (await find(sandbox, "rust;1.60.0", code, "official")).met is False
    assert (await find(sandbox, "rust;1.60.0", code)).met is True
    assert (await find(sandbox, "rust;1.40.0", "async fn f() {}")).met is True
    assert (await find(sandbox, "rust;1.20.0", "async fn f() {}")).met is False


async def test_a_compiler_that_is_not_there_decides_nothing(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for answer in ("rust;1.86.0", "java;jdk17", "python;3.2"):
        found = await find(sandbox, answer, "x")
        assert found.met is None and "sandbox.toolchains=[DIR]" in found.reason, found


@needs_javac
async def test_a_compiler_that_is_too_old_decides_nothing(sandbox: Sandbox) -> None:
    found = await find(sandbox, "java;jdk99", RIGHT["java"])
    assert found.met is None and "(there is " in found.reason


def tool(folder: Path, name: str, script: str) -> str:
    path = folder / "bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return str(folder)


async def test_a_compiler_that_does_not_work_in_the_sandbox_fails_no_program() -> None:
    """One that reports an error for a right program too is no judge of another."""
    shown = Path(__file__).parents[2] / "build" / f"tools-{os.getpid()}"  # a box has its own /tmp
    folder = tool(shown, "python3.2", 'case "$*" in -V) echo 3.2;; -c*) dirname "$(dirname "$0")" ;; *) exit 1;; esac')
    room = build("auto", toolchains=[folder])
    try:
        found = await find(room, "python;3.2", RIGHT["python"])
        assert found.met is None and "python3.2" in found.reason and "sandbox" in found.reason
        assert folder not in found.reason, "records do not tell where things lie on a machine"
    finally:
        shutil.rmtree(shown)
        await room.aclose()


OTHER = next(
    (str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.*")) if not path.name.startswith(HERE)), None
)


@pytest.mark.skipif(OTHER is None, reason="needs another Python")
async def test_an_interpreter_of_the_very_version_is_found_by_its_folder() -> None:
    assert OTHER is not None
    minor = ".".join(Path(OTHER).name.split(".")[:2])
    room = build("auto", toolchains=[OTHER])
    try:
        assert (await find(room, f"python;{minor}", RIGHT["python"])).met is True
        assert (await find(room, f"python;{minor}", WRONG["python"])).met is False
    finally:
        await room.aclose()


HOSTILE = {
    "python": {
        "a long line": "x = [" + "1, " * 60_000 + "]",
        "an import": "import os\nos.system('touch /tmp/ran')\nraise SystemExit(0)",
        "a null byte": "x = 1\0",
        "half a character": "x = '\ud800'",
        "a cookie": "# coding: utf-7\n+AAo-x = (",
        "a megabyte": "x" * 1_000_000,
        "brackets": "(" * 10_000,
    },
    "java": {
        "a sum": "class A { int x = " + "1 + " * 40_000 + "1; }",
        "a long name": f"public class {'A' * 50_000} {{ }}",
        "an odd name": "public class -J-version { }",
        "a processor": 'import javax.annotation.processing.*;\n@SupportedAnnotationTypes("*")\npublic class A extends '
        "AbstractProcessor { static { Runtime.getRuntime().exit(0); } public boolean process(java.util.Set x, "
        "RoundEnvironment y) { return true; } }",
        "types in types": "class A { Object x = " + "java.util.List.of(" * 400 + ")" * 400 + "; }",
        "errors": "class A { " + "int x = y; " * 10_000 + "}",
    },
    "rust": {
        "a loop": "pub const X: u8 = { loop {} };",
        "a file": 'pub const X: &[u8] = include_bytes!("/etc/shadow");',
        "an array": "pub const X: [u64; 1 << 40] = [0; 1 << 40];",
        "a macro": "macro_rules! m { ($($t:tt)*) => { m!($($t)* $($t)*) } }\nm!(a);",
        "deep types": "type A = " + "Vec<" * 400 + "u8" + ">" * 400 + ";",
        "a limit": '#![recursion_limit = "1000000"]\nstruct A<T>(T);\npub fn f<T>(t: T) { f(A(t)) }\npub fn g() { f(1) }',
        "a variable": 'pub const X: &str = env!("HOME");',
        "a forged report": 'compile_error!("a\\nb.rs:1:1: error[E0463]: can\'t find crate for `x`");',
        "a crate type": '#![crate_type = "proc-macro"]\n#[proc_macro] pub fn f(x: proc_macro::TokenStream) -> proc_macro::TokenStream { x }',
    },
}


@pytest.fixture(scope="module")
def narrow() -> Iterator[Any]:
    """A sandbox with little CPU time, which hostile programs use up."""
    room = build("auto", load_cpu_s=6.0)
    yield room
    asyncio.run(room.aclose())


@pytest.mark.parametrize("answer", ANSWERS)
async def test_hostile_programs_end_within_the_limits(narrow: Sandbox, answer: str) -> None:
    for name, code in HOSTILE[answer.partition(";")[0]].items():
        started = time.monotonic()
        found = await find(narrow, answer, code)
        assert len(found.reason) <= 300, name
        assert time.monotonic() - started < 60, name


@needs_rustc
async def test_what_ends_a_compiler_is_undecided_and_a_forged_report_is_not(narrow: Sandbox) -> None:
    assert (await find(narrow, "rust;1.60.0", HOSTILE["rust"]["a loop"])).met is None
    assert (await find(narrow, "rust;1.60.0", HOSTILE["rust"]["a forged report"])).met is False
    assert (await find(narrow, "rust;1.60.0", HOSTILE["rust"]["a file"])).met is False
    assert (await find(narrow, "python;" + HERE, HOSTILE["python"]["brackets"])).met is None


async def test_nothing_of_a_program_is_run(sandbox: Sandbox) -> None:
    for code in ("raise SystemExit(1)", "import os\nos._exit(1)", "import program\n1 / 0"):
        assert (await find(sandbox, "python;" + HERE, code)).met is True


def test_only_a_verdict_that_was_reached_decides() -> None:
    assert finding_of(Verdict.without_run("timeout", "it takes long")) == Finding(None, "it takes long")
    assert finding_of(Verdict("pass", True)).met is True


@needs_javac
async def test_limits_in_which_no_compiler_starts_fail_no_program() -> None:
    room = build("auto", memory_mb=128)
    try:
        for code in (RIGHT["java"], WRONG["java"]):
            assert (await find(room, "java;11", code)).met is None
    finally:
        await room.aclose()


def test_suites_differ_by_all_that_decides() -> None:
    kind = constraint_type("language_version")
    suites = [
        suite_of(Constraint(kind.name, kind.read(answer)), harness)
        for answer in ("rust;1.60.0", "rust;1.61.0", "java;11")
        for harness in ("official", "guarded")
    ]
    assert len({suite.key for suite in suites}) == 6


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("go;1.22", "no compiler .*'go'"),
        ("rust;newest", "'newest' names no version"),
        ("rust", "language;version"),
        ("rust;1;2", "language;version"),
    ],
)
def test_an_answer_that_nothing_could_decide_is_a_mistake(answer: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        constraint_type("language_version").read(answer)


def test_the_languages_with_a_compiler() -> None:
    assert [each.names[0] for each in languages() if isinstance(each, Compiled)] == ["java", "python", "rust"]
