"""What a cell's folder is after a mistake: gone if nothing was recorded, and kept with whatever was."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from codechat import compose
from codechat.base.errors import UserError
from codechat.run import run as run_module
from codechat.run.cell import Cell, build_cell, is_unused, lock
from codechat.run.journal import Journal


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    return build_cell(compose(["model=echo", "dataset.limit=1", "tracking=none", f"runs_dir={tmp_path / 'runs'}"]))


def fail(cell: Cell, record: Callable[[Journal], object]) -> None:
    with pytest.raises(UserError), lock(cell.folder):
        with closing(Journal(cell.folder / "journal.db")) as journal:
            record(journal)
        (cell.folder / "config.yaml").write_text("seed: 0\n")
        raise UserError("nothing answers", "start it")


def test_nothing_recorded_leaves_no_folder(cell: Cell) -> None:
    fail(cell, lambda journal: None)
    assert not cell.folder.exists()
    fail(cell, lambda journal: None)
    assert not cell.folder.exists(), "and it can be tried again"


def test_what_was_recorded_stays(cell: Cell) -> None:
    fail(cell, lambda journal: journal.add_wall(1.0))
    assert {path.name for path in cell.folder.iterdir()} == {".lock", "journal.db", "config.yaml"}


def test_a_folder_that_was_there_before_stays_and_so_does_one_with_a_file_of_another(cell: Cell) -> None:
    cell.folder.mkdir(parents=True)
    fail(cell, lambda journal: None)
    assert (cell.folder / "journal.db").exists()
    for path in cell.folder.iterdir():
        path.unlink()
    cell.folder.rmdir()
    fail(cell, lambda journal: (cell.folder / "notes.txt").write_text("mine"))
    assert (cell.folder / "notes.txt").exists() and (cell.folder / "journal.db").exists()


def test_a_start_that_was_killed_is_told_from_a_folder_with_content(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    assert is_unused(folder, "config.yaml")
    folder.mkdir()
    assert is_unused(folder, "config.yaml")
    (folder / ".lock").touch()
    (folder / ".config.yaml.abc").touch()
    assert is_unused(folder, "config.yaml")
    with closing(Journal(folder / "journal.db")) as journal:
        journal.add_wall(1.0)
    assert is_unused(folder, "config.yaml")
    (folder / "tables").mkdir()
    assert not is_unused(folder, "config.yaml") and not is_unused(folder / ".lock", "config.yaml"), "that is a file"


def test_the_settings_are_there_before_the_journal(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException): ...

    def killed(path: Path) -> None:
        raise Killed

    monkeypatch.setattr(run_module, "Journal", killed)
    with pytest.raises(Killed):
        run_module.run_built(cell, ["codechat"])
    assert (cell.folder / "config.yaml").read_text() == cell.config_yaml()
