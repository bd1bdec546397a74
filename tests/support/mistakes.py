"""The assertion on a user's mistake: the error's type, what its message names, and a remedy. Wording is not asserted."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from codechat.base.errors import UserError


@contextmanager
def mistake(*names: str, kind: type[UserError] = UserError) -> Iterator[pytest.ExceptionInfo[UserError]]:
    """Expects an error of the `kind` that names each key, file or value of `names` and gives a remedy."""
    with pytest.raises(kind) as caught:
        yield caught
    text = str(caught.value)
    missing = [name for name in names if name not in text]
    assert not missing, f"{missing} not named in: {text}"
    assert caught.value.remedy, f"no remedy in: {text}"
