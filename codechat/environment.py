"""Shell commands of this installation, folders of caches, and libraries' telemetry, which is turned off."""

import os
import shutil
import sys
from collections.abc import MutableMapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = Path(__file__).parent
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


def data_folder(name: str) -> Path:
    """`conf` or `sweeps`: inside an installed package, or beside it in a source tree."""
    packed = PACKAGE / "_data" / name
    return packed if packed.is_dir() else PACKAGE.parent / name


def silence(environ: MutableMapping[str, str]) -> None:
    """Turn the libraries' telemetry off before any of them is imported; the user's own settings stay."""
    for name, value in SILENCED.items():
        environ.setdefault(name, value)


def shell_command(tool: str) -> str:
    """The shortest command of an installed console script: its name if PATH finds this very script."""
    script = Path(sys.executable).parent / tool
    found = shutil.which(tool)
    if not script.exists() or (found and Path(found) == script):
        return tool
    return str(script.relative_to(Path.cwd()) if script.is_relative_to(Path.cwd()) else script)


def home() -> Path:
    """The user's folder; the root if the system knows none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def cache_root() -> Path:
    """The folder of codechat's caches: `CODECHAT_CACHE_DIR`, or else one in the user's cache folder."""
    named = os.environ.get("CODECHAT_CACHE_DIR")
    return Path(named) if named else user_cache() / "codechat"


def user_cache() -> Path:
    """The user's cache folder, which all programs share."""
    return Path(os.environ.get("XDG_CACHE_HOME") or home() / ".cache")
