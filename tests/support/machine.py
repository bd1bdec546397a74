"""What this machine can run: container engines, namespaces, mounts, Java, JavaScript."""

import contextlib
import functools
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.sandbox import SANDBOXES
from codechat.sandbox.bubblewrap import programs
from codechat.sandbox.suites.compilers import find_home
from codechat.sandbox.suites.junit.toolchain import PARTS, find_jars

BUSYBOX = "/bin/busybox"
TINY = "tiny:latest"
PYTHON = "own-python:latest"
START_S = 60.0
EXPECTED = ("libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1")  # by packages of wheels


def sandbox_here(workers: int = 1, **options: Any) -> Any:
    """A sandbox with these options; the test is skipped where this machine cannot run its kind."""
    try:
        return SANDBOXES.build(SANDBOXES.validate(options), workers=workers)
    except UserError as error:
        pytest.skip(str(error))


def lacking_engine() -> str:
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


def asked(*words: str) -> set[str]:
    """The words of an answer of `docker`."""
    done = subprocess.run(["docker", *words], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


class Images:
    """The engine's images now: all, those of steps among them, and those that have a name."""

    def __init__(self) -> None:
        self.all = asked("images", "-aq", "--no-trunc")
        self.named = asked("images", "--format", "{{.Repository}}:{{.Tag}}") - {"<none>:<none>"}

    def are_left(self, ended: int) -> bool:
        """Whether these have their names still, and all others are steps that were being made as so many builds were ended.

        Such a step right above a base image cannot be told from one of somebody else's build. If it is the last of its
        build, the engine puts the labels over it, as a second image; it may be removed later.
        """
        now = Images()
        more = now.all - self.all
        below = asked("image", "inspect", "--format", "{{.Parent}}", *more) if more else set()
        known = {*asked("image", "inspect", "--format", "{{.Id}}", TINY), *more}
        return len(more) <= 2 * ended and below <= known and now.named == self.named


def make_image() -> None:
    """Make the image `tiny`: a shell and its commands, nothing else."""
    _import(TINY, _pack_shell)


def make_python_image() -> None:
    """Make the image `own-python`: the shell, and the Python that runs the tests, without packages."""
    _import(PYTHON, _pack_shell, _pack_python)


def _import(image: str, *parts: Callable[[tarfile.TarFile], None]) -> None:
    with tempfile.TemporaryFile() as archive:
        with tarfile.open(fileobj=archive, mode="w") as packed:
            for part in parts:
                part(packed)
        archive.seek(0)
        subprocess.run(["docker", "import", "-", image], stdin=archive, capture_output=True, check=True)


def _pack_shell(packed: tarfile.TarFile) -> None:
    names = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    packed.add(BUSYBOX, "bin/busybox")
    for name in names:
        if name != "busybox":
            _link(packed, f"bin/{name}", "busybox")
    for name, text in (("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("etc/group", "root:x:0:\n")):
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        packed.addfile(entry, io.BytesIO(text.encode()))
    for name in ("tmp", "root", "var/tmp"):
        folder = tarfile.TarInfo(name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        packed.addfile(folder)


def _pack_python(packed: tarfile.TarFile) -> None:
    """Interpreter and standard library under /usr/local, and what they load where the loader looks for it."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    program, library = Path(sys.base_prefix, "bin", name).resolve(), Path(os.__file__).parent
    packed.add(program, f"usr/local/bin/{name}")
    _link(packed, "usr/local/bin/python3", name)
    packed.add(library, f"usr/local/lib/{name}", filter=_without_the_unused)
    for path in _loaded_by([program, *(library / "lib-dynload").glob("*.so")]):
        of_python = path.is_relative_to(sys.base_prefix) and sys.base_prefix != "/usr"
        packed.add(path.resolve(), f"usr/lib/{path.name}" if of_python else str(path).lstrip("/"))


def _without_the_unused(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    unused = {"site-packages", "dist-packages", "test", "idlelib", "tkinter", "ensurepip", "distutils"}
    parts = Path(entry.name).parts
    left_out = unused & set(parts) or parts[-1].startswith("config-") or ".opt-" in parts[-1]
    return None if left_out else entry


def _loaded_by(binaries: Sequence[Path]) -> set[Path]:
    """The shared libraries that programs and modules load, the loader too, and those that compiled packages expect."""
    told = subprocess.run(["ldd", *map(str, binaries)], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", told, re.MULTILINE)}
    beside = {path.parent for path in found}
    return found | {path for folder in beside for path in folder.glob("lib*.so.*") if path.name in EXPECTED}


def _link(packed: tarfile.TarFile, name: str, target: str) -> None:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    packed.addfile(link)


USED = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true")


@functools.cache
def lacking_namespaces() -> str:
    """Why none can be had here; empty if they can."""
    started = (subprocess.run([name, *USED], capture_output=True, check=False) for name in programs())
    return "" if any(each.returncode == 0 for each in started) else "needs user namespaces"


def skip_without() -> None:
    """Skip the test that calls this, unless there are namespaces."""
    if why := lacking_namespaces():
        pytest.skip(why)


LINE = "36 35 98:0 / {place} rw,noatime shared:1 - {kind} server:/export rw\n"


def write_mounts(file: Path, **kinds: Path) -> Path:
    """Write a list that has the root on ext4, and a mount of each type (dots as underscores) at its folder."""
    escaped = {kind.replace("_", "."): str(place).replace(" ", r"\040") for kind, place in kinds.items()}
    rows = [LINE.format(place=place, kind=kind) for kind, place in escaped.items()]
    file.write_text(LINE.format(place="/", kind="ext4") + "".join(rows))
    return file


def _lacks() -> str:
    try:
        find_home(None, PARTS)
        find_jars(None)
    except UserError as error:
        return f": {error.message}"
    return ""


LACKS = _lacks()
needs_java = pytest.mark.skipif(bool(LACKS), reason=f"needs Java and JUnit{LACKS}")


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
