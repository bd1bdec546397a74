"""Any endpoint that speaks the OpenAI protocol: hosted, vLLM, or another server, by its base URL.

This file makes one attempt; the SDK's own retries are off. `codechat.models.remote` has everything around it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import field_validator

from codechat.base.config import original_option, run_option
from codechat.base.domain import BATCH, FLEX, Message, Reply, Tier
from codechat.models import MODELS
from codechat.models.calls.batches import RequestKey
from codechat.models.endpoints import ARGUMENTS, LONGEST, VLLM, EndpointInfo, info_of
from codechat.models.openai.protocol import PATHS, Api, Decoding, Unreadable, body_of, encoded, refusal_of, reply_of
from codechat.models.prices import listed_prices
from codechat.models.remote import SERVERS, Refused, Remote, Unreachable, key_from_environment
from codechat.models.remote.config import RemoteConfig
from codechat.models.remote.failures import Advice, Failures, SupportedParameters, cause_of

if TYPE_CHECKING:
    import httpx2

    from codechat.models.calls.transport import Client
    from codechat.models.openai.client import SdkClient

NEUTRAL: Mapping[str, float] = {
    "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "top_p": 1, "top_k": -1, "min_p": 0,
}  # fmt: skip
"""Fields of a request with the values at which they change nothing."""


class OpenAIConfig(RemoteConfig):
    """The model's endpoint and decoding."""

    kind: Literal["openai"] = original_option("openai", "which provider answers")
    api: Api = original_option("chat", "which API of the endpoint is called: chat or responses")
    reasoning_effort: str | None = original_option(None, "reasoning effort, e.g. low, medium or high; null sends none")
    extra_body: dict[str, Any] = original_option({}, "further fields of the request's JSON body, e.g. {top_p: 1}")
    neutral: dict[str, float] = run_option(
        {}, "fields sent with the value that changes nothing, where a repository's own settings might: {top_p: 1}"
    )
    base_url: str = run_option("http://127.0.0.1:8000/v1", "the endpoint's address up to /v1")
    served_by: Literal["vllm"] | None = run_option(
        None, "what is started on this machine if nothing answers at a base_url of this machine: vllm; null: nothing"
    )
    prompt_cache: Literal["24h", "off"] | None = run_option(
        None,
        "how long the endpoint is asked to keep what it caches of prompts in batches, which come by the hour; "
        "null: as conf/prices says of OpenAI's models",
    )
    weights_gb: float | None = run_option(
        None, "gigabytes of the weights as they are published, to lay servers out on GPUs; null: not known", gt=0
    )

    @field_validator("neutral")
    @classmethod
    def _changes_nothing(cls, fields: dict[str, float]) -> dict[str, float]:
        for name, value in fields.items():
            if NEUTRAL.get(name) != value:
                known = ", ".join(f"{field}: {neutral}" for field, neutral in NEUTRAL.items())
                raise ValueError(f"{name}: {value} could change a reply: give it in extra_body (neutral are {known})")
        return fields


CONNECT_TIMEOUT_S = 10.0
NO_KEY = "no-key"


@MODELS.register("openai", OpenAIConfig)
def openai_model(config: OpenAIConfig) -> Remote:
    """Any OpenAI-compatible endpoint by model.base_url: hosted, vLLM and others."""
    return Remote(config, OpenAIApi(config))


class OpenAIApi:
    """The chat or the responses API of one endpoint."""

    def __init__(self, config: OpenAIConfig) -> None:
        self.config = config
        self.failures = Failures(config, Advice(unknown_model="is there a /v1 missing in base_url?"))
        self._client: SdkClient | None = None
        self._transport: Client | None = None
        self._base_url = config.base_url  # after `_find` the address of the server that codechat started
        more = {**config.neutral, **config.extra_body}
        self._decoding = Decoding(config.temperature, config.max_tokens, config.reasoning_effort, more)
        known = listed_prices(config)
        kept = config.prompt_cache or (known.keeps if known else None)
        self._batched = {} if kept in (None, "off") else {"prompt_cache_retention": kept}

    @property
    def address(self) -> str:
        servers = SERVERS.get()
        known_as = servers.known_as(self.config) if servers is not None else None
        return (known_as or self.config.base_url) + PATHS[self.config.api]

    def body(self, messages: Sequence[Message], supported: SupportedParameters) -> dict[str, Any]:
        return body_of(self.config.api, self.config.name, messages, self._decoding, supported)

    def _connect(self) -> "SdkClient":
        if self._client is None:
            import httpx2

            from codechat.models.calls.batch_protocols import OpenAIBatches
            from codechat.models.calls.transport import BatchClient, Client
            from codechat.models.openai.client import SdkClient

            key = key_from_environment(self.config)
            self._transport = (
                BatchClient(self._base_url, OpenAIBatches, self.config.pace)
                if self.config.tier == BATCH
                else Client(self._base_url)
            )
            self._client = SdkClient(
                base_url=self._base_url,
                api_key=key or NO_KEY,
                max_retries=0,
                # The whole attempt has its own limit, which a slowly dripping server cannot extend.
                timeout=httpx2.Timeout(None, connect=min(CONNECT_TIMEOUT_S, self.config.timeout_s)),
                http_client=self._transport,
            )
        return self._client

    async def describe(self, seconds: float) -> EndpointInfo:
        """The endpoint's description in its list of models; of vLLM also its version and how codechat started it."""
        import openai

        await self._find()
        limit = min(seconds, self.config.timeout_s)
        try:
            listed = (await self._get(f"{self._base_url}/models", limit)).json()
        except openai.APIConnectionError as error:
            raise Unreachable(cause_of(error)) from None
        except (openai.APIStatusError, ValueError):
            return EndpointInfo(self.config.base_url)
        self.failures.served = _model_names(listed)
        found = info_of(self.config.base_url, self.config.name, listed, time.time())
        return replace(found, facts={**found.facts, **await self._about_vllm(limit)})

    async def _get(self, address: str, seconds: float) -> "httpx2.Response":
        import httpx2

        return await self._connect().get(address, cast_to=httpx2.Response, options={"timeout": seconds})

    async def _find(self) -> None:
        """Ask the cell where the model is served, once its server is ready."""
        servers = SERVERS.get()
        found = await servers.reach(self.config) if servers is not None else None
        if found is not None and found != self._base_url:
            await self.aclose()
            self._base_url = found

    async def _about_vllm(self, seconds: float) -> dict[str, str]:
        """The version of the vLLM that serves the model, and its arguments if codechat started it; else nothing."""
        import openai

        if self.config.served_by != "vllm":
            return {}
        try:
            address = self._base_url.removesuffix("/v1") + "/version"
            version = str((await self._get(address, seconds)).json()["version"])
        except (openai.OpenAIError, ValueError, KeyError, TypeError):
            return {}
        servers = SERVERS.get()
        arguments = servers.arguments(self.config) if servers is not None else None
        return {VLLM: version[:LONGEST], **({ARGUMENTS: arguments} if arguments is not None else {})}

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        more = {"service_tier": tier} if tier == FLEX else self._batched if tier == BATCH else {}
        response = await self._post(body | more)
        try:
            return reply_of(self.config.api, response.content)
        except Unreadable as error:
            raise self.failures.of_answer(str(error)) from None

    async def _post(self, body: dict[str, Any]) -> "httpx2.Response":
        """The response of a good status."""
        import httpx2
        import openai

        try:
            address = self._base_url + PATHS[self.config.api]
            return await self._connect().call(address, encoded(self.config.api, body))
        except openai.APIStatusError as error:
            refused = Refused(refusal_of(error.status_code, error.response.text), error.response.headers)
        except openai.APIConnectionError as error:
            if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
                raise self.failures.of_unreachable(cause_of(error)) from None
            raise self.failures.of_connection(cause_of(error)) from None
        raise refused

    async def reject(self, call: RequestKey) -> None:
        if self._transport is not None:
            await self._transport.reject(call)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _model_names(listed: Any) -> tuple[str, ...]:
    try:
        return tuple(str(model["id"]) for model in listed["data"])
    except (KeyError, TypeError):
        return ()
