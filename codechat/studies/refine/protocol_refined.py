"""Published refinement dialogues, tested again: the figures of `refine` over what others recorded."""

from typing import Literal

from codechat.base.config import original_option
from codechat.run.protocols import PROTOCOLS, Parts
from codechat.run.protocols.recorded import Recorded, RecordedConfig
from codechat.studies.refine.metrics import REFINE, refine_metrics


class RefinedConfig(RecordedConfig):
    """Options of `refined`."""

    kind: Literal["refined"] = original_option("refined", "the protocol")  # type: ignore[assignment]


@PROTOCOLS.register("refined", RefinedConfig, uses=frozenset({"sandbox"}))
def refined(config: RefinedConfig, parts: Parts) -> Recorded:
    """Published refinement dialogues, tested again; instructions and adherence stay as they were published."""
    return Recorded(config, REFINE, refine_metrics)
