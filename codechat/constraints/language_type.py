"""The language that code must be in: a classifier guesses it.

The published harness asked guesslang, which no longer installs; Magika stands in for it in both harnesses, and so
`official` is no more than near to what was published.
"""

from codechat.constraints import Answer, ConstraintType, Finding, register
from codechat.errors import UserError
from codechat.languages import is_registered, language_of, parses
from codechat.languages.classifier import Guess, guess, labels_of

SURE = 0.9
"""The score from which a guess prevails over a grammar."""


def read(raw: str) -> Answer:
    if not raw.strip() or ";" in raw:
        raise ValueError(f"the answer '{raw:.60}' is not a language")
    if not is_registered(raw):
        raise ValueError(f"no language is called '{raw:.60}'")
    return Answer(raw, language_of(raw).names[0])


def words(answer: Answer) -> str:
    return f"The code must be in {answer.raw.strip()}."


def official(answer: Answer, code: str) -> Finding:
    """The guess must be the language itself; code that is too short gets none."""
    guessed = _guess(code)
    if isinstance(guessed, Finding):
        return guessed
    return Finding(guessed.label == labels_of(language_of(answer.language))[0], _said(guessed))


def guarded(answer: Answer, code: str) -> Finding:
    """The grammars help to decide if the guess is a language that contains the one asked for, or is not sure.

    Code that is too short for a guess is undecided.
    """
    guessed = _guess(code)
    if isinstance(guessed, Finding):
        return guessed
    own, *containing = labels_of(language_of(answer.language))
    if not guessed.label or guessed.label == own:
        return Finding(True if guessed.label else None, _said(guessed))
    if guessed.label not in containing and guessed.score >= SURE:
        return Finding(False, _said(guessed))
    asked, other = parses(answer.language, code), parses(guessed.label, code)
    if asked and (guessed.label in containing or not other):
        return Finding(True, f"{_said(guessed)}, but it parses as {answer.language}")
    if asked is None and other is False:
        return Finding(None, f"{_said(guessed)}, but it does not parse as that")
    return Finding(False, _said(guessed))


def _guess(code: str) -> Guess | Finding:
    """The guess, or the reason why there is none: no classifier is installed."""
    try:
        return guess(code)
    except UserError as error:
        return Finding(None, f"{error.message}: {error.remedy}")


def _said(guessed: Guess) -> str:
    if not guessed.label:
        return "the code is too short to tell its language"
    return f"the classifier takes it for {guessed.label} ({guessed.score:.2f})"


register(
    ConstraintType(
        *("language_type", "environment", ("syntax", "language_type"), "classifier", read, words, official, guarded)
    )
)
