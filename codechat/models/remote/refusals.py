"""Refusals: what an endpoint's error says, and what may be left out of the next request because of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

OVERFLOW = re.compile(
    r"context[ _]length|context[ _]window|context[ _]size|prompt is too long|prompt too long|too many (input )?tokens"
    r"|input is too long|exceeds? the (model'?s )?maximum (input )?length|longer than the maximum"
    r"|input token count|inputs`? tokens .*must be <=",
    re.IGNORECASE,
)
TOO_LONG = "context_length_exceeded"
NO_QUOTA = "insufficient_quota"
INVALID_KEY = "invalid_api_key"
UNKNOWN_MODEL = "model_not_found"
FILTERED = "content_filter"
"""OpenAI's codes, which other protocols' errors are translated to."""
UNSUPPORTED = re.compile(r"unsupported|not supported|does not support|not allowed|deprecated", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP error, as the endpoint worded it."""

    status: int
    message: str
    code: str = ""
    param: str = ""

    @property
    def is_overflow(self) -> bool:
        """Whether the conversation is too long for the model (OpenAI's code, vLLM's and other servers' words)."""
        if self.status not in (400, 413, 422, 500):
            return False
        return self.code == TOO_LONG or bool(OVERFLOW.search(self.message))

    @property
    def is_filter(self) -> bool:
        """Whether the provider's filter stopped the prompt before the model saw it.

        Such filters misfire and differ from day to day, so this is a failure to ask and never the model's answer.
        """
        return self.status == 400 and self.code in (FILTERED, "content_policy_violation", "invalid_prompt")

    @property
    def is_about_key(self) -> bool:
        """Whether the key is wrong, missing, or may not do this; some providers say so with the status 400."""
        return self.status in (401, 403) or (self.status == 400 and self.code == INVALID_KEY)

    @property
    def is_unknown_model(self) -> bool:
        """Whether there is no such model, or no such page; some providers say so with the status 400."""
        return self.status == 404 or (self.status == 400 and self.code == UNKNOWN_MODEL)

    def names_unsupported(self, parameter: str) -> bool:
        """Whether the endpoint says that it does not support the parameter, or its value, for this model."""
        if self.status not in (400, 422):
            return False
        named = self.param == parameter or re.search(rf"\b{parameter}\b", self.message) is not None
        return named and UNSUPPORTED.search(f"{self.code} {self.message}") is not None

    @property
    def context_limit(self) -> int | None:
        """The model's context in tokens if the message has it."""
        found = re.search(r"maximum context length is (\d+)", self.message)
        return int(found.group(1)) if found else None


@dataclass(frozen=True, slots=True)
class Dialect:
    """The parameters that this endpoint supports, learnt from its refusals and used for every later call."""

    temperature: bool = True
    """Whether a temperature may be sent."""
    renames_cap: bool = False
    """Whether the chat API's `max_tokens` is called `max_completion_tokens`."""

    def after(self, refusal: Refusal, body: Mapping[str, Any]) -> "Dialect | None":
        """The dialect that avoids the refusal; None if nothing in the body can be left out or renamed."""
        if self.temperature and "temperature" in body and refusal.names_unsupported("temperature"):
            return replace(self, temperature=False)
        if not self.renames_cap and "max_tokens" in body and refusal.names_unsupported("max_tokens"):
            return replace(self, renames_cap=True)
        return None
