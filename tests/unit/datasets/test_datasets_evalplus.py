"""HumanEval+ and MBPP+: read as EvalPlus reads them, from a file, its override or its cache."""

import ast
import functools
import gzip
import http.server
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from codechat.base.errors import UserError
from codechat.datasets import DATASETS
from codechat.datasets.humaneval import RELEASE as HUMANEVAL
from codechat.datasets.mbpp import RELEASE as MBPP
from codechat.datasets.tasks import Dataset, Task
from codechat.sandbox.languages.python.syntax import parse
from codechat.sandbox.suites.calls import Calls
from support.mistakes import mistake

pytestmark = pytest.mark.long

FILES = {"humaneval": "HumanEvalPlus.jsonl.gz", "mbpp": "MbppPlus.jsonl.gz"}
SIZES = {"humaneval": 164, "mbpp": 378}


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("CODECHAT_TEST_DATA")
    if not folder:
        pytest.skip("CODECHAT_TEST_DATA is unset: no benchmark files")
    return Path(folder)


def load(kind: str, **options: object) -> Dataset:
    return DATASETS.build(DATASETS.validate({"kind": kind, **options}))


def calls(task: Task) -> Calls:
    assert isinstance(task.suite, Calls)
    return task.suite


@functools.cache
def released(kind: str) -> Dataset:
    return load(kind, path=str(Path(os.environ["CODECHAT_TEST_DATA"]) / FILES[kind]))


@pytest.mark.parametrize("kind", FILES)
def test_every_task_is_there_and_whole(data: Path, kind: str) -> None:
    tasks = released(kind).tasks
    assert not released(kind).remark, "it is the release"
    assert len(tasks) == len({task.task_id for task in tasks}) == SIZES[kind]
    for task in tasks:
        assert task.target.signature.split("(")[0].split() == ["def", task.target.entry_point]
        assert task.target.signature.endswith(":")
        assert task.reference is not None and task.target.signature in task.reference
        tree = parse(task.reference)  # some references hold escapes that Python warns of
        assert tree is not None
        assert task.target.entry_point in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert calls(task).base


@pytest.mark.parametrize("kind", FILES)
def test_hash_is_of_the_content_not_of_the_file(data: Path, tmp_path: Path, kind: str) -> None:
    packed = data / FILES[kind]
    lines = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
    plain, swapped = tmp_path / "elsewhere.jsonl", tmp_path / "swapped.jsonl"
    plain.write_bytes(b"".join(lines))
    swapped.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    assert load(kind, path=str(plain)).content_hash == released(kind).content_hash
    assert load(kind, path=str(swapped)).content_hash != released(kind).content_hash


def test_humaneval_texts(data: Path) -> None:
    task = released("humaneval").tasks[32]
    assert task.task_id == "HumanEval/32" and calls(task).oracle == "polynomial_root" and calls(task).atol == 1e-4
    assert task.reference is not None and task.reference.startswith("import math") and "def poly(" in task.reference
    assert {t.task_id for t in released("humaneval").tasks if calls(t).oracle != "equal"} == {"HumanEval/32"}
    assert calls(released("humaneval").tasks[0]).base[0] == ([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.3)


def test_mbpp_types_and_oracles(data: Path) -> None:
    tasks = {task.task_id: task for task in released("mbpp").tasks}
    assert calls(tasks["Mbpp/2"]).base[0] == ((3, 4, 5, 6), (5, 7, 4, 10))
    assert isinstance(calls(tasks["Mbpp/252"]).base[0][0], complex)
    assert tasks["Mbpp/11"].reference is not None and "assert" not in tasks["Mbpp/11"].reference
    assert tasks["Mbpp/11"].target.signature == "def remove_Occ(s,ch):"
    assert {calls(t).oracle for t in tasks.values()} == {
        "equal", "set_equal", "not_none", "digit_distance", "surface_area",
    }  # fmt: skip
    by_name = {t.target.entry_point: calls(t).oracle for t in tasks.values() if calls(t).oracle != "equal"}
    assert by_name == {
        **dict.fromkeys(
            ["similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum"], "set_equal"
        ),
        **dict.fromkeys(["find_dissimilar", "Diff"], "set_equal"),
        **dict.fromkeys(["check_str", "text_match_three", "text_starta_endb"], "not_none"),
        "digit_distance_nums": "digit_distance",
        "surface_Area": "surface_area",
    }


COMPARE = """
import sys
from evalplus.data import get_human_eval_plus, get_mbpp_plus
from codechat.datasets import DATASETS
kind = sys.argv[1]
theirs = {"humaneval": get_human_eval_plus, "mbpp": get_mbpp_plus}[kind]()
ours = DATASETS.build(DATASETS.validate({"kind": kind}))  # the override variable is set for both
def calls(value):
    return repr([tuple(call) for call in value])
assert list(theirs) == [task.task_id for task in ours.tasks]
for task in ours.tasks:
    row = theirs[task.task_id]
    assert calls(row["base_input"]) == calls(task.suite.base), task.task_id
    assert calls(row["plus_input"]) == calls(task.suite.plus), task.task_id
    assert row["atol"] == task.suite.atol, task.task_id
from evalplus.data.utils import get_dataset_metadata
from codechat.datasets.humaneval import RELEASE as H
from codechat.datasets.mbpp import RELEASE as M
from evalplus.data.humaneval import HUMANEVAL_PLUS_VERSION
from evalplus.data.mbpp import MBPP_PLUS_VERSION
assert (H.version, M.version) == (HUMANEVAL_PLUS_VERSION, MBPP_PLUS_VERSION)
for release in (H, M):
    assert str(release.cache_path()) == get_dataset_metadata(release.name, release.version, False)[1]
"""


@pytest.mark.parametrize("kind", FILES)
def test_same_inputs_as_evalplus_own_loader(data: Path, tmp_path: Path, kind: str) -> None:
    plain = tmp_path / "plain.jsonl"
    plain.write_bytes(gzip.decompress((data / FILES[kind]).read_bytes()))
    variable = {"humaneval": HUMANEVAL, "mbpp": MBPP}[kind].override
    run_python(COMPARE, kind, **{variable: str(plain)})


LOAD = """
import sys
from codechat.datasets import DATASETS
from codechat.base.errors import UserError
for url in sys.argv[1:]:
    try:
        dataset = DATASETS.build(DATASETS.validate({"kind": "humaneval", "url": url}))
        print(len(dataset.tasks), "datasets" in sys.modules)
    except UserError as error:
        print(error)
"""


def run_python(script: str, *arguments: str, cwd: Path | None = None, **environment: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": root, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A loopback server of a folder: its address and the folder."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_download_goes_to_the_cache_once(served: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = served
    row = (
        '{"task_id": "HumanEval/0", "prompt": "def f(x):\\n", "entry_point": "f", "canonical_solution": "    return x",'
    )
    (folder / "h.jsonl.gz").write_bytes(gzip.compress((row + ' "base_input": [[1]]}\n').encode()))
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "no_proxy": "127.0.0.1"}
    first = run_python(LOAD, f"{address}/h.jsonl.gz", cwd=tmp_path, **places)
    assert first == "1 True\n"  # progress goes to standard error
    (folder / "h.jsonl.gz").unlink()
    second = run_python(LOAD, f"{address}/h.jsonl.gz", cwd=tmp_path, **places)
    assert second == "1 False\n"
    assert [p.suffix for p in (tmp_path / "cache" / "evalplus").iterdir()] == [".jsonl"]


def test_failing_download_names_the_remedy(served: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = served
    (folder / "text").write_text("not gzip")
    places = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path), "no_proxy": "127.0.0.1"}
    urls = [f"{address}/missing.gz", f"{address}/text", "http://127.0.0.1:1/x", "nonsense"]
    told = run_python(LOAD, *urls, cwd=tmp_path, **places).splitlines()
    for url, problem, remedy in zip(urls, told[::2], told[1::2], strict=True):
        assert problem.startswith(f"cannot download HumanEvalPlus v0.1.10 from {url}: ")
        assert "dataset.path=FILE" in remedy
    assert not list((tmp_path / "cache" / "evalplus").iterdir())


@pytest.mark.parametrize("kind", FILES)
def test_missing_file(kind: str, tmp_path: Path) -> None:
    with mistake("nowhere.jsonl"):
        load(kind, path=str(tmp_path / "nowhere.jsonl"))


def test_override_variable_is_read_when_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HUMANEVAL_OVERRIDE_PATH", str(tmp_path / "override.jsonl"))
    with pytest.raises(UserError, match=r"override\.jsonl"):
        load("humaneval")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('"task_id": "Mbpp/124", "base_input": [["x", "y"]]', "FILE:1: .*inputs.*Mbpp/124"),
        ('"task_id": "mine", "base_input": [[1]]', "FILE:1: task_id 'mine' .*Mbpp/NUMBER"),
    ],
)
def test_mbpp_rows_that_are_not_mbpp(tmp_path: Path, row: str, told: str) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(
        '{"prompt": "", "entry_point": "f", "canonical_solution": "def f(x, y=0): return x", ' + row + "}\n"
    )
    with pytest.raises(UserError) as caught:
        load("mbpp", path=str(path))
    assert re.search(told, str(caught.value).replace(str(path), "FILE"))
