"""docs/write-your-own.md names every field of the values that a plugin makes or gets."""

import importlib
from pathlib import Path

from support.docs_tables import VALUES, value_rows

PAGE = Path(__file__).parents[3] / "docs" / "write-your-own.md"


def test_the_table_of_values_is_that_of_the_code() -> None:
    rows = list(value_rows())
    written = PAGE.read_text(encoding="utf-8").splitlines()
    start = written.index(rows[0])
    assert written[start : start + len(rows)] == rows
    assert not written[start + len(rows)].startswith("|")


def test_a_plugin_can_import_the_values_from_where_the_table_says() -> None:
    for module, kinds in VALUES.items():
        for kind in kinds:
            assert getattr(importlib.import_module(module), kind.__name__) is kind
