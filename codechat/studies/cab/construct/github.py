"""GitHub's REST interface, as far as issues are made from it: pages, limits, and what is lost.

Every request is a step of the journal, so that none is repeated after an interruption. What was fetched once stays in
codechat's cache with its ETag: another construction asks for it conditionally, and GitHub counts no request that it
answers by 304. E-mail addresses and tokens are masked before anything is kept.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import urlencode

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from codechat.base.config import Config, run_option
from codechat.base.domain import Reply
from codechat.base.errors import InfrastructureError, UserError
from codechat.models.calls import Limits, Policy, TransientFailure, retry_after
from codechat.models.calls.cache import CachedQuestion, recall, settle, store
from codechat.models.calls.site import Page, Site
from codechat.run.construct import Kit
from codechat.studies.cab.construct.threads import mask

SHAPE = 1
"""The version of what is kept of an answer."""
ENDS = 1_000
"""Results after which a search shows no more."""
PER_PAGE = 100
SECONDARY_S = 60.0
"""The seconds to wait after a refusal for too many calls that names none (GitHub's guide to its limits)."""
REDIRECTS = (301, 302, 307, 308)
LOST: Mapping[int, str] = {
    **dict.fromkeys(REDIRECTS, "moved"), 403: "forbidden", 404: "not found", 409: "empty", 410: "gone", 451: "blocked",
}  # fmt: skip
"""What it means for a repository or an issue that GitHub answers so."""
Text = Annotated[str, AfterValidator(mask)]


class GithubConfig(Config):
    """Where issues come from, and how fast it is asked."""

    base_url: str = run_option("https://api.github.com", "the address of the REST interface")
    clone_url: str = run_option("https://github.com", "what repositories are cloned from, as in ADDRESS/owner/name.git")
    token_env: str = run_option("GITHUB_TOKEN", "environment variable that holds the token")
    max_concurrency: int = run_option(8, "most requests under way at once", ge=1)
    requests_per_minute: float | None = run_option(None, "most requests a minute; null: as GitHub says", gt=0)
    search_per_minute: float | None = run_option(30.0, "most searches a minute, which GitHub counts apart", gt=0)
    timeout_s: float = run_option(60.0, "seconds that end one attempt", gt=0)
    call_timeout_s: float = run_option(
        7200.0, "seconds for one request with all its waits: a limit lasts an hour", gt=0
    )
    max_retries: int = run_option(8, "how often a failed attempt is repeated", ge=0, le=20)

    @field_validator("base_url", "clone_url")
    @classmethod
    def _is_an_address(cls, value: str) -> str:
        if "://" not in value or "@" in value:
            raise ValueError("an address is needed, without a user name or a password")
        return value.rstrip("/")

    @field_validator("token_env")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if not value.isidentifier() or not value.isascii():  # not shown: it may be the token
            raise UserError(
                "construct.github.token_env is not the name of an environment variable",
                "put the token into a variable, and give its name",
            )
        return value

    def token(self) -> str:
        """The token. Raises `UserError` if the environment has none."""
        token = os.environ.get(self.token_env, "").strip()
        if not token:
            raise UserError(
                f"GitHub needs a token, and the environment variable {self.token_env} is not set",
                f"export {self.token_env}=… (it needs no right), or name another variable: github.token_env=NAME",
            )
        if not (token.isascii() and token.isprintable()):
            raise UserError(f"the environment variable {self.token_env} does not hold a token", "set it anew")
        return token


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Account(_Shape):
    """Who wrote something; a deleted account is GitHub's `ghost`."""

    login: str
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether it is no person, as far as GitHub says."""
        return self.type == "Bot" or self.login.endswith("[bot]")


GHOST = Account(login="ghost")


class _Written(_Shape):
    """What somebody wrote."""

    user: Account | None = None
    created_at: str
    body: Text | None = None

    @property
    def author(self) -> Account:
        """Who wrote it."""
        return self.user or GHOST


class License(_Shape):
    """A repository's licence by its SPDX id."""

    spdx_id: str | None = None


class Repository(_Shape):
    """A repository."""

    full_name: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    stargazers_count: int
    created_at: str
    language: str | None = None
    license: License | None = None

    @property
    def spdx(self) -> str:
        """Its licence; empty without one."""
        return (self.license and self.license.spdx_id) or ""


class Label(_Shape):
    """A label of an issue."""

    name: str


class Issue(_Written):
    """An issue, or a pull request, which GitHub lists among them."""

    number: int
    title: Text
    labels: list[Label] = []
    closed_at: str | None = None
    state: str
    state_reason: str | None = None
    pull_request: dict[str, Any] | None = None
    comments: int = 0
    html_url: str


class Comment(_Written):
    """A comment; `issue_url` ends with the number of its issue."""

    issue_url: str = ""

    @property
    def issue(self) -> int:
        """The number of its issue; 0 if GitHub does not say it."""
        number = self.issue_url.rpartition("/")[2]
        return int(number) if number.isdecimal() else 0


class Commit(_Shape):
    """A commit."""

    sha: str = Field(pattern=r"^[0-9a-f]{40}$")


class Dated(Commit):
    """A commit with the time at which it was committed, by which GitHub lists commits and `until` chooses them."""

    at: str = Field(validation_alias=AliasChoices("at", AliasPath("commit", "committer", "date")))


class Counted(_Shape):
    """A result of a search that is only counted."""


R = TypeVar("R", bound=BaseModel)


class Found(BaseModel, Generic[R]):
    """One page: its items, the path of the next one if there is any, and how many results a search has in all.

    `lost` says in a word that there is nothing at this path, `detail` how GitHub answered.
    """

    model_config = ConfigDict(frozen=True)

    items: list[R] = []
    next: str = ""
    total: int = 0
    lost: str = ""
    detail: str = ""


class Github:
    """One session's requests; belongs to an event loop until `aclose`."""

    def __init__(self, config: GithubConfig) -> None:
        self._config = config
        self._site: Site | None = None
        self._limits = Limits(config.max_concurrency, config.requests_per_minute)
        self._search = Limits(config.max_concurrency, config.search_per_minute)

    async def get(self, kit: Kit, path: str, kind: type[R]) -> Found[R]:
        """One page. Raises `InfrastructureError` if GitHub cannot be asked, `UserError` if it refuses the token."""
        form = Found[kind]  # type: ignore[valid-type]
        found: Found[R] = await kit.step("github", path, form, lambda: self._ask(path, form))
        return found

    async def all(self, kit: Kit, path: str, kind: type[R], *, most: int | None = None) -> Found[R]:
        """The items of all pages together, in their order, or of the first ones that hold `most`."""
        page = whole = await self.get(kit, path, kind)
        items = list(page.items)
        while page.next and (most is None or len(items) < most):
            page = await self.get(kit, page.next, kind)
            if page.lost:
                return page
            items += page.items
        return whole.model_copy(update={"items": items[:most], "next": page.next})

    async def repositories(self, kit: Kit, query: str, most: int) -> Found[Repository]:
        """What a search for repositories shows, the most starred first, `most` of them or all; `total` are there."""
        order = {"sort": "stars", "order": "desc", "per_page": PER_PAGE}
        return self._searched(await self.all(kit, _search("repositories", query, order), Repository, most=most))

    async def count(self, kit: Kit, query: str) -> int:
        """How many issues a search finds."""
        return self._searched(await self.get(kit, _search("issues", query, {"per_page": 1}), Counted)).total

    def _searched(self, found: Found[R]) -> Found[R]:
        if found.lost:
            raise UserError(f"{self._config.base_url} has no search: {found.detail}", "mend github.base_url")
        return found

    async def _ask(self, path: str, form: type[Found[R]]) -> Found[R]:
        """The page at a path, from the cache if GitHub says that nothing changed."""
        config = self._config
        question = CachedQuestion(config.base_url, "GitHub", {"path": path, "shape": [form.__name__, SHAPE]}, None)
        kept = recall(question)
        etag, known = json.loads(kept.text) if kept else ("", "")
        if self._site is None:
            policy = Policy(config.base_url, config.timeout_s, config.call_timeout_s, config.max_retries)
            head = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
            own = {**head, "Authorization": f"Bearer {config.token()}", "User-Agent": "codechat"}
            self._site = Site(config.base_url, policy, own)

        def read(page: Page) -> tuple[Found[R], str]:
            if page.status == 304 and known:
                return form.model_validate_json(known), ""
            return self._read(page, form), page.headers.get("etag", "") if page.status == 200 else ""

        is_search = path.startswith("/search/")
        found, new = await self._site.get(
            path,
            read,
            self._search if is_search else self._limits,
            headers={"If-None-Match": etag} if etag else None,
            part="search" if is_search else "",
        )
        if new:
            store(question, Reply(json.dumps([new, found.model_dump_json()])))
        return found

    def _read(self, page: Page, form: type[Found[R]]) -> Found[R]:
        """What a whole response means. Raises `TransientFailure`, and `UserError` for a refused token."""
        config, status = self._config, page.status
        if status == 200:
            return self._read_good(page, form)
        said = self._redacted(page.content)
        problem = InfrastructureError(f"{config.base_url}: HTTP {status}: {said}")
        if status == 401:
            raise UserError(
                f"{config.base_url} refuses the token of the environment variable {config.token_env} (HTTP 401)",
                f"make a new token, and set {config.token_env}",
            )
        if status in (403, 429) and (wait := _limit_of(page, said)) is not None:
            raise TransientFailure(problem, limited=True, after=wait)
        if status == 408 or status >= 500:
            raise TransientFailure(problem, after=retry_after(page.headers, time.time()))
        if status not in LOST:
            raise problem
        detail = f"HTTP {status}: {self._redacted(page.headers.get('location', '').encode()) or said}"
        return form(lost=LOST[status], detail=detail)

    def _read_good(self, page: Page, form: type[Found[R]]) -> Found[R]:
        place = self._config.base_url
        try:
            value = json.loads(page.content)
            whole = value if isinstance(value, dict) else {"items": value}
            items, total = whole.get("items", [whole]), whole.get("total_count", 0)
            found = form.model_validate({"items": items, "total": total, "next": self._next(page)})
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise TransientFailure(InfrastructureError(f"{place}: another shape: {where}: {first['msg']}")) from None
        except (ValueError, RecursionError) as error:
            raise TransientFailure(InfrastructureError(f"{place}: no JSON ({error})"[:300])) from None
        if whole.get("incomplete_results") is True:
            raise TransientFailure(InfrastructureError(f"{place}: the search did not finish"))
        return found

    def _next(self, page: Page) -> str:
        """The path of the next page by the header `Link`. Raises `ValueError` for one at another address."""
        link = re.search(r'<([^>]*)>[^,]*rel="next"', page.headers.get("link", ""))
        if link and not link[1].startswith(f"{self._config.base_url}/"):
            raise ValueError("the next page is at another address")
        return link[1].removeprefix(self._config.base_url) if link else ""

    def _redacted(self, content: bytes) -> str:
        """A line of an answer, without the token."""
        text = content[:2_000].decode(errors="replace")
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            text = str(json.loads(content)["message"])
        return " ".join(mask(text.replace(self._config.token(), "***")).split())[:200]

    async def aclose(self) -> None:
        """Close the connections, and write what the cache has pending."""
        site, self._site = self._site, None
        if site is not None:
            await site.aclose()
            await settle()


def _search(what: str, query: str, more: Mapping[str, Any]) -> str:
    return f"/search/{what}?{urlencode({'q': query, **more})}"


def _limit_of(page: Page, said: str) -> float | None:
    """The seconds to wait for a limit, with a moment more for clocks that differ; None if it is no limit's refusal."""
    asked = retry_after(page.headers, time.time())
    if asked is not None:
        return asked
    if page.headers.get("x-ratelimit-remaining") == "0":
        try:
            return max(0.0, float(page.headers["x-ratelimit-reset"]) - time.time()) + 1.0
        except (KeyError, ValueError):
            return SECONDARY_S
    return SECONDARY_S if page.status == 429 or "rate limit" in said.casefold() else None
