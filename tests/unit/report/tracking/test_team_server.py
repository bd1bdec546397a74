"""The files that start a team's MLflow server: what can be said of them without Docker's images.

`serve.sh` itself is what the tests of shared stores start their servers with.
"""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from codechat.base.files import from_yaml

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "mlflow"


@pytest.fixture
def services() -> dict[str, Any]:
    content: dict[str, Any] = from_yaml((FOLDER / "compose.yaml").read_text())
    found: dict[str, Any] = content["services"]
    for service in found.values():
        for volume in service.get("volumes", []):
            name = volume.partition(":")[0]
            assert name in content["volumes"] or (FOLDER / name).is_file()
        for other in service.get("depends_on", []):
            assert other in found
    return found


def test_only_the_server_is_open_and_only_to_this_machine(services: dict[str, Any]) -> None:
    assert {name: service["ports"] for name, service in services.items() if "ports" in service} == {
        "server": ["127.0.0.1:5000:5000"]
    }


def test_no_password_is_written_down(services: dict[str, Any]) -> None:
    secrets = [
        value
        for service in services.values()
        for name, value in service.get("environment", {}).items()
        if re.search("PASSWORD|SECRET", name)
    ]
    assert len(secrets) >= 4
    assert all(re.fullmatch(r"\$\{MLFLOW_\w+_PASSWORD:\?[^}]+\}", value) for value in secrets)


def test_what_keeps_data_has_a_volume_and_a_pinned_image(services: dict[str, Any]) -> None:
    for name in ("database", "files"):
        assert services[name]["volumes"]
        assert not services[name]["image"].endswith(":latest")
        assert ":" in services[name]["image"]


def test_the_server_runs_the_script_with_the_libraries_of_this_version(services: dict[str, Any]) -> None:
    command = services["server"]["command"]
    assert command[0] == "/serve.sh" and "./serve.sh:/serve.sh:ro" in services["server"]["volumes"]
    assert not {"bucket", "database", "files"} - services.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["postgres"]]
    declared = {(one.name, str(one.specifier)) for one in map(Requirement, wanted)}
    recipe = services["server"]["build"]["dockerfile_inline"]
    installed = {(one.name, str(one.specifier)) for one in map(Requirement, re.findall(r"'(.+?)'", recipe))}
    assert {one for one in installed if one[0] != "boto3"} <= declared
    assert {"mlflow", "psycopg", "boto3"} <= {name for name, _ in installed}


def test_the_script_says_how_it_is_called() -> None:
    done = subprocess.run([FOLDER / "serve.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Starts a team's MLflow server")
    assert "STORE" in done.stderr and "ARTIFACTS" in done.stderr
