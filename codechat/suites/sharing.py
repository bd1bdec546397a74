"""Which programs share a verdict: those that are bound to do the same, under tests that see only that."""

import sys

from codechat.domain import Program, Verdict
from codechat.files import content_hash
from codechat.languages import language_of
from codechat.languages.behaviour import Behaving
from codechat.sandbox import Sandbox
from codechat.suites import SharesVerdicts, Suite


def exact_key(program: Program, suite: Suite) -> str:
    """A hash of all that decides a verdict in one sandbox, the program's text among it."""
    return _key(program.source, program, suite)


def shared_key(program: Program, suite: Suite, sandbox: Sandbox) -> str | None:
    """A hash that programs of one verdict have in common; None if the program shares none but with its own text.

    What codechat's own interpreter compiles says nothing of programs that another version runs.
    """
    if not isinstance(suite, SharesVerdicts) or suite.shares is None or not sandbox.config.share:
        return None
    language = language_of(program.target.language)
    if not isinstance(language, Behaving) or sandbox.config.libraries().minor != sys.version_info[:2]:
        return None
    behaviour = language.behaviour(program.source)
    if behaviour is None:
        return None
    return _key([suite.shares, behaviour.unnamed if suite.shares == "unnamed" else behaviour.named], program, suite)


def may_share(verdict: Verdict) -> bool:
    """Whether a verdict is the same for programs of one `shared_key`: an exception tells lines of the program."""
    told = verdict.failure is not None and verdict.failure.exception is not None
    return not told and verdict.outcome not in ("no_code", "syntax_error")


def may_outlast(verdict: Verdict) -> bool:
    """Whether another process may take a verdict over: what hangs on the machine's state is tested again."""
    return may_share(verdict) and verdict.outcome in ("pass", "fail") and verdict.decided == "outside"


def _key(what: object, program: Program, suite: Suite) -> str:
    target = program.target
    return content_hash([what, target.language, target.entry_point, target.signature, suite.kind, suite.key])
