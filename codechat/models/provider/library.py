"""pydantic-ai, the library behind `model=provider`: its clients, and its errors as codechat's.

A client makes no retries, sends no telemetry, and takes no credentials that nobody named. No exception that is raised
here is chained to the library's, whose text may quote the key. The libraries are slow to import and come with the extra
`providers`, so they are imported to make a request and not before.
"""

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from codechat.base.domain import BATCH
from codechat.base.errors import UserError
from codechat.models.calls.batches import RequestKey
from codechat.models.endpoints import key_of
from codechat.models.provider import ProviderConfig
from codechat.models.remote import Refused, key_from_environment
from codechat.models.remote.failures import INVALID_KEY, NO_QUOTA, TOO_LONG, UNKNOWN_MODEL, Failures, Refusal

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.providers import Provider

    from codechat.models.calls.transport import Client

CONNECT_TIMEOUT_S = 10.0
EXTRA = "pip install 'codechat[providers]'"
WITH_THE_EXTRA = ("anthropic", "google", "google-cloud", "bedrock")
OWN_CREDENTIALS = ("google-cloud", "bedrock")
"""Providers whose libraries look for credentials themselves. Any other gets the key that the config names, or none."""
NO_KEY = "no-key"


class PydanticAi:
    """A model of pydantic-ai with its connections. Raises `UserError` if a package or credentials are missing.

    `mistakes` are the exceptions that mean missing credentials, and `profile` the library's facts about the model.
    """

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._client: Client | None = None
        self._close: Callable[[], object] = lambda: None  # of connections that need no event loop
        self.mistakes: tuple[type[Exception], ...] = ()
        key = key_from_environment(config)
        try:
            from pydantic_ai.models import infer_model

            provider = self._bedrock() if config.provider == "bedrock" else self._provider(key)
            self._model: Model = infer_model(f"{config.provider}:{config.name}", lambda _: provider)
        except ImportError as error:
            if error.name != "pydantic_ai" and config.provider not in WITH_THE_EXTRA:
                what = f"the provider {config.provider} needs a package that is not installed"
                raise UserError(what, str(error)) from None
            missing = f"the package {error.name}" if error.name else "further packages"
            raise UserError(f"the provider {config.provider} needs {missing}, which is not installed", EXTRA) from None
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

        from codechat.models.calls.batch_protocols import AnthropicBatches
        from codechat.models.calls.transport import BatchClient, Client

        seconds = self._config.timeout_s
        timeout = httpx2.Timeout(seconds, connect=min(CONNECT_TIMEOUT_S, seconds))
        batched = self._config.tier == BATCH
        client = (
            BatchClient(address, AnthropicBatches, self._config.pace, timeout) if batched else Client(address, timeout)
        )
        self._client = client
        return client

    async def reject(self, key: RequestKey) -> None:
        """The answer that a call found in a batch cannot be read: it is asked again."""
        if self._client is not None:
            await self._client.reject(key)

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


OTHER_SHAPES = (ValidationError, ValueError, LookupError, TypeError, AttributeError)
"""Errors of reading a body of another shape: the providers' libraries make their objects unchecked."""


@contextmanager
def translate_errors(failures: Failures, mistakes: tuple[type[Exception], ...], *, is_first: bool) -> Iterator[None]:
    """Raise the library's errors as `Refused`, `TransientFailure` or `UserError`.

    `is_first`: nothing has been reached yet, so that an address without a server is the user's mistake. `mistakes` are
    further exceptions, which mean missing credentials.
    """
    from pydantic_ai import exceptions

    try:
        yield
    except exceptions.ModelHTTPError as error:
        # the wait that the provider asks for in whatever place
        wait = {} if error.retry_after is None else {"retry-after": f"{error.retry_after}"}
        headers = {name: value for name, value in (error.headers or {}).items() if not name.startswith("retry-")}
        raised: Exception = Refused(refusal_of(error), headers | wait)
        if error.suggested_model_id is not None:
            failures.served = (error.suggested_model_id.partition(":")[2],)
    except exceptions.ModelConnectionError as error:
        unreached = error.phase == "connect"
        cause = _cause(error)
        if unreached and is_first:
            raised = failures.of_nobody(cause)
        else:
            raised = failures.of_unreachable(cause) if unreached else failures.of_connection(cause)
    except (exceptions.ModelAPIError, exceptions.UnexpectedModelBehavior) as error:
        status = getattr(error.__cause__, "status_code", None) or getattr(error.__cause__, "code", None)
        if isinstance(status, int) and 300 <= status < 400:  # a redirect, which the library takes for no HTTP error
            raised = Refused(Refusal(status, ""), {})
        else:
            raised = failures.of_answer(str(error))
    except exceptions.UserError as error:
        raised = UserError(failures.redact(str(error)), "change the model's options")
    except mistakes as error:
        raised = UserError(failures.redact(f"{type(error).__name__}: {error}"), "check the credentials")
    except OTHER_SHAPES as error:
        raised = failures.of_answer(f"the answer has another shape than the provider's ({type(error).__name__})")
    else:
        return
    raise raised from None


def refusal_of(error: "ModelHTTPError") -> Refusal:
    """The refusal in an HTTP error. A status that the provider's own words contradict becomes the usual one."""
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
        message = message.get("error") or message.get("Error") or message  # of Bedrock under `Error`
    if isinstance(message, dict):
        message = message.get("message") or message.get("Message") or message
    return Refusal(status, " ".join(str(message).split()), code)


def _cause(error: BaseException) -> str:
    """The innermost cause of a broken connection, in words."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{error}" or type(error).__name__
