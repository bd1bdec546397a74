"""Stepwise sessions of a coding agent, whose folder is the repository: what it sees, and how its whole file is tested."""

import io
import json
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from codechat.base.config import original_option
from codechat.base.domain import Reply, Trajectory
from codechat.base.errors import UserError
from codechat.cli.app import main
from codechat.datasets import DATASETS
from codechat.datasets.tasks import Start
from codechat.models import MODELS, ModelConfig, ModelTraits, Request
from codechat.run.run import run as run_composed
from codechat.run.settings.compose import compose
from codechat.studies.sreval import suite_maven as maven
from codechat.studies.sreval.rows import StepTask
from support.repositories import (
    FILES,
    JAVA_FILES,
    METHOD,
    PROJECT,
    STAND_IN,
    TOTAL,
    TWICE,
    sandbox_words,
    write_files,
    write_lines,
    write_shop,
)

pytestmark = pytest.mark.long

Edit = Callable[[str], str | None]
STUB = "    def total(self, rate=RATE):\n        raise NotImplementedError\n"


class AgentConfig(ModelConfig):
    kind: Literal["scripted_agent"] = original_option("scripted_agent", "which provider answers")
    name: str = original_option("scripted", "the name")


class Agent:
    """Answers with its file as the edits make it, each after the one before."""

    def __init__(self, edits: Sequence[Edit], seen: dict[str, bytes]) -> None:
        self._edits, self._seen, self._file = edits, seen, ""

    async def check(self) -> None: ...

    async def complete(self, request: Request) -> Reply:
        assert request.desk is not None
        if request.turn == 0:
            start = request.desk.start()
            self._seen |= unpacked(start)
            self._file = self._seen[start.file].decode()
        found = self._edits[request.turn](self._file)
        self._file = found or self._file
        return Reply("Done. ```python\nx = 1\n```", trajectory=Trajectory(found))

    async def aclose(self) -> None: ...


def unpacked(start: Start) -> dict[str, bytes]:
    assert start.pack is not None
    with tarfile.open(fileobj=io.BytesIO(start.pack())) as packed:
        read = {entry.name: packed.extractfile(entry) for entry in packed}
        return {name: stream.read() for name, stream in read.items() if stream is not None}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


Agents = Callable[[Sequence[Edit]], dict[str, bytes]]


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agents:
    """Registers an agent with these edits; the files that it is going to see."""

    def register(edits: Sequence[Edit]) -> dict[str, bytes]:
        seen: dict[str, bytes] = {}

        def scripted_agent(config: AgentConfig) -> Agent:
            """Writes what the test says."""
            return Agent(edits, seen)

        MODELS.discover()
        known = MODELS["echo"]
        traits = ModelTraits(has_desk=True, offline=True)
        component = type(known)("scripted_agent", AgentConfig, scripted_agent, traits, MODELS.key)
        monkeypatch.setitem(MODELS._components, "scripted_agent", component)
        return seen

    return register


def turns_of(words: list[str]) -> list[dict[str, Any]]:
    cell = run_composed(compose([*words, "model=scripted_agent", "tracking=none", "hardware.workers=1"]))
    (line,) = (cell.folder / "sessions.jsonl").read_text().splitlines()
    turns: list[dict[str, Any]] = json.loads(line)["turns"]
    return turns


OWN = FILES["shop/basket.py"].partition("    @loud\n")[2].partition("\n    def first")[0]
FILE = FILES["shop/basket.py"].replace(OWN, STUB)  # as the agent finds it


def solved(file: str) -> str:
    """The first turn's reference in place of the stub."""
    return file.replace(STUB, "    def total(self, rate=RATE):\n        return rate * sum(self.prices)\n")


def helped(file: str) -> str:
    """The second turn's reference, by a function elsewhere in the file."""
    head = "def _kept(prices):\n    return [each for each in prices if each >= 0]\n\n\n"
    return head + solved(file).replace("sum(self.prices)", "sum(_kept(self.prices))")


def test_the_whole_file_is_tested_in_the_repository(here: Path, agent: Agents) -> None:
    seen = agent([solved, lambda _: helped(FILE), lambda _: None])
    words = ["protocol=stepwise", *write_shop(here)]
    first, second, third = turns_of(words)
    assert (first["passed"], second["passed"]) == (True, True), "with a function beside it that no other code has"
    assert second["code"].startswith("def _kept") and "class Basket" in second["code"]
    assert (third["outcome"], third["passed"]) == ("no_code", False)
    assert seen["shop/basket.py"].decode() == FILE
    root = here / "repos" / PROJECT
    assert {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.py")} == FILES


def test_what_is_broken_fails_and_what_is_gone_is_no_code(here: Path, agent: Agents) -> None:
    agent([lambda file: file + "def (", lambda file: file.replace("total", "sum_up"), solved])
    first, second, third = turns_of(["protocol=stepwise", *write_shop(here)])
    assert (first["outcome"], first["decided"]) == ("fail", "inside")
    assert (second["outcome"], second["failure"]["reason"]) == (
        "no_code",
        "the function's file no longer defines it",
    )
    assert third["outcome"] == "no_code", "its file is still without the function"


def task_of(words: list[str]) -> StepTask:
    fields = dict(word.removeprefix("dataset.").split("=", 1) for word in words if word.startswith("dataset."))
    kind = next(word.partition("=")[2] for word in words if word.startswith("dataset="))
    (task,) = DATASETS.build(DATASETS.validate({"kind": kind, **fields})).tasks
    assert isinstance(task, StepTask)
    return task


def squeezed(text: str | bytes) -> bytes:
    return b"".join((text.encode() if isinstance(text, str) else text).split())


COPIES = {
    "build/lib/shop/basket.py": FILES["shop/basket.py"],
    "shop/basket.py.orig": FILES["shop/basket.py"].replace("    ", "\t"),
    "docs/total.rst": "How it counts::\n\n" + FILES["shop/basket.py"].replace("\n", "\n    "),
    "notes.txt": "  def total(self, rate=RATE):\n    return rate * sum(each for each in self.prices if each >= 0)",
    "other/test_later.py": TOTAL["turn_datas"][1]["test"],  # type: ignore[index]
    "tests/more/test_total.py": "def test_all():\n    assert Basket(1).total() == 2\n",
    "tests/data.json": "{}",
    ".git/packed": "x",
    "dist/shop.tar.gz": "x",
    ".pytest_cache/v/lastfailed": "x",
}


def test_neither_references_nor_tests_are_seen(here: Path) -> None:
    words = write_shop(here)
    write_files(here / "repos" / PROJECT, {**COPIES, "README.md": "A shop.", "shop/tests_of_time.py": "x = 1"})
    start = task_of(words).start()
    found = unpacked(start)
    assert start.file == "shop/basket.py"
    assert {*found} == {"README.md", "shop/__init__.py", "shop/basket.py", "shop/tests_of_time.py"}
    everything = b"".join(map(squeezed, found.values()))
    for turn in TOTAL["turn_datas"]:  # type: ignore[attr-defined]
        for secret in (turn["solution"].replace("@loud\n", ""), turn["test"]):
            assert squeezed(secret) not in everything
    assert squeezed(OWN) not in everything and b"test_total" not in everything and b"The sum" not in everything
    assert squeezed(FILES["tests/test_basket.py"]) not in everything


def test_a_test_outside_of_a_folder_of_tests_is_left_out_alone(here: Path) -> None:
    words = write_shop(here)
    root = here / "repos" / PROJECT
    write_files(root, {"test_basket.py": FILES["tests/test_basket.py"], "test_other.py": "def test_other(): ..."})
    rows = json.loads((here / "places.jsonl").read_text())
    write_lines(here / "places.jsonl", {**rows, "tests": ["test_basket.py::BasketTest::test_total"]})
    found = unpacked(task_of(words).start())
    assert "test_other.py" in found and "test_basket.py" not in found


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (["protocol=stepwise", "protocol.context=golden"], "set protocol.context=basic"),
        (["protocol=stepwise", "protocol.prompting=code_edit"], "set protocol.prompting=full_history"),
        (["protocol=stepwise", "protocol.prompting=cumulative"], "set protocol.prompting=full_history"),
    ],
)
def test_options_that_show_other_code_than_the_folder_has_are_refused(
    here: Path, agent: Agents, capsys: pytest.CaptureFixture[str], option: list[str], told: str
) -> None:
    agent([])
    words = [*option, *write_shop(here), "model=scripted_agent", "tracking=none"]
    assert main(words) == 2
    assert told in capsys.readouterr().err and not Path("runs").exists()


@pytest.mark.parametrize("harness", ["guarded", "official"])
def test_the_file_of_a_method_in_java(here: Path, agent: Agents, monkeypatch: pytest.MonkeyPatch, harness: str) -> None:
    monkeypatch.setattr(maven, "toolchain", lambda jdk: STAND_IN)
    monkeypatch.setattr(maven, "_WORKING", {})
    copies = {"backup/Twice.java": JAVA_FILES["src/main/java/shop/Twice.java"], "src/test/java/shop/Own.java": "x"}
    write_files(here / "repos" / "shop", {**JAVA_FILES, **copies})
    write_lines(here / "tasks.jsonl", TWICE)
    data = ["dataset=sreval_java_repository", "dataset.path=tasks.jsonl", "dataset.repos=repos"]
    sandbox = sandbox_words(Path("/usr/share"))
    words = ["protocol=stepwise", f"protocol.harness={harness}", *data, *sandbox]
    whole = JAVA_FILES["src/main/java/shop/Twice.java"]
    seen = agent([lambda file: whole, lambda file: whole.replace("return x + x", "return 3")])
    first, second = turns_of(words)
    assert (first["passed"], first["code"]) == (True, whole)
    assert (second["outcome"], second["decided"]) == ("fail", "inside")
    assert {*seen} == {"pom.xml", "mvn", "src/main/java/shop/Twice.java"}
    file = seen["src/main/java/shop/Twice.java"].decode()
    stub = "public static int twice(int x) {\n    throw new UnsupportedOperationException();\n}\n"
    assert file == whole.replace(METHOD + "\n", stub)
    agent([lambda file: whole.replace("twice", "thrice"), lambda file: file.replace("thrice", "twice") + "}"])
    assert [turn["outcome"] for turn in turns_of([*words, "seed=1"])] == ["no_code", "pass"]


def test_a_repository_that_is_missing_is_told(here: Path) -> None:
    task = task_of(write_shop(here))
    (here / "repos" / PROJECT / "shop/basket.py").unlink()
    from codechat.studies.sreval.suite_inserted import read_source

    read_source.cache_clear()
    with pytest.raises(UserError, match="cannot read"):
        task.start()
