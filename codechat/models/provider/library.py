"""The one place that makes pydantic-ai's clients: without retries, telemetry, or credentials that nobody named.

Imported only to make a request, because the libraries are slow to import and come with the extra `providers`.
"""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from codechat.errors import UserError
from codechat.models.endpoints import key_of
from codechat.models.provider.config import ProviderConfig
from codechat.models.remote import key_from_environment

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

CONNECT_TIMEOUT_S = 10.0
EXTRA = "pip install 'codechat[providers]'"
WITH_THE_EXTRA = ("anthropic", "google", "google-cloud", "bedrock")
OWN_CREDENTIALS = ("google-cloud", "bedrock")
"""Providers whose libraries look for credentials themselves. Any other gets the key that the config names, or none."""
NO_KEY = "no-key"


class Library:
    """A model of pydantic-ai with its connections. Making it raises `UserError` for what is missing.

    `mistakes` are exceptions that tell of missing credentials, and `profile` what the library knows of the model.
    """

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._client: httpx2.AsyncClient | None = None
        self._close: Callable[[], object] = lambda: None  # of connections that need no event loop
        self.mistakes: tuple[type[Exception], ...] = ()
        key = key_from_environment(config)
        try:
            from pydantic_ai.models import infer_model

            provider = self._bedrock() if config.provider == "bedrock" else self._provider(key)
            self._model: Model = infer_model(f"{config.provider}:{config.name}", lambda _: provider)
        except ImportError as error:
            raise self._missing(error) from None
        self.profile = cast(Mapping[str, Any], self._model.profile)

    async def ask(self, messages: "list[ModelMessage]", settings: Mapping[str, Any]) -> "ModelResponse":
        """The response of one request. Raises the library's errors."""
        from pydantic_ai.direct import model_request
        from pydantic_ai.settings import ModelSettings

        quiet = {} if "max_retries" in self._model.unsupported_settings else {"max_retries": 0}
        asked = cast(ModelSettings, {**quiet, **settings})
        return await model_request(self._model, messages, model_settings=asked, instrument=False)

    async def aclose(self) -> None:
        """Close every connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
        self._close()

    def _provider(self, key: str | None) -> "Provider[Any]":
        """The provider with codechat's own connections, if it goes over HTTP."""
        from pydantic_ai.exceptions import UserError as LibraryError
        from pydantic_ai.providers import infer_provider_class

        config = self._config
        try:
            kind = infer_provider_class(config.provider)
        except ValueError:
            known = "anthropic, google, bedrock, mistral, … (pydantic-ai's documentation lists them)"
            raise UserError(f"{key_of(config, 'provider')}: pydantic-ai knows no '{config.provider}'", known) from None
        if config.provider == "google-cloud":
            from google.auth.exceptions import GoogleAuthError

            self.mistakes = (GoogleAuthError,)
        # It warns of keys in the environment, as if it used them.
        logging.getLogger("google_genai").setLevel(logging.ERROR)
        accepted = inspect.signature(kind.__init__).parameters
        named = {
            "api_key": key or (None if config.provider in OWN_CREDENTIALS else NO_KEY),
            "base_url": config.base_url,
        }
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        for name, option in (("api_key", "api_key_env"), ("base_url", "base_url")):
            if name in given and name not in accepted:
                if getattr(config, option) is not None:
                    raise UserError(f"{config.provider} takes no {option}", f"set {key_of(config, option)}=null")
                del given[name]
        try:
            if "http_client" in accepted:
                given["http_client"] = self._connections(config.base_url or str(kind(**given).base_url))
            return kind(**given)
        except LibraryError as error:
            raise UserError(f"{config.place}: {str(error).partition(' To try ')[0]}") from None

    def _connections(self, address: str) -> "httpx2.AsyncClient":
        import httpx2

        from codechat.calls.transport import Client

        seconds = self._config.timeout_s
        client = Client(address, httpx2.Timeout(seconds, connect=min(CONNECT_TIMEOUT_S, seconds)))
        self._client = client
        return client

    def _bedrock(self) -> "Provider[Any]":
        """Bedrock by boto3, which finds AWS's credentials, region and proxies as every AWS tool does."""
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from pydantic_ai.providers.bedrock import BedrockProvider

        config = self._config
        if config.api_key_env is not None:
            raise UserError(
                "bedrock uses AWS's own credentials",
                f"set {key_of(config, 'api_key_env')}=null, and AWS_PROFILE, AWS_BEARER_TOKEN_BEDROCK or the like",
            )
        self.mistakes = (BotoCoreError,)
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
        return BedrockProvider(bedrock_client=client)

    def _missing(self, error: ImportError) -> UserError:
        """What to install; for a provider outside of the extra, in the library's own words."""
        config = self._config
        if error.name == "pydantic_ai" or config.provider in WITH_THE_EXTRA:
            missing = f"the package {error.name}" if error.name else "further packages"
            return UserError(f"the provider {config.provider} needs {missing}, which is not installed", EXTRA)
        return UserError(f"the provider {config.provider} needs a package that is not installed", str(error))
