"""A warm compiler's process: who starts it anew, when, and what one that ends says of a unit. Without Java."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codechat.base.errors import InfrastructureError
from codechat.sandbox.suites.junit.toolchain import Compiler, Kind

# Reads units and answers each by its program; the program `die` ends the process once, and `always die` every time.
SERVER = """
import struct, sys
from pathlib import Path
marks = Path(sys.argv[1])
(marks / f"started {len(list(marks.glob('started*')))}").touch()
def text():
    size, = struct.unpack(">i", sys.stdin.buffer.read(4))
    return sys.stdin.buffer.read(size).decode()
while True:
    program, tests, declares = text(), text(), text()
    if program == "always die" or (program == "die" and not (marks / "died").exists()):
        (marks / "died").touch()
        sys.exit(1)
    if program == "rubbish":
        sys.stdout.buffer.write(struct.pack(">i", -1))
        sys.exit(1)
    while program == "compute":
        pass
    answer = f"{program} {tests} {declares}".strip().encode()
    answer = bytes([2 if program == "wrong" else 0]) + struct.pack(">i", len(answer)) + answer + b"unit"
    sys.stdout.buffer.write(struct.pack(">i", len(answer)) + answer)
    sys.stdout.buffer.flush()
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Compiler]]:
    made = list[Compiler]()

    def start(sample: str = "sample") -> Compiler:
        made.append(Compiler([sys.executable, "-S", "-c", SERVER, str(tmp_path)], (sample, "tests")))
        return made[-1]

    yield start
    for each in made:
        each.stop()


def starts(folder: Path) -> int:
    return len(list(folder.glob("started*")))


def test_one_process_compiles_units_one_after_the_other(make: Callable[..., Compiler], tmp_path: Path) -> None:
    one = make()
    found = one.compile("program", "its tests", ["Shop", "Cart"], limit_s=10.0)
    assert (found.kind, found.text, found.unit) == (Kind.COMPILED, "program its tests Shop Cart", b"unit")
    assert one.compile("wrong", "", [], limit_s=10.0).kind is Kind.PROGRAM_FAILS
    assert starts(tmp_path) == 1


def test_a_unit_is_tried_by_a_second_process_before_it_is_at_fault(
    make: Callable[..., Compiler], tmp_path: Path
) -> None:
    one = make()
    assert one.compile("die", "", [], limit_s=10.0).kind is Kind.COMPILED and starts(tmp_path) == 2
    for program in ("always die", "rubbish"):
        assert one.compile(program, "", [], limit_s=10.0).kind is Kind.ENDED
    assert one.compile("program", "", [], limit_s=10.0).kind is Kind.COMPILED


def test_a_unit_that_takes_too_long_ends_its_process_alone(make: Callable[..., Compiler], tmp_path: Path) -> None:
    one = make()
    found = one.compile("compute", "", [], limit_s=0.1)
    assert (found.kind, found.cpu_s) == (Kind.TOO_LONG, 0.1)
    assert one.compile("program", "", [], limit_s=10.0).kind is Kind.COMPILED and starts(tmp_path) == 2


def test_a_process_is_renewed_before_it_has_grown(
    make: Callable[..., Compiler], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(Compiler._started.__globals__, "RENEWED_AFTER", 2)
    one = make()
    for _ in range(5):
        assert one.compile("program", "", [], limit_s=10.0).kind is Kind.COMPILED
    assert starts(tmp_path) == 3


def test_a_compiler_that_cannot_compile_its_sample_or_was_stopped_is_no_fault_of_a_unit(
    make: Callable[..., Compiler],
) -> None:
    with pytest.raises(InfrastructureError, match="does not compile a sample"):
        make("wrong").compile("program", "", [], limit_s=10.0)
    with pytest.raises(InfrastructureError, match="does not start"):
        Compiler(["/nowhere/java"], ("", "")).compile("program", "", [], limit_s=10.0)
    one = make()
    one.compile("program", "", [], limit_s=10.0)
    one.stop()
    with pytest.raises(InfrastructureError, match="was stopped"):
        one.compile("program", "", [], limit_s=10.0)
