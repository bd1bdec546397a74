"""GitHub asked: which repositories are chosen, slices of a search, limits, and what an answer means."""

import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from codechat.base.errors import UserError
from codechat.models.calls.site import Page
from codechat.run.construct.run import construct
from codechat.studies.cab.construct import github as module
from codechat.studies.cab.construct.github import GithubConfig, _limit_of
from codechat.testing import Fault
from codechat.testing import github as standin
from codechat.testing.github import GithubServer, Hosted, HostedIssue
from support.constructing import Quiet
from support.hosting import TOKEN, VARIABLE, WITHOUT_MODELS, config_of, lines, reasons, run

ONLY = {"until": "repositories", "languages": ["python"]}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)


def chosen(out: Path) -> list[str]:
    return [row["id"] for row in lines(out / "items.jsonl")]


def test_scores_decide_then_stars_then_names(tmp_path: Path) -> None:
    """Scores: a 3 + 0, b 1 + 2, c 1 + 1, d 0, e 0; of a and b the stars decide, of d and e too."""
    hosted = [
        Hosted("o/a", stars=20, labelled={"question": 3}), Hosted("o/e", stars=90, labelled={"bug": 9}),
        Hosted("o/b", stars=30, labelled={"question": 1, "help wanted": 2}), Hosted("o/d", stars=90),
        Hosted("o/c", stars=99, labelled={"question": 1, "help wanted": 1}), Hosted("o/gpl", license="GPL-3.0"),
        Hosted("o/none", license=None), Hosted("o/young", created_at="2024-11-01T00:00:01Z", stars=11),
        Hosted("o/old", created_at="2024-11-01T00:00:00Z"), Hosted("o/few", stars=10), Hosted("o/java", "Java"),
    ]  # fmt: skip
    with GithubServer(hosted, token=TOKEN, page=2) as github:
        run(tmp_path / "o", github, **ONLY, per_language=4)
        asked = github.requests[:]
    assert chosen(tmp_path / "o") == ["o/b", "o/a", "o/c", "o/d"]
    assert reasons(tmp_path / "o") == {
        "o/e": ("repositories", "not chosen"), "o/young": ("repositories", "not chosen"),
        "o/gpl": ("repositories", "licence"), "o/none": ("repositories", "licence"),
    }  # fmt: skip
    assert len(asked) == len({*asked}) == 4 + 2 * 6, "pages, and two counts for each that fits"


def test_repositories_of_ones_own_choice_keep_the_rules(tmp_path: Path) -> None:
    hosted = [
        Hosted("o/few", stars=10), Hosted("o/good", stars=11), Hosted("o/old", created_at="2024-11-01T00:00:00Z"),
        Hosted("o/java", "Java"), Hosted("o/none", None), Hosted("o/gpl", license="GPL-3.0"), Hosted("o/lost", status=451),
        Hosted("o/renamed", status=301),
    ]  # fmt: skip
    seeds = tmp_path / "seeds"
    seeds.write_text("".join(f'{{"repository": "{each.name}"}}\n' for each in hosted))
    with GithubServer(hosted, token=TOKEN) as github:
        run(tmp_path / "o", github, **ONLY, seeds=str(seeds))
    assert chosen(tmp_path / "o") == ["o/good"]
    assert {name: reason for name, (_, reason) in reasons(tmp_path / "o").items()} == {
        "o/few": "too few stars", "o/old": "too old", "o/java": "another language", "o/none": "another language",
        "o/gpl": "licence", "o/lost": "blocked", "o/renamed": "moved",
    }  # fmt: skip


def test_a_search_is_split_by_stars_then_by_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten results are shown: 4 with 40 stars, 14 with 30 of two days, 5 with 20; 12 with 12 of one moment are cut."""
    monkeypatch.setattr(module, "ENDS", 10)
    monkeypatch.setattr("codechat.studies.cab.construct.repositories.ENDS", 10)
    monkeypatch.setattr(standin, "SHOWN", 10)
    made = [Hosted(f"o/a{n}", stars=40) for n in range(4)]
    made += [Hosted(f"o/b{n}", stars=30, created_at=f"2025-02-0{1 + n % 2}T00:00:00Z") for n in range(14)]
    made += [Hosted(f"o/c{n}", stars=20) for n in range(5)] + [Hosted(f"o/d{n:02}", stars=12) for n in range(12)]
    with GithubServer(made, token=TOKEN, page=4) as github:
        run(tmp_path / "o", github, **ONLY, looked_at=1000)
    found = {*chosen(tmp_path / "o")}
    ended = reasons(tmp_path / "o")
    assert found == {each.name for each in made if each.stars > 12} | {f"o/d{n:02}" for n in range(10)}
    ((name, end),) = ended.items()
    assert (
        end == ("repositories", "slice cut") and "stars:12 created:" in name and "has 12 results, 10 are shown" in name
    )


def test_only_as_many_as_wanted_are_looked_at(tmp_path: Path) -> None:
    made = [Hosted(f"o/r{number:02}", stars=99 - number) for number in range(30)]
    with GithubServer(made, token=TOKEN, page=10) as github:
        run(tmp_path / "o", github, **ONLY, looked_at=15, per_language=3)
    assert chosen(tmp_path / "o") == ["o/r00", "o/r01", "o/r02"] and len(reasons(tmp_path / "o")) == 12


@pytest.mark.parametrize(
    ("status", "headers", "said", "seconds"),
    [
        (403, {"retry-after": "7"}, "secondary", 7),
        (429, {"retry-after": "7"}, "", 7),
        (429, {}, "", 60),
        (403, {}, "You have exceeded a secondary rate limit", 60),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000000100"}, "", 101),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "999999000"}, "", 1),
        (403, {"x-ratelimit-remaining": "0"}, "", 60),
        (403, {"x-ratelimit-remaining": "12"}, "Resource not accessible", None),
    ],
)
def test_the_wait_for_a_limit(
    status: int, headers: dict[str, str], said: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000_000.0)
    assert _limit_of(Page(status, headers, b""), said) == seconds


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(422, {"message": f"no, {TOKEN}"}), r"HTTP 422: no, \*\*\*"),
        (Fault(200, [{"full_name": 3}]), "another shape"),
        (Fault(200, "[] and"), "no JSON"),
        (Fault(200, {"total_count": 1, "incomplete_results": True, "items": []}), "did not finish"),
        (Fault(200, [], {"link": '<https://elsewhere.example/a>; rel="next"'}), "another address"),
    ],
)
def test_answers_that_cannot_be_used_are_errors_of_infrastructure(tmp_path: Path, fault: Fault, said: str) -> None:
    with GithubServer([], token=TOKEN, fault=lambda path, times: fault) as github:
        config = config_of(tmp_path / "o", github, None, **ONLY, github={"max_retries": 0})
        outcome = construct(config, {}, Quiet(), ["codechat"])
    assert outcome.status == 3
    assert re.search(said, outcome.first_error) and TOKEN not in outcome.first_error


def test_another_address_gets_no_token_and_a_wrong_one_is_the_users_mistake(tmp_path: Path) -> None:
    with GithubServer([Hosted("o/a")], token="other") as github, pytest.raises(UserError, match="refuses the token"):
        run(tmp_path / "o", github, **ONLY)
    for option, value in (("base_url", "https://me:secret@host"), ("base_url", "host"), ("token_env", "ghp_1-2")):
        with pytest.raises((UserError, ValueError)) as refused:
            GithubConfig.model_validate({option: value})
        assert "ghp_1" not in str(refused.value)


def with_issues(name: str, apart: int) -> Hosted:
    """Twelve issues, opened at noon every so many days, and a commit at six and at noon every day."""
    began, said = datetime(2025, 3, 1), (("ann", "2025-09-01T10:00:00Z", "Set the variable."),)

    def at(day: int, hour: int) -> str:
        return f"{began + timedelta(days=day, hours=hour):%Y-%m-%dT%H:%M:%SZ}"

    issues = [HostedIssue(n, "It fails", "It does.", "ben", at(n * apart, 12), said) for n in range(12)]
    commits = [(at(day, hour), f"{day:038}{hour:02}") for day in range(12 * apart) for hour in (6, 12)]
    return Hosted(name, issues=issues, commits=sorted(commits, reverse=True))


def test_commits_come_by_page_while_that_takes_fewer_requests(tmp_path: Path) -> None:
    """A page has four commits: those of two issues a day apart, and of one if they are further apart."""
    hosted = [with_issues("o/often", 1), with_issues("o/seldom", 3)]
    with GithubServer(hosted, token=TOKEN, page=4) as github:
        options: dict[str, Any] = {"languages": ["python"], "skip": WITHOUT_MODELS}
        run(tmp_path / "o", github, **options, until="issues")
        run(tmp_path / "o", github, **options, until="commits")
        asked = [path for path in github.requests if "/commits?" in path]
        assert {*github.times.values()} == {1}, "none is asked for twice"
    by_page = [path for path in asked if path.endswith("per_page=100")]
    assert sum("o/often" in path for path in by_page) == sum("o/often" in path for path in asked) == 6
    assert sum("o/seldom" in path for path in by_page) == 1 and sum("o/seldom" in path for path in asked) == 12
    made = {row["id"]: row["data"]["commit_id"] for row in lines(tmp_path / "o" / "items.jsonl")}
    assert made == {
        f"{each.name}#{n}": f"{n * apart:038}06" for each, apart in zip(hosted, (1, 3), strict=True) for n in range(12)
    }
