"""Files of strangers that are no JSON, no objects, too deep, cut or not text: a mistake of the user, never a traceback."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codechat.cli.app import main

DEEP = b"[" * 100_000
MALFORMED = {
    "deep": b'{"task_id": ' + DEEP,
    "deep and whole": b'{"task_id": ' + b'{"a":' * 300 + b"1" + b"}" * 301,
    "null": b"null\n",
    "list": b"[1, 2]\n",
    "number": b"-0.5\n",
    "text": b'"x"\n',
    "half a surrogate": b'{"task_id": "\\ud800", "turns": [{"code": "\\udfff"}]}\n',
    "digits": b'{"turn": ' + b"9" * 6000 + b"}\n",
    "no UTF-8": b'{"task_id": "\xe9"}\n',
    "cut gzip": gzip.compress(b'{"task_id": "a"}\n' * 100)[:-9],
    "wrong types": json.dumps({"task_id": 3, "turns": [None, 1], "errored": "x", "sessions": []}).encode(),
    "empty": b"",
    "folder": None,
}


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished cell."""
    runs = tmp_path_factory.mktemp("runs")
    words = ["model=echo", "dataset=starter", "dataset.limit=1", "tracking=none"]
    assert main([*words, f"runs_dir={runs}"]) == 0
    return next(path.parent for path in runs.rglob("metrics.json"))


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What was printed, in a working folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return lambda: "".join(capsys.readouterr())


def put(path: Path, content: bytes | None) -> Path:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    return path


COMMANDS: dict[str, tuple[str, Callable[[Path], list[str]]]] = {
    "verify": ("samples.jsonl", lambda file: ["verify", "dataset=starter", f"samples={file}", "out=o"]),
    "mint": ("results.jsonl", lambda file: ["import", "format=mint", f"source={file}", "out=o"]),
    "labels": ("labels.csv", lambda file: ["audit", "score", f"labels={file}", "out=o"]),
    "seeds": ("seeds.jsonl", lambda file: ["construct", "recipe=steps_rehearsed", f"seeds={file}", "out=o"]),
    "codeif": ("codeif.jsonl", lambda file: ["import", "format=codeif", f"source={file}", "out=o"]),
    "multicodeif": ("multi.jsonl", lambda file: ["import", "format=multicodeif", f"source={file}", "out=o"]),
    "codechat": ("m-humaneval.jsonl", lambda file: ["import", "format=codechat", f"source={file}", "out=o"]),
    "replay": ("sessions.jsonl", lambda file: ["dataset=starter", "model=replay", f"model.path={file}", "runs_dir=r"]),
    "dataset": ("tasks.jsonl", lambda file: ["dataset=jsonl", f"dataset.path={file}", "model=echo", "runs_dir=r"]),
    "pool": (
        "pool.jsonl",
        lambda file: ["dataset=starter", f"instructions.path={file}", "model=echo", "runs_dir=r"],
    ),
    "pool yaml": (
        "pool.yaml",
        lambda file: ["dataset=starter", f"instructions.path={file}", "model=echo", "runs_dir=r"],
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_malformed_file_is_a_mistake(command: str, kind: str, tmp_path: Path, said: Callable[[], str]) -> None:
    name, words = COMMANDS[command]
    status = main(words(put(tmp_path / name, MALFORMED[kind])))
    text = said()
    assert status == 2 and "Traceback" not in text, text[-2000:]
    assert tmp_path.name in text or name in text, text[-2000:]


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.long
@pytest.mark.parametrize("name", ["metrics.json", "sessions.jsonl", "config.yaml", "seal.json"])
def test_a_malformed_file_of_a_run_is_a_mistake(
    name: str, kind: str, cell: Path, tmp_path: Path, said: Callable[[], str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(cell, folder)
    put(folder / name, MALFORMED[kind])
    for command in (
        ["report", f"runs={folder}"],
        ["export", "format=csv", f"run={folder}"],
        ["plan", f"runs={folder}"],
        ["rescore", f"run={folder}"],
    ):
        status = main([*command, *(["out=out"] if command[0] != "plan" else [])])
        text = said()
        assert status in (0, 2) and "Traceback" not in text, (command, text[-2000:])
        if command[0] == "report" and name in ("metrics.json", "sessions.jsonl"):
            assert status == 2, text[-500:]
