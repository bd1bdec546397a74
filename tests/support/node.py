"""Whether this machine can test programs in JavaScript."""

import shutil

import pytest

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
