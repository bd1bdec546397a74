"""Unit tests that a dataset wrote beside its references: what they need of the sandbox, by what both import."""

from codechat.languages.python.imports import imported_modules
from codechat.suites.assertions import Assertions, Need

CPU_S = 240.0  # over three times the longest of SR-Eval's references takes
# By the names of modules; those below them count too.
NEEDED_BY: dict[str, tuple[Need, ...]] = {
    "concurrent.futures": ("threads",),
    "ftplib": ("network",),
    "http.server": ("network", "threads"),
    "keras": ("code", "native", "processes", "threads"),
    "librosa": ("native",),
    "multiprocessing": ("commands",),
    "nltk": ("code",),
    "psutil": ("processes",),
    "sklearn": ("native",),
    "smtplib": ("network",),
    "socket": ("network",),
    "socketserver": ("network",),
    "soundfile": ("native",),
    "ssl": ("network",),
    "subprocess": ("commands",),
    "tensorflow": ("code", "native", "processes", "threads"),
    "threading": ("threads",),
}


def unit_tests(test: str, reference: str) -> Assertions:
    """The suite of a unit test that its reference passes."""
    return Assertions((test,), needs_of(test, reference), CPU_S, one_file=True)


def needs_of(*sources: str) -> frozenset[Need]:
    """What texts that run together need of the sandbox."""
    names = [name for source in sources for name in imported_modules(source)]
    found = [module for module in NEEDED_BY if any(f"{name}.".startswith(f"{module}.") for name in names)]
    return frozenset(need for module in found for need in NEEDED_BY[module])
