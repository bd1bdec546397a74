"""GitHub's REST interface for issues: pages, limits and lost items; and the rules for threads that need no model.

Every request is a step of the journal, so that none is repeated after an interruption. E-mail addresses and tokens are
masked before an answer is stored. Section 3.1.2 of the paper names two rules by regular expression without giving the
expressions: at least two participants, and no media. Published rows have names of files (`page1.png`) and broken
addresses (`http:// example. org`): neither is media.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
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
from codechat.base.errors import InfrastructureError, UserError
from codechat.models.calls import Limits, Policy, TransientFailure, retry_after
from codechat.models.calls.site import Page, Site
from codechat.run.construct import Kit

ENDS = 1_000  # the most results of a search
PER_PAGE = 100
SECONDARY_S = 60.0
"""The seconds to wait after a refusal for too many calls without a time (GitHub's guide to its limits)."""
REDIRECTS = (301, 302, 307, 308)
LOST: Mapping[int, str] = {
    **dict.fromkeys(REDIRECTS, "moved"), 403: "forbidden", 404: "not found", 409: "empty", 410: "gone", 451: "blocked",
}  # fmt: skip
"""The meaning of GitHub's answer for a repository or an issue, by the status."""
MEDIA: Mapping[str, re.Pattern[str]] = {
    # Both begin with rare characters, because every thread is searched.
    "an address": re.compile(r"://(?:(?<=\bhttp://)|(?<=\bhttps://))[^\s<>\"'`)]|\.(?<=\bwww\.)\w", re.IGNORECASE),
    "a picture or file": re.compile(r"!\[[^\]\n]{0,1000}\]\s?[(\[]"),
    "a tag of media": re.compile(r"<(?:img|video|audio|picture|iframe)\b", re.IGNORECASE),
}
"""Forbidden in an issue's title, body and comments."""

_MAIL = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-]|\.\w)")
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "[A-Za-z0-9]{20,255}"),
    **{"github_pat_": r"\w{20,255}", "glpat-": r"[\w-]{20,255}", "sk-": r"(?=[\w-]{0,80}\d)[\w-]{20,255}"},
    **{"hf_": "(?=[A-Za-z]{0,40}\\d|[a-z]{0,40}[A-Z])[A-Za-z0-9]{30,255}", "npm_": "[A-Za-z0-9]{36}"},
    **{"AKIA": "[0-9A-Z]{16}", "ASIA": "[0-9A-Z]{16}", "AIza": r"[\w-]{35}", "xox": r"[abeprs]-[\w-]{10,255}"},
    "eyJ": r"[\w-]{10,2000}\.eyJ[\w-]{10,4000}\.[\w-]{10,2000}",
}
"""Tokens: prefixes with patterns of the rest."""
_TOKENS = re.compile(rf"(?<![\w-])(?:{'|'.join(map(''.join, _KINDS.items()))})(?![\w-])")
_KEY = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.{0,20000}?-----END [A-Z ]{0,40}PRIVATE KEY-----", re.DOTALL)
_BEARER = re.compile(r"(?i)(\bauthorization:\s*(?:bearer|token|basic)\s+)[\w.~+/=-]{16,4000}")
MAIL_MASK, TOKEN_MASK = "[e-mail address masked]", "[token masked]"


def mask(text: str) -> str:
    """The text with marks in place of e-mail addresses and tokens."""
    if "@" in text:
        text = _MAIL.sub(MAIL_MASK, text)
    if any(map(text.__contains__, _KINDS)):  # else the pattern would be tried at each character of each thread
        text = _TOKENS.sub(TOKEN_MASK, text)
    if "-----BEGIN" in text:
        text = _KEY.sub(TOKEN_MASK, text)
    return _BEARER.sub(rf"\g<1>{TOKEN_MASK}", text) if "uthorization" in text else text


def media_in(*texts: str) -> str:
    """The name of the first media in the texts; empty if there is none."""
    return next((name for text in texts for name, pattern in MEDIA.items() if pattern.search(text)), "")


def turns_of(author: str, users: Sequence[str]) -> list[dict[str, list[int]]]:
    """The turns of a thread: neighbouring comments of one side merged, each by its number, 0 for the opening.

    A turn has the author's comments and the others' answers; the last one may lack an answer.
    """
    turns: list[dict[str, list[int]]] = [{"user": [0], "maintainer": []}]
    for number, user in enumerate(users, 1):
        if user == author and turns[-1]["maintainer"]:
            turns.append({"user": [], "maintainer": []})
        turns[-1]["user" if user == author else "maintainer"].append(number)
    return turns


Text = Annotated[str, AfterValidator(mask)]


class GithubConfig(Config):
    """The source of issues, and the speed of requests."""

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
    """The account of an author. Deleted accounts are GitHub's `ghost`."""

    login: str
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether GitHub marks it as a bot."""
        return self.type == "Bot" or self.login.endswith("[bot]")


class _Written(_Shape):
    user: Account | None = None
    created_at: str
    body: Text | None = None

    @property
    def author(self) -> Account:
        """The author's account."""
        return self.user or Account(login="ghost")


class Repository(_Shape):
    full_name: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    stargazers_count: int
    created_at: str
    language: str | None = None
    spdx: str | None = Field(None, validation_alias=AliasChoices("spdx", AliasPath("license", "spdx_id")))


class Label(_Shape):
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
        """The number of the issue; 0 if unknown."""
        number = self.issue_url.rpartition("/")[2]
        return int(number) if number.isdecimal() else 0


class Commit(_Shape):
    sha: str = Field(pattern=r"^[0-9a-f]{40}$")


class Counted(_Shape):
    """A result of a search that is only counted."""


R = TypeVar("R", bound=BaseModel)


class Found(BaseModel, Generic[R]):
    """One page: its items, the path of the next page or empty, and the total of a search's results.

    `lost` is a word for a path without content, `detail` GitHub's answer.
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
        page: Found[R] = await kit.step("github", path, form, lambda: self._ask(path, form))
        return page

    async def all(self, kit: Kit, path: str, kind: type[R], *, most: int | None = None) -> Found[R]:
        """The items of all pages together, in their order, or of the first pages that have `most`."""
        page = whole = await self.get(kit, path, kind)
        items = list(page.items)
        while page.next and (most is None or len(items) < most):
            page = await self.get(kit, page.next, kind)
            if page.lost:
                return page
            items += page.items
        return whole.model_copy(update={"items": items[:most], "next": page.next})

    async def repositories(self, kit: Kit, query: str, most: int) -> list[Repository]:
        """The results of a search for repositories, the most starred first, at most `most`."""
        order = {"sort": "stars", "order": "desc", "per_page": PER_PAGE}
        return self._searched(await self.all(kit, _search("repositories", query, order), Repository, most=most)).items

    async def count(self, kit: Kit, query: str) -> int:
        """The number of issues that a search finds."""
        return self._searched(await self.get(kit, _search("issues", query, {"per_page": 1}), Counted)).total

    def _searched(self, found: Found[R]) -> Found[R]:
        if found.lost:
            raise UserError(f"{self._config.base_url} has no search: {found.detail}", "mend github.base_url")
        return found

    async def _ask(self, path: str, form: type[Found[R]]) -> Found[R]:
        config = self._config
        if self._site is None:
            policy = Policy(config.base_url, config.timeout_s, config.call_timeout_s, config.max_retries)
            head = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
            own = {**head, "Authorization": f"Bearer {config.token()}", "User-Agent": "codechat"}
            self._site = Site(config.base_url, policy, own)
        limits, part = (self._search, "search") if path.startswith("/search/") else (self._limits, "")
        return await self._site.get(path, lambda page: self._read(page, form), limits, part=part)

    def _read(self, page: Page, form: type[Found[R]]) -> Found[R]:
        """The content of a response. Raises `TransientFailure`, and `UserError` for a refused token."""
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
        link = re.search(r'<([^<>]*)>[^,<]*rel="next"', page.headers.get("link", ""))
        if link and not link[1].startswith(f"{self._config.base_url}/"):
            raise ValueError("the next page is at another address")
        return link[1].removeprefix(self._config.base_url) if link else ""

    def _redacted(self, content: bytes) -> str:
        text = content[:2_000].decode(errors="replace")
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            text = str(json.loads(content)["message"])
        return " ".join(mask(text.replace(self._config.token(), "***")).split())[:200]

    async def aclose(self) -> None:
        site, self._site = self._site, None
        if site is not None:
            await site.aclose()


def _search(what: str, query: str, more: Mapping[str, Any]) -> str:
    return f"/search/{what}?{urlencode({'q': query, **more})}"


def _limit_of(page: Page, said: str) -> float | None:
    """The seconds to wait for a limit, with one more for clocks that differ; None if the refusal has another reason."""
    asked = retry_after(page.headers, time.time())
    if asked is not None:
        return asked
    if page.headers.get("x-ratelimit-remaining") == "0":
        try:
            return max(0.0, float(page.headers["x-ratelimit-reset"]) - time.time()) + 1.0
        except (KeyError, ValueError):
            return SECONDARY_S
    return SECONDARY_S if page.status == 429 or "rate limit" in said.casefold() else None
