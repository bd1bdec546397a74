"""Suites in a dataset's rows: `{kind: NAME, ...}`, validated as the kind's fields."""

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from codechat.config import Config
from codechat.errors import UserError
from codechat.suites import SUITES, Suite


def as_list(value: Any) -> Any:
    """A list of texts; a single text becomes a list of one."""
    return [value] if isinstance(value, str) else value


Snippets = Annotated[list[str], BeforeValidator(as_list)]


def _suite_config(value: Any) -> Any:
    """The validated fields of a suite, by its kind."""
    if not isinstance(value, dict):
        return value
    try:
        return SUITES.validate(value, "suite")
    except UserError as error:
        raise ValueError(", ".join(str(error).splitlines())) from error


GivenSuite = Annotated[
    Config | None, BeforeValidator(_suite_config), PlainSerializer(lambda suite: suite and suite.identity())
]


def make_suite(config: Config, name: str) -> Suite:
    """The suite of a row; `name` is the task's name in messages."""
    if "name" in type(config).model_fields and "name" not in config.model_fields_set:
        config = config.model_copy(update={"name": name})
    return SUITES.build(config)
