"""One file each, found by entry point, with no line elsewhere: a protocol with roles and a tool, a suite of another
language, validators without tests. What they leave is tracked, reported, replayed and resumed like anything else."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codechat.testing import Answer, Call, OpenAIServer, Result, error
from support.plugins import codechat, install

pytestmark = pytest.mark.long

USED = {"prompt_tokens": 10, "completion_tokens": 4}
PRICES = "{input: 1.0, output: 10.0}"


def speak(call: Call) -> Result:
    """The model gets shorter turn by turn, the user asks for it, and the reviewer hesitates once."""
    name = call.body["model"]
    asked = len([message for message in call.messages if message["role"] == "user"])
    if name == "writer":
        return Answer("word " * (6 - 2 * asked), usage=USED)
    if name == "user":
        return Answer("Shorter, please.", usage=USED)
    if asked == 1:
        return Answer("It is hard to say.", usage=USED)
    return Answer("REASON: read both.\nVERDICT: SAME", usage=USED)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(speak, models=["writer", "user", "reviewer"]) as running:
        yield running


def tasks(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"dataset.path={path}"


def review_words(server: OpenAIServer, folder: Path) -> list[str]:
    words = ["protocol=review", "dataset=jsonl", tasks(folder, {"task_id": "text/1", "prompt": "Write about codes."})]
    for place, name in (("model", "writer"), ("protocol.roles.user", "user"), ("protocol.roles.reviewer", "reviewer")):
        words += [f"{place}.base_url={server.base_url}", f"{place}.name={name}", f"{place}.prices={PRICES}"]
    return [*words, "model=openai", "runs_dir=runs", "tracking.uri=sqlite:///store.db"]


def read(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    (cell,) = (folder / "runs").iterdir()
    lines = (cell / "sessions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], json.loads((cell / "metrics.json").read_text())


def test_a_protocol_with_two_roles_and_a_tool(tmp_path: Path, server: OpenAIServer) -> None:
    install(tmp_path, "review", ("protocol",))
    words = review_words(server, tmp_path)
    status, output = codechat(tmp_path, *words, "dry_run=true")
    assert status == 0, output
    assert [line.split()[:2] for line in output.splitlines() if line.startswith(("user", "reviewer"))] == [
        ["user", "2"],
        ["reviewer", "2"],
    ]
    status, output = codechat(tmp_path, *words)
    assert status == 0, output
    (session,), metrics = read(tmp_path)
    turns = session["turns"]
    assert [turn["words"] for turn in turns] == [4, 2, 0], "wc counted them in the sandbox"
    assert [turn["same"] for turn in turns] == [None, "SAME", "SAME"]
    assert [turn["outcome"] for turn in turns] == [None] * 3, "nothing is tested"
    assert turns[0]["usage_by_role"] == {}
    assert turns[1]["usage_by_role"]["user"]["input_tokens"] == 10
    assert turns[1]["usage_by_role"]["reviewer"]["input_tokens"] == 20, "asked again once"
    assert [call["role"] for call in turns[1]["calls"]] == ["user", "model", "reviewer"]
    assert turns[1]["calls"][2]["response"] == "VERDICT: SAME", "a decision is recorded by its answer"
    assert metrics["words"] == [4, 2, 0]
    assert metrics["tokens"]["user"] == {"input_tokens": 20, "output_tokens": 8, "cached_input_tokens": 0}
    assert metrics["cost_usd"]["reviewer"] == pytest.approx((40 * 1 + 16 * 10) / 1e6)
    assert metrics["spent_usd"]["user"] == pytest.approx((20 * 1 + 8 * 10) / 1e6)
    assert len(server.calls) == 3 + 2 + 4


def test_its_roles_count_and_are_presets_of_their_own(tmp_path: Path, server: OpenAIServer) -> None:
    install(tmp_path, "review", ("protocol",))
    words = review_words(server, tmp_path)
    status, output = codechat(tmp_path, *words, "protocol.roles.user.max_tokens=7")
    assert status == 0, output
    status, output = codechat(tmp_path, *words)
    assert status == 0, output
    assert len(list((tmp_path / "runs").iterdir())) == 2, "a role's decoding is part of the cell id"
    status, output = codechat(
        tmp_path, "protocol=review", "model@protocol.roles.user=gpt5", "protocol.roles.reviewer.name=r", "--cfg"
    )
    assert status == 0, output
    assert "name: gpt-5" in output.partition("roles:")[2]
    status, output = codechat(tmp_path, "protocol=review", "model@protocol.roles.user=echo")
    assert status == 2 and "protocol.roles.user: 'echo'" in output and "model@protocol.roles.user=" in output


def test_its_dialogues_are_replayed_by_role_and_resumed(tmp_path: Path, server: OpenAIServer) -> None:
    install(tmp_path, "review", ("protocol",))
    words = review_words(server, tmp_path)
    refusing = [True]
    server.behaviour = lambda call: (
        error(500, "out of order") if refusing[0] and call.body["model"] == "reviewer" else speak(call)
    )
    status, output = codechat(tmp_path, *words, "protocol.roles.reviewer.max_retries=0")
    assert status == 3 and "out of order" in output
    refusing[0] = False
    before = [call.body["model"] for call in server.calls].count("writer")
    status, output = codechat(tmp_path, *words, "protocol.roles.reviewer.max_retries=0")
    assert status == 0, output
    assert [call.body["model"] for call in server.calls].count("writer") == 3 and before == 2
    (cell,) = (tmp_path / "runs").iterdir()
    shutil.copytree(cell, tmp_path / "kept")
    asked = len(server.calls)
    roles = [f"model@protocol.roles.{role}=replay" for role in ("user", "reviewer")]
    paths = [
        f"{place}.path=kept/sessions.jsonl" for place in ("model", "protocol.roles.user", "protocol.roles.reviewer")
    ]
    replayed = ["protocol=review", "dataset=jsonl", words[2], "model=replay", *roles, *paths, "tracking=none"]
    status, output = codechat(tmp_path, *replayed, "runs_dir=again")
    assert status == 0, output
    assert len(server.calls) == asked
    (again,) = (tmp_path / "again").iterdir()
    first, second = (json.loads((each / "sessions.jsonl").read_text()) for each in (tmp_path / "kept", again))
    assert [turn["words"] for turn in second["turns"]] == [turn["words"] for turn in first["turns"]]
    assert [turn["response"] for turn in second["turns"]] == [turn["response"] for turn in first["turns"]]
    status, output = codechat(tmp_path, "rescore", "run=kept", "out=scored")
    assert status == 0, output
    assert {call.body["model"] for call in server.calls[asked:]} <= {"reviewer"}, "recorded replies are not asked again"
    scored = json.loads((tmp_path / "scored" / "sessions.jsonl").read_text())
    of_calls = [
        [(call["role"], call["response"]) for call in turn["calls"] if call["role"] != "model"]
        for turn in first["turns"]
    ]
    assert [[(call["role"], call["response"]) for call in turn["calls"]] for turn in scored["turns"]] == of_calls
    assert [turn["same"] for turn in scored["turns"]] == [turn["same"] for turn in first["turns"]]


PERL = '```perl\nmy ($n) = @ARGV;\nprint "ok ", 2 * $n, "\\n";\n```'
WRONG = "```perl\nwhile (1) { }\n```"


def test_a_suite_of_another_language(tmp_path: Path) -> None:
    if (perl := shutil.which("perl")) is None:
        pytest.skip("needs perl")
    install(tmp_path, "perl", ("suite",))
    row = {
        "task_id": "perl/1",
        "prompt": "Double a number in Perl.",
        "language": "perl",
        "suite": {"kind": "perl", "argument": "3", "output": "ok 6"},
        "requirements": [
            {"type": "more", "text": "Do it for 5.", "suite": {"kind": "perl", "argument": "5", "output": "ok 10"}}
        ],
    }
    words = [
        "protocol=static",
        "dataset=jsonl",
        tasks(tmp_path, row),
        "model=scripted",
        "tracking=none",
        "runs_dir=runs",
    ]
    quoted = "[" + ",".join("'" + text.replace("'", "\\'") + "'" for text in (PERL, WRONG)) + "]"
    status, output = codechat(
        tmp_path, *words, f"model.replies={quoted}", "sandbox.allow_weak=true", f"sandbox.perl={perl}"
    )
    assert status == 0, output
    (session,), _ = read(tmp_path)
    assert session["language"] == "perl"
    assert [turn["outcome"] for turn in session["turns"]] == ["pass", "timeout"]
    assert session["turns"][0]["code"].startswith("my ($n)")
    status, output = codechat(tmp_path, "dataset=jsonl", words[2], "model=echo", "judge=rules")
    assert status == 2
    assert all(name in output for name in ("judge=rules", "java, javascript, python", "perl/1"))


GO = "Here:\n```go\nfunc main() { }\n```\n"
BOTH = "```go\nfunc main() {\n\tdefer done()\n}\n```"


def test_validators_without_tests_on_tasks_without_entry_point(tmp_path: Path) -> None:
    install(tmp_path, "keeping", ("protocol", "dataset", "suite"))
    script = "['" + BOTH + "']"
    words = ["protocol=keeping", "dataset=constraints", "tracking=none", "model=scripted", f"model.replies={script}"]
    status, output = codechat(tmp_path, *words, "runs_dir=runs")
    assert status == 0, output
    status, output = codechat(tmp_path, *words[:-1], f"model.replies=['{GO}']", "runs_dir=runs", "model.name=other")
    assert status == 0, output
    found = {}
    for cell in (tmp_path / "runs").iterdir():
        metrics = json.loads((cell / "metrics.json").read_text())
        found[metrics["all_kept"]] = metrics["kept_by"]
    assert found == {1.0: {"func": 1.0, "defer": 1.0}, 0.0: {"func": 1.0, "defer": 0.0}}
    status, output = codechat(tmp_path, "report", "runs=runs", "out=report")
    assert status == 0, output
    page = (tmp_path / "report" / "index.html").read_text()
    assert "All constraints kept" in page
    status, output = codechat(tmp_path, "protocol=keeping", "dataset=constraints", "model=echo", "tracking=none")
    assert status == 2 and "go/0" in output and "canonical_solution" in output
    status, output = codechat(tmp_path, "protocol=refine", "dataset=constraints", *words[2:])
    assert status == 2 and "judge=rules" in output and "java, javascript, python" in output


def test_a_language_with_its_kind_of_tests_in_one_file(tmp_path: Path) -> None:
    install(tmp_path, "tally", ("language", "suite"))
    turns = [
        {"instruction": "Count to five.", "solution": "+2 +3", "suite": {"kind": "sum", "total": 5}},
        {"instruction": "Take one back.", "solution": "+2 +3 -1", "suite": {"kind": "sum", "total": 4}},
    ]
    row = {"task_id": "tally/1", "language": "tally", "turns": turns}
    words = ["protocol=stepwise", "dataset=jsonl", tasks(tmp_path, row), "tracking=none", "runs_dir=runs"]
    status, output = codechat(tmp_path, "verify", *words[1:3])
    assert status == 0 and "every reference passes" in output, output
    status, output = codechat(tmp_path, *words, "model=scripted", "model.replies=['It is +5.','```tly\n+2 +2\n```']")
    assert status == 0, output
    (session,), metrics = read(tmp_path)
    assert [turn["code"] for turn in session["turns"]] == ["+5", "+2 +2"]
    assert metrics["acc"] == [1.0, 1.0] and metrics["complete_rate"] == 1.0
    status, output = codechat(tmp_path, *words, "model=drifter")
    assert status == 2
    assert all(name in output for name in ("model=drifter", "java, javascript, python", "tally/1"))


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_driver_makes_a_further_language_callable(tmp_path: Path) -> None:
    install(tmp_path, "cpp_calls", ("driver",))
    source = "#include <vector>\nusing namespace std;\n"
    head = "vector<double> scaled(vector<int> all, double by)"
    right = f"{source}{head} {{ vector<double> made; for (int each : all) made.push_back(each * by); return made; }}"
    row = {
        "task_id": "cpp/1",
        "prompt": "Scale.",
        "language": "cpp",
        "entry_point": "scaled",
        "signature": head,
        "canonical_solution": right,
        "base_input": [[[1, 2], 0.5], [[], 2]],
        "plus_input": [[[2**31 - 1, -(2**31)], 2.0]],
    }
    solutions = (
        right,
        right.replace("each * by", "each + by"),
        right.replace("by) {", "by {"),
        f"{source}{head} {{ for (;;); }}",
    )
    (tmp_path / "samples.jsonl").write_text(
        "".join(json.dumps({"task_id": "cpp/1", "solution": text}) + "\n" for text in solutions)
    )
    words = ("dataset=jsonl", tasks(tmp_path, row), "sandbox=process", "sandbox.allow_weak=true")
    status, said = codechat(tmp_path, "verify", *words)
    assert status == 0 and "every reference passes" in said, said
    status, said = codechat(tmp_path, "verify", *words, "samples=samples.jsonl", "out=out.jsonl")
    assert status == 0, said
    verdicts = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [each["outcome"] for each in verdicts] == ["pass", "fail", "syntax_error", "timeout"], verdicts
    row["base_input"] = [[[2**40], 0.5]]
    status, said = codechat(tmp_path, "verify", "dataset=jsonl", tasks(tmp_path, row))
    assert status == 2 and "1099511627776 as int" in said
