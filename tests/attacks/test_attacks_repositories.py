"""Hostile repositories: opening one runs nothing on this machine, shows nothing of it, and shows nothing of the future."""

import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.datasets.tasks import Workspace
from codechat.studies.cab.environments import commits
from support.benches import Driven, in_kind, lacking
from support.repositories import FIX, Repository, git, make_repository

Kind = str
Hostile = Callable[[Repository, str], str | None]
"""Makes a repository hostile: `run` is a command that leaves a mark. Returns another commit to work at, if any."""


def config(repository: Repository, text: str) -> None:
    with (repository.folder / ".git" / "config").open("a") as stream:
        stream.write(text)


def hooks(repository: Repository, run: str) -> None:
    for name in ("post-checkout", "post-index-change", "pre-auto-gc", "reference-transaction", "fsmonitor-watchman"):
        hook = repository.folder / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{run}\n")
        hook.chmod(0o755)


def settings(repository: Repository, run: str) -> None:
    value = run.replace("\\", "\\\\").replace('"', '\\"')
    config(
        repository,
        f'[core]\n fsmonitor = "{value}"\n sshCommand = "{value}"\n pager = "{value}"\n editor = "{value}"\n'
        f' alternateRefsCommand = "{value}"\n[alias]\n log = "!{value}"\n read-tree = "!{value}"\n'
        f'[uploadpack]\n packObjectsHook = "{value}"\n[credential]\n helper = "!{value}"\n[diff]\n external = "{value}"\n',
    )


def elsewhere(repository: Repository, run: str) -> None:
    other = repository.folder.parent / "included"
    other.write_text(f'[core]\n fsmonitor = "{run}"\n worktree = {repository.folder.parent}\n')
    config(repository, f"[include]\n path = {other}\n[core]\n hooksPath = {repository.folder}\n worktree = /tmp\n")


def filters(repository: Repository, run: str) -> str:
    config(repository, f'[filter "x"]\n smudge = "{run}; cat"\n clean = cat\n process = "{run}"\n required = true\n')
    return amended(
        repository, ".gitattributes", "* filter=x diff=x merge=x\n*.txt working-tree-encoding=UTF-16 ident\n"
    )


def large_files(repository: Repository, run: str) -> str:
    config(repository, f'[filter "lfs"]\n process = "{run}"\n smudge = "{run}"\n[lfs]\n url = ext::{run}\n')
    amended(repository, ".lfsconfig", f"[lfs]\n url = ext::{run}\n")
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
    amended(repository, "big.bin", pointer)
    return amended(repository, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")


def submodules(repository: Repository, run: str) -> str:
    text = f'[submodule "x"]\n path = x\n url = ext::sh -c {run}\n update = !{run}\n'
    git(repository.folder, "checkout", "-q", repository.commit)
    git(repository.folder, "update-index", "--add", "--cacheinfo", f"160000,{repository.commit},x")
    config(repository, f'[submodule "x"]\n url = ext::sh -c {run}\n active = true\n[protocol]\n allow = always\n')
    return amended(repository, ".gitmodules", text)


def links(repository: Repository, run: str) -> str:
    git(repository.folder, "checkout", "-q", repository.commit)
    for name, target in (("out", "/etc/passwd"), ("up", "../../../../../../etc"), ("git", ".git/config"), ("me", "me")):
        (repository.folder / name).symlink_to(target)
    return amended(repository, "plain", "plain\n")


def promised(repository: Repository, run: str) -> str:
    """A clone that lacks a file, and says where to get it."""
    blob = git(repository.folder, "rev-parse", f"{repository.commit}:src/counter.py")
    path = repository.folder / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.unlink()
    config(
        repository,
        f'[extensions]\n partialClone = origin\n[remote "origin"]\n url = ext::sh -c "{run}"\n promisor = true\n'
        f' uploadpack = "{run}"\n partialclonefilter = blob:none\n[protocol]\n allow = always\n[protocol "ext"]\n allow = always\n',
    )
    return repository.commit


def bomb(repository: Repository, run: str) -> str:
    """Ten trees that stand for ten billion files."""
    below = git(repository.folder, "hash-object", "-w", "--stdin", data=b"x")
    entry = f"100644 blob {below}"
    for _ in range(10):
        tree = git(repository.folder, "mktree", data="".join(f"{entry}\tf{number}\n" for number in range(10)).encode())
        entry = f"040000 tree {tree}"
    return git(repository.folder, "commit-tree", tree, "-m", "many")


def literal(repository: Repository, *entries: tuple[str, bytes, str]) -> str:
    """A commit of a tree that git itself would not make: (mode, name, object) as they are."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(one) for mode, name, one in entries)
    whole = b"tree %d\0" % len(data) + data
    tree = hashlib.sha1(whole).hexdigest()
    place = repository.folder / ".git" / "objects" / tree[:2]
    place.mkdir(exist_ok=True)
    (place / tree[2:]).write_bytes(zlib.compress(whole))
    return git(repository.folder, "commit-tree", tree, "-m", "odd")


def dotgit(repository: Repository, run: str) -> str:
    hook = git(repository.folder, "hash-object", "-w", "--stdin", data=f"#!/bin/sh\n{run}\n".encode())
    inner = git(repository.folder, "mktree", data=f"100755 blob {hook}\tpost-checkout\n".encode())
    outer = git(repository.folder, "mktree", data=f"040000 tree {inner}\thooks\n".encode())
    return literal(repository, ("40000", b".git", outer))


def dots(repository: Repository, run: str) -> str:
    blob = git(repository.folder, "hash-object", "-w", "--stdin", data=b"escaped")
    inner = git(repository.folder, "mktree", data=f"100644 blob {blob}\tescaped\n".encode())
    return literal(repository, ("40000", b"..", inner))


def through_a_link(repository: Repository, run: str) -> str:
    target = git(repository.folder, "hash-object", "-w", "--stdin", data=str(repository.folder.parent).encode())
    blob = git(repository.folder, "hash-object", "-w", "--stdin", data=b"escaped")
    inner = git(repository.folder, "mktree", data=f"100644 blob {blob}\tescaped\n".encode())
    return literal(repository, ("120000", b"d", target), ("40000", b"d", inner))


def slash(repository: Repository, run: str) -> str:
    blob = git(repository.folder, "hash-object", "-w", "--stdin", data=b"escaped")
    return literal(repository, ("100644", b"../../escaped", blob))


def borrowing(repository: Repository, run: str) -> str:
    (repository.folder / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (repository.folder / ".git" / "objects" / "info" / "alternates").write_text(f"{repository.folder}/.git/objects\n")
    return repository.commit


def linked(repository: Repository, run: str) -> str:
    objects = repository.folder / ".git" / "objects"
    objects.rename(repository.folder.parent / "objects")
    objects.symlink_to(repository.folder.parent / "objects")
    return repository.commit


def redirected(repository: Repository, run: str) -> str:
    (repository.folder / ".git").rename(repository.folder.parent / "hidden")
    (repository.folder / ".git").write_text(f"gitdir: {repository.folder.parent / 'hidden'}\n")
    return repository.commit


def replaced(repository: Repository, run: str) -> None:
    """The commit stands for the fix, if references are believed."""
    git(repository.folder, "replace", repository.commit, repository.fix)


def cut(repository: Repository, run: str) -> None:
    (repository.folder / ".git" / "shallow").write_text(f"{repository.commit}\n../../../etc/passwd\n{'z' * 40}\n")


def odd_names(repository: Repository, run: str) -> str:
    git(repository.folder, "checkout", "-q", repository.commit)
    for name in (b"a\nb", b"\x1b[31mred", b"\xff\xfe", b"-rf", b"$(id)", b"a'b\"c", "\u202etxt".encode(), b"x" * 250):
        (repository.folder / os.fsdecode(name)).write_text("odd\n")
    return amended(repository, "plain", "plain\n")


def amended(repository: Repository, name: str, text: str) -> str:
    """A commit like the one to work at, with one more file, made without running what the repository names."""
    (repository.folder / name).write_text(text)
    listed = git(repository.folder, "ls-tree", repository.commit).splitlines()
    for path in (*sorted(repository.folder.iterdir()),):
        if path.name != ".git" and not path.is_dir() and path.name not in ("README.md", "run.sh", "link"):
            kind, data = (
                ("120000", os.fsencode(path.readlink())) if path.is_symlink() else ("100644", path.read_bytes())
            )
            blob = git(repository.folder, "hash-object", "-w", "--no-filters", "--stdin", data=data)
            listed.append(f"{kind} blob {blob}\t{path.name}")
    entries = "\0".join(line.replace("\n", "\n") for line in listed) + "\0"
    tree = git(repository.folder, "mktree", "-z", data=os.fsencode(entries))
    return git(repository.folder, "commit-tree", tree, "-p", repository.commit, "-m", "a counter")


OPENED = (hooks, settings, elsewhere, filters, large_files, submodules, links, replaced, cut, odd_names)
REFUSED = (promised, bomb, dotgit, dots, slash, borrowing, linked, redirected)
KINDS = ("checkout", "docker")


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    if why := lacking(request.param):
        pytest.skip(why)
    if request.param == "docker":
        request.getfixturevalue("engine")
    return request.param


@pytest.mark.parametrize("make", OPENED, ids=lambda make: make.__name__)
def test_opening_runs_nothing(make: Hostile, kind: Kind, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    marked = tmp_path / "marked"
    commit = make(repository, f"touch {marked}") or repository.commit
    before = snapshot(tmp_path)
    driven = Driven(kind)
    room = driven.open(in_kind(Workspace(str(repository.folder), commit), kind))
    try:
        assert room.text("cat src/counter.py") == "def count(n):\n    return n + 2\n"
        assert FIX not in room.run("cat README.md; grep -r . . 2>/dev/null; ls -laR .").text
        if make is links:
            assert room.text("cat out").splitlines()[0].startswith("root:")
            assert "pytest" not in room.run("ls -la up/ git me/; cat git").text
    finally:
        room.close()
        driven.close()
    assert not marked.exists() and snapshot(tmp_path) == before


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_a_repository_that_cannot_be_trusted_is_refused(make: Hostile, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    marked = tmp_path / "marked"
    commit = make(repository, f"touch {marked}")
    assert commit is not None
    before = snapshot(tmp_path)
    with pytest.raises(UserError):
        commits.unpacked(Workspace(str(repository.folder), commit), None)
    assert not marked.exists() and snapshot(tmp_path) == before
    assert not list(commits.folder_of("commits").glob("*.part")) and not list(
        commits.folder_of("commits").parent.rglob("escaped")
    )


def test_no_file_is_written_through_a_link(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    commit = through_a_link(repository, "")
    before = snapshot(tmp_path)
    held = commits.unpacked(Workspace(str(repository.folder), commit), None)
    held.release()
    assert snapshot(tmp_path) == before
    assert not (held.folder / "d").is_symlink() or not (held.folder / "d" / "escaped").exists()


def test_a_commit_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = make_repository(tmp_path / "repository", {"large": "x" * (3 << 20)})
    monkeypatch.setattr(commits, "MOST_MB", 2)
    with pytest.raises(UserError, match="has more than 2 MiB"):
        commits.unpacked(repository.workspace, None)


def snapshot(folder: Path) -> list[tuple[str, int]]:
    """Every path and its time of change, but for git's own in the repository's index."""
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))
