"""What is known of a command before it is imported."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A command other than a run. Imported when it is called, so that each pays for its own libraries only."""

    function: str  # module:function, which takes the words behind the command's name and returns the exit status
    usage: str
    summary: str
