"""Construction of CodeAssistBench rows: from repositories of GitHub to issues with a thread, a commit, a Dockerfile
where a build is needed, and the conditions that satisfy the user (section 3.1 of the paper, appendices A.1 to A.4).

`github.py` asks GitHub and has the rules for threads, `repositories.py` chooses repositories and has the funnel,
`roles.py` asks models and builds Dockerfiles, `quality.py` finds personal data and duplicates.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codechat.base.config import original_option, place_option
from codechat.base.errors import UserError
from codechat.base.texts import problem_of_name
from codechat.run.construct import RECIPES, Dropped, Item, Kept, Kit, Outcome, Recipe, Spread, Stage, read_rows
from codechat.run.protocols import Ask
from codechat.studies.cab.construct import github
from codechat.studies.cab.construct.github import PER_PAGE, Comment, Found, Github, GithubConfig, Issue, media_in
from codechat.studies.cab.construct.quality import duplicates, personal_in, texts_of
from codechat.studies.cab.construct.repositories import IssueFunnel, Rules, choose, item_of
from codechat.studies.cab.construct.roles import Asking, Builds, Extracted, IssuesPrompts, IssuesRoles, Removed, founded
from codechat.studies.cab.environments.docker import DockerConfig
from codechat.studies.cab.tasks import IssueRow, replies_in

UNDECIDED = "undecided"
STAGES = {name: name for name in ("filter", "messages", "classify")}
STAGES |= {"dockerfile": "dockerfiles", "conditions": "conditions"}  # of each role
FIELDS = ("repository", "language", "number", "url", "title", "body", "author", "created_at", "comments")
PASSED = 0.13  # the paper's share of issues that pass the filter


class IssuesConfig(Rules):
    kind: Literal["issues"] = original_option("issues", "which recipe")
    candidates: int = original_option(5, "Dockerfiles that are written before one is repaired", ge=1)
    repairs: int = original_option(3, "repairs of the last one if none builds", ge=0)
    repos: str | None = place_option(
        None, "the folder of clones for builds; missing ones are cloned into it", min_length=1
    )
    builds: DockerConfig = original_option(DockerConfig(), "what builds may do and take")
    github: GithubConfig = original_option(GithubConfig(), "where issues come from")
    roles: IssuesRoles = original_option(..., "who decides and writes")
    prompts: IssuesPrompts = original_option(..., "each as a text or @FILE")


class RepositoryRow(BaseModel):
    """A line of `seeds=FILE`: a chosen repository."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")


class Issues:
    """The stages. The journal has all their requests and builds, so that each stage can be run again."""

    def __init__(self, config: IssuesConfig) -> None:
        self._config = config
        self._github = Github(config.github)
        self._builds = Builds(config.builds, config.repos, config.github.clone_url, config.candidates, config.repairs)
        self._read = False  # whether the items of a file were checked
        self.aclose = self._github.aclose

    def seeds(self) -> Sequence[Item]:
        config = self._config
        if config.seeds is None:
            return [Item(name, {"language": name}) for name in config.languages]
        remedy = 'a line is {"repository": "owner/name"}'
        rows = read_rows(Path(config.seeds).expanduser(), RepositoryRow, "seeds", remedy)
        return [Item(row.repository, {"repository": row.repository}) for _, row in rows]

    def need_token(self, items: Sequence[Item]) -> None:
        """Raise `UserError` if GitHub will be asked, and there is no token."""
        if any("comments" not in item.data for item in items):
            self._config.github.token()

    def need_commits(self, items: Sequence[Item]) -> None:
        """Raise `UserError` for items that are no issues, and if GitHub is asked for commits without a token."""
        self.need_issues(items)
        if any(not item.data.get("commit_id") for item in items):
            self._config.github.token()

    def need_issues(self, items: Sequence[Item]) -> None:
        """Raise `UserError` if an item from a file is no issue."""
        if self._read or self._config.rows is None:
            return
        self._read = True
        for item in items:
            if "comments" not in item.data and item.data.keys() >= {"repository_created_at"}:
                continue  # a repository, whose issues `issues` will take
            if lacking := [name for name in FIELDS if name not in item.data]:
                problem = f"{self._config.rows}: the item '{item.id}' is no issue: it lacks {', '.join(lacking)}"
                raise UserError(problem, "give what until=STAGE left, or these fields: docs/codeassist.md")

    def need_engine(self, items: Sequence[Item]) -> None:
        """Raise `UserError` if no Dockerfile could be built, or no repository cloned."""
        self._builds.check()

    async def repositories(self, item: Item, kit: Kit) -> Outcome:
        """A language becomes its chosen repositories; a repository of the user is looked up."""
        if "comments" in item.data or "repository_created_at" in item.data:
            return Kept(item)
        if "repository" not in item.data:
            return await choose(self._github, kit, item.data["language"], self._config)
        found = await self._github.get(kit, f"/repos/{item.data['repository']}", github.Repository)
        if found.lost:
            return Dropped(found.lost, found.detail)
        return self._config.unfit(found.items[0]) or Kept(item.having(**item_of(found.items[0]).data))

    async def issues(self, item: Item, kit: Kit) -> Outcome:
        """A repository becomes its closed issues with their threads; issues that break a rule end here."""
        if "comments" in item.data:
            return Kept(item)
        name = item.data["repository"]
        query = f"state=closed&sort=created&direction=asc&per_page={PER_PAGE}"
        listed = await self._github.all(kit, f"/repos/{name}/issues?{query}", Issue)
        if listed.lost:
            return Dropped(listed.lost, listed.detail)
        if not listed.items:
            return Dropped("no closed issue")
        fit = [issue for issue in listed.items if _unfit(issue) is None]
        threads = await self._threads(kit, name, fit, sum(issue.comments for issue in listed.items))
        if isinstance(threads, Dropped):
            return threads
        made = [_issue(item, issue, threads.get(issue.number)) for issue in listed.items]
        kept = [issue.having(commit_id="") for issue, why in made if why is None]
        return Spread(kept, [(issue, why) for issue, why in made if why is not None])

    async def _threads(
        self, kit: Kit, name: str, issues: Sequence[Issue], comments: int
    ) -> Mapping[int, Found[Comment]] | Dropped:
        """The threads of issues by their numbers. `comments` counts all of closed issues and pull requests.

        The comments of the whole repository are asked for if that takes fewer requests. GitHub shows a limited number
        of pages: the rest is asked for by issue.
        """
        known: dict[int, list[Comment]] = {}
        if len(issues) > comments / PER_PAGE + 1:
            query = f"sort=created&direction=asc&per_page={PER_PAGE}"
            whole = await self._github.all(kit, f"/repos/{name}/issues/comments?{query}", Comment)
            if whole.lost:
                return Dropped(whole.lost, whole.detail)
            for each in whole.items:
                known.setdefault(each.issue, []).append(each)

        async def thread(issue: Issue) -> Found[Comment]:
            if len(known.get(issue.number, ())) == issue.comments:
                return Found[Comment](items=known[issue.number])
            path = f"/repos/{name}/issues/{issue.number}/comments?per_page={PER_PAGE}"
            return await self._github.all(kit, path, Comment)

        found = await asyncio.gather(*map(thread, issues))
        return {issue.number: each for issue, each in zip(issues, found, strict=True)}

    async def turns(self, item: Item, kit: Kit) -> Outcome:
        """Neighbouring comments of one side are one turn; without an answer of another user there is no turn."""
        turns = github.turns_of(item.data["author"], [each["user"] for each in item.data["comments"]])
        return Kept(item.having(turns=turns)) if turns[0]["maintainer"] else Dropped("no answer")

    async def commits(self, item: Item, kit: Kit) -> Outcome:
        """The last commit of the default branch before the issue was opened."""
        if item.data.get("commit_id"):
            return Kept(item)
        until, name = _before(item), item.data["repository"]
        found = await self._github.get(kit, f"/repos/{name}/commits?until={until}&per_page=1", github.Commit)
        if found.lost:
            return Dropped(found.lost, found.detail)
        if not found.items:
            return Dropped("no commit", f"none before {until}")
        return Kept(item.having(commit_id=found.items[0].sha))

    async def filter(self, item: Item, kit: Kit) -> Outcome:
        """The seven questions (appendix A.1); personal data that patterns find end the issue before."""
        if found := next(filter(None, map(personal_in, texts_of(item.data))), ""):
            return Dropped("personal data", found)
        wrong = await self._asking(item, kit).criteria()
        if wrong is None:
            return Dropped(UNDECIDED, "the seven questions")
        return Dropped(wrong[0], ", ".join(wrong[1:])) if wrong else Kept(item)

    async def messages(self, item: Item, kit: Kit) -> Outcome:
        """Useless comments are taken out (appendix A.2)."""
        comments = item.data["comments"]
        removed = await self._asking(item, kit).empty_comments(len(comments))
        if removed is None:
            return Dropped(UNDECIDED, "which comments say nothing")
        kept = [each for number, each in enumerate(comments, 1) if number not in removed]
        if {each["user"] for each in kept} <= {item.data["author"]}:
            return Dropped("no answer", "without the comments that say nothing")
        return Kept(item.having(comments=kept).noting(**({"removed_comments": removed} if removed else {})))

    async def classify(self, item: Item, kit: Kit) -> Outcome:
        """Whether the issue needs a build."""
        needed = await self._asking(item, kit).needs_build()
        return Dropped(UNDECIDED, "is a build needed?") if needed is None else Kept(item.having(needs_build=needed))

    async def dockerfiles(self, item: Item, kit: Kit) -> Outcome:
        """An issue that needs a build gets a Dockerfile that builds (appendix A.3), or ends here."""
        if not item.data.get("needs_build"):
            return Kept(item)
        return await self._builds.make(item, kit, self._asking(item, kit))

    async def conditions(self, item: Item, kit: Kit) -> Outcome:
        """Satisfaction conditions, each with evidence from the thread (appendix A.4)."""
        filled = await self._asking(item, kit).conditions()
        if filled.value is None:
            return Dropped(UNDECIDED, f"conditions: {filled.problem}")
        kept, all_ = founded(filled.value.conditions, item.data), filled.value.conditions
        if not kept:
            return Dropped("no condition", f"{len(all_)} without evidence in the thread" if all_ else "none given")
        made = item.having(satisfaction_conditions=[each.condition for each in kept])
        return Kept(made.noting(evidence=[each.evidence for each in kept], unfounded=len(all_) - len(kept)))

    def _asking(self, item: Item, kit: Kit) -> Asking:
        return Asking(kit, self._config.prompts, item.data, network=self._config.builds.build_network)

    async def references(self, item: Item, kit: Kit) -> Outcome:
        """The ids of the replies that show the tone (`references_for`). Drops rows that `dataset=cab` cannot read."""
        try:
            if problem := problem_of_name(item.id):
                raise ValueError(f"its id {problem}")
            task = IssueRow.model_validate(row_of(item)).task()
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            return Dropped("no row", f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        return Kept(item.having(references=[reply.id for reply in replies_in(task)]))

    def asks(self, item: Item) -> Iterator[Ask]:
        """The expected calls for an item: in the paper, a repository has 33 issues, of which four pass the filter;
        one of eleven needs a build, which takes two Dockerfiles."""
        config = self._config
        issues = 1.0 if "comments" in item.data else 33.0 * (1 if "repository" in item.data else config.per_language)
        passed = issues if "comments" in item.data else issues * PASSED
        thread = 3_000
        for role, share, more, reply in (
            ("filter", issues, 2_200, 120), ("messages", passed, 900, 60), ("classify", passed, 900, 200),
            ("dockerfile", passed * 2 / 11, 9_000, 1_500), ("conditions", passed, 1_500, 900),
        ):  # fmt: skip
            if STAGES[role] not in config.skip and round(share):
                yield Ask(role, 0, thread + more, reply, times=round(share))


def _issue(item: Item, issue: Issue, thread: Found[Comment] | None) -> tuple[Item, Dropped | None]:
    """The item of an issue with its thread, which is None for an unfit issue, and the reason to drop it."""
    data = {key: value for key, value in item.data.items() if key not in ("stars", "score")}
    data |= {"number": issue.number, "title": issue.title, "body": issue.body, "url": issue.html_url}
    data |= {"created_at": issue.created_at, "closed_at": issue.closed_at, "author": issue.author.login}
    made = Item(f"{data['repository']}#{issue.number}", {**data, "labels": [label.name for label in issue.labels]})
    if thread is None:
        return made, _unfit(issue)
    if thread.lost:
        return made, Dropped(thread.lost, thread.detail)
    people = {each.login for each in (issue.author, *(c.author for c in thread.items)) if not each.is_bot}
    made = made.having(
        comments=[
            {"user": each.author.login, "created_at": each.created_at, "body": each.body or ""} for each in thread.items
        ]
    )
    if len(people) < 2:
        return made, Dropped("one participant")
    media = media_in(*(each.body or "" for each in thread.items))
    return made, Dropped("media", f"{media} in a comment") if media else None


def _before(issue: Item) -> str:
    """The last second before an issue was opened."""
    opened = datetime.fromisoformat(issue.data["created_at"])
    return (opened - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unfit(issue: Issue) -> Dropped | None:
    """The reason to drop an issue before its thread is known; None if there is none."""
    if issue.pull_request is not None:
        return Dropped("pull request")
    if issue.state != "closed" or issue.state_reason != "completed":
        return Dropped("not completed", issue.state_reason or "GitHub says no reason")
    if not issue.comments:
        return Dropped("one participant", "no comment")
    if media := media_in(issue.title, issue.body or ""):
        return Dropped("media", f"{media} in the issue")
    return None


def row_of(item: Item) -> dict[str, Any]:
    """The line of an issue for `dataset=cab`, with licence and address."""
    needed = item.data.get("needs_build")
    category = "Needs build environment" if needed else "Does not need build environment"
    return {
        "dockerfile": None,
        "satisfaction_conditions": [],
        **{name: value for name, value in item.data.items() if name != "needs_build"},
        **({} if needed is None else {"_classification": {"category": category}}),
    }


@RECIPES.register("issues", IssuesConfig)
def issues(config: IssuesConfig) -> Recipe:
    """Issues of repositories with threads, commits, Dockerfiles and conditions, from GitHub (CodeAssistBench)."""
    made = Issues(config)
    stages = [
        Stage("repositories", made.repositories, check=made.need_token),
        Stage("issues", made.issues, check=made.need_token),
        Stage("duplicates", together=duplicates, check=made.need_issues),
        Stage("filter", made.filter, check=made.need_issues),
        Stage("messages", made.messages, check=made.need_issues),
        Stage("turns", made.turns, check=made.need_issues),
        Stage("commits", made.commits, check=made.need_commits),
        Stage("classify", made.classify, check=made.need_issues),
        Stage("dockerfiles", made.dockerfiles, check=made.need_engine),
        Stage("conditions", made.conditions, check=made.need_issues),
        Stage("references", made.references, check=made.need_issues),
    ]
    names = [stage.name for stage in stages]
    before = names[: names.index(config.until) + 1] if config.until in names else names
    asked = [role for role, stage in STAGES.items() if stage in before and stage not in config.skip]
    return Recipe(
        seeds=made.seeds,
        stages=stages,
        row=row_of,
        roles=asked,
        schemas=(Removed, Extracted),
        asks=made.asks,
        funnel=lambda: IssueFunnel(names, config.until),
        aclose=made.aclose,
        cell=(
            *("dataset=cab", "protocol=assist", f"dataset.repos={config.repos or 'DIR'}"),
            *(f"model@protocol.roles.{role}=NAME" for role in ("user", "judge")),  # the defaults know the starter alone
        ),
    )
