"""Programs other than Python's own in a box: what they are given, what they see, and that they are bounded."""

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.sandbox import PYTHON, Box, Command, Ran, Sandbox, TakenDown, WorkerDied
from codechat.sandbox.watch import Ended, Run, Usage
from support.machine import sandbox_here
from support.processes import below

LIMITS = {"memory_mb": 512, "processes": 16, "file_mb": 8, "output_mb": 4}
PERL = shutil.which("perl")
AWK = shutil.which("awk")
BASH = shutil.which("bash")
HERE = Path(__file__)
HOME = next(folder for folder in (Path.home(), HERE.parents[2]) if folder.exists())  # some users have none
RELEASE = Path("/etc/os-release")
OF_LIBRARIES = RELEASE.resolve().is_relative_to("/usr/lib")  # which every program sees
PROGRAMS = [str(path) for path in sorted(Path("/usr/bin").iterdir()) if path.is_file() and not path.is_symlink()][:6]

pytestmark = pytest.mark.skipif(PERL is None, reason="there is no perl")


def build(kind: str, **options: Any) -> Any:
    return sandbox_here(kind=kind, **{**LIMITS, **options})


@pytest.fixture(scope="module", params=["bubblewrap", "landlock", "process"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def sandbox(kind: str) -> Iterator[Any]:
    room = build(kind)
    if room.weak:
        room.start()  # as the others have: it tells what the system grants
    yield room
    asyncio.run(room.aclose())


LOOKS = "opendir(D, $ARGV[0]) or open(F, '<', $ARGV[0]) or exit 9"  # names can be asked for where there is no namespace


async def perl(sandbox: Sandbox, script: str, **options: Any) -> Ran:
    assert PERL is not None
    return await sandbox.run(Command(argv=(PERL, "-e", script), tools=(PERL,), **{"wall_s": 20.0, **options}))


async def test_a_program_has_its_files_its_folder_and_its_environment(sandbox: Sandbox) -> None:
    script = 'open(F, "<", "../data/in.txt"); print <F>, $ENV{GREETING}; print STDERR "odd"; exit 3'
    files = {"data/in.txt": b"six ", "work/empty": b""}
    ran = await perl(sandbox, script, files=files, folder="work", environment={"GREETING": "hello"})
    assert (ran.status, ran.stdout, ran.stderr, ran.why) == (3, "six hello", "odd", None)
    assert 0 <= ran.cpu_s < 5


async def test_the_processes_that_are_watched_are_those_of_the_program(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system says from which process a message is: without it nobody knew what a waiting program uses. And whoever
    watches waits for no output, which would keep it from the limits."""

    class Watching(Run):
        def follow(self) -> Ended:
            waits.extend(map(os.get_blocking, (self.results.fileno(), *self.outputs)))
            return super().follow()

    waits: list[bool] = []
    monkeypatch.setattr("codechat.sandbox.workers.Run", Watching)
    watched, look = list[int](), Usage.look
    monkeypatch.setattr(Usage, "look", lambda self, pids, waited: watched.append(len(pids)) or look(self, pids, waited))
    ran = await sandbox.run(Command(argv=(PYTHON, "-c", "import time; time.sleep(0.4)")))
    assert ran.status == 0
    assert watched[-1] == max(watched) == 1 and waits == [False] * 3


async def test_the_folder_is_empty_otherwise_and_gone_afterwards(sandbox: Sandbox) -> None:
    list_all = 'opendir(D, "."); print join(" ", sort grep(!/^[.]/, readdir(D)))'
    assert (await perl(sandbox, 'open(F, ">", "left"); print F "x"; exit 0')).status == 0
    assert (await perl(sandbox, list_all, files={"a": b"", "b": b""})).stdout == "a b"


async def test_what_the_interpreter_needs_of_the_environment_is_not_a_tools(sandbox: Sandbox) -> None:
    show = (
        "use Cwd; print join(',', map { $ENV{$_} // '-' } qw(LD_LIBRARY_PATH PYTHONPATH)), ',', $ENV{HOME} eq getcwd()"
    )
    assert (await perl(sandbox, show)).stdout == "-,-,1"
    assert (await perl(sandbox, show, environment={"LD_LIBRARY_PATH": "/opt"})).stdout == "/opt,-,1"


async def test_other_interpreters(sandbox: Sandbox) -> None:
    for tool, argv, files in (
        (AWK, ("-f", "sum.awk"), {"sum.awk": b"BEGIN { print 6 * 7 }"}),
        (BASH, ("sum.sh",), {"sum.sh": b"echo $((6 * 7))"}),
        (BASH, ("-c", "./run"), {"run": f"#!{BASH}\necho 42\n".encode()}),
    ):
        if tool is not None:
            ran = await sandbox.run(Command(argv=(tool, *argv), files=files, tools=(tool,)))
            assert (ran.status, ran.stdout) == (0, "42\n"), (tool, ran)


async def test_the_boxs_own_interpreter(sandbox: Sandbox) -> None:
    command = Command(
        argv=(PYTHON, "main.py"),
        files={"main.py": b"import helper, numpy\nprint(helper.VALUE)", "lib/helper.py": b"VALUE = 42"},
        environment={"PYTHONPATH": "lib"},
    )
    ran = await sandbox.run(command)
    assert (ran.status, ran.stdout) == (0, "42\n"), ran


async def test_only_the_ends_of_the_outputs_are_kept(sandbox: Sandbox) -> None:
    ran = await perl(sandbox, 'print "a" x 300000, "end"; print STDERR "b" x 300000, "over"', tail=10)
    assert (ran.stdout, ran.stderr, ran.status) == ("aaaaaaaend", "bbbbbbover", 0)


async def test_a_program_that_is_not_there_is_told_from_one_that_fails(sandbox: Sandbox, kind: str) -> None:
    ran = await sandbox.run(Command(argv=("no-such-program",)))
    assert ran.why == "missing" and "no-such-program: No such file" in ran.stderr
    assert (await perl(sandbox, "exit 127")).why is None
    if kind != "process":
        assert (await sandbox.run(Command(argv=(str(PERL), "-e", "1")))).why == "missing", "it is no tool of this box"


async def test_there_is_no_network(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        script = f"socket(my $s, 2, 1, 0) or exit 7; connect($s, pack('Sna4x8', 2, {port}, chr(127).chr(0).chr(0).chr(1))) or exit 8; exit 0"
        assert (await perl(sandbox, script)).status in (7, 8)
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_the_files_of_the_host_are_out_of_sight(sandbox: Any, kind: str, tmp_path: Path) -> None:
    if kind == "process" and not sandbox.contained:
        pytest.skip("needs user namespaces")
    (tmp_path / "secret").write_text("secret")
    hidden = [tmp_path / "secret", *((HERE, Path("/etc/passwd"), HOME) if kind != "process" else ())]
    for path in hidden:
        assert path.exists()
        look = Command(argv=(str(PERL), "-e", LOOKS, str(path)), tools=(str(PERL),))
        assert (await sandbox.run(look)).status == 9, path


@pytest.mark.skipif(not RELEASE.exists(), reason=f"there is no {RELEASE}")
async def test_a_tool_is_read_only_and_seen_only_where_it_was_asked_for(sandbox: Any, kind: str) -> None:
    tool = str(RELEASE)
    assert PERL is not None
    read = Command(argv=(PERL, "-ne", "print if $. == 1", tool), tools=(PERL, tool))
    assert (await sandbox.run(read)).stdout.strip()
    if kind != "process" or sandbox.contained or not os.access(tool, os.W_OK):  # who runs codechat may write to it
        write = Command(argv=(PERL, "-e", "open(F, '>>', shift) or exit 9", tool), tools=(PERL, tool))
        assert (await sandbox.run(write)).status == 9
    if kind == "bubblewrap" or (kind == "landlock" and not OF_LIBRARIES):
        hidden = Command(argv=(PERL, "-e", LOOKS, tool), tools=(PERL,))
        assert (await sandbox.run(hidden)).status == 9


BOUNDED: dict[str, tuple[str, dict[str, Any], Callable[[Ran], bool]]] = {
    "sleeps": ("sleep 60", {"wall_s": 0.5}, lambda ran: ran.why == "wall"),
    "spins": ("1 while 1", {"cpu_s": 0.5}, lambda ran: ran.why == "cpu"),
    "spins by the clock": ("1 while 1", {"wall_s": 0.5}, lambda ran: ran.why == "wall"),
    "children spin": ("fork; fork; 1 while 1", {"cpu_s": 1.0}, lambda ran: ran.why == "cpu"),
    "a child is left behind": ("if (!fork) { sleep 60 } exit 0", {}, lambda ran: ran.status == 0),
    "eats memory": ('my $x = "a" x (2 ** 30); exit 0', {}, lambda ran: ran.status != 0 and ran.why is None),
    "forks": ("1 while defined fork; sleep 60", {"wall_s": 1.0}, lambda ran: ran.why in ("wall", "cpu")),
    "prints for ever": ('print "a" x 65536 while 1', {}, lambda ran: ran.why == "output"),
    "complains for ever": ('print STDERR "a" x 65536 while 1', {}, lambda ran: ran.why == "output"),
    "fills the disk": (
        'open(F, ">", "big"); for (1..64) { print F "a" x 1048576 or exit 9 } close(F) or exit 9; exit 0',
        {},
        lambda ran: ran.status != 0 and ran.why is None,
    ),
    "kills everything": ("kill 9, -1; kill 9, getppid; sleep 60", {"wall_s": 0.5}, lambda ran: ran.why is not None),
    "ignores signals": ("$SIG{$_} = 'IGNORE' for keys %SIG; sleep 60", {"wall_s": 0.5}, lambda ran: ran.why == "wall"),
    "closes its outputs": ("close STDOUT; close STDERR; sleep 1; exit 4", {}, lambda ran: ran.status == 4),
}


@pytest.mark.parametrize("name", BOUNDED)
async def test_a_program_is_bounded_and_leaves_nothing(sandbox: Sandbox, name: str) -> None:
    script, options, expected = BOUNDED[name]
    assert (await perl(sandbox, "exit 0")).status == 0
    before, began = below(os.getpid()), time.monotonic()
    ran = await perl(sandbox, script, **options)
    assert expected(ran), ran
    assert time.monotonic() - began < 40
    assert below(os.getpid()) == before, "a process was left, or the sandbox's own died"
    assert (await perl(sandbox, "print 42")).stdout == "42"


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("/usr/bin/no-such-tool", "there is none"),
        ("perl", "there is none"),
        ("/", "has / for itself|lies in it"),
        ("/tmp", "has /tmp for itself|lies in it"),
        (str(HERE.parent.parent.parent), "must not see|for itself"),
        (str(HOME), "must not see|for itself"),
    ],
)
async def test_a_tool_that_cannot_be_shown_is_the_users_to_mend(sandbox: Sandbox, tool: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        await sandbox.run(Command(argv=("x",), tools=(tool,)))
    assert caught.value.remedy


async def test_a_tool_in_a_temporary_folder_is_shown_elsewhere(kind: str, sandbox: Sandbox) -> None:
    assert PERL is not None
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        own = Path(folder, "perl")
        shutil.copy(PERL, own)
        os.symlink("perl", f"{folder}/link")  # noqa: PTH211  an async test
        for name in (own, own.with_name("link")):
            argv = (
                str(name),
                "-e",
                'print -x $ENV{TOOL} ? 1 : 0, " $ARGV[0]"; open(F, ">", "/tmp/x") or print "closed"',
            )
            command = Command(argv=(*argv, f"of={name}"), environment={"TOOL": str(name)}, tools=(str(name),))
            if kind == "process":
                with pytest.raises(UserError) as caught:
                    await sandbox.run(command)
                assert "for itself" in str(caught.value) and "sandbox=bubblewrap" in str(caught.value)
            elif kind == "landlock":  # /tmp is the host's, and closed but for the tool
                assert (await sandbox.run(command)).stdout == f"1 of={name}closed"
            else:
                assert (await sandbox.run(command)).stdout == f"1 of=/shown{name}"


async def test_the_folder_with_expected_values_is_no_tool(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODECHAT_CACHE_DIR", "/usr/share/perl/cache")
    with pytest.raises(UserError, match="must not see"):
        await sandbox.run(Command(argv=("x",), tools=("/usr/share",)))


async def test_boxes_of_many_sets_of_tools_are_not_kept_for_ever(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.sandbox.workers.SPARE", 1)
    room = build(kind)
    try:
        counts = []
        for tool in PROGRAMS:
            assert (await room.run(Command(argv=(PYTHON, "-c", "pass"), tools=(tool,)))).status == 0
            counts.append(len(below(os.getpid())))
        assert max(counts[2:]) <= counts[1], counts
    finally:
        await room.aclose()


async def test_lending_tries_twice_and_then_says_who_is_at_fault(sandbox: Sandbox) -> None:
    calls: list[Box] = []

    def dies(times: int) -> Callable[[Box], str]:
        calls.clear()

        def work(box: Box) -> str:
            calls.append(box)
            if len(calls) <= times:
                raise WorkerDied("gone")
            return box.run(Command(argv=(PYTHON, "-c", "print(42)"))).stdout

        return work

    assert (await sandbox.lend(dies(1)), len(calls)) == ("42\n", 2)
    with pytest.raises(TakenDown):
        await sandbox.lend(dies(2))
    assert len(calls) == 2
    with pytest.raises(ZeroDivisionError):
        await sandbox.lend(lambda box: 1 // 0)
    with pytest.raises(ValueError, match="lent without the tools"):
        await sandbox.lend(lambda box: box.run(Command(argv=("x",), tools=("/usr/bin/env",))))
