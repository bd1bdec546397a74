"""JUnit tests of Java programs: what is one unit, what is told, and what the tool chain asks of a machine."""

import asyncio
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codechat.base.domain import Program, Target, Verdict
from codechat.base.errors import BrokenTask, InfrastructureError, UserError
from codechat.sandbox import SANDBOXES, Command, Ended, Job, Ran, Reader
from codechat.sandbox.suites.compilers import JavaConfig, find_home
from codechat.sandbox.suites.junit import JUnit
from codechat.sandbox.suites.junit.toolchain import (
    CALLS,
    PARTS,
    RUNNER,
    Compiled,
    Compiler,
    Kind,
    Toolchain,
    _Build,
    find_jars,
    toolchain,
)
from codechat.studies.sreval.construct.algorithm import read_verdict
from support.machine import needs_java
from support.mistakes import mistake

TESTS = """
import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.Test;
class ShopTest {
    @Test void sells() { assertEquals(List.of(2), new Shop().sell()); }
}
"""
SHOP = "import java.util.List;\npublic class Shop {\n    List<Integer> sell() { return List.of(2); }\n}\n"
Check = Callable[..., Verdict]


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    with asyncio.Runner() as runner:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto", "total_cpu_s": 5}), workers=1)
        JUnit(TESTS).make_ready(sandbox.config, print)

        def run(program: str, tests: str = TESTS, **fields: tuple[str, ...]) -> Verdict:
            return runner.run(JUnit(tests, **fields).check(Program(program, Target("java")), sandbox))

        yield run
        runner.run(sandbox.aclose())


def body(code: str, imports: str = "") -> str:
    """A test class with one test."""
    return f"{imports}import static org.junit.jupiter.api.Assertions.*;\nimport org.junit.jupiter.api.*;\nclass AnyTest {{ {code} }}"


@needs_java
class TestOneUnit:
    def test_the_programs_imports_hold_for_the_tests(self, check: Check) -> None:
        verdict = check(SHOP)
        assert verdict.passed and verdict.decided == "inside" and verdict.cpu_s > 0

    def test_imports_of_either_may_be_there_twice(self, check: Check) -> None:
        assert check(SHOP, "import java.util.List;\nimport java.util.*;\n" + TESTS).passed

    def test_public_types_sit_in_either(self, check: Check) -> None:
        tests = TESTS.replace("class ShopTest", "public class ShopTest") + "public class Helper { }\n"
        assert check(SHOP + "public interface Sold { }\n", tests).passed

    def test_a_package_is_left_out(self, check: Check) -> None:
        assert check("package com.example.shop;\n\n" + SHOP, "package com.example.shop;\n" + TESTS).passed

    def test_lines_of_messages_are_those_of_the_program(self, check: Check) -> None:
        verdict = check("package shop;\n" + SHOP.replace("List.of(2)", "List.off(2)"))
        assert verdict.outcome == "syntax_error" and verdict.failure is not None
        assert verdict.failure.reason == "it does not compile" and verdict.unrun is None
        assert str(verdict.failure.exception).startswith("line 4: cannot find symbol")

    def test_tests_that_do_not_fit_count_their_own_lines(self, check: Check) -> None:
        verdict = check(SHOP.replace("sell", "give"))
        assert verdict.outcome == "fail" and verdict.failure is not None
        assert verdict.failure.reason == "its tests do not compile with it" and verdict.unrun == "unfit"
        assert str(verdict.failure.exception).startswith("line 5: cannot find symbol")

    @pytest.mark.parametrize("where", ["program", "tests"])
    def test_a_compiler_that_runs_out_of_memory_is_no_verdict_on_the_source(self, check: Check, where: str) -> None:
        doubled = " ".join(f"static final String A{each} = A{each - 1} + A{each - 1};" for each in range(1, 30))
        large = f'class Large {{ static final String A0 = "0123456789abcdef"; {doubled} }}\n'
        verdict = check(*((SHOP + large,) if where == "program" else (SHOP, TESTS + large)))
        assert verdict.outcome == "crash" and verdict.failure is not None and verdict.unrun is None
        assert verdict.failure.reason == "the compiler gives up on it" and not read_verdict(verdict).discriminating

    def test_what_is_no_java_is_a_syntax_error(self, check: Check) -> None:
        verdict = check("def sell(): return [2]\n")
        assert verdict.outcome == "syntax_error" and verdict.decided == "outside"
        assert verdict.failure is not None and verdict.failure.reason == "it is not valid Java"

    def test_tests_that_are_no_java_are_the_datasets_defect(self, check: Check) -> None:
        with pytest.raises(BrokenTask, match="not valid Java"):
            check(SHOP, TESTS + "}")

    def test_java_s_own_libraries_are_there(self, check: Check) -> None:
        program = """
import java.lang.management.*; import java.net.http.HttpClient; import java.sql.Timestamp;
import javax.crypto.Mac; import org.json.JSONObject;
class Uses { long memory() { return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(); } }
"""
        tests = body("""@Test void all() throws Exception {
            assertTrue(new Uses().memory() > 0); assertNotNull(Mac.getInstance("HmacSHA256"));
            assertEquals(0, new JSONObject("{\\"a\\": 0}").getInt("a")); assertNotNull(new Timestamp(0));
            assertNotNull(HttpClient.newHttpClient()); }""")
        assert check(program, tests).passed

    def test_the_desktops_module_is_there_for_tests_that_name_it(self, check: Check) -> None:
        program = "class Where { java.awt.Container here() { return new javax.swing.JPanel(); } }"
        tests = body("@Test void at() { assertEquals(0, new Where().here().getComponentCount()); }")
        assert check(program, tests).outcome == "syntax_error"
        assert check(program, "import java.awt.*;\n" + tests).passed

    def test_imports_of_the_program_change_no_name_that_the_tests_have(self, check: Check) -> None:
        program = "import static junit.framework.Assert.*; import java.util.Optional; import java.util.*;\n" + SHOP
        tests = body('@Test void a() { assertEquals("a", "b", "a"); }')
        assert not check(program, tests).passed, "in JUnit 3 the message comes first"
        assert check(
            program,
            body("@Test void a() { assertEquals(Optional.of(1), new LinkedList<>(Set.of(1)).stream().findAny()); }"),
        ).passed

    def test_a_character_that_ends_the_text_cuts_no_test_off(self, check: Check) -> None:
        for end in ("\x1a", "\\u001a", "/*", "\\u002f\\u002a", "*/", '"""'):
            assert not check(SHOP.replace("of(2)", "of(3)") + end).passed

    def test_tests_of_junit_3_classes_run(self, check: Check) -> None:
        tests = "import org.junit.jupiter.api.Test;\nclass OldTest extends junit.framework.TestCase { @Test public void testIt() { assertEquals(1, 1); } }"
        assert check(SHOP, tests).passed


@needs_java
class TestVerdicts:
    def test_a_failure_names_the_test_its_values_and_its_line(self, check: Check) -> None:
        verdict = check(SHOP.replace("of(2)", "of(3)"))
        assert verdict.outcome == "fail" and verdict.failure is not None and verdict.failure.reason == "a test fails"
        assert verdict.unrun is None
        said = str(verdict.failure.exception)
        assert "sells()" in said and "expected: <[2]> but was: <[3]>" in said

    @pytest.mark.parametrize(
        ("tests", "reason"),
        [
            ("void noTest() { }", "no test runs"),
            ("@Test @Disabled void never() { }", "a test is skipped"),
            ("@Test void passes() { } @Test void aborts() { Assumptions.assumeTrue(false); }", "a test is skipped"),
            ("@BeforeAll static void breaks() { fail(); } @Test void passes() { }", "a test fails"),
            ("@AfterAll static void breaks() { fail(); } @Test void passes() { }", "a test fails"),
        ],
    )
    def test_it_passes_only_if_all_tests_ran_and_passed(self, check: Check, tests: str, reason: str) -> None:
        verdict = check(SHOP, body(tests))
        assert not verdict.passed and verdict.failure is not None and verdict.failure.reason == reason
        assert verdict.unrun == {"no test runs": "none", "a test is skipped": "some"}.get(reason)

    @pytest.mark.long
    def test_a_program_that_does_not_end_runs_out_of_time(self, check: Check) -> None:
        verdict = check(SHOP.replace("return", "while (System.nanoTime() != 0) { } return"))
        assert verdict.outcome == "timeout", verdict

    def test_no_option_of_junit_is_the_programs(self, check: Check) -> None:
        program = """class Slow { static {
            System.setProperty("junit.jupiter.execution.timeout.mode", "disabled");
            System.setProperty("junit.jupiter.conditions.deactivate", "*"); }
            static void work() { try { Thread.sleep(1500); } catch (InterruptedException e) { } } }"""
        late = body("@BeforeAll static void first() { new Slow(); } @Test @Timeout(1) void slow() { Slow.work(); }")
        verdict = check(program, late)
        assert not verdict.passed and verdict.failure is not None and "timed out" in str(verdict.failure.exception)
        never = body(
            "@BeforeAll static void first() { new Slow(); } @Test @Disabled void no() { } @Test void yes() { }"
        )
        assert not check(program, never).passed

    def test_many_kinds_of_tests_run(self, check: Check) -> None:
        tests = body(
            """@Nested class Inner { @Test void a() { } } @RepeatedTest(3) void b() { }
            @TestFactory java.util.List<DynamicTest> c() { return java.util.List.of(DynamicTest.dynamicTest("d", () -> { })); }
            @org.junit.jupiter.params.ParameterizedTest @org.junit.jupiter.params.provider.ValueSource(ints = {1, 2})
            void e(int n) { assertTrue(n > 0); } @Test void f(@org.junit.jupiter.api.io.TempDir java.io.File folder) {
                assertTrue(folder.isDirectory()); }"""
        )
        assert check(SHOP, tests).passed

    def test_a_hundred_threads_may_run(self, check: Check) -> None:
        tests = body("""@Test void many() throws Exception {
            var pool = java.util.concurrent.Executors.newFixedThreadPool(100);
            var gate = new java.util.concurrent.CountDownLatch(100);
            for (int n = 0; n < 100; n++) pool.submit(() -> { gate.countDown(); gate.await(); return 0; });
            assertTrue(gate.await(20, java.util.concurrent.TimeUnit.SECONDS)); }""")
        assert check(SHOP, tests).passed

    def test_threads_that_stay_keep_no_right_program_from_passing(self, check: Check) -> None:
        program = SHOP.replace("return", "new Thread(() -> { while (true) { } }).start(); return")
        assert check(program).passed

    def test_nothing_stays_from_one_test_to_the_next(self, check: Check) -> None:
        program = SHOP.replace("return", "java.util.Locale.setDefault(java.util.Locale.GERMANY); return")
        assert check(program).passed
        assert check(SHOP, body('@Test void en() { assertEquals("1.5", String.format("%.1f", 1.5)); }')).passed

    def test_a_type_of_a_librarys_name_needs_leave(self, check: Check) -> None:
        program, tests = (
            "class LinkedList { int size() { return 7; } }",
            body("@Test void own() { assertEquals(7, new LinkedList().size()); }", "import java.util.*;\n"),
        )
        verdict = check(program, tests)
        assert verdict.failure is not None and verdict.failure.exception == "LinkedList of java.util"
        assert check(program, tests, declares=("LinkedList",)).passed


@needs_java
def test_a_runtime_that_the_box_does_not_see_is_no_failure_of_the_program() -> None:
    tools = toolchain(JavaConfig())
    made = tools.compiler()

    class Blind:
        def parts_processes(self) -> bool:
            return True

        def python(self, job: Job, reader: Reader) -> Ended:
            raise AssertionError

        def keep(self, key: str, start: Callable[[], Any]) -> Any:
            return made

        def run(self, command: Command) -> Ran:
            return Ran(127, why="missing")

    try:
        with mistake("Java runtime", "sandbox=bubblewrap"):
            JUnit(TESTS)._run(Blind(), Program(SHOP, Target("java")), tools, SANDBOXES.validate({"kind": "process"}))
    finally:
        made.stop()


@needs_java
class TestCompiler:
    def test_a_unit_that_takes_too_long_ends_with_its_limit(self) -> None:
        tools = toolchain(JavaConfig())
        made = tools.compiler()
        try:
            held = "".join(f"static int a{n}() {{ return {n}; }}\n" for n in range(30_000))
            slow = made.compile(f"class Big {{ {held} }}", TESTS, (), limit_s=0.05)
            assert slow.kind is Kind.TOO_LONG
            assert made.compile(SHOP, TESTS, (), limit_s=20).kind is Kind.COMPILED
        finally:
            made.stop()

    def test_a_compiler_that_was_killed_is_started_again(self) -> None:
        made = toolchain(JavaConfig()).compiler()
        try:
            assert made.compile(SHOP, TESTS, (), limit_s=20).kind is Kind.COMPILED
            assert made._process is not None
            made._process.kill()
            assert made.compile(SHOP, TESTS, (), limit_s=20).kind is Kind.COMPILED
        finally:
            made.stop()
        with pytest.raises(InfrastructureError, match="stopped"):
            made.compile(SHOP, TESTS, (), limit_s=20)

    def test_it_is_renewed_after_many_units(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(Compiler._started.__globals__, "RENEWED_AFTER", 1)
        made = toolchain(JavaConfig()).compiler()
        try:
            pids = []
            for _ in range(2):
                assert made.compile(SHOP, TESTS, (), limit_s=20).kind is Kind.COMPILED
                assert made._process is not None
                pids.append(made._process.pid)
            assert pids[0] != pids[1]
        finally:
            made.stop()


def jdk(folder: Path, version: str, *parts: str) -> str:
    for part in ("bin/javac", "bin/jlink", "jmods/base", *parts):
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / part).touch()
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return str(folder)


class TestMachine:
    def test_no_jdk(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(UserError) as caught:
            find_home(None, PARTS)
        assert "need a JDK" in str(caught.value) and "openjdk-17-jdk-headless" in str(caught.value)

    @pytest.mark.parametrize(("version", "number"), [("11.0.2", 11), ("1.8.0_292", 8)])
    def test_an_old_jdk(self, tmp_path: Path, version: str, number: int) -> None:
        with mistake(f"JDK {number}", "17"):
            find_home(jdk(tmp_path, version))

    def test_a_runtime_is_no_jdk(self, tmp_path: Path) -> None:
        with mistake("bin/javac"):
            find_home(str(tmp_path))

    def test_a_new_jdk(self, tmp_path: Path) -> None:
        assert find_home(jdk(tmp_path, "21")) == tmp_path

    def test_a_runtime_is_made_once(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        class Build:
            def __init__(self, *given: object) -> None:
                self.make = lambda: made.append(given)

        made, notes = list[tuple[object, ...]](), list[str]()
        module = sys.modules[toolchain.__module__]  # the package has a function of that name
        monkeypatch.setattr(module, "_Build", Build)
        monkeypatch.setenv("CODECHAT_CACHE_DIR", str(tmp_path / "cache"))
        home = find_home(jdk(tmp_path, "21"))
        for modules in ((), (), ("java.desktop",)):
            tools = module._make(home, (), modules, notes.append)
            assert tools.version == 21 and str(tools.folder) in notes[-1]
        assert [modules for _, _, modules, _ in made] == [(), ("java.desktop",)] and len(notes) == 2

    @pytest.mark.parametrize("kind", [Kind.COMPILED, Kind.GIVES_UP])
    def test_a_sample_is_run_once_for_the_classes_that_it_loads(self, tmp_path: Path, kind: Kind) -> None:
        stopped: list[bool] = []
        made = SimpleNamespace(compile=lambda *_, **__: Compiled(kind, "SampleTest Other", b"unit"),
                               stop=lambda: stopped.append(True))  # fmt: skip
        tools: Any = SimpleNamespace(folder=tmp_path, compiler=lambda: made)
        tools.run = lambda _, classes, more: ["sh", "-c", f'test -e unit && echo "{classes} {more}" > {RUNNER}']
        tools.call = lambda _, arguments, more: ["cp", *arguments, more[0].partition("=")[2]]
        build = _Build(tools, (), (), 1)
        if kind is Kind.COMPILED:
            build._archive()
            assert "['SampleTest', 'Other'] ['-XX:ArchiveClassesAtExit=" in (tmp_path / RUNNER).read_text()
            assert (tmp_path / RUNNER).stat().st_mode & 0o777 == 0o644 and (tmp_path / "unit").read_bytes() == b"unit"
        else:
            with pytest.raises(InfrastructureError, match="SampleTest Other"):
                build._archive()
        assert stopped == [True]
        with pytest.raises(InfrastructureError, match=r"sh fails \(3\): b \| c \| d"):
            build._run(["sh", "-c", "printf 'a\nb\nc\nd\n' >&2; exit 3"])

    @pytest.mark.parametrize(
        ("version", "guard"),
        [
            (17, "-Djava.security.manager=allow"),
            (23, "-Djava.security.manager=allow"),
            (24, "--illegal-native-access=deny"),
        ],
    )
    def test_a_programs_runtime_is_guarded_and_bounded(self, tmp_path: Path, version: int, guard: str) -> None:
        tools = Toolchain(tmp_path, tmp_path / "jdk", ("a.jar", "b.jar"), version)
        ends = {"run": ["codechat.junit.Runner", "token", "unit", "T"], "call": ["codechat.junit.Calls", "unit", "T"]}
        for command, archive in ((tools.run(1024, ["T"]), RUNNER), (tools.call(1024, ["T"]), CALLS)):
            assert command[0] == f"{tools.image}/bin/java" and command[command.index("-cp") + 1] == "a.jar:b.jar"
            assert {guard, "-Xmx256m", "-XX:+DisableAttachMechanism", "-Xshare:auto"} <= set(command)
            assert f"-XX:SharedArchiveFile={tmp_path / archive}" in command
        assert tools.run(1024, ["T"])[-4:] == ends["run"] and tools.call(1024, ["T"])[-3:] == ends["call"]
        assert tools.tools == (f"{tools.image}", f"{tmp_path / RUNNER}", f"{tmp_path / CALLS}", "a.jar", "b.jar")
        assert tools.environment["LD_LIBRARY_PATH"] == f"{tools.image}/lib:{tools.image}/lib/server"
        bare = Toolchain(tmp_path, tmp_path, (), version).run(1024, [])
        assert bare[bare.index("-cp") + 1] == str(tmp_path / "nothing")

    def test_no_junit(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "own.jar", "w") as jar:
            jar.writestr("org/junit/jupiter/api/Test.class", b"")
        with mistake("junit-jupiter-engine, junit-platform-commons", "junit5 libandroid-json-org-java"):
            find_jars([str(tmp_path / "own.jar")])

    def test_a_jar_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "own.jar").write_text("x")
        with mistake("sandbox.java.classpath", "own.jar"):
            find_jars([str(tmp_path / "own.jar")])

    @needs_java
    def test_the_runtime_is_made_once_and_knows_no_unsafe_modules(self) -> None:
        notes: list[str] = []
        tools: Toolchain = toolchain(JavaConfig(), note=notes.append)
        assert toolchain(JavaConfig(), note=notes.append) == tools and len(notes) <= 1
        modules = (tools.image / "release").read_text().partition("MODULES=")[2].split('"')[1].split()
        assert "codechat.junit" in modules and "java.se" not in modules
        assert not {"jdk.unsupported", "java.instrument", "jdk.attach", "jdk.management", "jdk.jdi"} & set(modules)
        assert not [name for name in modules if "incubator" in name]
        for name, command in ((RUNNER, tools.run(400, ())), (CALLS, tools.call(400, ()))):
            assert f"-XX:SharedArchiveFile={tools.folder / name}" in command
            java = [word.replace("-Xshare:auto", "-Xshare:on") for word in command[: command.index("-cp") + 2]]
            assert subprocess.run([*java, "-version"], capture_output=True, check=False).returncode == 0, "it fits"
