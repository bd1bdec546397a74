"""GitHub asked: which repositories are chosen, limits, and what an answer means."""

import re
import time
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.models.calls.site import Page
from codechat.run.construct.run import construct
from codechat.studies.cab.construct.github import GithubConfig, _limit_of
from codechat.testing import Fault
from codechat.testing.github import GithubServer, Hosted
from support.construction import Quiet
from support.hosting import TOKEN, VARIABLE, config_of, lines, reasons, run

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
