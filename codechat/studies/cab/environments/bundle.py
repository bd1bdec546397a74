"""The interpreter that runs beside the programs of any image: its loader, its libraries, and the few modules it needs.

Only that much is shown to a container, at a place of its own, so that an image needs no Python, and no C library of
a certain kind.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from filelock import FileLock

from codechat.base.errors import InfrastructureError
from codechat.base.files import content_hash
from codechat.studies.cab.environments.cache import interpreters_folder
from codechat.studies.cab.environments.resident import CODE

PLACE = "/codechat"
"""The folder that shows it in a container."""
PLACES = ("lower", "meeting")  # for what else a container is shown
ASK_S = 60.0
BUNDLE_VERSION = 3  # of what a folder holds
# Prints the module files and the libraries of a process that imported what the code of a worktree imports.
ASK = """
import contextlib, ctypes, collections.abc, errno, fcntl, importlib.machinery, json, marshal, mmap, os, platform
import resource, select, shutil, signal, socket, stat, struct, sys, time, traceback, typing
import encodings.ascii, encodings.latin_1, encodings.utf_8, encodings.idna
with open("/proc/self/maps") as stream:
    libraries = sorted({line.split(None, 5)[5].strip() for line in stream if ".so" in line})
modules = sorted({each.__file__ for each in list(sys.modules.values()) if getattr(each, "__file__", None)})
print(json.dumps({"libraries": libraries, "modules": modules}))
"""


def bundle() -> Path:
    """The folder of the interpreter and codechat's code for worktrees, made once. Raises `InfrastructureError`."""
    code = {part: folder / "inside" for part, folder in CODE.items()}
    texts = [path.read_bytes() for folder in code.values() for path in sorted(folder.glob("*.py"))]
    key = content_hash([sys.version, sys.base_prefix, BUNDLE_VERSION, os.getuid(), content_hash(b"".join(texts))])[:24]
    folder = interpreters_folder() / key
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.is_dir():
            made = folder.with_suffix(".part")
            shutil.rmtree(made, ignore_errors=True)
            _interpreter(made)
            for part, place in code.items():
                shutil.copytree(place, made / part / "inside", ignore=shutil.ignore_patterns("__pycache__"))
            for name in PLACES:
                (made / name).mkdir()
            made.rename(folder)
    return folder


def _interpreter(made: Path) -> None:
    program = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    done = subprocess.run([program, "-S", "-s", "-P", "-c", ASK], capture_output=True, timeout=ASK_S, check=False)
    if done.returncode:
        raise InfrastructureError(f"the interpreter {program} does not start: {done.stderr.decode(errors='replace')}")
    answer = json.loads(done.stdout)
    standard = Path(sysconfig.get_path("stdlib")).resolve()
    (made / "lib").mkdir(parents=True)
    shutil.copy(program, made / "python")
    for library in map(Path, answer["libraries"]):
        if not library.is_relative_to(standard):
            loader = library.name.startswith(("ld-", "ld."))
            shutil.copy(library, made / ("loader" if loader else f"lib/{library.name}"))
            name = library.name
            while not loader and not name.endswith(".so"):  # programs ask for libffi.so.8.1.2 by libffi.so.8
                name = name.rpartition(".")[0]
                (made / "lib" / name).symlink_to(library.name)
    for file in map(Path, answer["modules"]):
        module = file.parent.resolve() / file.name  # a link itself, if the standard library's files are links
        whole = module.parent.glob("*.py") if module.name == "__init__.py" else ()  # some modules go by two names
        for path in (module, *whole):
            if path.is_relative_to(standard):
                place = made / "lib" / standard.name / path.relative_to(standard)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place)
    for folder, _, files in os.walk(made):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                path.chmod(0o755)


def words(arguments: list[str]) -> list[str]:
    """The command line of the interpreter in a container; its variable is `HOME_OF_PYTHON`."""
    return [f"{PLACE}/loader", "--library-path", f"{PLACE}/lib", f"{PLACE}/python", *arguments]


HOME_OF_PYTHON = f"PYTHONHOME={PLACE}"
