"""The house rules that a reader relies on: who may import whom, and how large a room may grow."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "codechat"

# From the bottom to the top: a room imports only rooms below it; rooms on one line don't know each other.
LAYERS: list[set[str]] = [
    {"errors", "domain", "seeding", "environment"},
    {"files", "config", "template", "calls", "syntax"},
    {"registry", "cache"},
    {"records"},
    {"patterns", "extraction", "hardware", "sandbox"},
    {"refactoring", "suites"},
    {"tasks"},
    {"datasets", "instructions", "models", "agendas"},
    {"judges", "metrics"},
    {"journal"},
    {"report", "samples", "budget", "importing"},
    {"audit"},
    {"protocols"},
    {"tracking"},
    {"experiment"},
    {"cell"},
    {"runner", "estimate"},
    {"rescore"},
    {"cli"},
    {"__main__"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

# The one room that knows a library; nobody else imports it.
KEEPERS = {
    "hydra": "cli",
    "omegaconf": "cli",
    "mlflow": "tracking",
    "openai": "models",
    "evalplus": "datasets",
    "pymannkendall": "metrics",
    "matplotlib": "report",
    "rich": "cli",
}
HEAVY = {
    "mlflow",
    "openai",
    "evalplus",
    "pymannkendall",
    "pandas",
    "numpy",
    "scipy",
    "matplotlib",
    "hydra",
    "omegaconf",
}

MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Imported module names, and whether the import is at the module's top level."""
    top = set(tree.body) if isinstance(tree, ast.Module) else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node in top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module == "codechat":
                yield from ((f"codechat.{alias.name}", node in top) for alias in node.names)
            else:
                yield node.module, node in top


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        assert not [name for name, _ in imports(ast.parse(path.read_text())) if name.startswith("codechat")]
        return
    assert room in LEVEL, f"{room} has no place in LAYERS: decide where it belongs"
    for name, _ in imports(ast.parse(path.read_text())):
        if not name.startswith("codechat."):
            continue
        other = name.split(".")[1]
        if other == room:
            continue
        assert other in LEVEL, f"{path}: {name} is no room"
        assert LEVEL[other] < LEVEL[room], f"{room} must not import {other}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_libraries_stay_in_their_room_and_heavy_ones_load_late(path: Path) -> None:
    for name, at_top in imports(ast.parse(path.read_text())):
        library = name.split(".")[0]
        if library in KEEPERS:
            assert room_of(path) == KEEPERS[library], f"{library} belongs to {KEEPERS[library]}"
        if library in HEAVY:
            assert not at_top, f"{library} is slow to import: do it inside the function that needs it"


def test_the_store_folder_never_shadows_the_library() -> None:
    assert not list((ROOT / "mlflow").rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_rooms_stay_small(path: Path) -> None:
    source = path.read_text()
    assert source.count("\n") <= 320, "split it: a file is one room"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            assert node.end_lineno - node.lineno < 50, f"{node.name} is too long"


def test_no_room_is_named_for_odds_and_ends() -> None:
    assert not {path.stem for path in MODULES} & {"utils", "util", "helpers", "misc", "common"}
