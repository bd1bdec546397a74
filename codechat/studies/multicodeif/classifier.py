"""The language of a code, guessed by a classifier that has learnt from files: Magika, which needs no network."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable

from codechat.base.errors import UserError
from codechat.sandbox.languages import Language

REMEDY = "pip install 'codechat[classify]'"
_UNKNOWN = "undefined"


@dataclass(frozen=True, slots=True)
class Guess:
    """A label of the classifier, empty if the code is too short for it; and its score, from 0 to 1."""

    label: str
    score: float


@runtime_checkable
class Classified(Protocol):
    """A `Language` whose label is not its name."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The classifier's label for it, and then those for languages that contain it."""


@cache
def _classifier() -> Any:
    """The classifier with its model, loaded once a process. Raises `UserError` if it is not installed."""
    try:
        from magika import Magika, PredictionMode
    except ModuleNotFoundError as error:
        raise UserError(
            f"the package {error.name}, which classifies the language of code, is not installed", REMEDY
        ) from error
    return Magika(prediction_mode=PredictionMode.BEST_GUESS)


def guess(code: str) -> Guess:
    """The most likely language of a code, however unlikely. Raises `UserError` if the classifier is not installed."""
    found = _classifier().identify_bytes(code.encode("utf-8", "surrogatepass"))
    label = str(found.dl.label)
    return Guess("" if label == _UNKNOWN else str(found.output.label), float(found.score))


def labels_of(language: Language) -> tuple[str, ...]:
    """The labels of a language: its name, unless it says otherwise."""
    return (language.labels if isinstance(language, Classified) else ()) or language.names[:1]
