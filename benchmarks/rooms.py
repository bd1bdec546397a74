"""What a command in a room costs beyond the same command run plainly, medians: `python benchmarks/rooms.py [IMAGE]`.

A repository is made for it. With an image, rooms of `environment=docker` are measured too, from an image of that name
with a shell; the plain command is then run on this machine all the same. A busy machine adds what its processes wait
for each other: measure on an idle one, or with `chrt -f 1` before the command.
"""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from codechat.base.domain import Output
from codechat.datasets.tasks import Workspace
from codechat.studies.cab.environments import ENVIRONMENTS, Worktree

COMMANDS = ("true", "ls -la", "cat README.md", "grep -rn line .")
TIMES, FILES = 100, 200
MOST_MS = {"checkout": 5.0, "docker": 25.0}


def repository(folder: Path) -> Workspace:
    """A commit with a few hundred files."""
    for number in range(FILES):
        place = folder / f"part{number % 10}" / f"file{number}.txt"
        place.parent.mkdir(exist_ok=True)
        place.write_text("line\n" * 50)
    (folder / "README.md").write_text("# Read me\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True)
    return Workspace(str(folder), asked.stdout.strip(), "FROM base\nWORKDIR /app\nCOPY . .\n")


def plain(command: str, folder: Path) -> float:
    """Seconds of a command run by a shell of this machine."""
    began = time.perf_counter()
    words = ["/bin/bash", "-c", command]
    subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return time.perf_counter() - began


async def timed(room: Worktree, command: str) -> float:
    """Seconds of a command in a room."""
    began = time.perf_counter()
    output: Output = await room.run(command)
    assert output.status == 0, output
    return time.perf_counter() - began


async def measure(kind: str, workspace: Workspace, options: dict[str, object]) -> None:
    """Print a line for every command, the two ways by turns."""
    environment = ENVIRONMENTS.build(ENVIRONMENTS.validate({"kind": kind, **options}))
    opened = []
    for _ in range(4):  # the first one unpacks, and builds
        began = time.perf_counter()
        room = await environment.open(workspace)
        opened.append(time.perf_counter() - began)
        await room.aclose()
    print(f"{kind}: the first room {opened[0]:.2f} s, another {statistics.median(opened[1:]):.2f} s")
    room = await environment.open(workspace)
    for command in COMMANDS:
        pairs = [(plain(command, Path(workspace.repository)), await timed(room, command)) for _ in range(TIMES)]
        usual, here = (1000 * statistics.median(each) for each in zip(*pairs, strict=True))
        print(f"  {command:18} plain {usual:6.2f} ms, room {here:6.2f} ms, more {here - usual:6.2f} ms", end="")
        print("" if here - usual <= MOST_MS[kind] else f"  (aim: {MOST_MS[kind]:g})")
    await room.aclose()
    await environment.aclose()


def main() -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = repository(Path(folder))
        asyncio.run(measure("checkout", workspace, {}))
        for image in sys.argv[1:2]:
            asyncio.run(measure("docker", workspace, {"images": {"base": image}}))


if __name__ == "__main__":
    main()
