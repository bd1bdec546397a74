"""A real SLURM of one node for tests, from the distribution's packages: it is started in a temporary folder and ended."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
START_S = 60.0
CPUS = 4  # of the node, whatever the machine has: so many array elements run at once
REQUEUE_S = 5  # a requeued job waits as long as a credential lives, by default 120 s
CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={daemon}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={requeue_s}
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MinJobAge=300
OverTimeLimit=0
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=tests Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> str:
    """Why no SLURM can be had here; empty if one can."""
    missing = [name for name in PROGRAMS if _program(name) is None]
    if missing:
        return f"needs the packages slurm-wlm and munge ({', '.join(missing)})"
    return "" if os.getuid() == 0 else "needs root"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@contextlib.contextmanager
def slurm() -> Iterator[Path]:
    """A SLURM that answers, which SLURM_CONF names, and whose partition is `tests`; its folder."""
    before = os.environ.get("SLURM_CONF")
    with (
        tempfile.TemporaryDirectory(prefix="codechat-slurm-", ignore_cleanup_errors=True) as name,
        _Daemons() as daemons,
    ):
        folder = Path(name)
        folder.chmod(0o755)  # munged wants every folder above its socket to be readable by all
        _configure(folder)
        os.environ["SLURM_CONF"] = f"{folder}/slurm.conf"
        try:
            daemons.start(
                folder,
                "munged",
                "--foreground",
                f"--key-file={folder}/key",
                f"--socket={folder}/munge.socket",
                f"--log-file={folder}/munged.log",
                f"--seed-file={folder}/seed",
                f"--pid-file={folder}/munged.pid",
            )
            _until((folder / "munge.socket").exists, folder)
            daemons.start(folder, "slurmctld", "-D", "-c")
            daemons.start(folder, "slurmd", "-D", "-N", socket.gethostname().partition(".")[0])
            _until(lambda: "idle" in _told("sinfo", "--noheader", "--format=%T"), folder)
            yield folder
        finally:
            _told("scancel", "--full", "--signal=KILL", f"--user={getpass.getuser()}")
            if before is None:
                del os.environ["SLURM_CONF"]
            else:
                os.environ["SLURM_CONF"] = before


def _configure(folder: Path) -> None:
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        control, daemon = (each.getsockname()[1] for each in sockets)
    text = CONFIG.format(host=socket.gethostname().partition(".")[0], control=control, daemon=daemon,
                         user=getpass.getuser(), folder=folder, cpus=CPUS, requeue_s=REQUEUE_S)  # fmt: skip
    (folder / "slurm.conf").write_text(text)


class _Daemons:
    """The started programs; on leaving they are ended, the last one first."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "_Daemons":
        return self

    def start(self, folder: Path, name: str, *words: str) -> None:
        program = _program(name)
        assert program is not None
        with (folder / "daemons.log").open("ab") as log:
            self._started.append(subprocess.Popen([program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _until(ready: Callable[[], bool], folder: Path) -> None:
    until = time.monotonic() + START_S
    while not ready():
        assert time.monotonic() < until, (folder / "daemons.log").read_text()[-3000:]
        time.sleep(0.1)


def _told(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, timeout=30, check=False).stdout
