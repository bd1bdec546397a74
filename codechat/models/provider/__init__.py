"""Any model that pydantic-ai reaches in its provider's protocol: Anthropic, Google, Amazon Bedrock and others.

This file makes one attempt; `codechat.models.remote` has everything around it. A client makes no retries, sends no
telemetry, and takes no credentials that the config does not name. No exception raised here is chained to the library's,
whose text may quote the key. The libraries are slow to import and come with the extra `providers`, so they are imported
to make a request.
"""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast
from urllib.parse import urlsplit

from pydantic import model_validator

from codechat.base.config import result_option, run_option
from codechat.base.domain import BATCH, FLEX, Message, Reply, Tier
from codechat.base.errors import UserError
from codechat.base.files import from_yaml
from codechat.base.texts import writable
from codechat.models import MODELS
from codechat.models.calls.answers import OF_THOUGHTS, OTHER_SHAPES, Ending, ending, tokens_in, usage_of, word_of
from codechat.models.calls.batches import RequestKey
from codechat.models.endpoints import EndpointInfo, key_of
from codechat.models.reasoning import bounded
from codechat.models.remote import Refused, Remote, RemoteConfig
from codechat.models.remote.failures import (
    FILTERED,
    INVALID_KEY,
    NO_QUOTA,
    TOO_LONG,
    UNKNOWN_MODEL,
    Failures,
    Refusal,
    SupportedParameters,
)
from codechat.models.remote.given import headers_from_environment, key_from_environment

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

    from codechat.models.calls.transport import Client

CacheTtl = Literal["5m", "1h"]
SAMPLING = ("anthropic_disallows_sampling_settings", "bedrock_disallows_sampling_settings")
"""pydantic-ai's flags of models that refuse a temperature, which it would leave out with a Python warning."""
FINISHED = {"tool_call": "tool_calls"}
"""pydantic-ai's finish reasons with another name in OpenAI's protocol."""
LONGEST_FINGERPRINT = 200
WITH_BATCHES = ("anthropic",)
WITHOUT_FLEX = ("anthropic", "mistral", "groq", "cohere")
"""Providers without this tier, which the library would leave out silently."""
LEAST_CHARS_PER_TOKEN = 3
"""A low estimate, so that a prefix of just the least length is marked: a marker on a shorter prefix costs nothing."""
CONNECT_TIMEOUT_S = 10.0
EXTRA = "pip install 'codechat[providers]'"
WITH_THE_EXTRA = ("anthropic", "google", "google-cloud", "bedrock")
OWN_CREDENTIALS = ("google-cloud", "bedrock")
"""Providers whose libraries find credentials themselves. The others get the key that the config names, or none."""
NO_KEY = "no-key"


class ProviderConfig(RemoteConfig):
    """The provider, and the settings of its protocol."""

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


@cache
def least_cached(model: str) -> int:
    """The least tokens of a prefix that Anthropic caches for a model."""
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
        no_key = "give AWS credentials that may use the model: AWS_PROFILE, AWS_BEARER_TOKEN_BEDROCK, …"
        self.failures = Failures(config, no_key=no_key if config.provider == "bedrock" else "")
        self._model: Model | None = None
        self._client: Client | None = None
        self._close: Callable[[], object] = lambda: None  # boto3's connections
        self._mistakes: tuple[type[Exception], ...] = ()  # exceptions that mean missing credentials
        self._has_reached = False

    @property
    def address(self) -> str:
        return f"{self.config.provider} {self.config.base_url or ''}"

    def body(self, messages: Sequence[Message], supported: SupportedParameters) -> dict[str, Any]:
        config = self.config
        sent = [{"role": message.role, "content": message.content} for message in messages]
        settings = dict(config.settings)
        if config.max_tokens is not None:
            settings["max_tokens"] = config.max_tokens
        body: dict[str, Any] = {"model": config.name, "messages": sent, "settings": settings}
        if (temperature := supported.sent_temperature(config.temperature)) is not None:
            body["temperature"] = temperature
        if supported.only_streams:
            body["stream"] = True
        return body

    async def prepare(self) -> None:
        self._connect()

    async def describe(self) -> EndpointInfo:
        """No facts: every reply names the model's version."""
        return EndpointInfo(self.config.address)

    def _connect(self) -> "Model":
        """The library's model, made at the first call. Raises `UserError` if a package or credentials are missing."""
        if self._model is not None:
            return self._model
        config = self.config
        key = key_from_environment(config)
        try:
            from pydantic_ai.models import infer_model

            provider = self._bedrock() if config.provider == "bedrock" else self._provider(key)
            self._model = infer_model(f"{config.provider}:{config.name}", lambda _: provider)
        except ImportError as error:
            if error.name != "pydantic_ai" and config.provider not in WITH_THE_EXTRA:
                what = f"the provider {config.provider} needs a package that is not installed"
                raise UserError(what, str(error)) from None
            missing = f"the package {error.name}" if error.name else "further packages"
            raise UserError(f"the provider {config.provider} needs {missing}, which is not installed", EXTRA) from None
        return self._model

    def _provider(self, key: str | None) -> "Provider[Any]":
        """The provider, over codechat's connections if it takes an HTTP client."""
        from pydantic_ai.exceptions import UserError as LibraryError
        from pydantic_ai.providers import infer_provider_class

        config = self.config
        try:
            kind = infer_provider_class(config.provider)
        except ValueError:
            known = "anthropic, google, bedrock, mistral, … (pydantic-ai's documentation lists them)"
            raise UserError(f"{key_of(config, 'provider')}: pydantic-ai knows no '{config.provider}'", known) from None
        if config.provider == "google-cloud":
            from google.auth.exceptions import GoogleAuthError

            self._mistakes = (GoogleAuthError,)
        # it warns of keys in the environment, which are not used
        logging.getLogger("google_genai").setLevel(logging.ERROR)
        accepted = inspect.signature(kind.__init__).parameters
        root, _, query = (config.base_url or "").partition("?")
        if query and "http_client" not in accepted:
            raise self._takes_no_query()
        named = {
            "api_key": key or (None if config.provider in OWN_CREDENTIALS else NO_KEY),
            "base_url": root or None,
        }
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        for name, option in (("api_key", "api_key_env"), ("base_url", "base_url")):
            if name in given and name not in accepted:
                if getattr(config, option) is not None:
                    raise UserError(f"{config.provider} takes no {option}", f"set {key_of(config, option)}=null")
                del given[name]
        try:
            if "http_client" not in accepted and config.headers:
                raise UserError(f"{config.provider} takes no headers", f"leave out {key_of(config, 'headers')}")
            if "http_client" in accepted:
                given["http_client"] = self._connections(config.base_url or str(kind(**given).base_url))
            return kind(**given)
        except LibraryError as error:
            raise UserError(f"{config.place}: {str(error).partition(' To try ')[0]}") from None

    def _takes_no_query(self) -> UserError:
        key = key_of(self.config, "base_url")
        return UserError(f"{self.config.provider} takes no query in its address", f"remove the ?… from {key}")

    def _connections(self, address: str) -> "httpx2.AsyncClient":
        import httpx2

        from codechat.models.calls.batch_protocols import AnthropicBatches
        from codechat.models.calls.transport import BatchClient, Client

        seconds = self.config.timeout_s
        timeout = httpx2.Timeout(seconds, connect=min(CONNECT_TIMEOUT_S, seconds))
        own = headers_from_environment(self.config)
        batched = self.config.tier == BATCH
        self._client = (
            BatchClient(address, AnthropicBatches, self.config.pace, timeout, own)
            if batched
            else Client(address, timeout, own)
        )
        return self._client

    def _bedrock(self) -> "Provider[Any]":
        """Bedrock by boto3, which finds credentials, region and proxies as every AWS tool does."""
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from pydantic_ai.providers.bedrock import BedrockProvider

        config = self.config
        if config.api_key_env is not None:
            raise UserError(
                "bedrock uses AWS's own credentials",
                f"set {key_of(config, 'api_key_env')}=null, and AWS_PROFILE, AWS_BEARER_TOKEN_BEDROCK or the like",
            )
        if "?" in (config.base_url or ""):
            raise self._takes_no_query()
        self._mistakes = (BotoCoreError,)
        local = config.base_url is not None and urlsplit(config.base_url).hostname in ("127.0.0.1", "localhost", "::1")
        how = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=min(CONNECT_TIMEOUT_S, config.timeout_s),
            read_timeout=config.timeout_s,
            max_pool_connections=config.max_concurrency,
            proxies={} if local else None,
            user_agent="codechat",  # boto3's own describes this machine
        )
        try:
            client = boto3.Session().client("bedrock-runtime", endpoint_url=config.base_url, config=how)
        except BotoCoreError as error:
            raise UserError(f"bedrock: {error}", "set AWS_DEFAULT_REGION, or AWS_PROFILE with a region") from None
        self._close = client.close
        if own := headers_from_environment(config):
            client.meta.events.register("before-call", lambda params, **_: params["headers"].update(own))
        return BedrockProvider(bedrock_client=client)

    async def send(self, body: dict[str, Any], tier: Tier, *, final: bool = False) -> Reply:
        model = self._connect()
        from pydantic_ai.direct import model_request, model_request_stream

        settings: Any = {} if "max_retries" in model.unsupported_settings else {"max_retries": 0}
        settings |= body["settings"]
        if tier == FLEX:
            settings["service_tier"] = FLEX
        ttl, marked = self._marker(body["messages"], final=final)
        if "temperature" in body:
            if any(cast(Mapping[str, Any], model.profile).get(flag) for flag in SAMPLING):
                raise Refused(
                    Refusal(400, f"temperature is not supported by {self.config.name}", param="temperature"), {}
                )
            settings["temperature"] = body["temperature"]
        try:
            with translate_errors(self.failures, self._mistakes, is_first=not self._has_reached):
                messages = _messages(body["messages"], ttl, marked)
                if not body.get("stream"):
                    response = await model_request(model, messages, model_settings=settings, instrument=False)
                else:
                    how: Any = {"model_settings": settings, "instrument": False}
                    async with model_request_stream(model, messages, **how) as stream:
                        async for _ in stream:
                            pass
                        response = stream.get()
                    if response.finish_reason is None and not (response.provider_details or {}).get("finish_reason"):
                        raise self.failures.of_answer("the stream ended before the answer did")
        except Refused:
            self._has_reached = True
            raise
        self._has_reached = True
        return self._reply(response)

    def _marker(self, sent: Sequence[dict[str, str]], *, final: bool) -> tuple[CacheTtl | None, int]:
        """How long the endpoint shall cache this conversation, and up to which message; None: no caching.

        A dialogue with at least one reply will probably continue, so its prefix is worth caching; single-turn requests
        (mostly judges) are not. In a `final` request only the prefix of the request before it is marked.
        """
        config = self.config
        answered = [place for place, message in enumerate(sent) if message["role"] == "assistant"]
        if config.provider != "anthropic" or config.prompt_cache == "off" or len(answered) < 1 + final:
            return None, 0
        end = answered[-1] if final else len(sent)
        if sum(len(message["content"]) for message in sent[:end]) < LEAST_CHARS_PER_TOKEN * least_cached(config.name):
            return None, 0
        return config.prompt_cache or ("1h" if config.tier == BATCH else "5m"), end - 1

    def _reply(self, response: "ModelResponse") -> Reply:
        """The text of a response. Raises `Refused` if the prompt was stopped, `TransientFailure` if it is no answer."""
        details, finish, tokens = response.provider_details or {}, response.finish_reason, response.usage
        provider_reason = details.get("finish_reason")
        if details.get("block_reason"):
            raise Refused(Refusal(400, f"the prompt was stopped: {details['block_reason']}", FILTERED), {})
        text = "".join(part.content for part in response.parts if part.part_kind == "text")
        usage = usage_of(
            tokens.input_tokens,
            tokens.output_tokens,
            tokens.cache_read_tokens,
            tokens.cache_write_tokens,
            tokens.output_reasoning_tokens or tokens_in(tokens.details, *OF_THOUGHTS),
        )
        if FLEX in (details.get("service_tier"), str(details.get("traffic_type")).lower().removeprefix("on_demand_")):
            usage = usage.served_as(FLEX)
        # to the library they are unknown, errors, or limits like any other
        own_word = provider_reason and (finish in (None, "error") or ending(str(provider_reason)) is Ending.OVERFLOW)
        return Reply(
            str(writable(text)),
            word_of(provider_reason) if own_word else FINISHED.get(str(finish), finish),
            usage=usage,
            fingerprint=str(writable(response.model_name))[:LONGEST_FINGERPRINT] if response.model_name else None,
            reasoning=bounded("\n".join(part.content for part in response.parts if part.part_kind == "thinking")),
        )

    async def reject(self, call: RequestKey) -> None:
        if self._client is not None:
            await self._client.reject(call)

    async def aclose(self) -> None:
        client, self._client, self._model = self._client, None, None
        if client is not None:
            await client.aclose()
        self._close()


def _messages(sent: Sequence[dict[str, str]], ttl: CacheTtl | None, marked: int) -> "list[ModelMessage]":
    """The library's messages: the messages between two replies are one request. With `ttl`, message `marked`, a user's,
    ends the cached prefix."""
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
            point = [CachePoint(ttl=ttl)] if ttl and place == marked else []
            waiting.append(UserPromptPart([text, *point] if point else text))
    return [*made, ModelRequest(parts=waiting)] if waiting else made


@contextmanager
def translate_errors(failures: Failures, mistakes: tuple[type[Exception], ...], *, is_first: bool) -> Iterator[None]:
    """Raise the library's errors as `Refused`, `TransientFailure` or `UserError`.

    `is_first`: no call has reached the endpoint, so a dead address is the user's mistake. `mistakes`: exceptions that
    mean missing credentials.
    """
    from pydantic_ai import exceptions

    try:
        yield
    except exceptions.ModelHTTPError as error:
        wait = {} if error.retry_after is None else {"retry-after": f"{error.retry_after}"}
        headers = {name: value for name, value in (error.headers or {}).items() if not name.startswith("retry-")}
        raised: Exception = Refused(refusal_of(error), headers | wait)
        if error.suggested_model_id is not None:
            failures.served = (error.suggested_model_id.partition(":")[2],)
    except exceptions.ModelConnectionError as error:
        cause = _cause(error)
        if error.phase != "connect":
            raised = failures.of_connection(cause)
        else:
            raised = failures.of_nobody(cause) if is_first else failures.of_unreachable(cause)
    except (exceptions.ModelAPIError, exceptions.UnexpectedModelBehavior) as error:
        status = getattr(error.__cause__, "status_code", None) or getattr(error.__cause__, "code", None)
        if isinstance(status, int) and 300 <= status < 400:  # a redirect is no HTTP error to the library
            raised = Refused(Refusal(status, ""), {})
        else:
            raised = failures.of_answer(str(error))
    except exceptions.UserError as error:
        raised = UserError(failures.redact(str(error)), "change the model's options")
    except mistakes as error:
        raised = UserError(failures.redact(f"{type(error).__name__}: {error}"), "check the credentials")
    except OTHER_SHAPES as error:  # the providers' libraries do not validate their objects
        raised = failures.of_answer(f"the answer has another shape than the provider's ({type(error).__name__})")
    else:
        return
    raise raised from None


def refusal_of(error: "ModelHTTPError") -> Refusal:
    """The refusal in an HTTP error, with the usual status if the provider's error code contradicts the status."""
    from pydantic_ai import exceptions

    status = error.status_code
    if isinstance(error, exceptions.ModelRateLimitError):
        status = 429
    elif isinstance(error, exceptions.ModelUnavailableError | exceptions.ModelServerError) and status < 500:
        status = 503
    codes = {
        exceptions.ModelContextWindowExceededError: TOO_LONG,
        exceptions.ModelQuotaExceededError: NO_QUOTA,
        exceptions.ModelAuthenticationError: INVALID_KEY,
        exceptions.ModelNotFoundError: UNKNOWN_MODEL,
    }
    code = next((code for kind, code in codes.items() if isinstance(error, kind)), error.provider_error_code or "")
    message: Any = error.body or ""
    if isinstance(message, dict):
        message = message.get("error") or message.get("Error") or message  # Bedrock: `Error`
    if isinstance(message, dict):
        message = message.get("message") or message.get("Message") or message
    return Refusal(status, " ".join(str(message).split()), code)


def _cause(error: BaseException) -> str:
    """The innermost cause of an error, in words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{error}" or type(error).__name__
