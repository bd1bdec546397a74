"""Programs in a repository that pass none of its tests, and would pass if skipping, leaving or meddling were passing."""

import asyncio
import textwrap

import pytest

from attacks.attack_named_tests import CALLED, FILES, NODES, RIGHT, TOP
from codechat.base.domain import Program, Verdict
from codechat.sandbox import SANDBOXES
from codechat.sandbox.suites.checker import Checker
from codechat.sandbox.suites.repository import Repository

WRONG = "def count(text):\n    return 0\n"
PROGRAMS = {
    **{name: f"def count(text):\n{textwrap.indent(code, '    ')}\n" for name, code in CALLED.items()},
    **{name: f"{WRONG}\n\n{code}\n" for name, code in TOP.items()},
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdict]:
    root = tmp_path_factory.mktemp("attacked")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    suite = Repository("own/words", str(root), "words/count.py", (1, 2), 0, NODES)

    async def check() -> dict[str, Verdict]:
        sandbox = SANDBOXES.build(SANDBOXES.validate({"kind": "auto"}), workers=2)
        checker = Checker(sandbox)
        programs = {"right": RIGHT, **PROGRAMS}
        try:
            made = await asyncio.gather(*(checker.check(Program(code), suite) for code in programs.values()))
        finally:
            await sandbox.aclose()
        return dict(zip(programs, made, strict=True))

    return asyncio.run(check())


def test_the_right_program_passes(verdicts: dict[str, Verdict]) -> None:
    assert verdicts["right"].outcome == "pass", verdicts["right"].failure


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_way_around_the_tests_is_a_pass(name: str, verdicts: dict[str, Verdict]) -> None:
    assert not verdicts[name].passed and verdicts[name].failure is not None


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 55 and len({**CALLED, **TOP}) == len(CALLED) + len(TOP)
