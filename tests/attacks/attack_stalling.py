"""Programs that try to stall the evaluator, to hide what they use, or to disturb the process that follows them.

All are wrong: what they compute is never right. Those that count on a call which is refused go on without it.
"""

PRELUDE = """
import contextlib, ctypes, os, signal, socket, struct, sys, threading, time
C = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
def call(x86, arm, *arguments): return C.syscall(x86 if X86 else arm, *arguments)
def attempt(function, *arguments):
    with contextlib.suppress(Exception): return function(*arguments)
def spin(seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
def fork():
    while True:
        with contextlib.suppress(OSError): return os.fork()
        time.sleep(0.0005)
def start(function, *arguments):
    pid = fork()
    if pid == 0:
        try: function(*arguments)
        finally: os._exit(0)
    return pid
def results(): return socket.socket(fileno=os.dup(3))
"""
SLOW_DOWN = """
def share_a_core(): attempt(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})
def slow_down():
    attempt(os.nice, 19)
    attempt(os.setpriority, os.PRIO_PROCESS, 0, 19)
    for policy in (os.SCHED_IDLE, os.SCHED_BATCH):
        attempt(os.sched_setscheduler, 0, policy, os.sched_param(0))
    share_a_core()
    call(314, 274, 0, struct.pack("IIQiIQQQ", 48, 5, 0, 19, 0, 0, 0, 0), 0)
    call(251, 30, 1, 0, 3 << 13)
    attempt(lambda: open("/proc/self/autogroup", "w").write("19"))
def churn(number=3, seconds=0.003):
    def breed():
        while True:
            if fork() == 0:
                spin(seconds)
                os._exit(0)
            attempt(os.waitpid, -1, os.WNOHANG)
    for _ in range(number): start(breed)
"""
IGNORE = """
def ignore_ends():
    attempt(signal.signal, signal.SIGCHLD, signal.SIG_IGN)
    action = struct.pack("QQQQ", 0, 0x04000000 | 2, 0, 0) if X86 else struct.pack("QQQ", 0, 2, 0)
    call(13, 134, 17, action, None, 8)  # SA_NOCLDWAIT
"""


def program(body: str) -> str:
    parts = [PRELUDE]
    parts += [
        part for word, part in (("slow_down", SLOW_DOWN), ("churn", SLOW_DOWN), ("ignore_ends", IGNORE)) if word in body
    ]
    return "".join(dict.fromkeys(parts)) + body


STALLING: dict[str, str] = {
    name: program(body)
    for name, body in {
        # Slower than it need be.
        "lowest priority": "def solve(n):\n    slow_down()\n    while True: pass",
        "lowest priority in a crowd": "def solve(n):\n    share_a_core(); churn(); slow_down()\n    while True: pass",
        "crowd of short lives": "def solve(n):\n    churn()\n    while True: pass",
        "sleeps in a crowd": "def solve(n):\n    churn()\n    time.sleep(600)",
        "crowd at load": "share_a_core(); churn(); slow_down()\nwhile True: pass",
        "idle class by number": """
def solve(n):
    call(203, 122, 0, 8, struct.pack("Q", 1))
    churn()
    call(144, 119, 0, 5, struct.pack("i", 0))
    call(144, 119, 0, 5 | 0x40000000, struct.pack("i", 0))
    while True: pass
""",
        "lowered children": """
def solve(n):
    churn()
    for pid in range(2, 40): attempt(os.setpriority, os.PRIO_PROCESS, pid, 19)
    while True: pass
""",
        "core scheduling": "def solve(n):\n    C.prctl(62, 1, 0, 0, 0); C.prctl(62, 1, 0, 2, 0)\n    while True: pass",
        "yields for ever": "def solve(n):\n    while True: os.sched_yield()",
        "naps for ever": "def solve(n):\n    while True: time.sleep(0.0001)",
        "spins and naps": "def solve(n):\n    while True:\n        spin(0.002); time.sleep(0.02)",
        "spins, then sleeps": "def solve(n):\n    [threading.Thread(target=spin, args=(0.2,)).start() for _ in range(4)]\n    time.sleep(600)",
        # Hidden computing.
        "children nobody waits for": "def solve(n):\n    ignore_ends(); churn(seconds=0.03)\n    while True: time.sleep(0.01)",
        "chain of forks": """
def solve(n):
    ignore_ends()
    if fork() == 0:
        while True:
            spin(0.002)
            if fork(): os._exit(0)
    while True: attempt(os.wait); time.sleep(0.001)
""",
        "chains beside a spinner": """
def solve(n):
    ignore_ends()
    for _ in range(5):
        if fork() == 0:
            while True:
                spin(0.002)
                if fork(): os._exit(0)
    while True: attempt(os.waitpid, -1, os.WNOHANG)
""",
        "children of another signal": """
def solve(n):
    for number in range(30):
        if call(56, 220, (0, 10, 34, 9)[number % 4], 0, 0, 0, 0) == 0: spin(); os._exit(0)
    time.sleep(600)
""",
        "sisters instead of children": """
def solve(n):
    if os.fork() == 0:
        for _ in range(8):
            if call(56, 220, 0x8000 | 17, 0, 0, 0, 0) == 0: spin(); os._exit(0)
        os._exit(0)
    time.sleep(600)
""",
        "orphans": """
def solve(n):
    def leave():
        for _ in range(4): start(spin)
    for _ in range(3): start(leave)
    time.sleep(600)
""",
        "orphans in sessions": """
def solve(n):
    def leave():
        os.setsid(); C.prctl(36, 1, 0, 0, 0)
        for _ in range(4): start(spin)
        time.sleep(600)
    for _ in range(3): start(leave)
    time.sleep(600)
""",
        "children by threads": """
def solve(n):
    for _ in range(5): threading.Thread(target=lambda: os.waitpid(start(spin), 0)).start()
    time.sleep(600)
""",
        "the first thread leaves": "def solve(n):\n    threading.Thread(target=spin).start()\n    C.pthread_exit(None)",
        "waits for a spinning child": "def solve(n):\n    while True: os.waitpid(start(spin, 0.3), 0)",
        "vfork and sleep": """
def solve(n):
    if call(56, 220, 0x4000 | 17, 0, 0, 0, 0) == 0: time.sleep(600)
    return 0
""",
        "vfork and stop": """
def solve(n):
    if call(56, 220, 0x4000 | 17, 0, 0, 0, 0) == 0:
        os.kill(os.getpid(), signal.SIGSTOP); time.sleep(600)
    return 0
""",
        # Names that are hard to read.
        "name of bytes": "def solve(n):\n    C.prctl(15, bytes([255, 254, 128, 10, 0]), 0, 0, 0)\n    time.sleep(600)",
        "name of brackets": "def solve(n):\n    C.prctl(15, b') R 1 ) (9 9 9\\0', 0, 0, 0)\n    time.sleep(600)",
        "names of a crowd": """
def solve(n):
    for number in range(6): start(lambda: (C.prctl(15, bytes([40, 41, 32, 160 + number, 10, 0]), 0, 0, 0), spin()))
    C.prctl(15, bytes([41, 200, 0]), 0, 0, 0)
    time.sleep(600)
""",
        # Stopped, deaf and half dead.
        "stops its children": """
def solve(n):
    pids = [start(spin) for _ in range(4)]
    for pid in pids: attempt(os.kill, pid, signal.SIGSTOP)
    os.waitpid(pids[0], 0)
""",
        "stopped by its child": """
def solve(n):
    start(lambda: [attempt(os.kill, os.getppid(), signal.SIGSTOP), time.sleep(600)])
    time.sleep(600)
""",
        "deaf to all signals": """
def solve(n):
    for number in range(1, 65): attempt(signal.signal, number, signal.SIG_IGN)
    attempt(signal.pthread_sigmask, signal.SIG_BLOCK, range(1, 65))
    time.sleep(600)
""",
        "deaf and spinning": """
def solve(n):
    for number in range(1, 65): attempt(signal.signal, number, signal.SIG_IGN)
    attempt(signal.pthread_sigmask, signal.SIG_BLOCK, range(1, 65))
    while True: pass
""",
        "zombies": "def solve(n):\n    while True: attempt(start, int)",
        "stop signals for its parents": """
def solve(n):
    for pid in (os.getppid(), 1, 2, 3, -1): attempt(os.kill, pid, signal.SIGSTOP)
    time.sleep(600)
""",
        "signals by a pipe": """
import fcntl
def solve(n):
    for pid in {max(1, os.getppid()), *range(max(1, os.getpid() - 20), os.getpid())}:
        first, second = socket.socketpair()
        for code, value in ((8, pid), (10, signal.SIGSTOP), (4, 0x2000)): attempt(fcntl.fcntl, first, code, value)
        attempt(second.send, b"x"); attempt(second.send, b"x")
    time.sleep(600)
""",
        "threads at once": "def solve(n):\n    for _ in range(100): attempt(threading.Thread(target=spin).start)\n    while True: pass",
        "real-time signal by a timer": """
def solve(n):
    timer = ctypes.c_long()
    call(222, 107, 0, struct.pack("qii48x", 0, 35, 0), ctypes.byref(timer))
    call(223, 110, timer, 0, struct.pack("qqqq", 0, 0, 0, 1000), None)
    time.sleep(600)
""",
        # What the results socket can carry.
        "urgent byte": "def solve(n):\n    results().send(b'x', socket.MSG_OOB)\n    time.sleep(600)",
        "urgent bytes": "def solve(n):\n    own = results()\n    while True: own.send(b'x', socket.MSG_OOB); time.sleep(0.001)",
        "flood of urgent bytes": "def solve(n):\n    own = results()\n    while True: own.send(b'x', socket.MSG_OOB)",
        "descriptors": """
def solve(n):
    own = results()
    for number in range(2000):
        attempt(socket.send_fds, own, [b"V" if number else b"V\\xff\\xff\\x03\\0\\0\\0"], [0, 1, 2, 3] * 50)
    time.sleep(600)
""",
        "descriptors of itself": """
def solve(n):
    first, second = socket.socketpair()
    own = results()
    own.send(b"V\\xff\\xff\\x03\\0\\0\\0")
    while True: socket.send_fds(first, [b"x"], [second.fileno(), 3]); socket.send_fds(own, [b"x"], [first.fileno()])
""",
        "credentials of others": """
def solve(n):
    own = results()
    for pid in (os.getppid(), 1, 2, 0, -1, 2**31 - 1):
        attempt(own.sendmsg, [b"V"], [(socket.SOL_SOCKET, 2, struct.pack("iii", pid, 0, 0))])
    time.sleep(600)
""",
        "another process speaks": """
def solve(n):
    start(lambda: [results().send(b"V\\xff\\xff\\x03\\0\\0\\0"), spin()])
    time.sleep(600)
""",
        "bytes by one": "def solve(n):\n    own = results()\n    own.send(b'V\\xff\\xff\\x03\\0\\0\\0')\n    while True: own.send(b'x')",
        "bytes by one and naps": """
def solve(n):
    own = results()
    own.send(b"V\\xff\\xff\\x03\\0\\0\\0")
    while True: own.send(b"x"); time.sleep(0.0005)
""",
        "bytes by one from many": """
def solve(n):
    own = results()
    own.send(b"V\\xff\\xff\\x03\\0\\0\\0")
    def talk():
        while True: own.send(b"x"); time.sleep(0.0005)
    for _ in range(8): start(talk)
    talk()
""",
        "socket half shut": "def solve(n):\n    own = results()\n    own.shutdown(socket.SHUT_RDWR)\n    time.sleep(600)",
        "socket closed, spinning": "def solve(n):\n    os.close(3)\n    while True: pass",
        "claims progress": """
import gc, mmap
def solve(n):
    for one in gc.get_objects():
        if isinstance(one, mmap.mmap) and len(one) > 4096: shared = one
    count = 0
    while True:
        count += 1
        shared[0:16] = struct.pack("<QQ", 8, count)
        time.sleep(0.05)
""",
        "claims the impossible": """
import gc, mmap
def solve(n):
    for one in gc.get_objects():
        if isinstance(one, mmap.mmap) and len(one) > 4096: one[0:16] = b"\\xff" * 16
    time.sleep(600)
""",
        "digests that nobody waits for": """
def solve(n):
    own = results()
    for _ in range(5000): own.send(b"D\\x28\\0\\0\\0\\0\\0" + bytes(40))
    time.sleep(600)
""",
        # Outliving the process that is followed.
        "ends beside spinning children": "def solve(n):\n    [start(spin) for _ in range(6)]\n    os._exit(0)",
        "ends beside stopped children": """
def solve(n):
    for _ in range(4): start(lambda: [os.kill(os.getpid(), signal.SIGSTOP), time.sleep(600)])
    time.sleep(0.05)
    os._exit(0)
""",
        "ends beside a fork bomb": "def solve(n):\n    start(lambda: [attempt(os.fork) for _ in iter(int, 1)])\n    os._exit(0)",
        "ends while it speaks": """
def solve(n):
    def talk():
        own = results()
        own.send(b"V\\xff\\xff\\x03\\0\\0\\0")
        while True: own.send(b"x" * 1000)
    for _ in range(4): start(talk)
    time.sleep(0.05)
    os._exit(0)
""",
        "another program in its place": """
def solve(n):
    os.set_inheritable(3, True)
    os.execv("/proc/self/exe" if os.path.exists("/proc/self/exe") else sys.executable or "/python/bin/python3", ["p", "-c", "while 1: pass"])
""",
    }.items()
}
