"""A build that ends for another reason than a command of its own is tried again: an engine of a few lines."""

from pathlib import Path

import pytest

from codechat.studies.cab.environments.docker import DockerConfig
from codechat.studies.cab.environments.images import TRIES

GONE = "failed to get digest sha256:0f6c: no such file or directory"
COMMAND = "The command '/bin/sh -c false' returned a non-zero code: 1"
OF_PODMAN = 'Error: building at STEP "RUN false": while running runtime: exit status 1'
ENGINE = """#!/bin/sh
[ "$1" = build ] || exit 0
echo >> "{folder}/builds"
said="{folder}/$(wc -l < "{folder}/builds" | tr -d ' ')"
cat "$said" && exit 1
exit 0
"""


@pytest.mark.parametrize(
    ("said", "ok", "builds"),
    [
        ([], True, 1),
        ([GONE], True, 2),
        ([GONE, GONE], True, TRIES),
        ([GONE] * TRIES, False, TRIES),
        ([COMMAND], False, 1),
        ([OF_PODMAN], False, 1),
        ([GONE, COMMAND], False, 2),
        ([f"{COMMAND}{chr(10)}{'x' * 2000}{chr(10)}{GONE}"], True, 2),  # a program's output is not the engine's word
    ],
)
def test_only_a_command_that_fails_is_believed_at_once(tmp_path: Path, said: list[str], ok: bool, builds: int) -> None:
    engine, lower = tmp_path / "docker", tmp_path / "lower"
    lower.mkdir()
    engine.write_text(ENGINE.format(folder=tmp_path))
    engine.chmod(0o755)
    for number, text in enumerate(said, 1):
        (tmp_path / str(number)).write_text(text + "\n")
    builder = DockerConfig.model_validate({"kind": "docker"}).builder(str(engine))
    built = builder.build(lower, {}, "FROM scratch\n", "tag")
    assert built.ok is ok and (tmp_path / "builds").read_text().count("\n") == builds
    assert ok or said[builds - 1] in built.log
