"""GitHub's stand-in with the published issues and planted ones, models that answer for every role, and the command."""

import gzip
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from codechat.run.construct.recipe import ConstructionConfig, compose_construction
from codechat.run.construct.run import construct
from codechat.studies.cab.construct import IssuesConfig
from codechat.studies.cab.construct.quality import covers
from codechat.testing import Call, OpenAIServer
from codechat.testing.github import GithubServer, Hosted, HostedIssue
from support.construction import Quiet

PUBLISHED = Path(os.environ.get("CODECHAT_TEST_DATA", "")) / "cab_recent.jsonl.gz"
ROLES = ("filter", "messages", "classify", "dockerfile", "conditions")
TOKEN, VARIABLE = "ghp_" + "0123456789abcdefABCDEF" * 2, "CAB_TEST_TOKEN"
QUOTED = re.compile(r"<<<BEGIN (\w+) (\w+)>>>\n(.*?)\n<<<END \1 \2>>>", re.DOTALL)
NAMES = {"c": "C", "c++": "C++", "c#": "C#", "java": "Java", "javascript": "JavaScript", "python": "Python",
         "typescript": "TypeScript"}  # fmt: skip
KEEPS = "\n".join(f"QUESTION {number}: {'NO' if number == 6 else 'YES'}" for number in range(1, 8))


def published() -> list[dict[str, Any]]:
    """The rows of the recent file, those that are there twice once."""
    with gzip.open(PUBLISHED, "rt") as stream:
        rows = [json.loads(line) for line in stream]
    return [*{row["url"]: row for row in reversed(rows)}.values()][::-1]


def shifted(moment: str, seconds: float) -> str:
    """A moment some seconds later."""
    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def hosted(rows: Iterable[Mapping[str, Any]], more: Mapping[str, Sequence[HostedIssue]] | None = None) -> list[Hosted]:
    """The repositories of rows, whose commits are a second, and an hour, before each issue, and one with it.

    `more` are further issues of a repository.
    """
    of: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        of["/".join(row["url"].split("/")[3:5])].append(row)
    made = []
    for name, issues in of.items():
        commits = {}
        for row in issues:
            at = row["created_at"]
            commits |= {at: "f" * 40, shifted(at, -1): row["commit_id"]}
            commits.setdefault(shifted(at, -3600), "e" * 40)
        listed = [
            HostedIssue(
                row["number"], row["title"], row["body"], row["author"], row["created_at"],
                [(each["user"], each["created_at"], each["body"]) for each in row["comments"]],
                row["closed_at"], row["labels"], pull="/pull/" in row["url"], url=row["url"],
            )
            for row in issues
        ]  # fmt: skip
        listed += (more or {}).get(name, ())
        language = NAMES[issues[0]["language"]]
        made.append(Hosted(name, language, issues=listed, commits=sorted(commits.items(), reverse=True)))
    return made


@dataclass
class Models:
    """Answers for every role so that all is kept; a test replaces the roles that it wants to answer otherwise.

    `conditions` are those of an issue, by its title.
    """

    conditions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    needs_build: Callable[[str], bool] = lambda thread: False
    others: dict[str, Callable[[Call], str]] = field(default_factory=dict)
    prompts: list[str] = field(default_factory=list)

    def __call__(self, call: Call) -> str:
        role, prompt = call.body["model"], call.messages[0]["content"]
        self.prompts.append(prompt)
        if role in self.others:
            return self.others[role](call)
        thread = next(text for name, _, text in QUOTED.findall(prompt) if name == "THREAD")
        title = thread.partition("\n")[0].removeprefix("Title: ")
        if role == "filter":
            return f"Let me see.\n{KEEPS}"
        if role == "messages":
            return json.dumps({"remove": []})
        if role == "classify":
            return "BUILD: NEEDED" if self.needs_build(thread) else "BUILD: NOT NEEDED"
        if role == "dockerfile":
            return "FROM tiny\nCOPY . .\n"
        named = self.conditions.get(title, [f"Says what helps: {max(thread.splitlines(), key=len)[:60]}"])
        said = [title, *(line for line in thread.splitlines()[2:] if not re.match(r"\[\d+\] ", line))]
        fit = [(each, next((line for line in said if covers(line, each)), title)) for each in named]
        return json.dumps({"conditions": [{"condition": each, "evidence": evidence} for each, evidence in fit]})


def words_of(github: GithubServer | None, models: OpenAIServer | None, *more: str, out: str = "out") -> list[str]:
    """The words of the command."""
    place = "construct.roles"
    url = models.base_url if models is not None else "http://127.0.0.1:9/v1"
    roles = [
        word for role in ROLES for word in (
            f"model@{place}.{role}=openai", f"{place}.{role}.name={role}", f"{place}.{role}.base_url={url}",
            f"{place}.{role}.api_key_env=null", f"{place}.{role}.cache=false",
        )
    ]  # fmt: skip
    at = [f"github.base_url={github.base_url}"] if github is not None else []
    own = [f"github.token_env={VARIABLE}", "github.search_per_minute=null"]
    return ["construct", "recipe=issues", f"out={out}", "tracking=none", *own, *at, *roles, *more]


@cache
def _usual() -> ConstructionConfig:
    return compose_construction(words_of(None, None)[1:])[0]


def config_of(
    out: Path, server: GithubServer | None, models: OpenAIServer | None, **options: Any
) -> ConstructionConfig:
    """The same as a config, without composing it anew; `options` are the recipe's, those of `github` and `builds` too."""
    usual = _usual()
    recipe = usual.recipe
    assert isinstance(recipe, IssuesConfig)
    url = models.base_url if models is not None else "http://127.0.0.1:9/v1"
    roles = {role: getattr(recipe.roles, role).model_copy(update={"base_url": url}) for role in ROLES}
    at = {"base_url": server.base_url} if server is not None else {}
    parts = {
        "roles": recipe.roles.model_copy(update=roles),
        "github": recipe.github.model_copy(update={**at, **options.pop("github", {})}),
        "builds": recipe.builds.model_copy(update=options.pop("builds", {})),
    }
    return usual.model_copy(update={"out": str(out), "recipe": recipe.model_copy(update={**parts, **options})})


def run(
    out: Path, server: GithubServer | None, models: OpenAIServer | None = None, **options: Any
) -> Mapping[str, Any]:
    """Run a construction that ends well; its yields."""
    outcome = construct(config_of(out, server, models, **options), {}, Quiet(), ["codechat"])
    assert outcome.status == 0, outcome.first_error
    assert outcome.yields is not None
    return outcome.yields


def reasons(out: Path) -> dict[str, tuple[str, str]]:
    """Where each dropped item ended, and why."""
    rows = lines(out / "dropped.jsonl")
    found = {row["id"]: (row["stage"], row["reason"]) for row in rows}
    assert len(found) == len(rows), "each once"
    return found


WITHOUT_MODELS = ["filter", "messages", "classify", "dockerfiles", "conditions"]


def lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
