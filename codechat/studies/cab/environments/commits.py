"""Commits of repositories, each unpacked once into codechat's cache: its files, its history, and nothing later.

A repository is data: its configuration, hooks and references are never read, and no program that it names is started.
Git gets only its objects, in a fresh folder with our settings, and copies the objects of the commit and its history.
Later commits, other branches and tags stay behind. The cache also has notes of built images and the interpreters of
containers.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.base.files import content_hash
from codechat.datasets.tasks import Workspace
from codechat.run.extensions import CacheContents

MOST_MB, MOST_FILES = 4096, 500_000  # of one commit
GIT_S, REMOVE_S = 900.0, 120.0
BRANCH = "main"
UNPACKED = 1  # version of a folder's content
REMEDY = "dataset.repos names the folder of the clones; a mirror (git clone --mirror) holds every commit"
SETTINGS = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tcheckStat = minimal
[gc]
\tauto = 0
[user]
\tname = maintainer
\temail = maintainer@localhost
"""
OPTIONS = {
    "core.commitGraph": "false",  # files that could contradict the objects
    "core.multiPackIndex": "false",
    "pack.useBitmaps": "false",
    "pack.window": "0",  # old deltas are good enough
    "core.fsync": "none",
    "core.logAllRefUpdates": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
}
VARIABLES = {
    "LC_ALL": "C",
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
"""The variables of git over repositories that are data. Of the user's own it gets only the path of programs."""


def git(
    *words: str, more: Mapping[str, str], seconds: float, folder: Path | None = None, stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    """Run git, with `more` variables. Raises `TimeoutExpired`, and `UserError` if it is not installed."""
    variables = {"PATH": os.environ.get("PATH", os.defpath), **VARIABLES, **more}
    try:
        return subprocess.run(
            ["git", *words], cwd=folder, env=variables, input=stdin, capture_output=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        raise UserError("git is not installed, and repositories need it", "apt install git") from None


def last_words(stderr: bytes) -> str:
    """The last line of git's error output, which has the reason."""
    return "".join(stderr.decode(errors="replace").strip().splitlines()[-1:])


def objects_of(clone: Path) -> Path | None:
    """The folder of a clone's own objects, with or without a working tree; None if the path is no clone."""
    for place in (clone / ".git", clone):
        objects = place / "objects"
        if (place / "HEAD").is_file() and objects.is_dir() and not place.is_symlink() and not objects.is_symlink():
            return objects
    return None


def borrows(objects: Path) -> bool:
    """Whether these objects include objects of another repository, which could be any."""
    return (objects / "info" / "alternates").exists()


def folder_of(part: str) -> Path:
    """The folder of a part: `commits`, `images` (notes of them) or `interpreters`."""
    return cache_root() / "rooms" / part


class HeldFolder:
    """A folder that is not cleared while a process holds it."""

    def __init__(self, folder: Path) -> None:
        """Hold a folder, which need not exist yet. Raises `OSError`."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._handle = os.open(f"{folder}.used", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._handle, fcntl.LOCK_SH)

    def alone(self) -> bool:
        """Whether no other process holds it; from then on no other can."""
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def release(self) -> None:
        """Release it, once or more often."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


async def hold_commit(held: contextlib.ExitStack, workspace: Workspace, owner: int | None) -> Path:
    """The folder of an unpacked commit, held until `held` is closed. Raises as `unpacked`."""
    commit = await asyncio.to_thread(unpacked, workspace, owner)
    held.callback(commit.release)
    return commit.folder


def unpacked(workspace: Workspace, owner: int | None) -> HeldFolder:
    """The folder with the commit's files and its `.git`, to be read only; made by the first process that needs it.

    Everything in it belongs to the user `owner`, or to this one. Raises `UserError` if the repository does not contain
    the commit and its files, or is no repository.
    """
    source = Path(workspace.repository).expanduser()
    if not re.fullmatch(r"[0-9a-f]{40}", workspace.commit):
        raise UserError(f"'{workspace.commit[:60]}' is no commit id", "give all 40 hexadecimal digits")
    objects = _objects(source)
    folder = folder_of("commits") / content_hash([UNPACKED, str(source.resolve()), workspace.commit, owner])[:40]
    try:
        with contextlib.ExitStack() as undo:
            held = HeldFolder(folder)
            undo.callback(held.release)
            if not folder.is_dir():
                with FileLock(f"{folder}.lock"):
                    if not folder.is_dir():
                        _make(folder, objects, workspace, owner)
            undo.pop_all()
            return held
    except OSError as error:
        remedy = "free some space, or set CODECHAT_CACHE_DIR"
        raise UserError(f"cannot write {folder}: {error.strerror}", remedy) from error


def _objects(source: Path) -> Path:
    """The objects of a clone or a mirror, all in the clone itself. Raises `UserError`."""
    objects = objects_of(source)
    if objects is None:
        raise UserError(f"{source} is no git repository", REMEDY)
    if borrows(objects):
        remedy = f"give it its own: git -C {source} repack -a -d, then remove objects/info/alternates"
        raise UserError(f"{source} borrows objects of another repository", remedy)
    return objects.absolute()


def _make(folder: Path, objects: Path, workspace: Workspace, owner: int | None) -> None:
    made, named = folder.with_suffix(".part"), f"the commit {workspace.commit[:12]} of {workspace.repository}"
    shutil.rmtree(made, ignore_errors=True)  # of a process that was killed
    made.mkdir(mode=0o755)
    try:
        _fill(made, objects, workspace.commit, named)
        when = min(int(_git(made, "log", "-1", "--format=%ct")), int(time.time()) - 60)
        _settle(made, when, owner)
        _git(made, "update-index", "-q", "--refresh", "--ignore-submodules")
        _settle(made, when, owner)
        made.rename(folder)
    except BaseException as error:
        shutil.rmtree(made, ignore_errors=True)
        if isinstance(error, _Refused):
            raise UserError(f"{named} cannot be unpacked: {error}", REMEDY) from None
        raise


def _fill(made: Path, objects: Path, commit: str, named: str) -> None:
    lent = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": '"' + str(objects).replace("\\", "\\\\").replace('"', '\\"') + '"'}
    _git(made, "init", "-q", "--template=", f"--initial-branch={BRANCH}", ".")
    try:
        _git(made, "cat-file", "-e", f"{commit}^{{tree}}", **lent)
    except _Refused:
        raise UserError(f"{named} is not there", REMEDY) from None
    shallow = made / ".git" / "shallow"
    with contextlib.suppress(OSError):
        cut = re.findall(r"^[0-9a-f]{40}$", (objects.parent / "shallow").read_text(errors="replace"), re.MULTILINE)
        shallow.write_text("".join(f"{line}\n" for line in cut))
    try:
        _pack(made, commit, lent)
    except _Refused:  # an incomplete history is left out
        shallow.write_text(f"{commit}\n")
        try:
            _pack(made, commit, lent)
        except _Refused as error:
            raise UserError(f"{named} lacks files: {error}", REMEDY) from None
    _git(made, "update-ref", f"refs/heads/{BRANCH}", commit)
    (made / ".git" / "config").write_text(SETTINGS)
    _measure(made, named)
    _git(made, "read-tree", "HEAD")
    _git(made, "checkout-index", "-a", "-q")


def _pack(made: Path, commit: str, lent: Mapping[str, str]) -> None:
    folder = made / ".git" / "objects" / "pack"
    folder.mkdir(exist_ok=True)
    _git(made, "pack-objects", "--revs", "-q", "--delta-base-offset", str(folder / "pack"), stdin=f"{commit}\n", **lent)


def _measure(made: Path, named: str) -> None:
    """Raise `UserError` for a commit whose files would fill the disk: a few objects can stand for any number."""
    size = count = 0
    command = ["git", *_words("ls-tree", "-r", "-l", "-z", "HEAD")]
    variables = {"PATH": os.environ.get("PATH", os.defpath), **VARIABLES, **_places(made)}
    with subprocess.Popen(command, cwd=made, env=variables, stdout=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        rest = b""
        while block := listing.stdout.read(1 << 16):
            *lines, rest = (rest + block).split(b"\0")
            sizes = [line.split(None, 4)[3] for line in lines]
            size, count = size + sum(int(each) for each in sizes if each.isdigit()), count + len(lines)
            if size > MOST_MB << 20 or count > MOST_FILES:
                listing.kill()
                raise UserError(f"{named} has more than {MOST_MB} MiB or {MOST_FILES} files", "leave it out")


def _settle(made: Path, when: int, owner: int | None) -> None:
    """Give every file the commit's time, so that all worktrees look the same, and its owner."""
    for folder, _, files in os.walk(made, topdown=False):
        with os.scandir(folder) as entries:  # `os.walk` lists links to folders among the folders
            links = [entry.path for entry in entries if entry.is_symlink()]
        for path in (*(os.path.join(folder, name) for name in files), *links, folder):  # noqa: PTH118  many thousands
            if owner is not None:
                os.chown(path, owner, owner, follow_symlinks=False)
            os.utime(path, (when, when), follow_symlinks=False)


class _Refused(Exception):
    """Git ended with an error. The message is its last line."""


def _words(*words: str) -> list[str]:
    return [*(word for key, value in OPTIONS.items() for word in ("-c", f"{key}={value}")), *words]


def _places(made: Path) -> dict[str, str]:
    return {"GIT_DIR": str(made / ".git"), "GIT_WORK_TREE": str(made)}


def _git(made: Path, *words: str, stdin: str = "", **more: str) -> str:
    """Standard output of a git command in the folder. Raises `_Refused`; `UserError` if git is not installed."""
    try:
        places = {**_places(made), **more}
        done = git(*_words(*words), more=places, seconds=GIT_S, folder=made, stdin=stdin.encode())
    except subprocess.TimeoutExpired:
        raise _Refused(f"git {words[0]} took more than {GIT_S:.0f} s") from None
    if done.returncode != 0:
        raise _Refused(last_words(done.stderr) or f"git {words[0]} ended with status {done.returncode}")
    return done.stdout.decode(errors="replace")


def contents() -> CacheContents:
    """The present contents: commits with the bytes of their files, and images."""
    folders = [place for place in _listed("commits") if place.is_dir()]
    images = [place for place in _listed("images") if place.suffix == ".json"]
    return _counted(len(folders), sum(map(_size, folders)), len(images))


def clear() -> CacheContents:
    """Remove all that no worktree uses, and return it. An image that its engine does not remove stays noted."""
    commits = size = images = 0
    for folder in _listed("commits"):
        if folder.is_dir():
            held = HeldFolder(folder)
            if held.alone():
                commits, size = commits + 1, size + _size(folder)
                shutil.rmtree(folder)
            held.release()
    for note in _listed("images"):
        if note.suffix == ".json" and _remove_image(note):
            note.unlink()
            images += 1
    return _counted(commits, size, images)


def _counted(commits: int, size: int, images: int) -> CacheContents:
    return CacheContents(cache_root() / "rooms", size, {"commit": commits, "image": images})


def _remove_image(note: Path) -> bool:
    image = json.loads(note.read_text(encoding="utf-8"))
    words = [image["program"], "image", "rm", "--force", image["name"], image["built"]]
    try:
        return subprocess.run(words, capture_output=True, timeout=REMOVE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _listed(part: str) -> list[Path]:
    folder = folder_of(part)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _size(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total
