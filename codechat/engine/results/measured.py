"""Measure recorded sessions by the configuration of their cell, such as the sessions of several seeds together."""

from collections.abc import Iterable, Mapping
from typing import Any

from codechat.engine.settings.config import CellConfig
from codechat.errors import UserError
from codechat.metrics import Effort
from codechat.protocols import PROTOCOLS, Parts
from codechat.records import SessionRecord


def remeasure(values: Mapping[str, Any], sessions: Iterable[SessionRecord]) -> dict[str, Any] | None:
    """The protocol's metrics of the sessions, without costs; `values` are the content of a config.yaml.

    None if this version does not know its protocol or one of its options.
    """
    try:
        config = CellConfig.from_values(
            {name: value for name, value in values.items() if name in CellConfig.model_fields}
        )
    except UserError:
        return None
    protocol = PROTOCOLS.build(config.protocol, Parts(config.agenda, None, config.judge, config.environment))
    return protocol.metrics(sessions, seed=config.seed, effort=Effort())
