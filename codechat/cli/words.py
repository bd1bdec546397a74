"""Words of the command line, `key=value`, that Hydra does not parse: those of every command other than a run."""

from collections.abc import Collection, Mapping, Sequence

from codechat.base.errors import UserError, nearest

SAMPLES_MEANING = "run so many seeds, from seed on: a cell each, which reports pool"


def parse_words(words: Sequence[str], allowed: Mapping[str, str], required: Collection[str] = ()) -> dict[str, str]:
    """The values by key. `allowed` maps each key to its one-line description.

    Raises `UserError` for a word without `=`, an unknown key (with the nearest known ones), a key that is given twice
    or has no value, and a missing required key.
    """
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"cannot read '{word}'", f"write key=value; the keys are {', '.join(allowed)}")
        if key not in allowed:
            raise UserError(f"there is no setting '{key}'", nearest(key, allowed))
        if key in values:
            raise UserError(f"{key} is given twice", f"give it once: {key}={values[key]} or {key}={value}")
        if not value:
            raise UserError(f"{key} has no value", f"{key}: {allowed[key]}")
        values[key] = value
    for key in required:
        if key not in values:
            raise UserError(f"{key} is required", f"add {key}=…: {allowed[key]}")
    return values
