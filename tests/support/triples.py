"""The labelled triples of `tests/golden/rules`: a program, an instruction, and the program after it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codechat.base.domain import Instruction
from codechat.base.files import from_yaml

RULES = Path(__file__).parents[1] / "golden" / "rules"


@dataclass(frozen=True)
class Triple:
    """A labelled triple; a missing label is None. `hard` says what makes it hard, None if it is easy."""

    place: str
    instruction: Instruction
    before: str
    after: str | None
    applicable: bool | None
    adherence: str | None
    hard: str | None = None

    @property
    def digest(self) -> str:
        """The triple's name in the second readers' files."""
        parts = (self.instruction.id, self.before, self.after or "")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def read_triples(pool: Mapping[str, Instruction]) -> list[Triple]:
    """All triples; docs/audit.md describes the format of the files."""
    triples = []
    for path in sorted(RULES.glob("*.yaml")):
        content = from_yaml(path.read_text(encoding="utf-8"))
        programs: dict[str, str] = content["programs"]
        for case in content["cases"]:
            instruction = pool[case["instruction"]]
            fits = dict.fromkeys(case.get("fits", []), True) | dict.fromkeys(case.get("unfit", []), False)
            for verdict in ("adhered", "violated"):
                for one in case.get(verdict, []):
                    (name, *steps), hard = (one["revision"], one["hard"]) if isinstance(one, dict) else (one, None)
                    place, after = f"{path.name}: {instruction.id}: {name} {steps}", programs[name]
                    for old, new in zip(steps[::2], steps[1::2], strict=True):
                        assert old == "*" or old in after, f"{place}: {old!r} is not in the program"
                        after = new if old == "*" else after.replace(old, new)
                    triples.append(Triple(place, instruction, programs[name], after, fits.get(name), verdict, hard))
            for name, label in fits.items():
                place = f"{path.name}: {instruction.id}: {name}"
                triples.append(Triple(place, instruction, programs[name], None, label, None))
    return triples
