"""One verdict in every kind of sandbox: what programs find around them, their streams, files, names and processes.

What is left of differences is a table in docs/sandbox.md. A program returns `f(0)`, which should be 1.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from codechat.base.domain import Outcome, Program
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.assertions import Assertions
from codechat.sandbox.suites.calls import Calls
from support.machine import sandbox_here

CALLED = Calls("f", None, base=((0,),), expected_base=(1,), name="kinds/0")
WITHIN = "import io, os, sys\ndef f(x):\n    "
# Bodies of f by what they use; each returns 1, or true.
AROUND: dict[str, str] = {
    # multiprocessing, which needs semaphores and memory with names
    "Pool": "from multiprocessing import Pool\n    with Pool(2) as pool: return pool.map(abs, [-1])[0]",
    "ThreadPool": "from multiprocessing.pool import ThreadPool\n    with ThreadPool(2) as pool: return pool.map(abs, [-1])[0]",
    "ProcessPoolExecutor": "from concurrent.futures import ProcessPoolExecutor as P\n    with P(2) as pool: return pool.submit(abs, -1).result()",
    "Queue": "from multiprocessing import Queue; q = Queue(); q.put(1); return q.get(timeout=3)",
    "JoinableQueue": "from multiprocessing import JoinableQueue as J; q = J(); q.put(1); r = q.get(timeout=3); q.task_done(); q.join(); return r",
    "Manager": "from multiprocessing import Manager\n    with Manager() as m: return m.list([1])[0]",
    "Value, Array": "from multiprocessing import Array, Value; return Value('i', 1).value and Array('i', [1])[0]",
    "locks": "import multiprocessing as m\n    with m.RLock(), m.Condition(): return m.BoundedSemaphore(1).acquire() and m.Barrier(1).wait() == 0",
    "SharedMemory": "from multiprocessing.shared_memory import SharedMemory as S; s = S(create=True, size=9); s.buf[0] = 1; r = s.buf[0]; s.close(); s.unlink(); return r",
    "ShareableList": "from multiprocessing.shared_memory import ShareableList as S; s = S([1]); r = s[0]; s.shm.close(); s.shm.unlink(); return r",
    "a Process and a Pipe": "import multiprocessing as m; a, b = m.Pipe(); p = m.Process(target=b.send, args=(1,)); p.start(); r = a.recv(); p.join(); return r",
    # files
    "a file in ~": "p = os.path.expanduser('~/z'); open(p, 'w').write('1'); return int(open(p).read())",
    "~/.cache and ~/.config": "import pathlib; h = pathlib.Path.home(); [(h / p).mkdir(parents=True) for p in ('.cache/a', '.config/a')]; return 1",
    "tempfile": "import tempfile\n    with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile(dir=d) as t: return t.write(b'1')",
    "TMPDIR and HOME": "open(os.environ['TMPDIR'] + '/a', 'w').close(); return os.path.exists(os.environ['HOME'])",
    "the working folder": "open('a', 'w').write('1'); return 'a' in os.listdir(os.getcwd())",
    "links": "open('a', 'w').write('1'); os.symlink('a', 'b'); os.link('a', 'c'); os.rename('c', 'd'); return int(open('b').read())",
    "a module of its own": "open('mine.py', 'w').write('a = 1'); sys.path.insert(0, os.getcwd()); import mine; return mine.a",
    "sqlite3": "import sqlite3; c = sqlite3.connect('a.db'); c.execute('create table t(a)'); c.execute('insert into t values(1)'); c.commit(); return c.execute('select a from t').fetchone()[0]",
    "shelve, zipfile, logging": "import logging, shelve, zipfile; shelve.open('q').close(); zipfile.ZipFile('z', 'w').close(); logging.basicConfig(filename='l', force=True); logging.error('1'); return 'root' in open('l').read()",
    "mmap of a file": "import mmap; open('m', 'wb').write(b'1234'); h = open('m', 'r+b'); m = mmap.mmap(h.fileno(), 4); m[0:1] = b'9'; return m[:2] == b'92'",
    "a lock on a file": "import fcntl; fcntl.flock(open('k', 'w'), fcntl.LOCK_EX); return 1",
    "devices": "open('/dev/null', 'w').write('x'); return len(open('/dev/urandom', 'rb').read(1))",
    # streams
    "stdin": "return sys.stdin.buffer.read() == b'' and sys.stdin.read() == '' and sys.__stdin__ is sys.stdin",
    "stdin by its descriptor": "return open(0, closefd=False).read() == '' and os.read(0, 1) == b''",
    "no more input": "\n    try: return input()\n    except EOFError: return 1",
    "stdout, stderr": "[(s.buffer.write(b'\\xff'), s.buffer.flush(), s.write('a\\ud800'), s.reconfigure(encoding='latin-1', errors='replace', line_buffering=True), print('\\u20ac', file=s)) for s in (sys.stdout, sys.stderr, sys.__stdout__)]; return 1",
    "attributes of streams": "return all(s.encoding.lower() == 'utf-8' and s.fileno() == n and not s.isatty() and s.errors and s.name and s.mode and s.newlines is None for n, s in enumerate((sys.stdin, sys.stdout, sys.stderr)))",
    "wrapped streams": "sys.stdin = io.TextIOWrapper(sys.stdin.buffer); sys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'utf-8'); print(1); sys.stdout.flush(); return sys.stdin.readline() == ''",
    "printing by a descriptor": "print(1, file=open(1, 'w', closefd=False)); return os.write(2, b'1')",
    "faulthandler": "import faulthandler; faulthandler.enable(); return faulthandler.is_enabled()",
    "help": "help(abs); return str(license) != '' and callable(quit)",
    # names
    "the name of the user": "import getpass; return getpass.getuser() == 'nobody'",
    "one name of the machine": "import platform, socket; return len({platform.node(), socket.gethostname(), os.uname().nodename}) == 1",
    "locale and time": "import locale, time; os.environ['TZ'] = 'CET-1'; time.tzset(); return locale.getpreferredencoding().lower() == 'utf-8' and time.tzname[0] == 'CET'",
    "argv and the interpreter": "import subprocess; return sys.argv == [''] and int(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout)",
    "no descriptors of others": "return sorted(os.dup(0) for _ in range(2))[0] < 10",
    # processes, threads and signals
    "fork": "p = os.fork()\n    if not p: os._exit(1)\n    return os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])",
    "a child that is killed": "import signal, time; p = os.fork()\n    if not p: time.sleep(9)\n    os.kill(p, signal.SIGTERM); return os.waitpid(p, 0)[1] == 15",
    "threads": "from threading import Thread; a = []; t = [Thread(target=a.append, args=(1,)) for _ in range(20)]; [e.start() for e in t]; [e.join() for e in t]; return sum(a) == 20",
    "a handler of signals": "import signal; a = []; signal.signal(signal.SIGUSR1, lambda *_: a.append(1)); os.kill(os.getpid(), signal.SIGUSR1); return a[0]",
    "a timer with a handler": "import signal, time; a = []; signal.signal(signal.SIGALRM, lambda *_: a.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.2); return a[0]",
    "sockets": "import socket; a, b = socket.socketpair(); a.send(b'1'); s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('s'); return int(b.recv(1))",
    "asyncio": "import asyncio\n    async def g(): return await asyncio.to_thread(abs, -1)\n    return asyncio.run(g())",
}  # fmt: skip
ENDS: dict[str, tuple[str, Outcome]] = {
    "exit": ("exit()", "crash"),
    "quit": ("quit(0)", "crash"),
    "a timer without a handler": ("import signal, time; signal.alarm(1); time.sleep(1.5); return 1", "crash"),
    "a timer of CPU time": (
        "import signal; signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)\n    for _ in range(10**9): pass",
        "crash",
    ),
    "no internet": ("import socket; socket.create_connection(('127.0.0.1', 80)); return 1", "fail"),
    "no commands": ("import subprocess; return subprocess.run(['/opt/none']).returncode", "fail"),
    "too much in memory with a name": (
        "from multiprocessing.shared_memory import SharedMemory as S; s = S(create=True, size=64 << 20); s.buf[:] = bytes(64 << 20); return 1",
        "fail",
    ),
}
STRONG = ("bubblewrap", "docker")  # an empty folder of these names is the program's own there
NAMED = ("/tmp", "/var/tmp", "/dev/shm")


@pytest.fixture(scope="module", params=[component.name for component in SANDBOXES])
def room(request: pytest.FixtureRequest, of_kind: Callable[[str], dict[str, Any]]) -> Iterator[Any]:
    sandbox = sandbox_here(workers=2, **of_kind(request.param), idle_s=5.0)
    yield sandbox
    asyncio.run(sandbox.aclose())


@pytest.mark.parametrize("use", AROUND)
async def test_programs_find_the_same(room: Any, use: str) -> None:
    verdict = await CALLED.check(Program(WITHIN + AROUND[use]), room)
    assert verdict.passed, verdict.failure


async def test_strong_kinds_hide_the_name_of_the_machine(room: Any) -> None:
    body = "return os.uname().nodename == 'sandbox'"  # a weak kind may have no namespace of its own for it
    verdict = await CALLED.check(Program(WITHIN + body), room)
    assert verdict.passed or room.config.kind not in STRONG


@pytest.mark.parametrize("end", ENDS)
async def test_programs_end_the_same(room: Any, end: str) -> None:
    body, outcome = ENDS[end]
    assert (await CALLED.check(Program(WITHIN + body), room)).outcome == outcome


@pytest.mark.parametrize("folder", NAMED)
async def test_folders_of_these_names_are_the_programs_own_where_there_are_namespaces(room: Any, folder: str) -> None:
    if room.config.kind not in STRONG:
        pytest.skip("this kind has no folders of these names")
    body = f"open('{folder}/a', 'x').write('1'); return int(open('{folder}/a').read())"
    for _ in range(2):  # nothing of the first is left for the second
        assert (await CALLED.check(Program(WITHIN + body), room)).passed


@pytest.mark.parametrize(
    "use", ["stdin", "stdout, stderr", "attributes of streams", "wrapped streams", "help", "faulthandler"]
)
async def test_streams_are_there_beside_assertions_too(room: Any, use: str) -> None:
    for test in ("assert f(0) == 1", "import unittest.mock\nassert f(0) == 1"):  # in two processes, and in one
        verdict = await Assertions((test,)).check(Program(WITHIN + AROUND[use]), room)
        assert verdict.passed, verdict.failure
