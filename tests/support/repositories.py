"""Small git repositories for tests, with a past, a commit to work at, and a future that must not be seen."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from codechat.datasets.tasks import Workspace

FIX = "the-fix-of-the-future"
WHEN = "2024-05-06T07:08:09Z"


def git(folder: Path, *words: str, data: bytes | None = None) -> str:
    """The output of a git command of the test's own."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": WHEN, "GIT_COMMITTER_DATE": WHEN,
    }  # fmt: skip
    done = subprocess.run(["git", *words], cwd=folder, env=environment, input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


@dataclass(frozen=True)
class Repository:
    """A clone with branches, a tag, a remote and a fix, all after the commit to work at."""

    folder: Path
    commit: str
    fix: str

    @property
    def workspace(self) -> Workspace:
        return Workspace(str(self.folder), self.commit)


def make_repository(folder: Path, files: dict[str, str] | None = None) -> Repository:
    """A repository of three commits: a first one, the one to work at, and the fix."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "trunk")
    (folder / "README.md").write_text("# A counter\n\nIt counts.\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    source = {
        "src/counter.py": "def count(n):\n    return n + 2\n",
        "src/more/notes.txt": "one\ntwo\nthree\n",
        "run.sh": "#!/bin/sh\necho ran\n",
    }
    for name, text in (source if files is None else files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("README.md")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a counter")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src" / "counter.py").write_text(f"def count(n):\n    return n + 1  # {FIX}\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", FIX)
    fix = git(folder, "rev-parse", "HEAD")
    git(folder, "tag", "-a", "v2", "-m", FIX)
    git(folder, "branch", "later")
    git(folder, "update-ref", "refs/remotes/origin/main", fix)
    git(folder, "stash", "list")
    return Repository(folder, commit, fix)
