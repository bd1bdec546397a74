"""The file system that holds a folder, and whether several machines may share it."""

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "gfs2", "ocfs2", "orangefs", "pvfs2"),
        *("panfs", "afs", "coda", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "virtiofs", "vboxsf", "davfs"),
    }
)
"""Types of file systems on which processes do not reliably share memory through a mapped file."""

LOCAL_FUSE = frozenset({"fuse.ntfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.fuse-overlayfs", "fuse.lxcfs"})
"""File systems by FUSE that are local; any other may be a network's (sshfs, glusterfs, juicefs, …)."""


def file_system(path: Path) -> str:
    """The type of the file system that holds a path, as Linux names it (`ext4`, `nfs4`); empty if unknown."""
    whole = str(path.resolve())
    inside = [(len(place), kind) for place, kind in _mounts() if f"{whole}/".startswith(place.rstrip("/") + "/")]
    longest = max(inside, default=(0, ""), key=lambda mount: mount[0])[0]
    return next((kind for length, kind in reversed(inside) if length == longest), "")  # later mounts cover earlier ones


def is_network(kind: str) -> bool:
    """Whether a type of file system is, or may be, a network's."""
    return kind in NETWORK or (kind.startswith("fuse.") and kind not in LOCAL_FUSE)


def _mounts() -> list[tuple[str, str]]:
    """The place and the type of every mount; empty if unknown."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []
    found: list[tuple[str, str]] = []
    for line in lines:
        before, _, after = line.partition(" - ")
        place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
        found.append((place, after.split(" ")[0]))
    return found
