"""Servers that codechat starts for its models, as the models see them.

A model that may be served on this machine asks the running cell's `SERVERS` where it is served, and waits there until
its server is ready. Here is only the interface to them; `codechat.models.serving` has the processes.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from codechat.base.errors import InfrastructureError, Stopped
from codechat.models import ModelConfig

Answer = TypeVar("Answer")


class Servers(Protocol):
    """The servers of a cell. A config without one is answered as if codechat had started nothing."""

    def known_as(self, config: ModelConfig) -> str | None:
        """A name of the model and its weights in place of its address, for the response cache.

        None if codechat does not start its server: then only the address is known.
        """

    def arguments(self, config: ModelConfig) -> str | None:
        """The options that the model's server was started with; None if codechat did not start it."""

    async def reach(self, config: ModelConfig) -> str | None:
        """The address up to /v1 at which the model's server is ready, started if need be; None for the config's own.

        Raises `UserError` if it cannot be started, and `Stopped` if the user interrupts meanwhile.
        """

    def kv_tokens(self, config: ModelConfig) -> int | None:
        """The tokens of conversations that the model's server keeps, once it was reached; None if it does not say."""

    def starts(self, config: ModelConfig) -> int:
        """How often the model's server was started for this cell."""

    def is_down(self, config: ModelConfig) -> bool:
        """Whether the model's server was started and has ended."""

    async def revived(self, config: ModelConfig, starts: int) -> bool:
        """After a failed call that began after so many `starts`: whether its server had ended and is ready again.

        One that takes no connection any more is waited for until it has ended. A server is started again once. Raises
        `InfrastructureError` if it does not become ready.
        """


SERVERS: ContextVar[Servers | None] = ContextVar("servers", default=None)
"""The servers of the cell that runs, set by the engine; None outside of cells."""


def is_down(config: ModelConfig) -> bool:
    """Whether codechat started the model's server, and it has ended."""
    servers = SERVERS.get()
    return servers is not None and servers.is_down(config)


def is_kept(config: ModelConfig) -> bool:
    """Whether codechat keeps the model's server: then it is no mistake of the user that it does not answer."""
    servers = SERVERS.get()
    return servers is not None and servers.known_as(config) is not None


async def outlasting(config: ModelConfig, call: Callable[[], Awaitable[Answer]]) -> Answer:
    """The result of a call with all its retries; made once more if the model's server ended and was started again."""
    servers = SERVERS.get()
    if servers is None:
        return await call()
    while True:
        starts = servers.starts(config)
        try:
            return await call()
        except Stopped:
            raise
        except InfrastructureError:
            if not await servers.revived(config, starts):
                raise
