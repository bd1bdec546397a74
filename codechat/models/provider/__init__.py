"""Any model that pydantic-ai reaches in its provider's own protocol: Anthropic, Google, Amazon Bedrock and others.

This file makes one attempt; the library's own retries and its telemetry are off. `codechat.models.remote` has
everything around it, and `codechat.models.provider.library` the library's clients and errors.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import model_validator

from codechat.base.config import result_option, run_option
from codechat.base.domain import BATCH, FLEX, Message, Reply, Tier, Usage
from codechat.base.files import from_yaml
from codechat.base.texts import writable
from codechat.models import MODELS
from codechat.models.calls.batches import RequestKey
from codechat.models.endpoints import EndpointInfo
from codechat.models.remote import Refused, Remote
from codechat.models.remote.config import RemoteConfig
from codechat.models.remote.failures import FILTERED, Advice, Failures, Refusal, SupportedParameters

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse

    from codechat.models.provider.library import PydanticAi


CacheTtl = Literal["5m", "1h"]


class ProviderConfig(RemoteConfig):
    """The provider, and the settings that its protocol takes."""

    kind: Literal["provider"] = result_option("provider", "which provider answers")
    provider: str = result_option(
        ..., "whose protocol, as pydantic-ai names it: anthropic, google, bedrock, mistral, …", pattern=r"^[a-z0-9/-]+$"
    )
    settings: dict[str, Any] = result_option(
        {}, "further settings by pydantic-ai's names, e.g. {top_p: 0.9, thinking: low}"
    )
    base_url: str | None = run_option(None, "the endpoint's address; null: the provider's own")
    api_key_env: str | None = run_option(
        None, "environment variable that holds the key; null: no key (bedrock and google-cloud find their own)"
    )

    prompt_cache: Literal[CacheTtl, "off"] | None = run_option(
        None, "how long Anthropic keeps a dialogue's prefix, which is marked for that; null: 5m, in batches 1h"
    )

    @model_validator(mode="after")
    def _has_the_tier(self) -> Self:
        if self.tier == FLEX and self.provider in WITHOUT_FLEX:
            raise ValueError(f"{self.provider} has no tier flex" + ": it has batch" * (self.provider in WITH_BATCHES))
        if self.tier == BATCH and self.provider not in WITH_BATCHES:
            raise ValueError(f"batches of {self.provider} are not known: tier=batch is for anthropic and model=openai")
        return self


SAMPLING = ("anthropic_disallows_sampling_settings", "bedrock_disallows_sampling_settings")
"""Marks of pydantic-ai on models that refuse a temperature: it would leave it out with a Python warning."""
FINISHED = {"tool_call": "tool_calls"}
"""Reasons for the end of a reply that OpenAI's protocol words otherwise."""
LONGEST_FINGERPRINT = 200
WITH_BATCHES = ("anthropic",)
WITHOUT_FLEX = ("anthropic", "mistral", "groq", "cohere")
"""Providers that have no such tier: the library would leave it out without a word."""


CHARS_PER_TOKEN = 3
"""Few, so that a prefix that just reaches the least length is marked: a marker on a shorter one costs nothing."""


@cache
def least_cached(model: str) -> int:
    """The fewest tokens of a prefix that Anthropic keeps for a model."""
    text = (Path(__file__).parent / "prompt_caches.yaml").read_text(encoding="utf-8")
    least: dict[str, int] = from_yaml(text)["least_tokens"]
    return next((tokens for name, tokens in least.items() if model.startswith(name)), max(least.values()))


@MODELS.register("provider", ProviderConfig)
def provider_model(config: ProviderConfig) -> Remote:
    """A model in its provider's own protocol, by model.provider: Anthropic, Google, Bedrock and others."""
    return Remote(config, ProviderApi(config))


class ProviderApi:
    """One provider's model by pydantic-ai."""

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config
        own = config.provider == "bedrock"
        no_key = "give AWS credentials that may use the model: AWS_PROFILE, AWS_BEARER_TOKEN_BEDROCK, …" if own else ""
        self.failures = Failures(config, Advice(no_key=no_key))
        self._library: PydanticAi | None = None
        self._has_reached = False

    @property
    def address(self) -> str:
        return f"{self.config.provider} {self.config.base_url or ''}"

    def body(self, messages: Sequence[Message], supported: SupportedParameters) -> dict[str, Any]:
        """The conversation and the settings, by pydantic-ai's names."""
        config = self.config
        sent = [{"role": message.role, "content": message.content} for message in messages]
        settings = dict(config.settings)
        if config.max_tokens is not None:
            settings["max_tokens"] = config.max_tokens
        body: dict[str, Any] = {"model": config.name, "messages": sent, "settings": settings}
        if config.temperature is not None and supported.temperature:
            body["temperature"] = config.temperature
        return body

    async def describe(self, seconds: float) -> EndpointInfo:
        """Nothing: these protocols have no common way to ask. Every reply names the model's version.

        The library is loaded here, so that no attempt waits for that.
        """
        self._connect()
        return EndpointInfo(self.config.address)

    def _connect(self) -> "PydanticAi":
        if self._library is None:
            from codechat.models.provider.library import PydanticAi

            self._library = PydanticAi(self.config)
        return self._library

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        library = self._connect()
        settings = dict(body["settings"])
        if tier == FLEX:
            settings["service_tier"] = FLEX
        kept, marked = self._kept(body["messages"], final=final)
        if "temperature" in body:
            if any(library.profile.get(flag) for flag in SAMPLING):
                message = f"temperature is not supported by {self.config.name}"
                raise Refused(Refusal(400, message, param="temperature"), {})
            settings["temperature"] = body["temperature"]
        from codechat.models.provider.library import translate_errors

        try:
            with translate_errors(self.failures, library.mistakes, is_first=not self._has_reached):
                response = await library.ask(_messages(body["messages"], kept, marked), settings)
        except Refused:
            self._has_reached = True
            raise
        self._has_reached = True
        return self._reply(response)

    def _kept(self, sent: Sequence[dict[str, str]], *, final: bool) -> tuple[CacheTtl | None, int]:
        """How long the endpoint shall keep this conversation, and up to which message; None: it keeps nothing.

        A conversation that has gone on goes on, and the next request begins with it: the others are mostly judges'
        questions. The end of a `final` one is never read again, so that only what the request before it had is marked,
        to be found: keeping more would cost more and save nothing.
        """
        config = self.config
        answered = [place for place, message in enumerate(sent) if message["role"] == "assistant"]
        if config.provider != "anthropic" or config.prompt_cache == "off" or len(answered) < 1 + final:
            return None, 0
        end = answered[-1] if final else len(sent)
        if sum(len(message["content"]) for message in sent[:end]) < CHARS_PER_TOKEN * least_cached(config.name):
            return None, 0
        return config.prompt_cache or ("1h" if config.tier == BATCH else "5m"), end - 1

    def _reply(self, response: "ModelResponse") -> Reply:
        """The text of a response. Raises `Refused` if the prompt was stopped, `TransientFailure` if it is no answer."""
        details = response.provider_details or {}
        own_reason = details.get("finish_reason")
        if details.get("block_reason"):
            raise Refused(Refusal(400, f"the prompt was stopped: {details['block_reason']}", FILTERED), {})
        text = "".join(part.content for part in response.parts if part.part_kind == "text")
        if not text and own_reason is None and response.finish_reason is None:
            raise self.failures.of_answer("the answer holds neither a text nor why it ended")
        finish = response.finish_reason
        counted = response.usage
        usage = Usage(
            counted.input_tokens, counted.output_tokens, counted.cache_read_tokens, counted.cache_write_tokens
        )
        if FLEX in (details.get("service_tier"), str(details.get("traffic_type")).lower().removeprefix("on_demand_")):
            usage = usage.served_as(FLEX)
        return Reply(
            str(writable(text)),
            # A reason that the library has no word for is kept as the provider says it.
            str(own_reason) if finish in (None, "error") and own_reason else FINISHED.get(str(finish), finish),
            usage=usage,
            fingerprint=str(writable(response.model_name))[:LONGEST_FINGERPRINT] if response.model_name else None,
        )

    async def reject(self, call: RequestKey) -> None:
        if self._library is not None:
            await self._library.reject(call)

    async def aclose(self) -> None:
        library, self._library = self._library, None
        if library is not None:
            await library.aclose()


def _messages(sent: Sequence[dict[str, str]], kept: CacheTtl | None, marked: int) -> "list[ModelMessage]":
    """A conversation as the library's messages: everything between two replies is one request.

    If it is kept, the end of the marked message, a user's, is where the provider looks and writes.
    """
    from pydantic_ai.messages import CachePoint, ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

    made: list[ModelMessage] = []
    waiting: list[SystemPromptPart | UserPromptPart] = []
    for place, message in enumerate(sent):
        text = message["content"]
        if message["role"] == "assistant":
            made += [ModelRequest(parts=waiting), ModelResponse(parts=[TextPart(text)])]
            waiting = []
        elif message["role"] == "system":
            waiting.append(SystemPromptPart(text))
        else:
            point = [CachePoint(ttl=kept)] if kept and place == marked else []
            waiting.append(UserPromptPart([text, *point] if point else text))
    return [*made, ModelRequest(parts=waiting)] if waiting else made
