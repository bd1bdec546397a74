"""An HTTP server on loopback with the part of GitHub's REST interface that reads issues.

As a command, `python -m codechat.testing.github`, it has one small repository, for `recipe=issues_rehearsed`.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

from codechat.base.errors import UserError
from codechat.testing.server import Fault, OpenAIServer

T = TypeVar("T")
PORT = 8017
SHOWN = 1_000
"""Most results of a search."""
_TERM = re.compile(r'(\w+):(?:"([^"]*)"|(\S+))')


@dataclass(frozen=True)
class HostedIssue:
    """An issue or a pull request with its comments: who (`name[bot]` is a bot, None a deleted account), when, what.

    `status`: HTTP status instead of its comments, such as 410.
    """

    number: int
    title: str
    body: str | None
    author: str | None
    created_at: str
    comments: Sequence[tuple[str | None, str, str]] = ()
    closed_at: str | None = "2025-06-01T00:00:00Z"
    labels: Sequence[str] = ()
    state_reason: str | None = "completed"
    pull: bool = False
    status: int = 200
    url: str = ""


@dataclass(frozen=True)
class Hosted:
    """A repository. `labelled` counts its closed issues by label, `commits` are times and ids, the newest first.

    `status`: HTTP status of every answer about it, such as 451.
    """

    name: str
    language: str | None = "Python"
    stars: int = 50
    created_at: str = "2025-01-01T00:00:00Z"
    license: str | None = "MIT"
    labelled: Mapping[str, int] = field(default_factory=dict)
    issues: Sequence[HostedIssue] = ()
    commits: Sequence[tuple[str, str]] = ()
    status: int = 200


class GithubServer(OpenAIServer):
    """Serves repositories. `fault` may answer a request instead, by its path and the number of its repetitions.

    A page has at most `page` items. `requests` has the path of every request. Without the right `token` the answer is
    401.
    """

    def __init__(
        self,
        repositories: Iterable[Hosted],
        *,
        token: str = "",
        page: int = 100,
        port: int = 0,
        fault: Callable[[str, int], Fault | None] = lambda path, times: None,
    ) -> None:
        super().__init__(lambda call: "", port=port)
        self.repositories = {each.name: each for each in repositories}
        self._issues = {
            name: {issue.number: issue for issue in each.issues} for name, each in self.repositories.items()
        }
        self._token, self._page, self._fault = token, page, fault
        self.requests: list[str] = []
        self.times: Counter[str] = Counter()

    @property
    def base_url(self) -> str:
        return super().base_url.removesuffix("/v1")

    async def _respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Fault:
        self.requests.append(path)
        self.times[path] += 1
        if fault := self._fault(path, self.times[path]):
            return fault
        if self._token and headers.get("authorization") != f"Bearer {self._token}":
            return Fault(401, {"message": "Bad credentials"})
        parts = urlsplit(path)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        made = self._search(parts.path, asked) or self._of_repository(parts.path, asked)
        if made.status != 200:
            return made
        return Fault(200, made.body, {**made.headers, "x-ratelimit-remaining": "4000"})

    def _search(self, path: str, asked: Mapping[str, str]) -> Fault | None:
        pairs = [(name, quoted or bare) for name, quoted, bare in _TERM.findall(asked.get("q", ""))]
        labels, terms = [value for name, value in pairs if name == "label"], dict(pairs)
        if path == "/search/issues":
            repository = self.repositories[terms["repo"]]
            count = sum(repository.labelled.get(label, 0) for label in labels)
            return Fault(200, {"total_count": count, "incomplete_results": False, "items": [{}] * min(count, 1)})
        if path != "/search/repositories":
            return None
        fitting = [each for each in self.repositories.values() if _fits(each, terms)]
        fitting.sort(key=lambda each: (-each.stars, each.name))
        page, next_ = self._cut(path, asked, fitting[:SHOWN])
        body = {"total_count": len(fitting), "incomplete_results": False, "items": [*map(_repository, page)]}
        return Fault(200, body, next_)

    def _of_repository(self, path: str, asked: Mapping[str, str]) -> Fault:
        match = re.fullmatch(r"/repos/([^/]+/[^/]+)(?:/(issues|commits)(?:/(\d+)/comments)?|(/issues/comments))?", path)
        repository = self.repositories.get(match[1]) if match else None
        if match is None or repository is None:
            return Fault(404, {"message": "Not Found"})
        if repository.status != 200:
            moved = {"location": f"{self.base_url}/repositories/1"} if repository.status == 301 else {}
            return Fault(repository.status, {"message": "not here any more"}, moved)
        if match[3] or match[4]:
            issues = [self._issues[repository.name][int(match[3])]] if match[3] else repository.issues
            return self._comments(repository.name, issues, path, asked)
        if match[2] == "issues":
            issues, next_ = self._cut(path, asked, repository.issues)
            return Fault(200, [_issue(repository, each) for each in issues], next_)
        if match[2] == "commits":
            commits = [each for each in repository.commits if each[0] <= asked.get("until", "9")]
            page, next_ = self._cut(path, asked, commits)
            return Fault(200, [{"sha": sha, "commit": {"committer": {"date": when}}} for when, sha in page], next_)
        return Fault(200, _repository(repository))

    def _comments(self, name: str, issues: Sequence[HostedIssue], path: str, asked: Mapping[str, str]) -> Fault:
        if len(issues) == 1 and issues[0].status != 200:
            return Fault(issues[0].status, {"message": "not here any more"})
        comments = [(each, issue.number) for issue in issues if issue.status == 200 for each in issue.comments]
        page, next_ = self._cut(path, asked, sorted(comments, key=lambda pair: pair[0][1]))
        at = f"{self.base_url}/repos/{name}/issues"
        listed = [
            {"user": _account(who), "created_at": when, "body": what, "issue_url": f"{at}/{number}"}
            for (who, when, what), number in page
        ]
        return Fault(200, listed, next_)

    def _cut(self, path: str, asked: Mapping[str, str], items: Sequence[T]) -> tuple[Sequence[T], dict[str, str]]:
        size, page = min(self._page, int(asked.get("per_page", 30))), int(asked.get("page", 1))
        if page * size >= len(items):
            return items[(page - 1) * size :], {}
        last = -(-len(items) // size)

        def link(number: int, name: str) -> str:
            return f'<{self.base_url}{path}?{urlencode({**asked, "page": number})}>; rel="{name}"'

        return items[(page - 1) * size : page * size], {"link": f"{link(page + 1, 'next')}, {link(last, 'last')}"}


def _fits(repository: Hosted, terms: Mapping[str, str]) -> bool:
    def within(value: Any, term: str, kind: Callable[[str], Any]) -> bool:
        if term.startswith(">="):
            return bool(value >= kind(term[2:]))
        if term.startswith(">"):
            return bool(value > kind(term[1:]))
        low, _, high = term.partition("..")
        return bool(kind(low) <= value <= kind(high or low))

    return (
        terms.get("language") == repository.language
        and within(repository.stars, terms.get("stars", ">=0"), int)
        and within(repository.created_at, terms.get("created", ">0"), str)
    )


def _repository(hosted: Hosted) -> dict[str, Any]:
    return {
        "id": 1, "full_name": hosted.name, "html_url": f"https://github.com/{hosted.name}", "fork": False,
        "stargazers_count": hosted.stars, "created_at": hosted.created_at, "language": hosted.language,
        "license": hosted.license and {"key": hosted.license.lower(), "spdx_id": hosted.license},
        "default_branch": "main", "archived": False,
    }  # fmt: skip


def _issue(repository: Hosted, issue: HostedIssue) -> dict[str, Any]:
    url = issue.url or f"https://github.com/{repository.name}/{'pull' if issue.pull else 'issues'}/{issue.number}"
    return {
        "id": issue.number, "number": issue.number, "title": issue.title, "body": issue.body, "html_url": url,
        "user": _account(issue.author), "labels": [{"id": 1, "name": name} for name in issue.labels],
        "created_at": issue.created_at, "closed_at": issue.closed_at, "comments": len(issue.comments),
        "state": "closed", "state_reason": issue.state_reason,
        **({"pull_request": {"url": url}} if issue.pull else {}),
    }  # fmt: skip


def _account(name: str | None) -> dict[str, str] | None:
    return name and {"login": name, "type": "Bot" if name.endswith("[bot]") else "User"}  # type: ignore[return-value]


def example() -> Hosted:
    """A repository with four closed issues, one of which `recipe=issues` keeps."""
    moment = "2025-03-01T10:00:00Z"
    answer = ("keeper", "2025-03-02T09:00:00Z", "The reader stops at the last newline. Add one, or update to 1.2.")
    thanks = ("asker", "2025-03-02T12:00:00Z", "Thank you!")
    more = ("asker", "2025-03-01T11:00:00Z", "It has no newline at its end.")
    issues = (
        HostedIssue(1, "A line is lost", "Of a file of three lines the last line is missing.", "asker", moment,
                    (more, answer, thanks)),
        HostedIssue(2, "No answer", "Does it read tabs?", "asker", moment),
        HostedIssue(3, "With a picture", "![shot](shot.png)", "asker", moment, (answer,)),
        HostedIssue(4, "Not planned", "Could it read audio?", "asker", moment, (answer,), state_reason="not_planned"),
    )  # fmt: skip
    return Hosted("octo/lines", labelled={"question": 3}, issues=issues, commits=(("2025-02-20T08:00:00Z", "c" * 40),))


def main() -> int:
    """Serve the example at 127.0.0.1:8017 until interrupted."""
    from codechat.testing.openai_server import served

    try:
        with served(GithubServer([example()], port=PORT), PORT) as server:
            print(f"octo/lines at {server.base_url}", flush=True)
    except UserError:
        print(f"error: port {PORT} is taken\nend what listens there", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
