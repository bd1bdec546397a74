"""pymannkendall's original test, without scipy.stats, whose import takes longer than a small cell's dialogue.

Of scipy.stats pymannkendall imports the normal distribution and `rankdata`, and its original test calls only the
distribution's `cdf` and `ppf`, which compute by two functions of scipy.special. So the library's own source is executed
here as a private module, with these two functions in place of scipy.stats. For the rest of the process the library and
scipy.stats stay as they are, and results are the same to the last bit (test_metrics_statistics.py).
"""

import builtins
import functools
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

LIBRARY = "pymannkendall"
AVOIDED, TAKEN = "scipy.stats", {"norm", "rankdata"}


@functools.cache
def original_test() -> Callable[..., Any]:
    """The library's function `original_test`."""
    package = importlib.util.find_spec(LIBRARY)
    assert package is not None
    assert package.origin is not None
    spec = importlib.util.spec_from_file_location(LIBRARY, Path(package.origin).with_name(f"{LIBRARY}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
    spec.loader.exec_module(module)
    test: Callable[..., Any] = module.original_test
    return test


def _import(
    name: str,
    names: Mapping[str, object] | None = None,
    inner: Mapping[str, object] | None = None,
    taken: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType | SimpleNamespace:
    """The import function for the library's source: the usual one, but with a substitute for scipy.stats."""
    if name == AVOIDED and {*(taken or ())} == TAKEN:
        from scipy.special import ndtr, ndtri

        return SimpleNamespace(norm=SimpleNamespace(cdf=ndtr, ppf=ndtri), rankdata=None)  # no rank is asked for here
    return builtins.__import__(name, names, inner, taken or (), level)
