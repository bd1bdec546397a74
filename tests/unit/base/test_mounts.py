"""Which file system a folder is on, and which of them are a network's."""

from pathlib import Path

import pytest

from codechat.base.mounts import MOUNTS, file_system, is_network
from support.machine import write_mounts


def test_the_innermost_mount_counts_also_with_a_space_in_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, deep = tmp_path / "my home", tmp_path / "my home" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "link").symlink_to(deep)
    monkeypatch.setattr("codechat.base.mounts.MOUNTS", write_mounts(tmp_path / "mounts", nfs4=home, fuse_sshfs=deep))
    assert file_system(home / "not there yet" / "journal.db") == "nfs4"
    assert file_system(deep / "x") == file_system(tmp_path / "link" / "x") == "fuse.sshfs"
    assert file_system(tmp_path / "my home again") == "ext4", "only whole names of folders"


def test_a_later_mount_covers_an_earlier_one_at_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "codechat.base.mounts.MOUNTS", write_mounts(tmp_path / "mounts", autofs=tmp_path, lustre=tmp_path)
    )
    assert file_system(tmp_path) == "lustre"


def test_a_system_without_a_list_of_mounts_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codechat.base.mounts.MOUNTS", tmp_path / "none")
    assert file_system(tmp_path) == ""
    assert not is_network("")


def test_this_machine_tells_the_types_of_its_own() -> None:
    if not MOUNTS.exists():
        pytest.skip("needs Linux")
    assert file_system(Path("/proc/self")) == "proc"
    assert not is_network(file_system(Path("/proc")))


@pytest.mark.parametrize(
    ("kind", "shared"),
    [("nfs", True), ("nfs4", True), ("lustre", True), ("gpfs", True), ("beegfs", True), ("ceph", True),
     ("glusterfs", True), ("cifs", True), ("smb3", True), ("9p", True), ("fuse.sshfs", True), ("fuse.juicefs", True),
     ("ext4", False), ("xfs", False), ("btrfs", False), ("zfs", False), ("tmpfs", False), ("overlay", False),
     ("fuseblk", False), ("fuse.fuse-overlayfs", False)],
)  # fmt: skip
def test_types_of_networks(kind: str, shared: bool) -> None:
    assert is_network(kind) == shared
