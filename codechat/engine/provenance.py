"""The provenance of a run: versions, content hashes and the commit of the code."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

from codechat.engine.cell import Cell
from codechat.engine.config import cell_id
from codechat.engine.rescore import RescoredCell
from codechat.environment import PACKAGE, VERSION
from codechat.files import content_hash
from codechat.records import GROUP_TAG, JUDGE_TAG

_LIBRARIES = ("mlflow", "evalplus", "openai", "pymannkendall", "radon", "mccabe", "pycodestyle")


def tags_of(cell: Cell) -> dict[str, str]:
    """The tags of a cell's tracked run."""
    tags = {
        "codechat.cell_id": cell.id,
        "codechat.dataset_hash": cell.dataset.content_hash,
        "codechat.version": VERSION,
        "codechat.python": platform.python_version(),
        **{f"codechat.choice.{group}": choice for group, choice in cell.choices.items()},
        "codechat.model": cell.model_label,
        "codechat.dataset": cell.dataset.name,
        "codechat.seed": str(cell.config.seed),
        GROUP_TAG: _all_but_seed(cell),
        JUDGE_TAG: str(cell.config.judge.versions()),
    }
    if cell.config.sandbox.python is not None:
        libraries = cell.config.sandbox.libraries()
        tags |= {"codechat.libraries": libraries.digest, "codechat.libraries.python": libraries.version}
    if cell.pool is not None:
        tags["codechat.pool_hash"] = cell.pool.content_hash
    if isinstance(cell, RescoredCell):
        tags["codechat.rescored_from"] = cell.recording.cell_id
    for library in _LIBRARIES:
        try:
            tags[f"codechat.versions.{library}"] = version(library)
        except PackageNotFoundError:
            continue
    commit = git_commit()
    return {**tags, "codechat.git_commit": commit} if commit else tags


def _all_but_seed(cell: Cell) -> str:
    """What cells have in common that differ in the seed, or that of the agenda, alone, as a hash."""
    agenda = cell.config.agenda.model_copy(update={"seed": None})
    unseeded = cell.config.model_copy(update={"seed": None, "agenda": agenda})
    identity = cell_id(unseeded, cell.dataset, cell.tasks, cell.pool)
    return content_hash([identity, isinstance(cell, RescoredCell)])[:16]


def git_commit() -> str | None:
    """The commit of codechat's own source tree, with `-dirty` if it has changes; None for an installed package."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return None
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()
