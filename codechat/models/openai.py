"""Any endpoint that speaks the OpenAI protocol: hosted, vLLM, or another server, by its base URL.

Retries are the SDK's own (429, 408, 409, 5xx, cut connections, timeouts; Retry-After honoured); an answer that cannot
be read is asked for again within the same number. No message of an error holds the key, and none is chained to the
SDK's, whose text may quote headers or the endpoint's words about them.
"""

import asyncio
import logging
import os
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import field_validator

from codechat.config import result_option, run_option
from codechat.domain import Reply
from codechat.errors import ContextOverflow, EndpointDown, InfrastructureError, UserError, nearest
from codechat.models import MODELS, ModelConfig, Request
from codechat.models.openai_protocol import Api, Decoding, Dialect, Refusal, Unreadable, body_of, refusal_of, reply_of

if TYPE_CHECKING:
    import httpx2
    import openai

log = logging.getLogger(__name__)

PROBE_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 10.0
NO_KEY = "no-key"


class OpenAIConfig(ModelConfig):
    """Where the model is, and how it is asked to answer."""

    kind: Literal["openai"] = result_option("openai", "which provider answers")
    name: str = result_option(..., "the model's name as the endpoint knows it", min_length=1)
    api: Api = result_option("chat", "which API of the endpoint is called: chat or responses")
    temperature: float | None = result_option(
        0.0, "0 is greedy decoding; null sends none, for models that refuse it", ge=0, le=2
    )
    max_tokens: int | None = result_option(None, "most tokens of one reply; null leaves it to the endpoint", ge=1)
    reasoning_effort: str | None = result_option(None, "reasoning effort, e.g. low, medium or high; null sends none")
    extra_body: dict[str, Any] = result_option({}, "further fields of the request's JSON body, e.g. {top_p: 1}")
    base_url: str = run_option("http://127.0.0.1:8000/v1", "the endpoint's address up to /v1")
    api_key_env: str | None = run_option(None, "environment variable that holds the key; null: no key needed")
    max_concurrency: int = run_option(32, "most calls under way at once", ge=1)
    timeout_s: float = run_option(300.0, "seconds without a byte that end one attempt", gt=0)
    call_timeout_s: float | None = run_option(
        None, "seconds for one call with all its retries; null: twice timeout_s", gt=0
    )
    max_retries: int = run_option(6, "how often a failed attempt is repeated", ge=0, le=20)

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("an address is needed, like http://127.0.0.1:8000/v1")
        if "@" in parts.netloc:  # not shown again: it is a secret
            raise UserError("base_url holds a user name or password", "name a variable that holds it in api_key_env")
        return value.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _variable_name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):  # not shown: it may be the key
            raise UserError(
                "api_key_env is not the name of an environment variable",
                "put the key into a variable, e.g. OPENAI_API_KEY, and give its name; null where no key is needed",
            )
        return value


@MODELS.register("openai", OpenAIConfig)
class OpenAIModel:
    """Any OpenAI-compatible endpoint by model.base_url: hosted, vLLM and others.

    Belongs to the event loop of its first call until `aclose`.
    """

    def __init__(self, config: OpenAIConfig) -> None:
        self.config = config
        self._client: openai.AsyncOpenAI | None = None
        self._slots = asyncio.Semaphore(config.max_concurrency)
        self._decoding = Decoding(config.temperature, config.max_tokens, config.reasoning_effort, config.extra_body)
        self._dialect = Dialect()
        self._served: tuple[str, ...] = ()
        self._has_answered = False

    @property
    def _place(self) -> str:
        return f"{self.config.name} at {self.config.base_url}"

    # -- the connection --------------------------------------------------------------------------------------------

    def _key(self) -> str | None:
        variable = self.config.api_key_env
        if variable is None:
            return None
        key = os.environ.get(variable, "").strip()
        if not key:
            raise UserError(
                f"{self._place} needs a key, and the environment variable {variable} is not set",
                f"export {variable}=…, or set api_key_env=null for an endpoint without keys",
            )
        if not (key.isascii() and key.isprintable()):
            raise UserError(f"the environment variable {variable} does not hold a key: it has unprintable characters")
        return key

    def _connect(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            import httpx2
            import openai

            key = self._key()
            transport = openai.DefaultAsyncHttpxClient(
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=self.config.max_concurrency),
                # A proxy of the environment cannot reach this machine's own servers.
                trust_env=urlsplit(self.config.base_url).hostname not in ("127.0.0.1", "localhost", "::1"),
                follow_redirects=False,  # nothing is contacted that the config does not name
            )
            self._client = openai.AsyncOpenAI(
                base_url=self.config.base_url,
                api_key=key or NO_KEY,
                max_retries=self.config.max_retries,
                timeout=httpx2.Timeout(self.config.timeout_s, connect=min(CONNECT_TIMEOUT_S, self.config.timeout_s)),
                http_client=transport,
            )
        return self._client

    async def check(self) -> None:
        """Ask for the list of models: any answer but a refused key will do, since not every server has one."""
        import openai

        probe = self._connect().with_options(timeout=min(PROBE_TIMEOUT_S, self.config.timeout_s), max_retries=0)
        try:
            answer = await probe.models.with_raw_response.list()
        except openai.APIStatusError as error:
            if error.status_code in (401, 403):
                raise self._key_refused(error.status_code) from None
        except openai.APIConnectionError as error:
            raise UserError(
                f"nothing answers at {self.config.base_url} ({self._cause_of(error)})",
                "start the server, or set base_url to where the model is served",
            ) from None
        else:
            self._served = _model_names(answer.http_response)

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        self._slots = asyncio.Semaphore(self.config.max_concurrency)
        if client is not None:
            await client.close()

    # -- a call ----------------------------------------------------------------------------------------------------

    async def complete(self, request: Request) -> Reply:
        """Send the conversation. See `Model.complete` for what it raises; fates in `openai_protocol`."""
        async with self._slots:
            started = time.perf_counter()
            limit = self.config.call_timeout_s or 2 * self.config.timeout_s
            try:
                async with asyncio.timeout(limit):  # a server that drips defeats read timeouts
                    reply = await self._answer(request)
            except TimeoutError:
                raise InfrastructureError(f"{self._place} gave no whole answer in {limit:g} s") from None
        self._has_answered = True
        return replace(reply, latency_s=time.perf_counter() - started)

    async def _answer(self, request: Request) -> Reply:
        retries, problem = 0, ""
        for _ in range(self.config.max_retries + 1):
            answer = await self._post(request)
            retries += _retries_of(answer)
            try:
                return replace(reply_of(self.config.api, answer.content), retries=retries)
            except Unreadable as error:
                retries, problem = retries + 1, str(error)
        raise InfrastructureError(f"{self._place}: {self._redact(problem)}")

    async def _post(self, request: Request) -> "httpx2.Response":
        """The response of a good status; a parameter that the endpoint refuses is left out from then on."""
        import httpx2
        import openai

        path = "/responses" if self.config.api == "responses" else "/chat/completions"
        while True:
            dialect = self._dialect
            body = body_of(self.config.api, self.config.name, request.messages, self._decoding, dialect)
            try:
                return await self._connect().post(path, cast_to=httpx2.Response, body=body)
            except openai.APIStatusError as error:
                refusal = refusal_of(error.status_code, error.response.text)
            except openai.APIConnectionError as error:
                raise self._unreachable(error) from None
            if dialect.after(refusal, body) is None:
                raise self._fate(refusal)
            learnt = self._dialect.after(refusal, body)
            if learnt is not None:  # else another call has learnt it meanwhile
                log.warning("%s: asked again without what it refuses: %s", self._place, self._redact(refusal.message))
                self._dialect = learnt

    # -- failures --------------------------------------------------------------------------------------------------

    def _fate(self, refusal: Refusal) -> Exception:
        """What an HTTP error means."""
        status = refusal.status
        said = f"{self._place}: HTTP {status}: {self._redact(refusal.message)}"
        if refusal.is_overflow:
            limit, wanted = refusal.context_limit, self.config.max_tokens
            if limit is not None and wanted is not None and wanted >= limit:
                return UserError(said, f"max_tokens={wanted} leaves no room for a prompt: lower it below {limit}")
            return ContextOverflow(said)
        if status in (401, 403):
            said = f"{self._place}: HTTP {status}"  # the endpoint's own words are left out: some quote the key
        if refusal.code == "insufficient_quota":
            return EndpointDown(said)
        # Once a call was good the config is, so that a refusal is about this conversation or the endpoint's state.
        if status in (408, 409, 429) or status >= 500 or refusal.is_filter or self._has_answered:
            return InfrastructureError(said)
        return self._mistake(status, said)

    def _mistake(self, status: int, said: str) -> UserError:
        """What the user got wrong, told by the first answer."""
        if status in (401, 403):
            return self._key_refused(status)
        if status == 404:
            remedy = nearest(self.config.name, self._served) if self._served else "is there a /v1 missing in base_url?"
            return UserError(said, f"check name and base_url; {remedy}")
        if status < 400:
            return UserError(f"{self.config.base_url} answers with a redirect", "set base_url to the final address")
        return UserError(said, "the endpoint refuses the request: change the model's options")

    def _key_refused(self, status: int) -> UserError:
        variable = self.config.api_key_env
        if variable is None:
            return UserError(
                f"{self._place} asks for a key (HTTP {status})", "set api_key_env to the variable that holds it"
            )
        return UserError(
            f"{self._place} refuses the key of the environment variable {variable} (HTTP {status})",
            f"check the key in {variable} and what it may use",
        )

    def _unreachable(self, error: "openai.APIConnectionError") -> InfrastructureError:
        import httpx2
        import openai

        cause = error.__cause__
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
            return EndpointDown(f"nothing answers at {self.config.base_url} ({self._cause_of(error)})")
        if isinstance(error, openai.APITimeoutError):
            return InfrastructureError(f"{self._place} gave no answer in {self.config.timeout_s:g} s")
        return InfrastructureError(f"{self._place}: the connection broke ({self._cause_of(error)})")

    def _cause_of(self, error: Exception) -> str:
        cause = error.__cause__ or error
        return self._redact(f"{cause}" or type(cause).__name__)

    def _redact(self, text: str) -> str:
        variable = self.config.api_key_env
        key = os.environ.get(variable, "").strip() if variable else ""
        return (text.replace(key, "***") if key else text)[:300]


def _retries_of(response: "httpx2.Response") -> int:
    """How often the SDK repeated the request: it numbers its attempts in a header of its own."""
    return int(response.request.headers.get("x-stainless-retry-count", 0))


def _model_names(response: "httpx2.Response") -> tuple[str, ...]:
    try:
        return tuple(str(model["id"]) for model in response.json()["data"])
    except (ValueError, KeyError, TypeError):
        return ()
