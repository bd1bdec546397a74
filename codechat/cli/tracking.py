"""The terminal's lines on a tracked cell, and the words that name its store."""

import shlex
from collections.abc import Iterator

from codechat.cli.terminal import err, out
from codechat.config import Config
from codechat.engine.run import Outcome
from codechat.engine.settings.words import parse_word, quoted
from codechat.environment import shell_command
from codechat.tracking import TRACKING, TrackedRun
from codechat.tracking.address import Address

USUAL = "mlflow"


def show_tracking(outcome: Outcome) -> None:
    """Print where a cell is tracked; if the store failed, a warning with the command that sends the cell later."""
    if outcome.tracking.failure:
        config = outcome.cell.config.tracking
        later = [shell_command("codechat"), "upload", f"run={outcome.folder}", *store_words(config)]
        err.print(
            f"warning: not tracked: {outcome.tracking.failure}\n"
            f"The records are safe. Later: {shlex.join(later)}{_password_of(config)}",
            markup=False,
        )
    elif outcome.tracking.run is not None:
        show_tracked(outcome.tracking.run)


def store_words(config: Config) -> Iterator[str]:
    """The overrides that choose this store again: what differs from the defaults, without secrets."""
    kind = TRACKING.of(config).name
    if kind != USUAL:
        yield f"tracking={kind}"
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        if name != TRACKING.key and (field.is_required() or value != field.get_default(call_default_factory=True)):
            yield _word(f"tracking.{name}", Address.of(value).public_uri if name == "uri" else value)


def _word(key: str, value: object) -> str:
    """The override that gives a key this value; a text is quoted if Hydra would read something else in it."""
    word = f"{key}={value}"
    read = parse_word(word)
    same = read is not None and not read.is_sweep_override() and read.value() == value
    return word if same or not isinstance(value, str) else shlex.split(quoted(key, value))[0]


def _password_of(config: Config) -> str:
    """A line that says how to give the password which the command leaves out; empty if it leaves out none."""
    uri = getattr(config, "uri", None)
    if uri is None or Address.of(uri).public_uri == uri:
        return ""
    variable = Address.of(uri).password_variable
    return "\n(the password is left out: " + (f"set {variable})" if variable else "add it to the URI)")


def show_tracked(tracked: TrackedRun) -> None:
    """Print where the run is and how to open it."""
    if tracked.notice:
        err.print(f"notice: {tracked.notice}", markup=False)
    out.print(f"MLflow run  {tracked.run_id}", markup=False)
    out.print(f"compare     {tracked.open_with}", markup=False)
    out.print(f"            then open {tracked.charts}", markup=False)
