"""The choice of repositories (section 3.1.1 of the paper), and the funnel: counts next to the paper's figures.

Per language the most starred ones are looked at. Of the young ones with enough stars and a chosen licence, the ones
with the most closed issues that are labelled `question` or `help wanted` are chosen; of equal scores stars decide, then
the name.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator

from codechat.base.config import original_option
from codechat.run.construct import Dropped, Item, Kit, Outcome, RecipeConfig, Spread
from codechat.sandbox.languages import language_of
from codechat.studies.cab.construct.github import ENDS, Github, Repository

SEARCHED: Mapping[str, str] = {
    "c": "C", "cpp": "C++", "csharp": "C#", "java": "Java", "javascript": "JavaScript", "python": "Python",
    "typescript": "TypeScript",
}  # fmt: skip
"""The seven languages, as GitHub calls them."""
PERMISSIVE = ["MIT", "Apache-2.0", "ISC", "Zlib", "CC-BY-4.0", "CC0-1.0"]  # the paper's licences
LABELS = ("question", "help wanted")
EARLIEST = "2008-01-01T00:00:00Z"


def tags_of(languages: Iterable[str]) -> list[str]:
    """The tags of languages in any spelling. Raises `ValueError` for another than the seven."""
    tags = {language_of(name).names[0]: name for name in languages}
    for tag, name in tags.items():
        if tag not in SEARCHED:
            raise ValueError(f"'{name}' is none of {', '.join(SEARCHED)}")
    return [*tags]


class Rules(RecipeConfig):
    """The options of `recipe=issues` that choose repositories."""

    languages: Annotated[list[str], AfterValidator(tags_of)] = original_option(
        [*SEARCHED], "languages of repositories, in any spelling", min_length=1
    )
    licenses: list[str] = original_option(PERMISSIVE, "licences of repositories, by their SPDX ids", min_length=1)
    min_stars: int = original_option(10, "stars of a repository: strictly more than these", ge=0)
    created_after: Annotated[str, AfterValidator(lambda day: date.fromisoformat(day).isoformat())] | None = (
        original_option("2024-11-01", "repositories made after this day; null: of any age")
    )
    looked_at: int = original_option(500, "most starred repositories of a language that are looked at", ge=1, le=ENDS)
    per_language: int = original_option(100, "repositories of a language that are chosen", ge=1)

    @property
    def since(self) -> str:
        """The time after which a repository must be made."""
        return f"{self.created_after}T00:00:00Z" if self.created_after else EARLIEST

    def unfit(self, repository: Repository) -> Dropped | None:
        """The reason against a repository of any score; None if there is none."""
        if repository.stargazers_count <= self.min_stars:
            return Dropped("too few stars", f"{repository.stargazers_count:,}")
        if self.created_after and repository.created_at <= self.since:
            return Dropped("too old", repository.created_at)
        if {name: tag for tag, name in SEARCHED.items()}.get(repository.language or "") not in self.languages:
            return Dropped("another language", repository.language or "none")
        if repository.spdx not in self.licenses:
            return Dropped("licence", repository.spdx or "none")
        return None


def item_of(repository: Repository, **noted: int) -> Item:
    """The item of a repository: the fields that its issues inherit."""
    data = {
        "repository": repository.full_name,
        "language": (repository.language or "").lower(),
        "license": repository.spdx or "",
        "stars": repository.stargazers_count,
        "repository_created_at": repository.created_at,
        **noted,
    }
    return Item(repository.full_name, data)


async def choose(github: Github, kit: Kit, language: str, rules: Rules) -> Outcome:
    """The chosen repositories of a language, and the others with the reasons."""
    terms = f'language:"{SEARCHED[language]}" stars:>={rules.min_stars + 1} created:>{rules.since}'
    looked_at = {each.full_name: each for each in await github.repositories(kit, terms, rules.looked_at)}.values()
    dropped = [(item_of(each), why) for each in looked_at if (why := rules.unfit(each))]
    fit = [each for each in looked_at if not rules.unfit(each)]
    scores = await asyncio.gather(*(_score(github, kit, each) for each in fit))
    ranked = sorted(
        zip(fit, scores, strict=True), key=lambda pair: (-pair[1], -pair[0].stargazers_count, pair[0].full_name)
    )
    chosen = [item_of(each, score=score) for each, score in ranked[: rules.per_language]]
    for place, (each, score) in enumerate(ranked[rules.per_language :], rules.per_language + 1):
        dropped.append((item_of(each, score=score), Dropped("not chosen", f"place {place}, score {score}")))
    return Spread(chosen, dropped) if chosen or dropped else Dropped("no repository")


async def _score(github: Github, kit: Kit, repository: Repository) -> int:
    """The closed issues with either label. An issue with both counts twice, as in the paper's sum."""
    queries = [f'repo:{repository.full_name} is:issue is:closed label:"{label}"' for label in LABELS]
    return sum([await github.count(kit, query) for query in queries])


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
"""The built issues among the ones that need a build, by language; both cohorts together."""
PEOPLE: Mapping[str, str] = {
    "conditions that people call accurate": "86.3 % of 663",
    "issues whose conditions they call complete": "65.7 %",
}
"""By labels, which `codechat audit` collects."""


@dataclass
class IssueFunnel:
    """Counts items as they end. `order` are the stages; items that came through have passed all up to `until`."""

    order: Sequence[str]
    until: str | None
    counts: Counter[str] = field(default_factory=Counter)
    needed: Counter[str] = field(default_factory=Counter)
    built: Counter[str] = field(default_factory=Counter)
    chosen: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)

    def add(self, data: Mapping[str, Any], stage: str, reason: str) -> None:
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
