"""Hostile commands for rooms, for a plain shell, and for what a machine's own programs can do.

`{mark}` is a word that no other process of the machine has, `{port}` a port of the machine's loopback interface on which
a server waits, `{socket}` and `{secret}` a socket and a file of the machine with the token in it.
"""

SHELL = {
    # outlives its command
    "a job in the background": "sh -c 'while :; do sleep 1; done' {mark} & echo started",
    "a job without a terminal": "nohup sh -c 'while :; do sleep 1; done' {mark} >/dev/null 2>&1 &",
    "a session of its own": "setsid sh -c 'while :; do sleep 1; done' {mark} >/dev/null 2>&1 </dev/null &",
    "a session without its parent": "( setsid sh -c '( while :; do sleep 1; done ) &' {mark} & ) ; exit 0",
    "deaf to signals": "sh -c \"trap '' TERM HUP INT QUIT; while :; do sleep 1; done\" {mark} & sleep 0.2",
    "stopped": "sh -c 'kill -STOP $$' {mark} & sleep 0.3; echo stopped",
    "keeps the output open": "sh -c 'sleep 1000' {mark} & exec 1>&- 2>&-; exit 3",
    "starts itself again": "printf 'sh $0 &\\nsleep 0.05\\n' > again.sh; sh again.sh {mark}",
    "many small jobs": "i=0; while [ $i -lt 30 ]; do sh -c 'sleep 600' {mark} & i=$((i+1)); done; echo many",
    # takes too much
    "sleeps": "sleep 1000",
    "counts for ever": "while :; do :; done",
    "waits for input": "cat; read line; echo \"got '$line'\"",
    "reads a terminal": "cat /dev/tty",
    "prints without end": "yes {mark}",
    "prints ten gigabytes": "head -c 10000000000 /dev/zero",
    "prints to both": "yes & yes >&2",
    "forks without end": "f() {{ f | f & }}; f; sleep 60",
    "forks in a loop": "while :; do sleep 100 & done",
    "a long line": "awk 'BEGIN {{ s = \"x\"; while (length(s) < 900000000) s = s s; print length(s) }}'",
    "takes memory by a shell": "x=$(yes | head -c 600000000); echo ${{#x}}",
    "takes memory by sorting": "yes {mark} | head -c 900000000 | sort -S 2000M | tail -1",
    "fills the disk": "dd if=/dev/zero of=fill bs=65536; ls -l fill | wc -l",
    "fills the temporary folder": "dd if=/dev/zero of=/tmp/fill bs=65536; rm -f /tmp/fill",
    "fills the shared memory": "dd if=/dev/zero of=/dev/shm/fill bs=65536; rm -f /dev/shm/fill",
    "many files": "mkdir -p fill.d; i=0; while [ $i -lt 60000 ]; do echo > fill.d/$i || break; i=$((i+1)); done; rm -rf fill.d",
    "deep folders": "i=0; while [ $i -lt 300 ]; do mkdir d 2>/dev/null && cd d || break; i=$((i+1)); done; pwd | wc -c",
    # reads what is not its own
    "reads a file of the machine": "cat {secret}; ls -la {secret}",
    "reads it by /proc": "cat /proc/1/root{secret} /proc/*/root{secret}; cat /proc/1/cwd/../../../{secret}",
    "reads a variable of the machine": "env; cat /proc/*/environ; cat /proc/self/environ",
    "reads it by other processes": "for p in /proc/[0-9]*; do cat $p/environ $p/cmdline $p/fd/*; done 2>/dev/null | head -c 100000",
    "reads keys": "cat ~/.ssh/* /root/.ssh/* /root/.netrc /root/.git-credentials /home/*/.aws/credentials /etc/shadow",
    "reads the cache": "find / -xdev -name '*.pack' -o -xdev -name 'journal.db' 2>/dev/null | grep -v workspace | head; ls /lower /room /harness /codechat /python",
    "reads memory": "head -c 100 /dev/mem /dev/kmem /proc/kcore /proc/1/mem",
    "reads the disk": "head -c 100 /dev/vda /dev/sda /dev/nvme0n1; mknod disk b 254 0; head -c 10 disk",
    "follows a link out": "ln -s {secret} out; cat out; ln -s / all; cat all{secret}",
    # reaches out
    "calls the loopback interface": "wget -q -T 2 -O - http://127.0.0.1:{port}/; nc -w 2 127.0.0.1 {port} </dev/null; (echo > /dev/tcp/127.0.0.1/{port}) 2>&1",
    "calls a name": "wget -q -T 2 -O - http://localhost:{port}/ http://example.org/; nc -w 2 example.org 80 </dev/null; ping -c 1 -W 1 1.1.1.1",
    "calls an address": "wget -q -T 2 -O - http://1.1.1.1/ ; nc -w 2 8.8.8.8 53 </dev/null; nc -w 2 169.254.169.254 80 </dev/null",
    "calls a socket of the machine": "nc -w 2 local:{socket} </dev/null; nc -w 2 -U {socket} </dev/null; ls -la {socket}",
    "calls the engine": "ls -la /var/run/docker.sock /run/docker.sock; docker ps; nc -w 2 -U /var/run/docker.sock </dev/null",
    "makes an interface": "ip link add x type dummy; ifconfig eth0 10.0.0.1 up; route add default gw 10.0.0.2",
    # changes the machine
    "writes to the system": "for d in / /etc /usr /usr/bin /bin /lib /root /opt /sys /dev /proc/sys/kernel; do echo x > $d/{mark}; done; ls /etc/{mark} /{mark}",
    "replaces the shell": "cp /bin/ls /bin/sh; rm -f /bin/sh; mv /bin /bim; ls -d /bin/sh",
    "mounts": "mount -t tmpfs x /mnt; mount --bind / /tmp; umount -l /proc; umount -l /tmp; umount -l /lower /codechat; mount -o remount,rw /",
    "takes namespaces": "unshare -r true && echo TAKEN; unshare -Urm sh -c 'mount -t tmpfs x /tmp' && echo TAKEN; nsenter -t 1 -m true && echo TAKEN; chroot / true && echo TAKEN",
    "becomes root": "su -c id; sudo -n id; setuidgid root id; chown 0:0 README.md; chmod u+s /bin/su; cp /bin/sh ./s; chmod 6755 ./s; ./s -c id",
    "names the machine": "hostname {mark}; hostname; date -s 2001-01-01; [ $(date +%Y) = 2001 ] && echo SET; echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger",
    "loads a module": "insmod x.ko; modprobe loop; losetup /dev/loop0 README.md; swapon README.md; sysctl -w kernel.panic=1",
    "kills the starter": "kill -9 1; kill -9 -1; kill -TERM 1 2 3; echo 1 > /proc/1/oom_score_adj",
    "kills its parent": "kill -9 $PPID; kill -INT $PPID; kill -QUIT $PPID; sleep 0.3; echo here",
    "kills itself": "kill -9 $$",
    "writes to the starter": "for n in 3 4 5 6 7 8 9; do echo forged >&$n; done; echo forged > /proc/1/fd/3; echo forged > /proc/$PPID/fd/4",
    "takes its limits away": "ulimit -u unlimited; ulimit -d unlimited; ulimit -n 1000000; echo -1000 > /proc/self/oom_score_adj; nice -n -20 true && renice -n -20 $$",
    "debugs": "strace -p 1 -o t & gdb -p 1 -batch; echo 0 > /proc/sys/kernel/yama/ptrace_scope; sleep 0.3",
    # prints what a terminal obeys, or no text
    "escapes": "printf '\\033[2J\\033]0;title\\007\\a\\b\\033[31mred\\r over\\n'",
    "no text": "printf 'a\\000b\\377\\376c\\303\\050\\n'; head -c 5000 /dev/urandom",
    "turns the text around": "printf 'abc\\342\\200\\256def\\n'",
    # harms what comes next
    "changes the folder": "cd /; exec 2>&-; umask 777; set -e; trap '' EXIT; alias ls=false; export PATH=/nowhere LD_PRELOAD=/tmp/x.so",
    "leaves traps for shells": "for f in .profile .bashrc .bash_profile .shrc .bash_env; do echo 'echo TRAPPED; exit 9' > ~/$f; done; echo 'echo TRAPPED' > /tmp/env; export ENV=/tmp/env BASH_ENV=/tmp/env",
    "takes the repository's rights away": "chmod 000 . ; ls; chmod 755 .; chmod -R 000 src; ls src; chmod -R 755 src",
    "removes everything": "rm -rf / --no-preserve-root 2>/dev/null; rm -rf ./* ~ /tmp 2>/dev/null; ls | wc -l",
}  # fmt: skip
"""Commands that need no more than a shell and busybox."""

CLEAN = "rm -rf fill* d again.sh out all s disk t /tmp/* /dev/shm/* /var/tmp/* ~/.[a-z]* ; umask 022"

FILLS = """import resource, socket, sys, time
kept, wanted = [], resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def fill(*ends):
    kept.append(ends)
    for end in ends:
        end.setblocking(False)
        try:
            while True:
                end.send(b'x' * (1 << 16))
        except OSError:
            pass


def full(kind, error, trace):
    print(error)
    time.sleep(60)


sys.excepthook = full
"""
"""Fills the queues of sockets; out of sockets, it waits, and keeps them."""

PYTHON = {
    "a double fork": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.closerange(0, 9)\n        time.sleep(1000)\n    os._exit(0)\n",
    "calls the machine": "import socket\nfor host in ('127.0.0.1', '::1', 'localhost', '10.0.0.1'):\n    try:\n        socket.create_connection((host, {port}), 1).sendall(b'hello')\n        print('REACHED')\n    except OSError as e:\n        print(e)\n",
    "calls an abstract socket": "import socket\ns = socket.socket(socket.AF_UNIX)\ntry:\n    s.connect('\\0{mark}')\n    print('REACHED')\nexcept OSError as e:\n    print(e)\n",
    "asks the kernel": "import socket\nfor f, t in ((16, 3), (17, 3), (2, 3), (38, 5), (40, 1)):\n    try:\n        socket.socket(f, t, 0)\n        print('REACHED')\n    except OSError as e:\n        print(e)\n",
    "takes memory in pieces": "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n",
    "takes memory by forks": "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(b'x' * (100 << 20))\n        time.sleep(60)\ntime.sleep(60)\n",
    "takes shared memory": "import mmap, time\nm = mmap.mmap(-1, 2 << 30)\nfor i in range(0, 2 << 30, 4096):\n    m[i] = 1\ntime.sleep(60)\n",
    "takes memory in queues": FILLS + "while True:\n    fill(*socket.socketpair())\n",
    "takes memory in queues of other kinds": FILLS + "while True:\n    fill(*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))\n    fill(*socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))\n",
    "takes memory in large queues": FILLS + "while True:\n    a, b = socket.socketpair()\n    for s in (a, b):\n        for name in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):\n            s.setsockopt(socket.SOL_SOCKET, name, 1 << 26)\n    assert a.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < 1 << 20\n    fill(a, b)\n",
    "takes memory in connections": FILLS + "server = socket.create_server(('127.0.0.1', 0))\nwhile True:\n    a = socket.create_connection(server.getsockname())\n    fill(a, server.accept()[0])\n",
    "takes memory in connections that nobody takes": FILLS + "server = socket.create_server(('127.0.0.1', 0), backlog=4096)\nwhile True:\n    fill(socket.create_connection(server.getsockname()))\n",
    "takes memory in connections of IPv6": FILLS + "server = socket.create_server(('::1', 0), family=socket.AF_INET6)\nwhile True:\n    a = socket.create_connection(server.getsockname()[:2])\n    fill(a, server.accept()[0])\n",
    "takes memory in connections by name": FILLS + "server = socket.socket(socket.AF_UNIX)\nserver.bind('\\0x')\nserver.listen(4096)\nwhile True:\n    a = socket.socket(socket.AF_UNIX)\n    a.connect('\\0x')\n    fill(a)\n    a.close()\n",
    "takes memory in datagrams": FILLS + "while True:\n    a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    a.bind(('127.0.0.1', 0))\n    a.connect(a.getsockname())\n    fill(a)\n",
    "takes memory in queues of many processes": FILLS + "import os\nwhile True:\n    if os.fork() == 0:\n        while True:\n            fill(*socket.socketpair())\n    time.sleep(0.1)\n",
    "takes memory in sockets that are sent": FILLS + "while True:\n    a, b = socket.socketpair()\n    fill(a, b)\n    c, d = socket.socketpair()\n    socket.send_fds(c, [b'x'], [a.fileno(), b.fileno()])\n    kept.append((c, d))\n    kept.remove((a, b))\n    a.close()\n    b.close()\n",
    "takes memory in pipes": "import fcntl, os, time\nkept = []\nwhile True:\n    try:\n        r, w = os.pipe2(os.O_NONBLOCK)\n        fcntl.fcntl(w, 1031, 1 << 20)\n    except OSError as e:\n        print(e)\n        if e.errno == 24 and os.fork():\n            time.sleep(60)\n    try:\n        os.write(w, b'x' * (1 << 20))\n    except OSError:\n        pass\n    kept.append((r, w))\n",
    "takes memory in page tables": "import mmap, time\nwhile True:\n    m = mmap.mmap(-1, 1 << 36, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n    kept = [m[i] for i in range(0, 1 << 36, 1 << 21)]\n    globals().setdefault('all', []).append(m)\n",
    "takes memory without a name": "import os\ntry:\n    f = os.memfd_create('x')\n    while True:\n        os.write(f, b'x' * (1 << 24))\nexcept OSError as e:\n    print(e)\n",
    "traces": "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint([libc.ptrace(16, pid, 0, 0) for pid in (1, 2)], libc.unshare(0x10000000), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))\n",
    "uses every descriptor": "import os\nfor n in range(3, 4096):\n    try:\n        os.write(n, b'forged')\n        print('REACHED', n)\n    except OSError:\n        pass\n",
    "threads without end": "import threading, time\nwhile True:\n    try:\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n    except RuntimeError as e:\n        print(e)\n        break\n",
    "runs what git is told": "import subprocess\nsubprocess.run(['git', 'config', 'core.fsmonitor', 'touch /tmp/{mark}; false'])\nsubprocess.run(['git', 'status', '--short'])\n",
}  # fmt: skip
"""Programs for rooms that show the machine's Python."""
