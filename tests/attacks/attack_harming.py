"""Programs that try to harm the host, to outlive their limits, or to see what they should not. All are wrong."""

SECRET = "codechat-attack-secret"
PORT_MARK = "PORT_OF_THE_TEST"

HARMING: dict[str, str] = {
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
    "fork bomb in a call": "import os\ndef solve(n):\n    while True:\n        try: os.fork()\n        except OSError: pass",
    "thread bomb": """
import threading, time
def solve(n):
    while True:
        try: threading.Thread(target=time.sleep, args=(60,)).start()
        except RuntimeError: time.sleep(0.01)
""",
    "memory in lists": "def solve(n):\n    kept = []\n    while True: kept.append([0] * 10_000_000)",
    "memory in one go": "def solve(n): return 'x' * (1 << 42)",
    "memory by doubling": "def solve(n):\n    s = 'ab'\n    while True: s += s",
    "memory by mmap": """
import mmap
def solve(n):
    kept = []
    while True:
        kept.append(mmap.mmap(-1, 64 << 20))
        kept[-1].write(b"x" * (64 << 20))
""",
    "memory error swallowed": """
def solve(n):
    kept = []
    while True:
        try: kept.append(bytearray(16 << 20))
        except MemoryError: pass
""",
    "disk filled": """
def solve(n):
    for number in range(10_000):
        with open(f"/tmp/fill{number}", "wb") as stream: stream.write(b"x" * (1 << 20))
""",
    "one large file": "def solve(n):\n    with open('/tmp/large', 'wb') as s:\n        while True: s.write(bytes(1 << 20))",
    "many files": "def solve(n):\n    for k in range(10**7): open(f'/tmp/f{k}', 'w').close()",
    "open files": "def solve(n):\n    kept = []\n    while True: kept.append(open('/dev/null'))",
    "files everywhere": """
import os
def solve(n):
    done = []
    for folder in ("/", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/harness", "/packages", "/python", "/etc", "/run", "/root",
                   "/usr/lib", os.path.dirname(os.__file__), os.getcwd()):
        try:
            with open(folder + "/codechat-was-here", "w") as stream: stream.write("x")
            done.append(folder)
        except OSError: pass
    return done
""",
    "everything deleted": "import shutil\ndef solve(n): shutil.rmtree('/', ignore_errors=True)",
    "library overwritten": """
import math, os, random
def solve(n):
    with open(random.__file__, "a") as stream: stream.write("x")
""",
    "endless loop": "def solve(n):\n    while True: pass",
    "endless loop at load": "while True: pass",
    "endless loop in C": "def solve(n): return sum(range(10**18))",
    "huge power": "def solve(n): return 9 ** 9 ** 9",
    "regular expression": "import re\ndef solve(n): return re.match('(a+)+$', 'a' * 60 + 'b')",
    "timer switched off": """
import signal
def solve(n):
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, signal.SIG_IGN)
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True: pass
""",
    "limits raised": """
import resource
def solve(n):
    for which in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NPROC):
        try: resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except (ValueError, OSError): pass
    while True: pass
""",
    "exceptions swallowed": """
def solve(n):
    while True:
        try:
            while True: pass
        except BaseException: pass
""",
    "sleep": "import time\ndef solve(n): time.sleep(3600)",
    "sleep at load": "import time\ntime.sleep(3600)",
    "sleep against exceptions": """
import time
def solve(n):
    while True:
        try: time.sleep(1)
        except BaseException: pass
""",
    "deadlock": "import threading\ndef solve(n):\n    lock = threading.Lock()\n    lock.acquire(); lock.acquire()",
    "endless iterator": "import itertools\ndef solve(n): return list(itertools.count())",
    "waits for the parent": "import os\ndef solve(n): return os.read(3, 100)",
    "stops itself": "import os, signal\ndef solve(n):\n    os.kill(os.getpid(), signal.SIGSTOP)\n    signal.pause()",
    "kills all": "import os, signal\ndef solve(n):\n    os.kill(-1, signal.SIGKILL)\n    return None",
    "kills its parents": """
import os, signal
def solve(n):
    for pid in (os.getppid(), 1, 2, 3, 4, 0):
        try: os.kill(pid, signal.SIGKILL)
        except OSError: pass
    return None
""",
    "daemon": """
import os, time
def solve(n):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(1)
        os._exit(0)
    return None
""",
    "children by subprocess": """
import subprocess, sys
def solve(n):
    for _ in range(5): subprocess.Popen([sys.executable or "/python/bin/python3", "-c", "import time; time.sleep(600)"])
    return None
""",
    "spinning children": """
import os
def solve(n):
    for _ in range(5):
        if os.fork() == 0:
            while True: pass
    return None
""",
    "environment": "import os\ndef solve(n): return dict(os.environ)",
    "environment of others": """
import os
def solve(n):
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try: found.append(open(f"/proc/{name}/environ").read())
        except OSError: pass
    return found
""",
    "host name": "import os, socket\ndef solve(n): return socket.gethostname(), os.uname().nodename",
    "passwords": "def solve(n): return open('/etc/shadow').read()",
    "loopback": f"""
import socket
def solve(n):
    connection = socket.create_connection(("127.0.0.1", {PORT_MARK}), 1)
    connection.send(b"hello")
""",
    "udp": "import socket\ndef solve(n): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "system V memory": """
import ctypes
def solve(n): return ctypes.CDLL(None).shmget(4242, 1 << 20, 0o1666)
""",
    "shared memory": """
from multiprocessing import shared_memory
def solve(n): return shared_memory.SharedMemory("codechat-was-here", create=True, size=1000).name
""",
    "ptrace": "import ctypes, os\ndef solve(n): return ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)",
    "namespaces": "import ctypes\ndef solve(n): return ctypes.CDLL(None).unshare(0x10000000 | 0x20000)",
    "mount": "import ctypes\ndef solve(n): return ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "root": "import os\ndef solve(n):\n    os.setuid(0)\n    return os.getuid()",
    "reboot": "import ctypes\ndef solve(n): return ctypes.CDLL(None).reboot(0x1234567)",
    "printed flood": "def solve(n):\n    while True: print('x' * 100_000)",
    "raw printed flood": "import os\ndef solve(n):\n    while True: os.write(1, b'x' * 100_000)",
    "flood of frames": "import os\ndef solve(n):\n    while True: os.write(3, b'V\\x01\\0\\0\\0\\0\\0T' * 1000)",
    "flood of rubbish": "import os\ndef solve(n):\n    while True: os.write(3, os.urandom(65536))",
    "one endless frame": "import os\ndef solve(n):\n    os.write(3, b'V\\xff\\xff\\xff\\x7f')\n    while True: os.write(3, bytes(65536))",
    "frame by drops": """
import os, time
def solve(n):
    os.write(3, b"V\\xff\\xff\\0\\0")
    while True:
        os.write(3, b"x")
        time.sleep(0.05)
""",
    "big results": "def solve(n): return ['y' * 1000] * 60_000",
    "huge integer": "def solve(n): return 1 << 8_000_000",
    "colliding keys": "def solve(n): return {k * (2**61 - 1): 0 for k in range(1, 5000)}",
    "deep recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef solve(n): return solve(n + 1)",
    "recursion in C": "import sys\nsys.setrecursionlimit(10**9)\ndef solve(n):\n    x = []\n    for _ in range(10**6): x = [x]\n    return repr(x)",
    "segmentation fault": "import ctypes\ndef solve(n): return ctypes.string_at(0)",
    "abort": "import os\ndef solve(n): os.abort()",
    "closed files": "import os\ndef solve(n):\n    os.closerange(0, 1000)\n    return None",
    "replaced standard output": "import sys\nsys.stdout = sys.stderr = None\ndef solve(n):\n    print('x')\n    return 0",
    "niceness": "import os\ndef solve(n):\n    os.nice(-20)\n    return None",
}
