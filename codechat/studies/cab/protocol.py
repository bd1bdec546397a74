"""CodeAssistBench: a maintainer who explores a repository to answer its user, and a judge in the end.

The model under test is the maintainer. The user opens with the issue; the maintainer runs commands in a room with the
repository until it answers; the user, a model that knows what would satisfy it, replies, and so on until it is
satisfied or the rounds are over. Then a judge decides once. Nothing is tested.
"""

from codechat.protocols import PROTOCOLS, Parts
from codechat.studies.cab.config import AssistConfig
from codechat.studies.cab.session import Assist
from codechat.studies.cab.tasks import AssistTask


@PROTOCOLS.register("assist", AssistConfig, uses=frozenset({"environment"}), over=AssistTask)
def assist(config: AssistConfig, parts: Parts) -> Assist:
    """A maintainer who explores a repository to answer a user, and a judge in the end (CodeAssistBench)."""
    return Assist(config, rooms=parts.environment is not None and parts.environment.kind != "none")


__all__ = ["Assist", "AssistConfig", "assist"]
