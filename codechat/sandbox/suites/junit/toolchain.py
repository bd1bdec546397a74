"""The tools behind the tests: a JDK, JUnit's jars, and files made of both once and cached.

The runtime has JUnit in a separate module, whose internals programs cannot reach; it lacks the modules by which a
program could access the memory of its process. An archive of loaded classes makes it start faster.
"""

import contextlib
import fcntl
import functools
import marshal
import os
import re
import select
import shutil
import struct
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from codechat.base.environment import cache_root
from codechat.base.errors import InfrastructureError, UserError
from codechat.base.files import content_hash
from codechat.sandbox.suites.compilers import JavaConfig, find_home, jdk_version

SIZE = struct.Struct(">i")
POLL_S = 0.1
TICKS = os.sysconf("SC_CLK_TCK")
CEILING_FACTOR, CEILING_S = 10.0, 30.0  # by the clock, over the CPU time: no busy machine needs it
LARGEST = 256 << 20  # bytes of an answer
START_CPU_S = 60.0
RENEWED_AFTER = 2000  # units: a compiler that works for hours must not grow


class Kind(IntEnum):
    """The kinds of answers, in the order of `Compiler.java`; `TOO_LONG` and `ENDED` are made on this side."""

    COMPILED = 0
    PROGRAM_DOES_NOT_PARSE = 1
    PROGRAM_FAILS = 2
    TESTS_DO_NOT_FIT = 3
    TESTS_DO_NOT_PARSE = 4
    GIVES_UP = 5
    SHADOWS = 6
    TOO_LONG = 7
    ENDED = 8


@dataclass(frozen=True, slots=True)
class Compiled:
    """The compiler's answer. `text` holds the test classes if the unit was compiled, else a message. `unit` holds the
    classes: their number, then each one's name and content, preceded by their sizes."""

    kind: Kind
    text: str
    unit: bytes = b""
    cpu_s: float = 0.0


class Compiler:
    """One compiler process, started at the first unit, and anew after it ended. Used by one thread at a time."""

    def __init__(self, argv: Sequence[str], sample: tuple[str, str]) -> None:
        """`argv` starts it. The `sample`, a program and its tests, is compiled first: no unit pays for the start."""
        self._argv, self._sample = list(argv), _request(*sample)
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped, self._units = False, 0
        self._lock = threading.Lock()  # held while a unit is compiled

    def compile(self, program: str, tests: str, declares: Sequence[str], *, limit_s: float) -> Compiled:
        """Compile a unit within `limit_s` CPU seconds. A unit that ends two compilers is at fault itself. `declares`
        names types that the program may declare although a library of the tests has them. Raises `InfrastructureError`
        if the compiler cannot be started, or was stopped."""
        request = _request(program, tests, declares)
        with self._lock:
            answer = self._ask(self._started(), request, limit_s)
            return answer if answer.kind is not Kind.ENDED else self._ask(self._started(), request, limit_s)

    def stop(self) -> None:
        """End it for good, from any thread."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()  # a thread that waits for it continues
        with self._lock:
            self._end()

    def _end(self) -> None:
        process = self._process
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):  # unsent data is not needed
                        stream.close()
        self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._stopped:
            raise InfrastructureError("the compiler was stopped")
        if self._process is None or self._units >= RENEWED_AFTER:
            self._end()
            self._units = 0
            try:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    bufsize=0,
                    cwd="/",
                    env={"LANG": "C.UTF-8"},
                    start_new_session=True,
                )
            except OSError as error:
                raise InfrastructureError(f"the Java compiler does not start: {error.strerror}") from error
            if self._ask(self._process, self._sample, START_CPU_S).kind is not Kind.COMPILED:
                raise InfrastructureError("the Java compiler does not compile a sample")
        self._units += 1
        return self._process

    def _ask(self, process: subprocess.Popen[bytes], request: bytes, limit_s: float) -> Compiled:
        before = _cpu_s(process.pid)
        try:
            assert process.stdin is not None
            while request:
                request = request[process.stdin.write(request) :]
            meter = _Meter(process, before + limit_s)
            size = SIZE.unpack(meter.read(SIZE.size))[0]
            if not 0 < size <= LARGEST:
                raise EOFError
            answer = meter.read(size)
        except TimeoutError:
            self._end()
            return Compiled(Kind.TOO_LONG, "", cpu_s=limit_s)
        except (OSError, EOFError):
            self._end()
            if self._stopped:
                raise InfrastructureError("the compiler was stopped") from None
            return Compiled(Kind.ENDED, "")
        return _read(answer, max(0.0, _cpu_s(process.pid) - before))


class _Meter:
    """Reads a process's answer, until it has used its CPU time or far more by the clock."""

    def __init__(self, process: subprocess.Popen[bytes], cpu_s: float) -> None:
        assert process.stdout is not None
        self._pid, self._stream, self._cpu_s = process.pid, process.stdout.fileno(), cpu_s
        self._until = time.monotonic() + CEILING_S + CEILING_FACTOR * cpu_s

    def read(self, size: int) -> bytes:
        """The next `size` bytes. Raises `EOFError` at the end of the stream, and `TimeoutError`."""
        pieces: list[bytes] = []
        while size:
            if not select.select([self._stream], [], [], POLL_S)[0]:
                if _cpu_s(self._pid) > self._cpu_s or time.monotonic() > self._until:
                    raise TimeoutError
                continue
            piece = os.read(self._stream, size)
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def _read(answer: bytes, cpu_s: float) -> Compiled:
    kind, size = Kind(answer[0]), SIZE.unpack_from(answer, 1)[0]
    end = 1 + SIZE.size + size
    return Compiled(kind, answer[1 + SIZE.size : end].decode(errors="replace"), answer[end:], cpu_s)


def _request(program: str, tests: str, declares: Sequence[str] = ()) -> bytes:
    texts = [text.encode("utf-8", "replace") for text in (program, tests, " ".join(declares))]
    return b"".join(SIZE.pack(len(data)) + data for data in texts)


def _cpu_s(pid: int) -> float:
    """The CPU seconds of a process; 0 if it is gone, which the end of its stream shows too."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123  called ten times a second
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


PARTS = ("bin/jlink", "jmods")  # of a JDK, to make a runtime from
SOURCES = Path(__file__).parent / "java"
DEBIAN = Path("/usr/share/java")
JUNIT_OF_DEBIAN = (
    *("junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "junit-platform-commons"),
    *("junit-platform-engine", "junit-platform-launcher", "opentest4j", "apiguardian-api", "junit4"),
)
# json.jar is an older one, whose exceptions are checked.
LIBRARIES_OF_DEBIAN = ("json-latest",)
JUNIT_FOLDERS = ("org/junit/", "org/opentest4j/", "org/apiguardian/", "junit/framework/")
NEEDED = {
    "org/junit/jupiter/api/Test.class": "junit-jupiter-api",
    "org/junit/jupiter/engine/JupiterTestEngine.class": "junit-jupiter-engine",
    "org/junit/platform/commons/util/ReflectionUtils.class": "junit-platform-commons",
    "org/junit/platform/engine/TestEngine.class": "junit-platform-engine",
    "org/junit/platform/launcher/core/LauncherFactory.class": "junit-platform-launcher",
    "org/opentest4j/AssertionFailedError.class": "opentest4j",
}
# Most of Java SE and some more; not among them: jdk.unsupported (sun.misc.Unsafe), java.instrument, jdk.attach,
# jdk.jdi, jdk.management and the incubators, by which a program could read or change what lies outside its own
# objects, and java.security.jgss, which loads a library that a property names.
MODULES = (
    *("java.compiler", "java.datatransfer", "java.logging", "java.management", "java.naming", "java.net.http"),
    *("java.prefs", "java.rmi", "java.scripting", "java.sql", "java.sql.rowset", "java.xml", "java.xml.crypto"),
    *("jdk.charsets", "jdk.crypto.ec", "jdk.httpserver", "jdk.localedata", "jdk.zipfs"),
)
# Much native code reads fonts, pictures and sound: it is there for tests alone whose own text names it.
DESKTOP = "java.desktop"
OF_DESKTOP = re.compile(r"\bjava\.(?:applet|awt|beans)\b|\bjavax\.(?:accessibility|imageio|print|sound|swing)\b")
MODULE = "codechat.junit"
REMEDY = "install it (Debian: junit5 libandroid-json-org-java), or name jars: sandbox.java.classpath=[a.jar,b.jar]"
SAMPLE = "class Sample { int one() { return 1; } }"
SAMPLE_TESTS = """
import static org.junit.jupiter.api.Assertions.*;
import org.junit.jupiter.api.*;
class SampleTest {
    @BeforeEach void before() { System.out.println("Hello"); }
    @Test void passes() { assertEquals(1, new Sample().one()); assertTrue(true); }
    @Test void raises() { assertThrows(IllegalStateException.class, () -> { throw new IllegalStateException("x"); }); }
}
"""
RUNNER, CALLS = "runner.jsa", "calls.jsa"  # the loaded classes of `Runner.java` and of `Calls.java`
SAMPLE_CALLER = """
final class CodechatCaller {
    static java.util.List<java.util.Map<String, Double>> call(java.util.List<Integer> all, String text, double number) {
        new Sample().one();
        return java.util.List.of(java.util.Map.of(text, number + all.size()));
    }
}
"""
LAST_MANAGED = 23  # the last version of Java with security managers
_building = threading.Lock()
_made: dict[tuple[str | None, tuple[str, ...] | None, bool], "Toolchain"] = {}


@dataclass(frozen=True)
class Toolchain:
    """The tools of one JDK and its jars, in `folder`."""

    folder: Path
    home: Path
    libraries: tuple[str, ...]
    version: int

    @property
    def image(self) -> Path:
        """The runtime that programs see."""
        return self.folder / "runtime"

    @property
    def tools(self) -> tuple[str, ...]:
        """The paths that must be visible in the sandbox."""
        return (str(self.image), *(str(self.folder / name) for name in (RUNNER, CALLS)), *self.libraries)

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables by which the runtime finds its libraries if it cannot ask for its own path, and saves memory."""
        return {"LD_LIBRARY_PATH": f"{self.image}/lib:{self.image}/lib/server", "MALLOC_ARENA_MAX": "2"}

    def compiler(self) -> Compiler:
        """A compiler that knows the classes that programs will find at run time."""
        java = [f"{self.home}/bin/java", "-Xmx512m", "-Xss2m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options = ["--system", str(self.image), *self._classpath(), "-proc:none", "-g", "-nowarn", "-Xlint:none"]
        compiler = ["-cp", str(self.folder / "compiler"), "codechat.compiler.Compiler", *options]
        return Compiler([*java, "-XX:-UsePerfData", *compiler], (SAMPLE, SAMPLE_TESTS))

    def run(self, memory_mb: int, tests: Sequence[str], *, more: Sequence[str] = ()) -> list[str]:
        """The command that tests the unit in the files `token` and `unit` of the working folder."""
        words = ("codechat.junit.Runner", "token", "unit", *tests)
        return self._java(memory_mb, words, RUNNER, more)

    def call(self, memory_mb: int, words: Sequence[str], *, more: Sequence[str] = ()) -> list[str]:
        """The command that calls the unit in the file `unit`; `words` are further arguments of `Calls.java`."""
        return self._java(memory_mb, ("codechat.junit.Calls", "unit", *words), CALLS, more)

    def _java(self, memory_mb: int, words: Sequence[str], archive: str, more: Sequence[str]) -> list[str]:
        return [
            f"{self.image}/bin/java",
            *(f"-Xmx{memory_mb // 4}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"),
            *("-XX:-UseContainerSupport", "-XX:+DisableAttachMechanism", "-XX:CompressedClassSpaceSize=128m"),
            *("-Xshare:auto", "-Xlog:disable", "-XX:ErrorFile=/dev/null"),
            *("-Djava.awt.headless=true", "-Duser.language=en", "-Duser.country=US", "-Duser.timezone=UTC"),
            "-Dfile.encoding=UTF-8",
            # By either a program loads no native library: see Guard.java.
            "-Djava.security.manager=allow" if self.version <= LAST_MANAGED else "--illegal-native-access=deny",
            *(more or [f"-XX:SharedArchiveFile={self.folder / archive}"]),
            *self._classpath(),
            *words,
        ]

    def _classpath(self) -> list[str]:
        return ["-cp", ":".join(self.libraries) or str(self.folder / "nothing")]


def toolchain(config: JavaConfig, tests: str = "", note: Callable[[str], None] = lambda text: None) -> Toolchain:
    """The tools for `tests`. The first use on a machine makes them, and `note` gets a message about it. Raises
    `UserError` if something is missing."""
    modules = (*MODULES, DESKTOP) if OF_DESKTOP.search(tests) else MODULES
    given = (config.home, None if config.classpath is None else tuple(config.classpath), DESKTOP in modules)
    with _building:
        if given not in _made:  # jars are read once a process, not for every verdict
            _made[given] = _make(find_home(config.home, PARTS), tuple(find_jars(config.classpath)), modules, note)
        return _made[given]


def _make(home: Path, jars: tuple[Path, ...], modules: tuple[str, ...], note: Callable[[str], None]) -> Toolchain:
    junit = [jar for jar in jars if any(name.startswith(JUNIT_FOLDERS) for name in _entries(jar))]
    libraries = [jar for jar in jars if jar not in junit]
    names = [path.name for path in sorted(SOURCES.glob("*.java"))]
    parts = [(home / "release").read_text(), *((SOURCES / name).read_text() for name in names), *modules]
    key = content_hash([str(home), *parts, *(content_hash(jar.read_bytes()) for jar in jars), *map(str, libraries)])
    folder = (cache_root() / "java" / key[:16]).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.resolve()
        tools = Toolchain(folder, home, tuple(str(jar) for jar in libraries), jdk_version(home))
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "ready").exists():
                note(f"making a Java runtime for tests, once (some 20 s): {folder}")
                _Build(tools, junit, modules, lock.fileno()).make()
                (folder / "ready").touch()
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}", "set CODECHAT_CACHE_DIR to a folder") from error
    return tools


def find_jars(given: Sequence[str] | None) -> list[Path]:
    """The jars of JUnit and of libraries; raises `UserError` for one that is missing."""
    if given is None:
        named = [DEBIAN / f"{name}.jar" for name in (*JUNIT_OF_DEBIAN, *LIBRARIES_OF_DEBIAN)]
        jars = [jar.resolve() for jar in named if jar.exists()]
    else:
        jars = [Path(jar).expanduser().resolve() for jar in given]
        for jar in jars:
            if not zipfile.is_zipfile(jar):
                raise UserError(f"sandbox.java.classpath: {jar} is no jar file", REMEDY)
    held = {name for jar in jars for name in _entries(jar)}
    missing = [jar for entry, jar in NEEDED.items() if entry not in held]
    if missing:
        raise UserError(f"tests in Java need JUnit 5, and there is no {', '.join(missing)}", REMEDY)
    return jars


@functools.cache
def _entries(jar: Path) -> frozenset[str]:
    with zipfile.ZipFile(jar) as archive:
        return frozenset(archive.namelist())


@dataclass(frozen=True)
class _Build:
    """Makes the tools in their folder. Each tool inherits the descriptor of the `lock`. So one that outlives this
    process, killed by `kill -9`, holds it until it ends, and the next build waits."""

    tools: Toolchain
    junit: Sequence[Path]
    modules: Sequence[str]
    lock: int

    def make(self) -> None:
        folder = self.tools.folder
        for left in folder.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
        module, compiler = folder / "module", folder / "compiler"
        for jar in self.junit:
            with zipfile.ZipFile(jar) as archive:
                archive.extractall(module, [name for name in archive.namelist() if name.startswith(JUNIT_FOLDERS)])
        described = folder / "description" / "module-info.java"
        described.parent.mkdir()
        described.write_text("".join(_exported(SOURCES / "module-info.java", module)))
        self._tool("javac", "-d", compiler, SOURCES / "Compiler.java")
        sources = (described, *(SOURCES / f"{name}.java" for name in ("Runner", "Calls", "Guard")))
        self._tool("javac", "-nowarn", "-d", module, "--patch-module", f"{MODULE}={module}", *sources)
        modules = ",".join((MODULE, *self.modules))
        options = ("--strip-debug", "--no-header-files", "--no-man-pages", "--output", self.tools.image)
        self._tool("jlink", "--module-path", f"{module}:{self.tools.home}/jmods", "--add-modules", modules, *options)
        self._run([f"{self.tools.image}/bin/java", "-Xshare:dump"])
        self._archive()

    def _archive(self) -> None:
        compiler = self.tools.compiler()
        try:
            compiled, called = (
                compiler.compile(SAMPLE, each, (), limit_s=60.0) for each in (SAMPLE_TESTS, SAMPLE_CALLER)
            )
        finally:
            compiler.stop()
        for each in (compiled, called):
            if each.kind is not Kind.COMPILED:
                raise InfrastructureError(f"the Java compiler does not compile a sample: {each.text}")
        folder = self.tools.folder
        (folder / "token").write_text("token")
        (folder / "unit").write_bytes(compiled.unit)
        dump = f"-XX:ArchiveClassesAtExit={folder / RUNNER}"
        self._run(self.tools.run(4096, compiled.text.split(), more=[dump]))
        (folder / "unit").write_bytes(called.unit)
        (folder / "arguments").write_bytes(marshal.dumps([([1, 2], "a", 0.5), ([], "\xe9", 1)], 2))
        self._run(self.tools.call(4096, ("arguments",), more=[f"-XX:ArchiveClassesAtExit={folder / CALLS}"]))
        for name in (RUNNER, CALLS):
            (folder / name).chmod(0o644)

    def _tool(self, name: str, *arguments: object) -> None:
        self._run([f"{self.tools.home}/bin/{name}", *map(str, arguments)])

    def _run(self, argv: Sequence[str]) -> None:
        """Run a trusted tool in the folder. Raises `InfrastructureError` with the tool's output."""
        done = subprocess.run(
            argv, cwd=self.tools.folder, capture_output=True, text=True, errors="replace", check=False,
            pass_fds=[self.lock],
        )  # fmt: skip
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()[-3:]
            raise InfrastructureError(f"{Path(argv[0]).name} fails ({done.returncode}): {' | '.join(said)}")


def _exported(description: Path, module: Path) -> Iterator[str]:
    for line in description.read_text().splitlines(keepends=True):
        package = line.strip().removeprefix("exports ").removesuffix(";")
        if not line.strip().startswith("exports ") or (module / package.replace(".", "/")).is_dir():
            yield line
