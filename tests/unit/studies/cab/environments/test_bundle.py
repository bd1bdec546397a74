"""The interpreter that a container is shown, started without a container."""

import subprocess

from codechat.sandbox.rooms import boot
from codechat.studies.cab.environments.images import bundle


def test_it_holds_all_that_the_code_of_a_worktree_imports() -> None:
    folder = bundle()
    program = [folder / "loader", "--library-path", folder / "lib", folder / "python"]
    *options, code = boot("", root=str(folder))
    assert code.count("main('')") == 1
    named = code.replace("main('')", "print(main.__code__.co_filename)")
    done = subprocess.run(
        [*program, *options, named], env={"PYTHONHOME": str(folder)}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(folder / "sandbox/rooms/inside/starter.py")
