"""Which repositories are looked at, and which of them are chosen (section 3.1.1 of the paper).

Per language the most starred ones are looked at. Of those with enough stars, young enough and with a chosen licence,
the ones with the most closed issues that are labelled `question` or `help wanted` are chosen; of equal scores stars
decide, then the name.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from codechat.run.construct import Dropped, Item, Kit, Outcome, Spread
from codechat.sandbox.languages import language_of
from codechat.studies.cab.construct.github import ENDS, Found, Github, Repository

SEARCHED: Mapping[str, str] = {
    "c": "C", "cpp": "C++", "csharp": "C#", "java": "Java", "javascript": "JavaScript", "python": "Python",
    "typescript": "TypeScript",
}  # fmt: skip
"""The seven languages, as GitHub calls them."""
LICENSES = {
    "0BSD", "AFL-3.0", "AGPL-3.0", "Apache-2.0", "Artistic-2.0", "BlueOak-1.0.0", "BSD-2-Clause",
    "BSD-2-Clause-Patent", "BSD-3-Clause", "BSD-3-Clause-Clear", "BSD-4-Clause", "BSL-1.0", "CC-BY-4.0",
    "CC-BY-SA-4.0", "CC0-1.0", "CECILL-2.1", "ECL-2.0", "EPL-1.0", "EPL-2.0", "EUPL-1.1", "EUPL-1.2", "GFDL-1.3",
    "GPL-2.0", "GPL-3.0", "ISC", "LGPL-2.1", "LGPL-3.0", "LPPL-1.3c", "MIT", "MIT-0", "MPL-2.0", "MS-PL", "MS-RL",
    "MulanPSL-2.0", "NCSA", "ODbL-1.0", "OFL-1.1", "OSL-3.0", "PostgreSQL", "Unlicense", "UPL-1.0", "Vim", "WTFPL",
    "Zlib",
}  # fmt: skip
"""The SPDX ids that GitHub finds in repositories."""
PERMISSIVE = ["MIT", "Apache-2.0", "ISC", "Zlib", "CC-BY-4.0", "CC0-1.0"]
"""Those that the paper names."""
LABELS = ("question", "help wanted")
EARLIEST, LATEST = "2008-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
LEAST_S = 60
"""Seconds of a slice by date that is not split any further."""


@dataclass(frozen=True)
class Rules:
    """What makes a repository fit, and how many there are to be per language."""

    min_stars: int
    created_after: str | None
    licenses: Sequence[str]
    languages: Sequence[str]
    looked_at: int
    per_language: int

    @property
    def since(self) -> str:
        """The moment after which a repository must be made."""
        return f"{self.created_after}T00:00:00Z" if self.created_after else EARLIEST

    def unfit(self, repository: Repository) -> Dropped | None:
        """Why a repository is not taken, whatever its score; None if it may be."""
        if repository.stargazers_count <= self.min_stars:
            return Dropped("too few stars", f"{repository.stargazers_count:,}")
        if self.created_after and repository.created_at <= self.since:
            return Dropped("too old", repository.created_at)
        if _tag_of(repository) not in self.languages:
            return Dropped("another language", repository.language or "none")
        if repository.spdx not in self.licenses:
            return Dropped("licence", repository.spdx or "none")
        return None


def item_of(repository: Repository, **noted: int) -> Item:
    """The item of a repository: what its issues take from it."""
    data = {
        "repository": repository.full_name,
        "language": (repository.language or "").lower(),
        "license": repository.spdx,
        "stars": repository.stargazers_count,
        "repository_created_at": repository.created_at,
        **noted,
    }
    return Item(repository.full_name, data)


async def choose(github: Github, kit: Kit, language: str, rules: Rules) -> Outcome:
    """The repositories of a language that are chosen, and those that are not, with the reasons."""
    search = _Search(github, kit, SEARCHED[language], rules)
    await search.run()
    looked_at = [*search.found.values()][: rules.looked_at]
    dropped = [(item_of(each), why) for each in looked_at if (why := rules.unfit(each))]
    fit = [each for each in looked_at if not rules.unfit(each)]
    scores = await asyncio.gather(*(_score(github, kit, each) for each in fit))
    ranked = sorted(
        zip(fit, scores, strict=True), key=lambda pair: (-pair[1], -pair[0].stargazers_count, pair[0].full_name)
    )
    chosen = [item_of(each, score=score) for each, score in ranked[: rules.per_language]]
    for place, (each, score) in enumerate(ranked[rules.per_language :], rules.per_language + 1):
        dropped.append((item_of(each, score=score), Dropped("not chosen", f"place {place}, score {score}")))
    dropped += [(Item(f"{language}: {cut}", {"language": language}), Dropped("slice cut", cut)) for cut in search.cut]
    return Spread(chosen, dropped) if chosen or dropped else Dropped("no repository")


async def _score(github: Github, kit: Kit, repository: Repository) -> int:
    """The closed issues with either label; one with both counts twice, as in the paper's sum."""
    queries = [f'repo:{repository.full_name} is:issue is:closed label:"{label}"' for label in LABELS]
    return sum([await github.count(kit, query) for query in queries])


def _tag_of(repository: Repository) -> str:
    known = {name: tag for tag, name in SEARCHED.items()}
    return known.get(repository.language or "", "")


@dataclass
class _Search:
    """Looks for the most starred repositories of a language. A search shows a thousand results at most.

    What is beyond them is searched for by the stars of the last one; if all of them have as many, by slices of time.
    A slice that is still longer is `cut`, in words.
    """

    github: Github
    kit: Kit
    language: str
    rules: Rules
    found: dict[str, Repository] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)

    async def run(self) -> None:
        """Look until there are enough, or no more."""
        low, high = self.rules.min_stars + 1, ""
        while len(self.found) < self.rules.looked_at:
            slice_ = await self._slice(f"stars:{low}..{high}" if high else f"stars:>={low}")
            if slice_.total <= len(slice_.items) or not slice_.items:
                return
            last = slice_.items[-1].stargazers_count
            if slice_.items[0].stargazers_count == last:
                await self._by_date(last, self.rules.since, LATEST)
                last -= 1
            if last < low:
                return
            high = str(last)

    async def _by_date(self, stars: int, since: str, until: str) -> None:
        """Look among those with so many stars, in halves of the time if there are too many."""
        slice_ = await self._slice(f"stars:{stars}..{stars}", f"created:{since}..{until}")
        if slice_.total <= len(slice_.items):
            return
        first, last = (datetime.fromisoformat(each) for each in (since, until))
        if (last - first).total_seconds() <= LEAST_S:
            self.cut.append(f"stars:{stars} created:{since}..{until} has {slice_.total:,} results, {ENDS:,} are shown")
            return
        middle = (first + (last - first) / 2).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await self._by_date(stars, since, middle)
        await self._by_date(stars, middle, until)

    async def _slice(self, *terms: str) -> Found[Repository]:
        """The repositories that a search shows, which are noted, and how many it has."""
        created = [] if any(term.startswith("created:") for term in terms) else [f"created:>{self.rules.since}"]
        query = " ".join([f'language:"{self.language}"', *terms, *created])
        most = ENDS if self.found else min(ENDS, self.rules.looked_at)
        found = await self.github.repositories(self.kit, query, most)
        for each in found.items:
            self.found.setdefault(each.full_name, each)
        return found


def tags_of(languages: Iterable[str]) -> list[str]:
    """The tags of languages in any spelling. Raises `ValueError` for another than the seven."""
    found = []
    for name in languages:
        tag = language_of(name).names[0]
        if tag not in SEARCHED:
            raise ValueError(f"'{name}' is none of {', '.join(SEARCHED)}")
        found.append(tag)
    return list(dict.fromkeys(found))
