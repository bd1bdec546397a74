"""A config.yaml of an earlier version is read without the options that are gone, and keeps what belongs to the user."""

from codechat.run.settings.compose import compose_values
from codechat.run.settings.config import CellConfig

WORDS = ["model=openai", "model.name=x", "protocol=assist", "environment=docker", "dataset=assist_starter"]


def test_options_that_are_gone_are_left_out_where_they_stood() -> None:
    values, _ = compose_values(WORDS)
    now = CellConfig.from_values(values)
    values["environment"] |= {"build_disk_mb": 5, "build_processes": 3}
    values["tracking"]["traces"], values["model"]["batch_size"], values["stop"]["look"] = False, 3, None
    values["sandbox"]["share"], values["hardware"]["tensor_parallel"] = True, None
    assert CellConfig.from_values(values) == now
