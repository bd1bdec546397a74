"""Why a candidate was found applicable or not: the records leave it out, the cell's journal holds it."""

import json
from pathlib import Path

from codechat.journal import read_values

JUDGE = "applicability"


def applicability_reasons(folder: Path) -> dict[tuple[str, int, str], str]:
    """The judge's reasons by (session, turn, instruction); nothing if the journal is gone or cannot be read."""
    return dict(_reason(*row) for row in read_values(folder / "journal.db", JUDGE))


def _reason(session: str, name: str, value: str) -> tuple[tuple[str, int, str], str]:
    turn, _, instruction = name.split("/", 2)
    return (session, int(turn), instruction), str(json.loads(value).get("reason", ""))
