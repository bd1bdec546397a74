"""`recipe=issues` from a stand-in for GitHub: the published issues come back, planted ones end for their reasons."""

import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from codechat import compose
from codechat import run as run_cell
from codechat.cli.app import main
from codechat.datasets import DATASETS
from codechat.run.construct.output import CARD
from codechat.studies.cab.construct.github import mask
from codechat.studies.cab.construct.quality import covers, texts_of
from codechat.studies.cab.tasks import AssistTask
from codechat.testing import RESET, TRUNCATED_JSON, Answer, Call, Fault, OpenAIServer
from codechat.testing.github import GithubServer, Hosted, HostedIssue
from support.hosting import (
    PUBLISHED,
    ROLES,
    TOKEN,
    VARIABLE,
    WITHOUT_MODELS,
    Models,
    hosted,
    lines,
    published,
    reasons,
    run,
    words_of,
)

AT, LATER = "2025-03-01T10:00:00Z", "2025-03-01T11:00:00Z"
ANSWERED = (("ann", LATER, "Set the variable."),)
FIELDS = ("number", "title", "author", "body", "comments", "commit_id", "created_at", "closed_at", "labels", "url")


def planted(number: int, **fields: object) -> HostedIssue:
    return HostedIssue(number, "It fails", "It does.", "ben", AT, **{"comments": ANSWERED, **fields})  # type: ignore[arg-type]


PLANTED = {
    90001: (planted(90001, pull=True), ("issues", "pull request")),
    90002: (planted(90002, state_reason="not_planned"), ("issues", "not completed")),
    90003: (planted(90003, state_reason=None), ("issues", "not completed")),
    90004: (planted(90004, comments=()), ("issues", "one participant")),
    90005: (planted(90005, comments=(("ben", LATER, "I found it myself."),)), ("issues", "one participant")),
    90006: (planted(90006, comments=(("stale[bot]", LATER, "This is old."),)), ("issues", "one participant")),
    90007: (HostedIssue(90007, "See", "As in https://example.org/a", "ben", AT, ANSWERED), ("issues", "media")),
    90008: (planted(90008, comments=(*ANSWERED, ("ben", LATER, "![shot](a.png)"))), ("issues", "media")),
    90009: (HostedIssue(90009, '<img src="a">', None, "ben", AT, ANSWERED), ("issues", "media")),
    90010: (planted(90010, status=410), ("issues", "gone")),
    90011: (planted(90011, status=301), ("issues", "moved")),
    90012: (HostedIssue(90012, "Old", "It is.", "ben", "2001-01-01T00:00:00Z", ANSWERED), ("commits", "no commit")),
}  # fmt: skip
SEVERAL = {
    "b/lost": (451, "blocked"), "b/renamed": (301, "moved"), "b/deleted": (404, "not found"), "b/gone": (410, "gone"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)


LOST = Counter({("filter", "personal data"): 1, ("conditions", "no condition"): 7})
"""Of the published issues: a version that reads as an IP address, and those of which no line names a condition."""


@pytest.mark.long
@pytest.mark.skipif(not PUBLISHED.is_file(), reason="needs CODECHAT_TEST_DATA")
def test_published_issues_come_back_and_planted_ones_end_for_their_reasons(tmp_path: Path) -> None:
    rows = published()
    first = "/".join(rows[0]["url"].split("/")[3:5])
    repositories = hosted(rows, {first: [issue for issue, _ in PLANTED.values()]})
    repositories += [Hosted(name, status=status) for name, (status, _) in SEVERAL.items()]
    repositories += [Hosted("b/closed", license="GPL-3.0"), Hosted("b/empty"), Hosted("b/few", stars=10)]
    limited = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{int(time.time())}"}
    faults = [
        Fault(403, {"message": "API rate limit exceeded"}, limited), Fault(429, {"message": "slow"}, {"retry-after": "1"}),
        Fault(403, {"message": "You have exceeded a secondary rate limit"}, {"retry-after": "0"}), Fault(502, "bad"),
        Fault(200, {"message": f"no list, and {TOKEN}"}), RESET, TRUNCATED_JSON,
    ]  # fmt: skip
    met: dict[str, Fault] = {}

    def fault(path: str, times: int) -> Fault | None:
        if times == 1 and "/comments" in path and len(met) < len(faults):
            met[path] = faults[len(met)]
        return met.get(path) if times == 1 else None

    conditions = {row["title"]: row["satisfaction_conditions"] for row in rows}
    models = Models(conditions)
    with GithubServer(repositories, token=TOKEN, page=3, fault=fault) as github:
        with OpenAIServer(models, models=ROLES) as server:
            yields = run(tmp_path / "o", github, server, skip=["dockerfiles"], per_language=200)
        assert len(met) == len(faults)
        asked, once = len(github.requests), dict(github.times)
        assert {path: times for path, times in once.items() if times > 1} == dict.fromkeys(met, 2)
        run(tmp_path / "o", github, None, skip=["dockerfiles"], per_language=200)
        assert len(github.requests) == asked, "a second run asks nothing that it has"
        half = run(tmp_path / "half", github, None, skip=WITHOUT_MODELS, per_language=200, until="commits")
    made = {row["url"]: row for row in lines(tmp_path / "o" / "items.jsonl")}
    issues = [row for row in rows if "/pull/" not in row["url"] and row["url"] in made]
    ended = reasons(tmp_path / "o")
    lost = {name: end for name, end in ended.items() if end in LOST}
    assert Counter(lost.values()) == LOST
    assert len(made) == len(issues) == yields["kept"] == 274 - len(lost)
    assert half["kept"] == 274
    commits = {
        row["id"]: row["data"]["commit_id"] for row in lines(tmp_path / "half" / "items.jsonl") if row["id"] not in lost
    }
    assert commits == {
        "/".join(url.split("/")[3:5]) + f"#{row['number']}": row["commit_id"] for url, row in made.items()
    }
    masked = 0
    for row in issues:
        back = made[row["url"]]
        kept = {**row, "body": row["body"] and mask(row["body"])}
        kept["comments"] = [{**each, "body": mask(each["body"])} for each in row["comments"]]
        masked += kept != row
        assert {name: back[name] for name in FIELDS} == {name: kept[name] for name in FIELDS}
        said = [line for text in texts_of(row) for line in text.splitlines()]
        named = dict.fromkeys(row["satisfaction_conditions"])
        assert back["satisfaction_conditions"] == [each for each in named if any(covers(line, each) for line in said)]
        assert (back["license"], back["repository_created_at"]) == ("MIT", "2025-01-01T00:00:00Z")
    assert masked == 1, "of one issue a key"
    expected = {f"{first}#{number}": end for number, (_, end) in PLANTED.items()}
    expected |= {name: ("issues", reason) for name, (_, reason) in SEVERAL.items()}
    expected |= {"b/closed": ("repositories", "licence"), "b/empty": ("issues", "no closed issue")}
    pulls = {end for name, end in ended.items() if name not in expected and name not in lost}
    assert {name: ended[name] for name in expected} == expected
    assert pulls == {("issues", "pull request")} and len(ended) == len(expected) + len(lost) + 32
    assert "| issues | 318 |" in (tmp_path / "o" / CARD).read_text()
    for path in (tmp_path / "o").iterdir():
        assert TOKEN.encode() not in path.read_bytes(), path
    assert not any(TOKEN in prompt for prompt in models.prompts)
    tasks = dataset(tmp_path / "o")
    assert len(tasks) == len(made) and {reply.id for reply in tasks[0].replies} == {
        reply for row in made.values() for reply in row["references"]
    }


def dataset(out: Path) -> list[AssistTask]:
    """What `dataset=cab` reads of the result."""
    values = {"benchmark": "cab", "name": "own", "path": str(out / "items.jsonl")}
    found = DATASETS.build(DATASETS.validate(values, "dataset"))
    assert all(isinstance(task, AssistTask) for task in found.tasks)
    return [task for task in found.tasks if isinstance(task, AssistTask)]


def small() -> list[Hosted]:
    said = (("ann", LATER, "Set SHOP_HOME."), ("ben", "2025-03-01T12:00:00Z", "That helps, @ann. ben@example.org"))
    issue = HostedIssue(4, "It does not start", "Nothing happens.", "ben", AT, said)
    return [Hosted("ann/shop", issues=[issue], commits=[("2025-02-01T00:00:00Z", "a" * 40)])]


@pytest.mark.long
def test_what_is_made_runs_as_a_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def answer(call: Call) -> Answer:
        said = call.messages[-1]["content"]
        if call.body["model"] == "user":
            return Answer("Thanks.\nSATISFACTION STATUS: FULLY SATISFIED\nREASON: it helps")
        judged = "TECHNICAL CORRECTNESS: CORRECT\nCONDITION 1: TRUE\nVERBOSITY: CONCISE\nVERDICT: CORRECT"
        return Answer(judged if call.body["model"] == "judge" else f"ANSWER: set it {len(said)}")

    with GithubServer(small(), token=TOKEN) as github, OpenAIServer(Models(), models=ROLES) as server:
        assert main(words_of(github, server, "skip=[dockerfiles]", "languages=[python]")) == 0
    names = ("maintainer", "user", "judge")
    with OpenAIServer(answer, models=names) as server:
        words = ["protocol=assist", "dataset=cab", "dataset.name=own", "dataset.path=out/items.jsonl", "tracking=none"]
        words += ["environment=none", "model=openai", "model@protocol.roles.user=openai"]
        words += ["model@protocol.roles.judge=openai"]
        for place, name in zip(("model", "protocol.roles.user", "protocol.roles.judge"), names, strict=True):
            words += [f"{place}.base_url={server.base_url}", f"{place}.name={name}", f"{place}.api_key_env=null"]
        outcome = run_cell(compose(words))
    assert outcome.status == 0
    session = json.loads((outcome.folder / "sessions.jsonl").read_text())
    assert (session["task_id"], session["judgement"]["verdict"]) == ("ann/shop#4", "CORRECT")


def test_addresses_are_masked(tmp_path: Path) -> None:
    with GithubServer(small(), token=TOKEN) as github:
        run(tmp_path / "o", github, skip=WITHOUT_MODELS, languages=["python"], until="commits")
    (row,) = [each["data"] for each in lines(tmp_path / "o" / "items.jsonl")]
    assert row["comments"][1]["body"] == "That helps, @ann. [e-mail address masked]"
    assert row["url"] == "https://github.com/ann/shop/issues/4" and row["license"] == "MIT"


@pytest.mark.long
def test_what_lacks_is_told_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with GithubServer(small(), token=TOKEN) as github, OpenAIServer(Models(), models=ROLES) as server:
        run(tmp_path / "half", github, skip=WITHOUT_MODELS, languages=["python"], until="issues")
        asked = len(github.requests)
        whole = (tmp_path / "half" / "items.jsonl").read_text()
        (tmp_path / "torn.jsonl").write_text(whole[:-40])
        row = json.loads(whole)
        del row["data"]["author"]
        (tmp_path / "lacking.jsonl").write_text(json.dumps(row) + "\n")
        (tmp_path / "strange.jsonl").write_text('{"repository": "no name"}\n')
        monkeypatch.setenv("PATH", "/nonexistent")
        off = "skip=[dockerfiles]"
        for words, said in (
            (["repos=repos"], "docker"), ([], "repos=DIR"),
            ([off, "languages=[cobol]"], "cobol"), ([off, "created_after=soon"], "created_after"),
            ([off, "from=torn.jsonl"], "torn.jsonl:1"),
            ([off, "from=lacking.jsonl"], "author"), ([off, "seeds=strange.jsonl"], "strange.jsonl:1"),
            ([off, "github.token_env=NO_SUCH_TOKEN"], "NO_SUCH_TOKEN"), ([off, f"github.token_env={TOKEN}!"], "name of an"),
        ):  # fmt: skip
            assert main(words_of(github, server, *words, out="new")) == 2, words
            output = capsys.readouterr()
            assert said in output.err and "Traceback" not in output.err and TOKEN not in output.err + output.out, words
            assert len(output.err.strip().splitlines()) <= 5
            assert not (tmp_path / "new").exists()
        assert (len(github.requests), server.answered) == (asked, 0)
        monkeypatch.setenv(VARIABLE, "wrong")
        assert main(words_of(github, server, off, "languages=[python]", out="new")) == 2
        assert re.search(rf"refuses .*token .*{VARIABLE} .*401", capsys.readouterr().err)
        assert server.answered == 0
