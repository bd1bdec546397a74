"""The interpreter that a container is shown, started without a container."""

import subprocess
from pathlib import Path

from codechat.studies.cab.environments.bundle import bundle


def test_it_holds_all_that_the_code_of_a_worktree_imports(tmp_path: Path) -> None:
    folder = bundle()
    (tmp_path / "codechat").symlink_to(folder)
    program = [folder / "loader", "--library-path", folder / "lib", folder / "python", "-S", "-s", "-P", "-B", "-c"]
    imports = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from codechat.studies.cab.environments.inside import starter"
    named = f"{imports}; print(starter.__file__)"
    done = subprocess.run(
        [*program, named], env={"PYTHONHOME": str(folder)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(tmp_path / "codechat/studies/cab/environments/inside/starter.py")
