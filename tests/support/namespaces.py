"""Whether bubblewrap may make namespaces here."""

import functools
import subprocess

import pytest

from codechat.sandbox.bubblewrap import programs

USED = ("--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true")


@functools.cache
def lacking() -> str:
    """Why none can be had here; empty if they can."""
    started = (subprocess.run([name, *USED], capture_output=True, check=False) for name in programs())
    return "" if any(each.returncode == 0 for each in started) else "needs user namespaces"


def skip_without() -> None:
    """Skip the test that calls this, unless there are namespaces."""
    if why := lacking():
        pytest.skip(why)
