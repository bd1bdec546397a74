"""The funnel: how many repositories and issues came how far, beside the paper's figures (4.1, tables 1, 3 and 4)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

HEADS = ("funnel", "here", "paper, all-time", "paper, recent", "paper, both")
PAPER: Mapping[str, tuple[str, str, str]] = {
    "repositories looked at": ("700", "3,500", "4,200"),
    "repositories chosen": ("70", "700", "770"),
    "issues": ("", "", "25,656"),
    "issues filtered": ("3,033", "309", "3,342"),
    "a build is needed": ("252", "42", "294"),
    "built": ("197", "41", "238"),
    "issues kept": ("2,978", "308", "3,286"),
    "their repositories": ("", "", "214 (231 in the abstract)"),
    "calls of models": ("", "", "44,628"),
}
BUILT: Mapping[str, tuple[str, str]] = {
    "c": ("C", "17 of 17"), "c#": ("C#", "21 of 30"), "c++": ("C++", "28 of 53"), "java": ("Java", "52 of 58"),
    "javascript": ("JavaScript", "33 of 34"), "python": ("Python", "77 of 90"),
    "typescript": ("TypeScript", "10 of 12"),
}  # fmt: skip
"""Of the issues that need a build, those that were built, by language; both cohorts together."""
PEOPLE: Mapping[str, str] = {
    "conditions that people call accurate": "86.3 % of 663",
    "issues whose conditions they call complete": "65.7 %",
}
"""By labels; `codechat audit` asks for them."""


@dataclass
class IssueFunnel:
    """Counts items as they end. `order` are the stages; items that came through have passed those up to `until`."""

    order: Sequence[str]
    until: str | None
    counts: Counter[str] = field(default_factory=Counter)
    needed: Counter[str] = field(default_factory=Counter)
    built: Counter[str] = field(default_factory=Counter)
    chosen: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def add(self, data: Mapping[str, Any], stage: str, reason: str) -> None:
        """See `codechat.run.construct.Funnel`."""
        repository, last = str(data.get("repository", "")), self.until or self.order[-1]
        passed = self.order.index(stage) - 1 if stage else self.order.index(last)
        if not repository:  # a language, or a slice of a search
            return
        if stage == "repositories":
            self.counts["repositories looked at"] += 1
            return
        self.chosen.add(repository)
        if "number" not in data:
            return
        self.counts["issues"] += 1
        self.counts["issues filtered"] += passed >= self.order.index("messages")
        if data.get("needs_build"):
            self.needed[data["language"]] += 1
            self.built[data["language"]] += bool(data.get("dockerfile"))
        if not stage and last == self.order[-1]:
            self.counts["issues kept"] += 1
            self.kept.add(repository)

    def table(self, calls: int) -> list[tuple[str, ...]]:
        """See `codechat.run.construct.Funnel`."""
        self.counts["repositories looked at"] += len(self.chosen)
        own = {
            **self.counts,
            "repositories chosen": len(self.chosen),
            "a build is needed": self.needed.total(),
            "built": self.built.total(),
            "their repositories": len(self.kept),
            "calls of models": calls,
        }
        rows = [HEADS, *((name, f"{own.get(name, 0):,}", *paper) for name, paper in PAPER.items())]
        for tag, (name, paper) in BUILT.items():
            if self.needed[tag]:
                rows.append((f"built in {name}", f"{self.built[tag]:,} of {self.needed[tag]:,}", "", "", paper))
        return [*rows, *((name, "by `codechat audit`", "", "", paper) for name, paper in PEOPLE.items())]
