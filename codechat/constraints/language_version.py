"""The version of a language that code must be valid in: a compiler decides it (`codechat.suites.versions`)."""

from codechat.constraints import Answer, ConstraintType, register
from codechat.languages import language_of
from codechat.languages.compiling import Compiled, version_of


def read(raw: str) -> Answer:
    language, _, version = (part.strip() for part in raw.partition(";"))
    if not language or not version or ";" in version:
        raise ValueError(f"the answer '{raw:.60}' is not of the form language;version")
    if not isinstance(language_of(language), Compiled):
        raise ValueError(f"no compiler checks versions of the language '{language}'")
    version_of(version)
    return Answer(raw, language_of(language).names[0], (version,))


register(
    ConstraintType(
        *("language_version", "environment", ("syntax", "language_version"), "compiler", read),
        lambda answer: f"The code must be valid in the version {answer.values[0]} of {answer.language}.",
    )
)
