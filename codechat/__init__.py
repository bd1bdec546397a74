"""codechat: does a model keep code working while a developer keeps asking for changes?"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("codechat")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
