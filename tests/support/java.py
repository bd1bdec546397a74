"""Whether this machine can test programs in Java."""

import pytest

from codechat.errors import UserError
from codechat.suites.junit.toolchain import find_home, find_jars


def _lacks() -> str:
    try:
        find_home(None)
        find_jars(None)
    except UserError as error:
        return str(error)
    return ""


LACKS = _lacks()
needs_java = pytest.mark.skipif(bool(LACKS), reason=LACKS)
