"""Whether this machine can test programs in Java."""

import pytest

from codechat.base.errors import UserError
from codechat.sandbox.suites.compilers import find_home
from codechat.sandbox.suites.junit.toolchain import PARTS, find_jars


def _lacks() -> str:
    try:
        find_home(None, PARTS)
        find_jars(None)
    except UserError as error:
        return f": {error.message}"
    return ""


LACKS = _lacks()
needs_java = pytest.mark.skipif(bool(LACKS), reason=f"needs Java and JUnit{LACKS}")
