"""What dialogues in rooms cost beyond their waiting and their commands: `python benchmarks/dialogues.py`.

    chrt -f 1 python benchmarks/dialogues.py --latency 0.05 --concurrency 16 --steps 1

40 scripted dialogues of `protocol=assist` with `environment=checkout`: before each of 6 answers the maintainer runs 3
commands, in one step (the fewest calls, so the least to wait for) or one a step (`--steps 3`); the user replies to each
answer, and a judge ends the dialogue. All three models are one local server, in a process of its own, that answers
after `latency` seconds. The ideal is the larger of two sums, each shared out:

- latency: the calls of all dialogues x latency / concurrency, which is how many calls, and rooms, there are at once;
- commands: the seconds of the same commands run plainly by a shell, one after the other / the processors.

Measured is what `codechat.run` takes for the dialogues: from building models and environment to the last record, in a
fresh process after its imports, with an empty journal and without response cache. The four repositories are unpacked
before, as a cell finds them that is not the first. Metrics, tables and figures follow once a cell, however many
dialogues it has: they are in the whole run, which is printed beside. The median of `--times` runs counts; exit status
1 if it is over 1.5 x the ideal. 40 dialogues in 16 rooms take three turns in the rooms, so the waiting alone is 1.2 x
the ideal there; in 8 rooms it is 1.0 x.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

DIALOGUES, ANSWERS, REPOSITORIES = 40, 6, 4
COMMANDS = ("ls -la", "cat README.md", "grep -rn 'line 7' part3")
MOST = 1.5


def serve(latency: float, steps: int) -> None:
    """Serve until killed, as maintainer, user and judge."""
    from codechat.testing import Call, OpenAIServer

    explored = ["\n".join(f"EXPLORE: {command}" for command in COMMANDS)]
    if steps > 1:
        explored = [f"EXPLORE: {command}" for command in COMMANDS]
    said = [*explored, "ANSWER: Set SHOP_HOME before you start it."]

    async def speak(call: Call) -> Any:
        await asyncio.sleep(latency)
        match call.body["model"]:
            case "maintainer":
                return said[sum(message["role"] == "assistant" for message in call.messages) % len(said)]
            case "user":
                over = f"MAINTAINER_{ANSWERS}" in call.messages[0]["content"]
                status = "FULLY_SATISFIED" if over else "NOT_SATISFIED"
                return f"And then?\n\nSATISFACTION_STATUS: {status}\nREASON: It is told."
        return (
            "TECHNICAL CORRECTNESS: CORRECT\nCONDITION 1: TRUE\nVERBOSITY: APPROPRIATE\n"
            "REASON: It is told.\nVERDICT: CORRECT"
        )

    with OpenAIServer(speak, models=["maintainer", "user", "judge"], keep_calls=False) as server:
        print(server.base_url, flush=True)
        time.sleep(3600)


def make_repositories(folder: Path) -> Iterator[str]:
    """Make the repositories, and give their commits."""
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for number in range(REPOSITORIES):
        place = folder / f"shop{number}"
        for part in range(200):
            path = place / f"part{part % 10}" / f"file{part}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"line {line}\n" for line in range(50)))
        (place / "README.md").write_text(f"# Shop {number}\n\nSet SHOP_HOME.\n")
        for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "all"]):
            subprocess.run(["git", *words], cwd=place, check=True)
        words = ["git", "rev-parse", "HEAD"]
        yield subprocess.run(words, cwd=place, check=True, capture_output=True, text=True).stdout.strip()


def write_issues(path: Path, commits: list[str]) -> None:
    """Write the issues in the dataset's fields."""
    when = "2025-01-02T03:04:05Z"
    rows = [
        {
            "number": number,
            "title": "It does not start",
            "created_at": when,
            "closed_at": when,
            "commit_id": commits[number % REPOSITORIES],
            "labels": [],
            "url": f"https://github.com/ann/shop{number % REPOSITORIES}/issues/{number}",
            "body": f"Nothing happens when I start it, {number}.",
            "author": "user",
            "comments": [{"user": "ann", "created_at": when, "body": "Set SHOP_HOME before you start it."}],
            "satisfaction_conditions": ["Names the variable that must be set"],
            "_classification": {"category": "Does not need build environment", "timestamp": when},
            "dockerfile": None,
            "language": "python",
        }
        for number in range(1, DIALOGUES + 1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def plain(folder: Path) -> float:
    """Seconds that all commands of all dialogues take if a shell runs them plainly, one after the other."""
    began = time.perf_counter()
    for number in range(DIALOGUES):
        place = folder / f"shop{number % REPOSITORIES}"
        for command in COMMANDS * ANSWERS:
            words = ["/bin/bash", "-c", command]
            subprocess.run(words, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - began


def cell(url: str, folder: Path, concurrency: int) -> None:
    """Run the dialogues as one cell, and print what they took, and then the whole run."""
    import openai  # noqa: F401  imports are not counted

    import codechat.models.calls.transport  # noqa: F401
    import codechat.run.running.sessions as running
    from codechat import compose, run

    words = ["protocol=assist", "dataset=cab", f"dataset.path={folder}/issues.jsonl", "environment=checkout"]
    words += [f"dataset.repos={folder}/repositories", "tracking=none", f"environment.max_rooms={concurrency}"]
    for place, name in (("model", "maintainer"), ("protocol.roles.user", "user"), ("protocol.roles.judge", "judge")):
        words += ["model=openai" if place == "model" else f"model@{place}=openai", f"{place}.name={name}"]
        words += [f"{place}.base_url={url}", f"{place}.api_key_env=null", f"{place}.cache=false"]
        words += [f"{place}.max_concurrency={concurrency}"]
    took: dict[str, float] = {}
    hold = running.run_missing_sessions

    async def held(*parts: Any, **more: Any) -> None:
        wall, before = time.perf_counter(), time.process_time()
        await hold(*parts, **more)
        took.update(wall=time.perf_counter() - wall, own=time.process_time() - before)

    with tempfile.TemporaryDirectory() as runs, mock.patch.object(running, "run_missing_sessions", held):
        composed, began = compose([*words, f"runs_dir={runs}"]), time.perf_counter()
        outcome = run(composed)
        took["whole"] = time.perf_counter() - began
        sessions = list(outcome.sessions)
    assert outcome.status == 0 and len(sessions) == DIALOGUES, outcome.unfinished
    explored = [turn.model_dump()["explored"] for session in sessions for turn in session.turns]
    assert [len(each) for each in explored] == [len(COMMANDS)] * ANSWERS * DIALOGUES
    assert all(one["status"] == 0 for each in explored for one in each)
    print(json.dumps(took))


def main() -> int:
    """Measure, and print the ratio; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--steps", type=int, choices=[1, len(COMMANDS)], default=1)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--role", choices=["serve", "cell"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.role == "serve":
        serve(chosen.latency, chosen.steps)
    elif chosen.role == "cell":
        cell(chosen.url, chosen.folder, chosen.concurrency)
    else:
        with tempfile.TemporaryDirectory() as folder:
            return _measure(chosen, Path(folder))
    return 0


def _measure(chosen: argparse.Namespace, folder: Path) -> int:
    write_issues(folder / "issues.jsonl", list(make_repositories(folder / "repositories")))
    os.environ["CODECHAT_CACHE_DIR"] = str(folder / "cache")
    calls = DIALOGUES * (ANSWERS * (chosen.steps + 2) + 1)
    waiting, cores = calls * chosen.latency / chosen.concurrency, len(os.sched_getaffinity(0))
    options = [f"--latency={chosen.latency}", f"--steps={chosen.steps}", f"--concurrency={chosen.concurrency}"]
    this = [sys.executable, __file__, *options]
    server = subprocess.Popen([*this, "--role=serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        words = [*this, "--role=cell", f"--url={server.stdout.readline().strip()}", f"--folder={folder}"]
        ratios = []
        for number in range(chosen.times + 1):  # the first run unpacks the repositories
            commands = plain(folder / "repositories")
            ideal = max(waiting, commands / cores)
            found = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout)
            print(
                f"{calls} calls {waiting:.2f} s, commands {commands:.2f} s / {cores}: ideal {ideal:.2f} s; "
                f"wall {found['wall']:.2f} s = {found['wall'] / ideal:.2f} x ideal; engine's CPU {found['own']:.2f} s; "
                f"the whole run {found['whole']:.2f} s{' (unpacks)' if number == 0 else ''}",
                flush=True,
            )
            ratios += [found["wall"] / ideal] if number else []
    finally:
        server.kill()
        server.wait()
    ratio = statistics.median(ratios)
    print(f"{ratio:.2f} x ideal" + (f" (aim: {MOST:g})" if ratio > MOST else ""))
    return 1 if ratio > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
