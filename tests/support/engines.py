"""A real container engine for tests: the machine's own if one answers, or one that is started for them as root.

It has no registry: its only image, `tiny`, is made of a static busybox.
"""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BUSYBOX = "/bin/busybox"
TINY = "tiny:latest"
START_S = 60.0


def lacking() -> str:
    """Why no engine can be had here; empty if one can."""
    if not Path(BUSYBOX).exists():
        return "needs the package busybox-static"
    if shutil.which("docker") is None:
        return "needs the package docker.io"
    if _answers():
        return ""
    return "" if os.getuid() == 0 and shutil.which("dockerd") else "needs a running engine, or dockerd and root"


@contextlib.contextmanager
def engine() -> Iterator[None]:
    """An engine that answers, which DOCKER_HOST names, and that has the image `tiny`."""
    if _answers():
        make_image()
        yield
        return
    before = os.environ.get("DOCKER_HOST")
    with tempfile.TemporaryDirectory(prefix="codechat-engine-", ignore_cleanup_errors=True) as folder:
        os.environ["DOCKER_HOST"] = f"unix://{folder}/socket"
        process = start(Path(folder))
        try:
            make_image()
            yield
        finally:
            process.terminate()
            process.wait(START_S)
            end_leftovers(Path(folder))
            if before is None:
                del os.environ["DOCKER_HOST"]
            else:
                os.environ["DOCKER_HOST"] = before


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """Start an engine of one's own in a folder, and wait until it answers."""
    words = ["dockerd", "--host", f"unix://{folder}/socket", "--data-root", f"{folder}/data", "--exec-root"]
    words += [f"{folder}/exec", "--pidfile", f"{folder}/pid", "--iptables=false", "--bridge=none"]
    with Path(folder, "log").open("ab") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    until = time.monotonic() + START_S
    while not _answers():
        assert process.poll() is None and time.monotonic() < until, Path(folder, "log").read_text()[-2000:]
        time.sleep(0.2)
    return process


def end_leftovers(folder: Path) -> None:
    """End what a killed engine left: the processes that name its folder, and the mounts in it, innermost first."""
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if place.name.isdigit() and str(folder).encode() in (place / "cmdline").read_bytes():
                os.kill(int(place.name), signal.SIGKILL)
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((each for each in mounts if each.startswith(f"{folder}/")), reverse=True):
        subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)


def _answers() -> bool:
    asked = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        return subprocess.run(asked, capture_output=True, timeout=30, check=False).returncode == 0
    except OSError:
        return False


def make_image() -> None:
    """Make the image `tiny`: a shell and its commands, nothing else."""
    names = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        packed.add(BUSYBOX, "bin/busybox")
        for name in names:
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                packed.addfile(link)
        for name, text in (("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("etc/group", "root:x:0:\n")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            packed.addfile(entry, io.BytesIO(text.encode()))
        for name in ("tmp", "root"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            packed.addfile(folder)
    subprocess.run(["docker", "import", "-", TINY], input=archive.getvalue(), capture_output=True, check=True)
