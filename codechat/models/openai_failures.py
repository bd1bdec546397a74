"""Failures of an OpenAI-compatible endpoint, classified: a mistake, an overflow, or trouble that may pass.

No message holds the key, and none is chained to an SDK error, whose text may quote headers or the endpoint's words.
"""

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from codechat.calls import Passing, retry_after
from codechat.errors import ContextOverflow, EndpointDown, InfrastructureError, UserError, nearest
from codechat.models.endpoints import key_of
from codechat.models.openai_config import OpenAIConfig
from codechat.models.openai_protocol import Refusal

if TYPE_CHECKING:
    import openai

BUSY = (408, 409, 429)
NO_MONEY = 402


class Failures:
    """Turns failures of one model into exceptions. `served` are the model names that the endpoint lists, if it does."""

    def __init__(self, config: OpenAIConfig) -> None:
        self._config = config
        self.served: tuple[str, ...] = ()

    def of_refusal(self, refusal: Refusal, headers: Mapping[str, str], *, has_answered: bool) -> Exception:
        """The exception for an HTTP error. `has_answered`: an earlier call succeeded, so the config is right."""
        status = refusal.status
        said = f"{self._config.place}: HTTP {status}: {self.redact(refusal.message)}"
        if refusal.is_overflow:
            return self._overflow(refusal, said)
        if status in (401, 403):
            said = f"{self._config.place}: HTTP {status}"  # the endpoint's own words are left out: some quote the key
        if status == NO_MONEY or refusal.code == "insufficient_quota":
            return EndpointDown(said)
        if status in BUSY or status >= 500:
            return Passing(InfrastructureError(said), limited=status == 429, after=retry_after(headers, time.time()))
        # After a successful call a refusal is about this conversation, or the endpoint's state.
        if refusal.is_filter or has_answered:
            return InfrastructureError(said)
        return self._mistake(status, said)

    def of_connection(self, error: "openai.APIConnectionError") -> Passing:
        """The exception for a request without a response."""
        import httpx2

        cause = error.__cause__
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
            return Passing(EndpointDown(f"nothing answers at {self._config.base_url} ({self.cause_of(error)})"))
        return Passing(InfrastructureError(f"{self._config.place}: the connection broke ({self.cause_of(error)})"))

    def of_answer(self, problem: str) -> Passing:
        """The exception for a good status with an unreadable answer."""
        return Passing(InfrastructureError(f"{self._config.place}: {self.redact(problem)}"))

    def refuse_key(self, status: int) -> UserError:
        """The error for a wrong or missing key."""
        place, variable = self._config.place, self._config.api_key_env
        if variable is None:
            key = key_of(self._config, "api_key_env")
            return UserError(f"{place} asks for a key (HTTP {status})", f"set {key} to the variable that holds it")
        return UserError(
            f"{place} refuses the key of the environment variable {variable} (HTTP {status})",
            f"check the key in {variable} and what it may use",
        )

    def cause_of(self, error: Exception) -> str:
        """The cause of an error in words, without the key."""
        cause = error.__cause__ or error
        return self.redact(f"{cause}" or type(cause).__name__)

    def redact(self, text: str) -> str:
        """The text, bounded, without the key."""
        variable = self._config.api_key_env
        key = os.environ.get(variable, "").strip() if variable else ""
        return (text.replace(key, "***") if key else text)[:300]

    def _overflow(self, refusal: Refusal, said: str) -> Exception:
        limit, wanted = refusal.context_limit, self._config.max_tokens
        if limit is not None and wanted is not None and wanted >= limit:
            return UserError(
                said,
                f"{key_of(self._config, 'max_tokens')}={wanted} leaves no room for a prompt: lower it below {limit}",
            )
        return ContextOverflow(said)

    def _mistake(self, status: int, said: str) -> UserError:
        """The user's mistake that the first answer shows."""
        config = self._config
        if status in (401, 403):
            return self.refuse_key(status)
        if status == 404:
            remedy = nearest(config.name, self.served) if self.served else "is there a /v1 missing in base_url?"
            return UserError(said, f"check {key_of(config, 'name')} and {key_of(config, 'base_url')}; {remedy}")
        if status < 400:
            return UserError(
                f"{config.base_url} answers with a redirect", f"set {key_of(config, 'base_url')} to the final address"
            )
        return UserError(said, "the endpoint refuses the request: change the model's options")
