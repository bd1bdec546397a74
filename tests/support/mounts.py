"""Mounts as Linux lists them, so that a folder of a test counts as one on another file system."""

from pathlib import Path

LINE = "36 35 98:0 / {place} rw,noatime shared:1 - {kind} server:/export rw\n"


def write_mounts(file: Path, **kinds: Path) -> Path:
    """Write a list that has the root on ext4, and a mount of each type (dots as underscores) at its folder."""
    escaped = {kind.replace("_", "."): str(place).replace(" ", r"\040") for kind, place in kinds.items()}
    rows = [LINE.format(place=place, kind=kind) for kind, place in escaped.items()]
    file.write_text(LINE.format(place="/", kind="ext4") + "".join(rows))
    return file
