"""The house rules that a reader relies on: who may import whom, and how large a room may grow."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "codechat"

# From the bottom to the top: a room imports only rooms below it.
LAYERS = (
    *("moved", "base", "sandbox", "datasets", "models", "judging", "report", "run", "studies", "cli", "testing"),
    "__main__",
    "__init__",  # the package itself, whose public names lead to the engine: nothing inside imports it
)
LEVEL = {room: level for level, room in enumerate(LAYERS)}

# The same within a room that has inner rooms: rooms in one set do not know each other.
INNER: dict[str, list[set[str]]] = {
    "run": [
        {"journal", "extensions"},
        {"protocols"},
        {"settings"},
        {"cell"},
        {"answering"},
        {"running"},
        {"results"},
        {"run", "construct"},
        {"__init__", "launchers"},
    ],
    "studies/refine/patterns": [{"reading"}, {"base"}, {"finders", "trees"}, {"rules"}, {"__init__"}],
}

# The rooms that know a library; no other room imports it.
KEEPERS = {
    "hydra": {"cli", "run"},
    "omegaconf": {"run"},
    "rich": {"cli"},
    "pyarrow": {"cli"},
    "pandas": {"cli", "report", "studies"},
    "mlflow": {"report"},
    "sqlalchemy": {"report"},
    "openai": {"models"},
    "pydantic_ai": {"models"},
    "boto3": {"models"},
    "botocore": {"models"},
    "httpx2": {"models"},
    "tree_sitter": {"sandbox"},
    "magika": {"studies"},
    "pygments": {"studies"},
    "aiohttp": {"models"},
    "evalplus": {"datasets"},
    "libcst": {"studies"},
    "numpy": {"report", "sandbox", "studies"},
    "ray": {"run"},
    "scipy": {"report", "studies"},
    "statsmodels": {"report", "studies"},
    "matplotlib": {"report", "studies"},
}
HEAVY = {
    "mlflow",
    "openai",
    "boto3",
    "botocore",
    "evalplus",
    "pandas",
    "numpy",
    "scipy",
    "statsmodels",
    "pyarrow",
    "matplotlib",
    "hydra",
    "omegaconf",
    "ray",
    "tree_sitter",
    "pygments",
    "magika",
    "aiohttp",
    "httpx2",
    "libcst",
    "sqlalchemy",
    "pydantic_ai",
}
# Modules that consist of what they do with a slow library, and import it at their top: others import them late.
LATE = {
    "codechat.models.agent.gateway",
    "codechat.models.calls.transport",
    "codechat.models.openai.client",
    "codechat.studies.refine.baselines.refactoring.cosmetic",
    "codechat.studies.refine.baselines.refactoring.structural",
    "codechat.studies.refine.baselines.refactoring.trees",
}
LONGEST_FILE, LONGEST_FUNCTION = 500, 60  # lines

MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


ROOMS: dict[str, list[Path]] = {room: [] for room in sorted({room_of(path) for path in MODULES})}
for module in MODULES:
    ROOMS[room_of(module)].append(module)


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Imported module names, and whether the import runs when the module is loaded."""
    waiting = [(tree, True)]
    while waiting:
        node, at_top = waiting.pop()
        at_top = at_top and not runs_late(node)
        waiting += ((child, at_top) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module != "codechat":
                yield node.module, at_top
            yield from ((f"{node.module}.{alias.name}", at_top) for alias in node.names)


@cache
def imports_of(path: Path) -> tuple[tuple[str, bool], ...]:
    """The imports of a file, which is parsed once for all rules about them."""
    return tuple(imports(ast.parse(path.read_text())))


def imported_in(room: str) -> Iterator[tuple[Path, str, bool]]:
    """What the files of a room import: the file, the name, and whether it is imported when the file is loaded."""
    for path in ROOMS[room]:
        yield from ((path, name, at_top) for name, at_top in imports_of(path))


def runs_late(node: ast.AST) -> bool:
    """Whether what is in a node does not run when its module is loaded."""
    typing_only = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return typing_only or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def room_named(name: str) -> str:
    """The room of an imported name of codechat; `__init__` for `codechat` itself and what it offers."""
    room = name.partition(".")[2].split(".")[0]
    return room if room in ROOMS else "__init__"


def test_importing_the_package_itself_counts_as_an_import() -> None:
    found = imports(ast.parse("import codechat\nfrom codechat import compose, base"))
    assert sorted(room_named(name) for name, _ in found) == ["__init__", "__init__", "base"]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    assert room in LEVEL, f"{room} has no place in LAYERS: decide where it belongs"
    for path, name, _ in imported_in(room):
        other = room_named(name) if name.split(".")[0] == "codechat" else room
        if other != room:
            assert LEVEL[other] < LEVEL[room], f"{path}: {room} must not import {other}"


@pytest.mark.parametrize(
    "study", sorted(path.name for path in (PACKAGE / "studies").iterdir() if (path / "__init__.py").exists())
)
def test_a_study_imports_no_other(study: str) -> None:
    for path, name, _ in imported_in("studies"):
        if path.relative_to(PACKAGE / "studies").parts[0] == study and name.startswith("codechat.studies."):
            assert name.split(".")[2] == study, f"{path}: what two studies need belongs in a room below them"


def test_a_study_takes_interfaces_of_the_engine_alone() -> None:
    """What a cell is and how a protocol speaks; not what runs cells, recipes or sweeps."""
    runs = (
        "run.run",
        "run.running",
        "run.answering",
        "run.results",
        "run.launchers",
        "run.construct.engine",
        "run.construct.run",
    )
    for path, name, _ in imported_in("studies"):
        assert not name.startswith(tuple(f"codechat.{each}" for each in runs)), f"{path} imports {name}"


def test_no_room_names_a_study() -> None:
    names = [path.name for path in (PACKAGE / "studies").iterdir() if (path / "__init__.py").exists()]
    for path in MODULES:
        if room_of(path) not in ("studies", "moved"):
            assert not re.search(rf"studies[./](?:{'|'.join(names)})\b", path.read_text()), f"{path} names a study"


def registered_in_studies() -> Iterator[str]:
    """The names of the protocols, datasets and formats of all studies."""
    for path in ROOMS["studies"]:
        yield from re.findall(r'^@(?:PROTOCOLS|DATASETS|FORMATS)\.register\(\s*"(\w+)"', path.read_text(), re.MULTILINE)


def test_no_room_asks_for_what_a_study_brings() -> None:
    """No code outside asks by name for a study's protocol, dataset or format, nor for a kind of task."""
    names = {*registered_in_studies()} - {"codechat"}  # the format of CodeChat-Eval's package is called as the project
    assert {"refine", "assist", "levels", "cab", "multicodeif"} <= names
    for path in MODULES:
        if room_of(path) == "studies":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant):
                assert node.value not in names, f"{path}:{node.lineno} names {node.value!r}"
            asked = ast.unparse(node.args[1]) if isinstance(node, ast.Call) and len(node.args) == 2 else ""
            kind = isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and asked.endswith("Task")
            assert not kind, f"{path}:{getattr(node, 'lineno', 0)} asks for a kind of task"


@pytest.mark.parametrize("readme", sorted(PACKAGE.rglob("README.md")), ids=lambda path: path.parent.name)
def test_a_rooms_readme_is_short_and_names_files_that_are_there(readme: Path) -> None:
    text = readme.read_text()
    assert len(text.splitlines()) <= 15
    for name in re.findall(r"`(\w+(?:\.py|\*\.py|/))`", text):
        found = any(any(room.rglob(name.rstrip("/"))) for room in (readme.parent, PACKAGE / "studies"))
        assert found, f"{readme} names {name}"


def test_every_study_says_what_it_is() -> None:
    for study in (path.parent for path in (PACKAGE / "studies").glob("*/__init__.py")):
        assert "paper: `docs/" in (study / "README.md").read_text().replace("\n  ", " "), (
            f"{study} names no documentation"
        )


def test_rules_of_constraints_name_no_language() -> None:
    """They ask it for its customs; only the tables of the published harness are of the languages that it knew."""
    names = {
        "python",
        "java",
        "javascript",
        "typescript",
        "go",
        "rust",
        "kotlin",
        "cpp",
        "c",
        "csharp",
        "haskell",
        "zig",
    }
    for path in (PACKAGE / "studies/multicodeif/constraints").glob("*.py"):
        if not path.name.startswith("published"):
            named = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
            assert not named & names, f"{path} names {sorted(named & names)}: ask the language"


def test_importing_the_package_costs_nothing() -> None:
    at_top = {name for _, name, top in imported_in("__init__") if top and name.startswith("codechat")}
    assert {".".join(name.split(".")[:2]) for name in at_top} == {"codechat.base", "codechat.moved"}


def test_the_readme_says_what_every_room_does() -> None:
    rows = [line.split("|")[1] for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    named = {room for row in rows for room in re.findall("`([a-z]+)`", row)}
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders <= named, f"the README's table of rooms lacks {folders - named}"


@pytest.mark.parametrize("room", INNER)
def test_an_inner_room_imports_only_inner_rooms_below_it(room: str) -> None:
    level = {inner: level for level, inners in enumerate(INNER[room]) for inner in inners}
    for path in (PACKAGE / room).rglob("*.py"):
        inner = path.relative_to(PACKAGE / room).parts[0].removesuffix(".py")
        assert inner in level, f"{inner} has no place in INNER: decide where it belongs"
        package = f"codechat.{room.replace('/', '.')}."
        for name, _ in imports_of(path):
            if name.startswith(package):
                other = name.removeprefix(package).split(".")[0]
                assert other == inner or level.get(other, len(level)) < level[inner], f"{path}: {name} is above it"


@pytest.mark.parametrize("room", ROOMS)
def test_libraries_stay_in_their_room_and_heavy_ones_load_late(room: str) -> None:
    for path, name, at_top in imported_in(room):
        library = name.split(".")[0]
        if library in KEEPERS:
            assert room in KEEPERS[library], f"{path}: {library} belongs to {sorted(KEEPERS[library])}"
        if at_top and module_of(path) not in LATE:
            slow = library in HEAVY or name in LATE
            assert not slow, f"{path}: {name} is slow to import: do it inside the function that needs it"


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_the_store_folder_never_shadows_the_library() -> None:
    assert not list((ROOT / "mlflow").rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_stay_small(room: str) -> None:
    for path in ROOMS[room]:
        source = path.read_text()
        assert source.count("\n") <= LONGEST_FILE, f"{path}: split it"
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                lines = node.end_lineno - node.lineno + 1
                assert lines <= LONGEST_FUNCTION, f"{path}: {node.name} has {lines} lines"


def test_no_room_is_named_for_odds_and_ends() -> None:
    assert not {path.stem for path in MODULES} & {"utils", "util", "helpers", "misc", "common"}


def test_helpers_of_tests_are_few_modules() -> None:
    assert len([*(ROOT / "tests/support").glob("*.py")]) <= 25, "a helper of several tests belongs to one of these"


def test_the_engine_knows_no_test_server() -> None:
    assert not [path for path in MODULES if room_of(path) != "testing" and "codechat.testing" in path.read_text()]


def libraries(path: Path) -> set[str]:
    """The first word of every name that a file imports, inside its functions too."""
    return {name.split(".")[0] for name, _ in imports_of(path)}


@pytest.mark.parametrize("room", ROOMS)
def test_every_imported_library_is_a_declared_dependency(room: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    declared = {distribution(re.split(r"[^\w.-]", line)[0]) for line in lines}
    used = {library for path in ROOMS[room] for library in libraries(path)}
    for library in used - sys.stdlib_module_names - {"codechat"}:
        brought_by = {distribution(name) for name in DISTRIBUTIONS.get(library, [library])}
        assert brought_by & declared, f"{library} is imported and not declared in pyproject.toml"


def distribution(name: str) -> str:
    """A distribution's name as packaging tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


DISTRIBUTIONS = packages_distributions()


def test_benchmarks_and_tests_import_nothing_of_each_other() -> None:
    of_tests = {"tests", "support", *(path.stem for path in TESTS)}
    of_benchmarks = {"benchmarks", *(path.stem for path in BENCHMARKS)}
    for path in BENCHMARKS:
        assert not libraries(path) & of_tests, f"{path}: what both need belongs to codechat.testing"
        assert "sys.path" not in path.read_text(), f"{path}: imports come from codechat and from beside the file"
    for path in TESTS:
        assert not libraries(path) & of_benchmarks, f"{path}: run the benchmark as a command"


def test_the_root_holds_what_belongs_there() -> None:
    """A stray redirect writes its file here, and `git add` takes it along."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no checkout: the listing is git's")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip(f"git lists nothing: {listed.stderr.strip()}")
    folders = {"benchmarks", "codechat", "conf", "docs", "mlflow", "sweeps", "tests", ".ci"}
    files = {".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"}
    assert {line.partition("/")[0] for line in listed.stdout.splitlines()} == folders | files
