"""The description of a command before it is imported."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command other than a run. It is imported only when called, so that each loads only its own libraries."""

    function: str  # module:function, which takes the words after the command's name and returns the exit status
    usage: str
    summary: str
