"""This process: its shell commands, cache folders and garbage collection, and the libraries' telemetry, turned off."""

import contextlib
import gc
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, MutableMapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from codechat.base.errors import UserError

PACKAGE = Path(__file__).parent.parent
"""The folder of this package."""

try:
    VERSION = version("codechat")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"

SILENCED = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Variables that turn off the telemetry of libraries that codechat loads or starts."""
CACHES = "CODECHAT_CACHE_DIR"
"""The variable with the folder of codechat's caches."""


def data_folder(name: str) -> Path:
    """`conf` or `sweeps`: inside an installed package, or next to it in a source tree."""
    packed = PACKAGE / "_data" / name
    return packed if packed.is_dir() else PACKAGE.parent / name


def conf_folders() -> tuple[Path, ...]:
    """The folders of presets: codechat's own `conf`, then the working folder's if that is another one."""
    shipped, own = data_folder("conf"), Path.cwd() / "conf"
    return (shipped, own) if own.is_dir() and own.resolve() != shipped.resolve() else (shipped,)


def silence(environ: MutableMapping[str, str]) -> None:
    """Turn the libraries' telemetry off before any of them is imported; the user's own settings stay."""
    for name, value in SILENCED.items():
        environ.setdefault(name, value)


def shell_command(tool: str) -> str:
    """The shortest command of an installed console script: its name if PATH leads to this script."""
    script = Path(sys.executable).parent / tool
    found = shutil.which(tool)
    if not script.exists() or (found and Path(found) == script):
        return tool
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


@contextlib.contextmanager
def collect_seldom() -> Iterator[None]:
    """Run the garbage collector less often: modules and replies make many objects, hardly any of them in cycles.

    At Python's default rate it takes a tenth of the time of a small cell. The libraries of a small cell make 300,000
    lasting objects; 3,000 sessions take no more memory at every 400,000 new objects than at every 100,000.
    """
    usual = gc.get_threshold()
    gc.set_threshold(400_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def leave_uncollected() -> None:
    """Exclude all present objects from garbage collection, which takes a quarter of a small cell's CPU time at exit."""
    gc.freeze()


def home() -> Path:
    """The user's folder; `/` if the system has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def cache_root() -> Path:
    """The folder of codechat's caches: `CODECHAT_CACHE_DIR`, else one in the user's cache folder.

    If that cannot be written, as with a read-only home, a temporary folder of mode 0700. Raises `UserError` if another
    user has its name.
    """
    if named := os.environ.get(CACHES):
        return Path(named)
    folder = user_cache() / "codechat"
    there = folder
    while not os.path.exists(there):  # noqa: PTH110  Path.exists() raises an error below a folder that is closed
        there = there.parent
    if os.access(there, os.W_OK):
        return folder
    folder = Path(tempfile.gettempdir()) / f"codechat-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise UserError(f"{there} cannot be written, and {folder} is another user's", f"set {CACHES} to a folder")
    return folder


@contextlib.contextmanager
def caches_in(folder: str | None) -> Iterator[None]:
    """Within, codechat's caches are in `folder`, also for started processes; None: no change."""
    before = os.environ.get(CACHES)
    if folder is not None:
        os.environ[CACHES] = str(Path(folder).absolute())
    try:
        yield
    finally:
        if before is not None:
            os.environ[CACHES] = before
        elif folder is not None:
            del os.environ[CACHES]


def user_cache() -> Path:
    """The user's cache folder, which all programs share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache")
