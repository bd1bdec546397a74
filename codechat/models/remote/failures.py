"""An endpoint's failures: the meaning of an error, the parameters it refuses, and the exception it becomes.

No message holds the key, and no exception is chained to a library's error, whose text may quote headers.
"""

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from codechat.base.domain import Reply
from codechat.base.errors import (
    ContextOverflow,
    ConversationRefused,
    EndpointDown,
    InfrastructureError,
    UserError,
    nearest,
)
from codechat.base.texts import visible
from codechat.models.calls import TransientFailure, retry_after
from codechat.models.calls.answers import Ending, ending, is_fault
from codechat.models.endpoints import key_of
from codechat.models.remote.wording import (
    is_out_of_range,
    is_surely_too_long,
    is_too_long,
    is_unsupported,
    wants_more_than_zero,
)

if TYPE_CHECKING:
    from codechat.models.remote import EndpointConfig

TOO_LONG = "context_length_exceeded"
NO_QUOTA = "insufficient_quota"
INVALID_KEY = "invalid_api_key"
UNKNOWN_MODEL = "model_not_found"
FILTERED = "content_filter"
"""OpenAI's codes; errors of other protocols are translated to them."""
LEAST_TEMPERATURE = 0.01
"""Stands for a temperature of 0 at an endpoint that takes positive ones alone: nearly greedy."""

_STREAM = r"(?:\bstream(?:ing|ed)?\b|流式)"
_NEED = r"\b(?:only|must|requir\w*|need\w*|enabl\w*|set|use|mandatory|expect\w*)\b|仅|只|必须"
STREAM_WANTED = re.compile(
    rf"\bnon[-_ ]?stream|\bwithout[ -]stream|非流式|(?:{_NEED}).{{0,60}}{_STREAM}"
    rf"|{_STREAM}.{{0,60}}(?:{_NEED}|\b(?:true|false)\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Of a request that is no stream: these words ask for one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP error, in the endpoint's words."""

    status: int
    message: str
    code: str = ""
    param: str = ""

    @property
    def is_overflow(self) -> bool:
        """Whether the conversation is too long for the model."""
        words = f"{self.code} {self.message}"
        if self.status in ABOUT_CONVERSATION:
            return self.code == TOO_LONG or is_too_long(words)
        return self.status == 500 and (self.code == TOO_LONG or is_surely_too_long(words))

    @property
    def is_filter(self) -> bool:
        """Whether the provider's filter stopped the prompt: a failed call, not an answer, since filters misfire."""
        return self.status == 400 and self.code in (FILTERED, "content_policy_violation", "invalid_prompt")

    @property
    def is_about_key(self) -> bool:
        """Whether the key is wrong, missing, or lacks permission; some providers use the status 400."""
        return self.status in (401, 403) or (self.status == 400 and self.code == INVALID_KEY)

    @property
    def is_about_money(self) -> bool:
        """Whether the account has no quota or no money left."""
        return self.status == NO_MONEY or self.code == NO_QUOTA

    @property
    def is_unknown_model(self) -> bool:
        """Whether the model or the page does not exist; some providers use the status 400."""
        return self.status == 404 or (self.status == 400 and self.code == UNKNOWN_MODEL)

    def names_unsupported(self, parameter: str) -> bool:
        """Whether the model does not support the parameter, or its value."""
        return self.names(parameter) and is_unsupported(f"{self.code} {self.message}")

    def names(self, parameter: str) -> bool:
        """Whether the refusal is about the parameter."""
        if self.status not in (400, 422):
            return False
        return self.param == parameter or re.search(rf"\b{parameter}\b", self.message) is not None

    def refuses_temperature(self, value: float) -> bool:
        """Whether the model does not take the temperature, in any words: a range that leaves it out is a mistake."""
        if not self.names("temperature") or " both " in self.message:
            return False
        return value == 0 or not is_out_of_range(f"{self.code} {self.message}")

    @property
    def asks_for_stream(self) -> bool:
        """Whether the endpoint answers only as a stream."""
        if self.status not in (400, 405, 406, 422, 500, 501) or self.is_overflow:
            return False
        return self.param == "stream" or STREAM_WANTED.search(self.message) is not None

    @property
    def context_limit(self) -> int | None:
        """The model's context in tokens, if the message has it."""
        match = re.search(r"(?:context (?:length|window|size)|context limit)\D{0,40}?(\d{1,9})\b", self.message)
        return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class SupportedParameters:
    """The parameters of this endpoint, learnt from its refusals and used for every later call.

    `temperature`: it may be sent. `zero`: it may be 0; else `LEAST_TEMPERATURE` stands for 0. `renames_cap`: the chat
    API's `max_tokens` is called `max_completion_tokens`. `only_streams`: answers are asked for as streams;
    `stream_options`: with their usage.
    """

    temperature: bool = True
    zero: bool = True
    renames_cap: bool = False
    only_streams: bool = False
    stream_options: bool = True

    @property
    def as_configured(self) -> bool:
        """Whether replies are decoded with the configured temperature."""
        return self.temperature and self.zero

    def sent_temperature(self, configured: float | None) -> float | None:
        """The temperature of a request; None: none is sent."""
        if configured is None or not self.temperature:
            return None
        return LEAST_TEMPERATURE if configured == 0 and not self.zero else configured

    def changes(self, before: "SupportedParameters") -> dict[str, bool]:
        """The fields that differ from those before."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != getattr(before, each.name)
        }

    def after(self, refusal: Refusal, body: Mapping[str, Any]) -> "SupportedParameters | None":
        """The parameters that avoid the refusal; None if nothing in the body can be left out or renamed."""
        value = body.get("temperature")
        if self.temperature and value is not None and refusal.refuses_temperature(value):
            smaller = self.zero and value == 0 and wants_more_than_zero(refusal.message)
            return replace(self, zero=False) if smaller else replace(self, temperature=False)
        if not self.renames_cap and "max_tokens" in body and refusal.names_unsupported("max_tokens"):
            return replace(self, renames_cap=True)
        if self.stream_options and "stream_options" in body and refusal.names("stream_options"):
            return replace(self, stream_options=False)
        if not self.only_streams and not body.get("stream") and refusal.asks_for_stream:
            return replace(self, only_streams=True)
        return None


ABOUT_CONVERSATION = (400, 413, 422)
SHORTEST_PART = 3
SHORTEST_SECRET = 12
BUSY = (408, 409, 429)
NO_MONEY = 402


class Failures:
    """Turns failures of one model into exceptions. `served`: the model names in the endpoint's list.

    `unknown_model` and `no_key` are a protocol's remedies for an unknown model and a missing key.
    """

    def __init__(self, config: "EndpointConfig", *, unknown_model: str = "", no_key: str = "") -> None:
        self._config, self._unknown_model, self._no_key = config, unknown_model, no_key
        self.served: tuple[str, ...] = ()

    def of_refusal(self, refusal: Refusal, headers: Mapping[str, str], *, has_answered: bool) -> Exception:
        """The exception for an HTTP error. `has_answered`: an earlier call succeeded, so the config is right."""
        status = refusal.status
        message = f"{self._config.place}: HTTP {status}: {self.redact(refusal.message)}"
        if refusal.is_overflow:
            limit, wanted = refusal.context_limit, getattr(self._config, "max_tokens", None)
            if limit is None or wanted is None or wanted < limit:
                return ContextOverflow(message)
            option = f"{key_of(self._config, 'max_tokens')}={wanted}"
            return UserError(message, f"{option} leaves no room for a prompt: lower it below {limit}")
        if refusal.is_about_key:
            message = f"{self._config.place}: HTTP {status}"  # the endpoint's words may quote the key
        if refusal.is_about_money:
            return EndpointDown(message)
        if status in BUSY or status >= 500:
            wait = retry_after(headers, time.time())
            return TransientFailure(InfrastructureError(message), limited=status == 429, after=wait)
        if refusal.is_filter or has_answered:  # then it concerns this conversation, or the endpoint's state
            is_others = status not in ABOUT_CONVERSATION or refusal.is_about_key or refusal.is_unknown_model
            return InfrastructureError(message) if is_others else ConversationRefused(message)
        return self._mistake(refusal, message)

    def of_unreachable(self, cause: str) -> TransientFailure:
        """The exception for an endpoint that takes no connection, after it had taken one."""
        return TransientFailure(EndpointDown(f"nothing answers at {self._config.address} ({self.redact(cause)})"))

    def of_nobody(self, cause: str) -> UserError:
        """The exception for an endpoint that takes no connection at the first call."""
        return UserError(
            f"nothing answers at {self._config.address} ({self.redact(cause)})",
            f"start the server, or set {key_of(self._config, 'base_url')} to the model's server",
        )

    def of_connection(self, cause: str) -> TransientFailure:
        """The exception for a connection that broke before the response was whole."""
        return self.of_answer(f"the connection broke ({self.redact(cause)})")

    def of_answer(self, problem: str) -> TransientFailure:
        """The exception for a good status with an unreadable answer."""
        return TransientFailure(InfrastructureError(f"{self._config.place}: {self.redact(problem)}"))

    def check_end(self, reply: Reply) -> None:
        """Raise the exception for an answer that the model did not end."""
        overflows = ending(reply.finish_reason) is Ending.OVERFLOW
        if not (overflows or is_fault(reply)):
            return
        word = visible(reply.finish_reason or "")
        ended = f"the answer ended with '{self.redact(word)}'" if word else "the answer does not say why it ended"
        if overflows:
            raise ContextOverflow(f"{self._config.place}: {ended}")
        raise self.of_answer(ended if reply.text.strip() else f"{ended}, without a text")

    def redact(self, text: str) -> str:
        """The text, bounded, without the key and the values of headers, also if the text was cut off within one."""
        for each in self._secrets():
            text = text.replace(each, "***")
            cut = next((n for n in range(len(each) - 1, SHORTEST_PART, -1) if text.endswith(each[:n])), 0)
            text = text[:-cut] + "***" if cut else text
        return text[:300]

    def without_secrets(self, content: bytes) -> bytes:
        """An answer for an agent, without the key and the values of headers. Shorter ones are words: code has them."""
        for each in self._secrets():
            content = content.replace(each.encode(), b"***") if len(each) >= SHORTEST_SECRET else content
        return content

    def _secrets(self) -> list[str]:
        """The values as answers may have them, the longest first."""
        variables = [self._config.api_key_env, *self._config.headers.values()]
        values = {os.environ.get(variable, "").strip() for variable in variables if variable} - {""}
        spoken = {form for value in values for form in (value, " ".join(value.split()), json.dumps(value)[1:-1])}
        return sorted(spoken, key=len, reverse=True)

    def _mistake(self, refusal: Refusal, message: str) -> UserError:
        """The user's mistake behind a refused first call."""
        config, status = self._config, refusal.status
        if refusal.is_about_key:
            variable = config.api_key_env
            if variable is None:
                remedy = self._no_key or f"set {key_of(config, 'api_key_env')} to the variable that holds it"
                return UserError(f"{config.place} asks for a key (HTTP {status})", remedy)
            problem = f"{config.place} refuses the key of the environment variable {variable} (HTTP {status})"
            return UserError(problem, f"check the key in {variable} and what it may use")
        if refusal.is_unknown_model:
            remedy = nearest(config.name, self.served) if self.served else self._unknown_model
            keys = f"{key_of(config, 'name')} and {key_of(config, 'base_url')}"
            return UserError(message, f"check {keys}" + (f"; {remedy}" if remedy else ""))
        if status < 400:
            remedy = f"set {key_of(config, 'base_url')} to the final address"
            return UserError(f"{config.address} answers with a redirect", remedy)
        if refusal.asks_for_stream:
            return UserError(message, f"set {key_of(config, 'stream')}=auto or true: answers come as streams")
        return UserError(message, "the endpoint refuses the request: change the model's options")


def cause_of(error: BaseException) -> str:
    """The cause of an error, in words that may hold the key."""
    cause = error.__cause__ or error
    return f"{cause}" or type(cause).__name__
