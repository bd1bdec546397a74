"""Task files: one JSON object a line, plain or gzip, with messages that name the file and the line."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from codechat.base.errors import MAX_LINES, UserError
from codechat.base.texts import read_json
from codechat.datasets.tasks import Dataset, Task

R = TypeVar("R")


@dataclass(frozen=True)
class TaskFile(Generic[R]):
    """The rows of a task file in order; by the task's id the task, and the place as FILE:LINE."""

    rows: list[R]
    tasks: dict[str, Task]
    places: dict[str, str]

    def dataset(self, name: str, content: str) -> Dataset:
        """The dataset of these tasks; `content` is the hash of the rows."""
        return Dataset(name, tuple(self.tasks.values()), content, self.places)


def read_tasks(path: Path, parse: Callable[[dict[str, Any]], tuple[R, Task]], remedy: str) -> TaskFile[R]:
    """The tasks of a file with one JSON object a line, which `parse` turns into a row and a task. Raises `UserError`
    with the `remedy` if there is no task, and with the line if `parse` raises `ValueError` or a task is repeated."""
    read: TaskFile[R] = TaskFile([], {}, {})
    seen: set[str] = set()

    def parse_once(value: dict[str, Any]) -> tuple[R, Task]:
        row, task = parse(value)
        if task.task_id in seen:
            raise ValueError(f"the task {task.task_id} is there twice")
        seen.add(task.task_id)
        return row, task

    for place, (row, task) in read_values(path, parse_once, remedy):
        read.rows.append(row)
        read.tasks[task.task_id] = task
        read.places[task.task_id] = place
    if not read.rows:
        raise UserError(f"{path} holds no task", remedy)
    return read


def read_values(
    path: Path, read: Callable[[dict[str, Any]], R], remedy: str, setting: str = "dataset.path"
) -> Iterator[tuple[str, R]]:
    """Yield the place of each line as FILE:LINE, and the result of `read` for the line's JSON object.

    Raises `UserError` with the `remedy` and the places of all lines for which `read` raises `ValueError`; lines after
    the first of them are not yielded. `setting` names the file in messages.
    """
    wrong: dict[str, list[int]] = {}
    for line, text in lines_of(path, setting):
        try:
            found = read(object_of(text))
        except ValueError as error:
            wrong.setdefault(problem_of(error), []).append(line)
            continue
        if not wrong:
            yield f"{path}:{line}", found
    if wrong:
        raise UserError(_problems(path, wrong), remedy)


def _problems(path: Path, wrong: Mapping[str, Sequence[int]]) -> str:
    """The problems with their lines, in as many lines as a message has room for."""
    texts = []
    for problem, (first, *others) in wrong.items():
        numbers = [*map(str, others[:20]), *(["…"] if len(others) > 20 else [])]
        also = f" (also in line{'s' if len(others) > 1 else ''} {', '.join(numbers)})" if others else ""
        texts.append(f"{path}:{first}: {problem}{also}")
    further = "; ".join(f"line {each.removeprefix(f'{path}:'):.90}" for each in texts[MAX_LINES - 2 :])
    return "\n".join((*texts[: MAX_LINES - 2], *([f"and {further}"] if further else [])))


def lines_of(path: Path, setting: str = "dataset.path") -> Iterator[tuple[int, bytes]]:
    """The non-blank lines with their numbers from 1. Raises `UserError` that names the `setting`."""
    try:
        blob = path.read_bytes()
        if blob.startswith(b"\x1f\x8b"):
            blob = gzip.decompress(blob)
    except FileNotFoundError as error:
        raise UserError(f"{setting}: there is no file {path}", "give a .jsonl or .jsonl.gz file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{setting}: cannot read {path}: {error}", "give a .jsonl or .jsonl.gz file") from error
    for number, line in enumerate(blob.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def rows_of(path: Path, setting: str = "source") -> Iterator[tuple[str, Any]]:
    """The rows of a JSON file with a list, or of JSON lines, plain or gzip, with their places as FILE:LINE."""
    lines = list(lines_of(path, setting))
    is_list = bool(lines) and lines[0][1].lstrip()[:1] == b"["
    for number, text in [(1, b"\n".join(text for _, text in lines))] if is_list else lines:
        try:
            value = read_json(text)
        except ValueError as error:
            raise UserError(
                f"{path}:{number}: not JSON: {error}", "give a file of JSON lines, or with a list"
            ) from error
        if is_list:
            yield from ((f"{path}: row {place}", row) for place, row in enumerate(value, 1))
        else:
            yield f"{path}:{number}", value


def object_of(text: bytes) -> dict[str, Any]:
    """The JSON object in a line. Raises `ValueError` if there is none."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("the line is not a JSON object")
    return value


def problem_of(error: Exception) -> str:
    """The problems in one line, with the fields if they are known."""
    match error:
        case ValidationError():
            problems: dict[tuple[int | str, ...], str] = {}
            for each in error.errors():  # of a union's members the first one's
                field = ".".join(str(part) for part in each["loc"])
                problem = each["msg"].removeprefix("Value error, ")
                problems.setdefault(each["loc"][:3], f"{field}: {problem}" if field else problem)
            return "; ".join(problems.values())
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} (column {error.colno})"
        case UnicodeDecodeError():
            return f"not UTF-8 (byte {error.start})"
        case _:
            return str(error)
