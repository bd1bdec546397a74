"""The options that every model behind an endpoint has, whatever protocol it speaks."""

import math
import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import ValidationInfo, field_validator

from codechat.base.config import WHERE, original_option, result_option, run_option
from codechat.base.domain import Tier
from codechat.base.errors import UserError
from codechat.models import ModelConfig
from codechat.models.calls.batches import BatchPolicy
from codechat.models.endpoints import Weights, address_of

BATCH_SIZE = 10_000
"""Most requests of one batch; a provider's own bounds hold too."""
BATCH_AGE_S = 120.0
"""Seconds after which a batch is submitted although sessions could still add to it."""


class RemoteConfig(ModelConfig):
    """The endpoint, the decoding that all protocols know, and the limits of calls."""

    name: str = original_option(..., "the model's name as the endpoint knows it", min_length=1)
    temperature: float | None = original_option(
        0.0, "0 is greedy decoding; null sends none, for models that refuse it", ge=0, le=2
    )
    max_tokens: int | None = original_option(None, "most tokens of one reply; null leaves it to the endpoint", ge=1)
    weights: Weights = result_option(Weights(), "which weights are meant by the name")
    base_url: str | None = run_option(None, "the endpoint's address")
    api_key_env: str | None = run_option(None, "environment variable that holds the key; null: no key needed")
    max_concurrency: int = run_option(32, "most calls under way at once to the endpoint", ge=1)
    requests_per_minute: float | None = run_option(
        None, "most requests a minute to this endpoint; null: no limit", gt=0
    )
    tokens_per_minute: float | None = run_option(
        None, "most tokens a minute, sent and received, with the endpoint; null: no limit", gt=0
    )
    adaptive_concurrency: bool = run_option(
        False, "find out how many calls at once the endpoint takes, up to max_concurrency: fewer after a 429"
    )
    tier: Tier = run_option(
        "standard",
        "what is paid for how long a wait: standard, flex (about half, slower, sometimes refused), batch (half, by the "
        "hour); replies are the same model's",
    )
    tier_fallback: Literal["standard"] | None = run_option(
        None, "standard: what flex refuses for want of room is asked at the full price; null: never"
    )
    batch_poll_s: float = run_option(15.0, "seconds between two looks at a batch", gt=0)
    timeout_s: float = run_option(300.0, "seconds that end one attempt; of the tier flex three times as many", gt=0)
    call_timeout_s: float | None = run_option(
        None, "seconds for one call with all its retries; null: twice timeout_s", gt=0
    )
    max_retries: int = run_option(6, "how often a failed attempt is repeated", ge=0, le=20)
    cache: bool | None = run_option(
        None, "whether replies are kept across cells; null: only those of greedy decoding (temperature 0)"
    )

    @property
    def pace(self) -> BatchPolicy:
        """How requests become batches."""
        return BatchPolicy(BATCH_SIZE, BATCH_AGE_S, self.batch_poll_s)

    def longest_reply(self) -> float:
        return self.max_tokens or math.inf

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None:
            return None
        try:
            parts = urlsplit(value)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("an address is needed, like http://127.0.0.1:8000/v1")
        if "@" in parts.netloc:  # not shown again: it is a secret
            raise UserError(
                f"{_key(info)} holds a user name or password",
                f"name a variable that holds it in {_key(info, 'api_key_env')}",
            )
        return value.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _variable_name(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):  # not shown: it may be the key
            raise UserError(
                f"{_key(info)} is not the name of an environment variable",
                "put the key into a variable, e.g. OPENAI_API_KEY, and give its name; null if no key is needed",
            )
        return value

    @property
    def address(self) -> str:
        """The address that is asked, or the name of whoever knows it."""
        return str(address_of(self))

    @property
    def place(self) -> str:
        """The model and its endpoint, in messages."""
        return f"{self.name} at {self.address}"


def _key(info: ValidationInfo, option: str = "") -> str:
    """The whole key of the option that is checked, or of one beside it, for messages."""
    place = (info.context or {}).get(WHERE)
    name = option or str(info.field_name)
    return f"{place}.{name}" if place else name
