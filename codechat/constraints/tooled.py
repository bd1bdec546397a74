"""The language and its version: a classifier and a compiler decide them, and no rule."""

from codechat.constraints import Answer, ConstraintType, register
from codechat.languages import language_of
from codechat.languages.compiling import Compiled, version_of


def read_language(raw: str) -> Answer:
    if not raw.strip() or ";" in raw:
        raise ValueError(f"the answer '{raw:.60}' is not a language")
    return Answer(raw, language_of(raw).names[0])


def read_version(raw: str) -> Answer:
    language, _, version = (part.strip() for part in raw.partition(";"))
    if not language or not version or ";" in version:
        raise ValueError(f"the answer '{raw:.60}' is not of the form language;version")
    if not isinstance(language_of(language), Compiled):
        raise ValueError(f"no compiler checks versions of the language '{language}'")
    version_of(version)
    return Answer(raw, language_of(language).names[0], (version,))


register(
    ConstraintType(
        *("language_type", "environment", ("syntax", "language_type"), "classifier", read_language),
        lambda answer: f"The code must be in {answer.raw.strip()}.",
    )
)
register(
    ConstraintType(
        *("language_version", "environment", ("syntax", "language_version"), "compiler", read_version),
        lambda answer: f"The code must be valid in the version {answer.values[0]} of {answer.language}.",
    )
)
