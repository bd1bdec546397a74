"""What `recipe=issues` costs without a model: repositories, issues, turns, commits and references of many issues.

`python benchmarks/issues.py [--issues 20000]` serves repositories of 500 issues each, made for this, from a process of
its own, and runs `codechat construct` over them: its memory and its CPU time by issue, a second run that has all, and
one that was killed in between. Every issue comes to the last stage, where it is dropped: without a model it has no
conditions, so that `dataset=cab` could not read it. Exit status 1 if an issue takes more than 2 ms of CPU or the
process 300 MB.
"""

import argparse
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from codechat.testing.github import GithubServer, Hosted, HostedIssue

IN_ONE = 500
MOST_MS, MOST_MB = 2.0, 300.0
SKIP = "skip=[filter,messages,classify,dockerfiles,conditions]"
WORDS = [
    "a",
    "file",
    "is",
    "not",
    "found",
    "when",
    "the",
    "server",
    "starts",
    "with",
    "another",
    "folder",
    "than",
    "its",
]


def repositories(issues: int) -> list[Hosted]:
    """Repositories of invented issues, each with three comments, of as many characters as a published one has.

    There is an issue every twelve hours, and a commit every six.
    """
    chosen, began = random.Random(0), datetime(2025, 1, 1)

    def text(words: int) -> str:
        return " ".join(chosen.choices(WORDS, k=words))

    def at(hours: int) -> str:
        return f"{began + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"

    made = []
    for number in range(-(-issues // IN_ONE)):
        listed = []
        for place in range(min(IN_ONE, issues - number * IN_ONE)):
            said = [(who, at(12 * place + hour), text(90)) for hour, who in enumerate("bac", 13)]
            listed.append(HostedIssue(place + 1, text(8), text(230), "a", at(12 * place + 12), said))
        commits = [(at(6 * each), f"{number:020x}{each:020x}") for each in reversed(range(2 * IN_ONE))]
        made.append(Hosted(f"owner{number}/project", issues=listed, commits=commits))
    return made


def serve(issues: int, told: Connection) -> None:
    """Serve until the other end asks; first the address is told, in the end how many requests came."""
    with GithubServer(repositories(issues)) as server:
        told.send(server.base_url)
        while told.recv() != "end":
            told.send(len(server.requests))


def construct(url: str, folder: Path, out: str, kill_after_s: float | None = None) -> tuple[float, float]:
    """Run the command: its seconds of CPU, and the most MB that it took."""
    words = ["construct", "recipe=issues", f"out={folder / out}", "tracking=none", SKIP, "languages=[python]"]
    words += [f"github.base_url={url}", "github.token_env=BENCHMARK_TOKEN", "github.search_per_minute=null"]
    environment = {**os.environ, "BENCHMARK_TOKEN": "none", "CODECHAT_CACHE_DIR": str(folder / f"cache-{out}")}
    process = subprocess.Popen([sys.executable, "-m", "codechat", *words], env=environment, stdout=subprocess.DEVNULL)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        process.send_signal(signal.SIGKILL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == (0 if kill_after_s is None else -signal.SIGKILL), process.returncode
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--issues", type=int, default=20_000)
    issues = parser.parse_args().issues
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(issues, theirs))
    process.start()
    url = ours.recv()

    def requests() -> int:
        ours.send("count")
        return int(ours.recv())

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        began = time.monotonic()
        cpu_s, most_mb = construct(url, folder, "whole")
        took_s, asked = time.monotonic() - began, requests()
        start_s, _ = construct(url, folder, "whole")
        print(f"{issues:,} issues: {cpu_s:.1f} s of CPU, {1000 * cpu_s / issues:.2f} ms each, {most_mb:.0f} MB")
        print(f"by the clock {took_s:.1f} s; {asked:,} requests; a second run {start_s:.1f} s of CPU")
        print(f"requests of the second run: {requests() - asked}")
        before = requests()
        construct(url, folder, "killed", kill_after_s=took_s / 2)
        construct(url, folder, "killed")
        print(f"requests of one that was killed halfway, and its end: {requests() - before:,}")
        whole, killed = ((folder / out / "dropped.jsonl").read_bytes() for out in ("whole", "killed"))
        same = whole == killed and whole.count(b"\n") == issues
        print(f"the same issues: {same}")
    ours.send("end")
    process.join()
    print(f"memory of this process and the server: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return int(not same or 1000 * cpu_s / issues > MOST_MS or most_mb > MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
