"""The pages hold what they show: the files of "write your own" are written and its commands run, as they stand there."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "mlflow" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
OWN = (ROOT / "docs" / "write-your-own.md").read_text(encoding="utf-8")
NAMED_FILE = re.compile(r"^`([\w./]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ANYWHERE = "sandbox.allow_weak=true"  # where there is no bubblewrap; it changes no result


def blocks(text: str, language: str) -> list[str]:
    return [body for tag, body in BLOCK.findall(text) if tag == language]


def run(folder: Path, *words: str) -> str:
    """Run Python with these words; what it prints."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True, text=True, timeout=300, check=False, cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), "PATH": path, "COLUMNS": "200"},
    )  # fmt: skip
    assert done.returncode == 0, f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


def command(folder: Path, line: str) -> str:
    program, *words = shlex.split(line)
    assert program == "codechat", line
    runs_a_cell = words[0] == "construct" or (not words[0].startswith("--") and "=" in words[0])
    return run(folder, "-m", "codechat", *words, *([ANYWHERE] if runs_a_cell else []))


@pytest.mark.long
@pytest.mark.parametrize("page", ["sreval", "multicodeif"])
def test_a_construction_without_a_model_runs_as_its_page_says(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split("**Try it without a model**")[1]
    ((name, content),) = NAMED_FILE.findall(text)
    (tmp_path / name).write_text(content, encoding="utf-8")
    construct, use = blocks(text, "bash")[0].splitlines()
    told = command(tmp_path, f"{construct} tracking=none")
    assert "1 task kept of 1 seed" in told
    (proposed,) = (line for line in told.splitlines() if line.startswith("run them"))
    assert {*shlex.split(proposed)[3:]} - {"model=NAME"} < {*shlex.split(use)}
    assert "1 completed" in command(tmp_path, f"{use} tracking=none")


@pytest.mark.long
def test_a_construction_without_github_runs_as_its_page_says(tmp_path: Path) -> None:
    line = next(
        line
        for line in (ROOT / "docs" / "codeassist.md").read_text(encoding="utf-8").splitlines()
        if "issues_rehearsed out" in line
    )
    with subprocess.Popen(
        [sys.executable, "-m", "codechat.testing.github"], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None and server.stdout.readline().startswith("octo/lines at")
            said = command(tmp_path, f"{line.removeprefix('GITHUB_TOKEN=none ')} github.token_env=HOME tracking=none")
            server.send_signal(signal.SIGINT)
            assert server.wait(60) == 0
        finally:
            server.kill()
    assert "1 task kept of 1 seed" in said and all(
        dropped in said for dropped in ("1 media", "1 not completed", "1 one participant")
    )
    assert "0 of 0" not in said, "languages of which nothing was to be built"
    (proposed,) = (line.partition("codechat ")[2] for line in said.splitlines() if line.startswith("run them"))
    whole = proposed.replace("NAME", "gpt5").replace("dataset.repos=DIR", "environment=none")
    assert "would hold 1 session" in command(tmp_path, f"codechat {whole} dry_run=true tracking=none")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's package, installed as pip does it: its modules and what its metadata says of them."""
    folder = tmp_path_factory.mktemp("own")
    for name, text in NAMED_FILE.findall(OWN):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "my_parts" / "__init__.py").touch()
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"my_parts-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.mark.long
def test_the_commands_of_the_page_run(package: Path) -> None:
    lines = [line for block in blocks(OWN, "console") for line in block.splitlines()]
    printed = [" ".join(command(package, line).split()) for line in lines]
    assert len(lines) >= 8
    for block in blocks(OWN, "text"):
        assert any(" ".join(block.split()) in text for text in printed), f"no command prints\n{block}"
    # What the page says of these cells: they are scored again, and have a section of the report.
    (cell,) = (package / "runs").glob("piped-shop-protocol-mend-*")
    again = run(package, "-m", "codechat", "rescore", f"run={cell}", "out=again", ANYWHERE)
    assert re.search(r"mended +0\.500", again)
    run(package, "-m", "codechat", "report", f"runs={cell}", "out=report")
    assert "Mend: answers that are mended" in (package / "report" / "index.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_test_of_the_page_passes(package: Path) -> None:
    text = (package / "test_my_parts.py").read_text(encoding="utf-8")
    assert '"tracking=none"' in text
    run(package, "-c", text.replace('"tracking=none"', f'"tracking=none", "{ANYWHERE}"'))


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    snippets = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    assert snippets
    for snippet in snippets:
        run(tmp_path, "-c", snippet)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        name, _, place = link.partition("#")
        target = page if not name else page.parent / name
        assert target.exists(), f"{page.name}: {link}"
        if place:
            assert place in anchors(target), f"{page.name}: {link}"


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    headings = [line.lstrip("#").strip() for line in text.splitlines() if re.match(r"#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
