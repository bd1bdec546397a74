"""Failures of an endpoint, classified: a mistake, an overflow, or trouble that may pass.

No message holds the key, and none is chained to an error of a library, whose text may quote headers or the endpoint's
words.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

from codechat.calls import Passing, retry_after
from codechat.errors import ContextOverflow, EndpointDown, InfrastructureError, UserError, nearest
from codechat.models.endpoints import key_of
from codechat.models.remote.config import RemoteConfig
from codechat.models.remote.refusals import NO_QUOTA, Refusal

BUSY = (408, 409, 429)
NO_MONEY = 402


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do about a mistake, in one protocol's words: no such model, and no key given where one is needed."""

    unknown_model: str = ""
    no_key: str = ""


class Failures:
    """Turns failures of one model into exceptions. `served` are the model names that the endpoint tells, if it does."""

    def __init__(self, config: RemoteConfig, advice: Advice) -> None:
        self._config, self._advice = config, advice
        self.served: tuple[str, ...] = ()

    def of_refusal(self, refusal: Refusal, headers: Mapping[str, str], *, has_answered: bool) -> Exception:
        """The exception for an HTTP error. `has_answered`: an earlier call succeeded, so the config is right."""
        status = refusal.status
        said = f"{self._config.place}: HTTP {status}: {self.redact(refusal.message)}"
        if refusal.is_overflow:
            return self._overflow(refusal, said)
        if refusal.is_about_key:
            said = f"{self._config.place}: HTTP {status}"  # the endpoint's own words are left out: some quote the key
        if status == NO_MONEY or refusal.code == NO_QUOTA:
            return EndpointDown(said)
        if status in BUSY or status >= 500:
            return Passing(InfrastructureError(said), limited=status == 429, after=retry_after(headers, time.time()))
        # After a successful call a refusal is about this conversation, or the endpoint's state.
        if refusal.is_filter or has_answered:
            return InfrastructureError(said)
        return self._mistake(refusal, said)

    def of_unreachable(self, cause: str) -> Passing:
        """The exception for an endpoint that takes no connection, after it had taken one."""
        return Passing(EndpointDown(f"nothing answers at {self._config.address} ({self.redact(cause)})"))

    def of_nobody(self, cause: str) -> UserError:
        """The exception for an endpoint that takes no connection at the first call."""
        return UserError(
            f"nothing answers at {self._config.address} ({self.redact(cause)})",
            f"start the server, or set {key_of(self._config, 'base_url')} to the model's server",
        )

    def of_connection(self, cause: str) -> Passing:
        """The exception for a connection that broke before the response was whole."""
        return Passing(InfrastructureError(f"{self._config.place}: the connection broke ({self.redact(cause)})"))

    def of_answer(self, problem: str) -> Passing:
        """The exception for a good status with an unreadable answer."""
        return Passing(InfrastructureError(f"{self._config.place}: {self.redact(problem)}"))

    def refuse_key(self, status: int) -> UserError:
        """The error for a wrong or missing key."""
        place, variable = self._config.place, self._config.api_key_env
        if variable is None:
            advice = self._advice.no_key or f"set {key_of(self._config, 'api_key_env')} to the variable that holds it"
            return UserError(f"{place} asks for a key (HTTP {status})", advice)
        return UserError(
            f"{place} refuses the key of the environment variable {variable} (HTTP {status})",
            f"check the key in {variable} and what it may use",
        )

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

    def _mistake(self, refusal: Refusal, said: str) -> UserError:
        """The user's mistake that the first answer shows."""
        config, status = self._config, refusal.status
        if refusal.is_about_key:
            return self.refuse_key(status)
        if refusal.is_unknown_model:
            remedy = nearest(config.name, self.served) if self.served else self._advice.unknown_model
            keys = f"{key_of(config, 'name')} and {key_of(config, 'base_url')}"
            return UserError(said, f"check {keys}" + (f"; {remedy}" if remedy else ""))
        if status < 400:
            return UserError(
                f"{config.address} answers with a redirect", f"set {key_of(config, 'base_url')} to the final address"
            )
        return UserError(said, "the endpoint refuses the request: change the model's options")


def cause_of(error: BaseException) -> str:
    """The cause of an error in words; they may hold the key."""
    cause = error.__cause__ or error
    return f"{cause}" or type(cause).__name__
