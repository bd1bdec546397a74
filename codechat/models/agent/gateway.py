"""The only way of a coding agent to the endpoint of its model: requests are checked, counted, paid, repeated and kept.

The agent knows neither key nor address. The endpoint's failures are handled as for every model and never reach it; a
refusal of its conversation does, so that it can go on with a shorter one. Imported late: aiohttp is slow to import.
"""

import asyncio
import contextlib
import json
import logging
import re
import socket
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
from aiohttp import web

from codechat.base.domain import CHARS_PER_TOKEN, NO_USAGE, STANDARD, TurnEnd, Usage
from codechat.base.errors import ContextOverflow, ConversationRefused, InfrastructureError, Stopped, UserError
from codechat.base.files import append_line, canonical_json, content_hash, read_lines
from codechat.base.texts import read_json
from codechat.models.agent.config import AgentConfig
from codechat.models.calls import BRAKE, HELD_SLOTS, HeldSlots, TransientFailure, endpoint_at, repeat
from codechat.models.calls.purse import PURSE
from codechat.models.calls.transport import AioTransport
from codechat.models.endpoints import key_of
from codechat.models.openai import CONNECT_TIMEOUT_S, TOO_MANY, Unreadable, refusal_of, reply_of
from codechat.models.openai.streams import is_stream
from codechat.models.prices import price_of
from codechat.models.remote import FIRST_REPLY_TOKENS, policy_of
from codechat.models.remote.failures import Failures
from codechat.models.remote.given import headers_from_environment, key_from_environment

Api = Literal["chat", "responses", "messages"]
GENERATING: Mapping[str, Api] = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
FREE = {"POST": "/messages/count_tokens", "GET": "/models"}
"""What is forwarded, below the path of base_url; only what generates a reply is counted, paid and kept."""
QUERY = re.compile(r"[\w=&.,-]{0,200}", re.ASCII)
PASSED_ON = re.compile(r"accept|(?:anthropic|openai)-[a-z0-9-]{1,50}")
"""Headers of the agent's requests that the endpoint gets."""
PASSED_BACK = ("content-type", "retry-after", "request-id", "x-request-id")
MOST_BYTES = 16 * 2**20
"""Longest body of a request: the longest contexts have some 4 MB of text."""
MOST_CONNECTIONS, KEPT_OPEN_S = 32, 5.0
"""Connections of one agent at once, beyond which it waits, and seconds until an idle one is closed."""
POLL_S, CLOSING_S = 0.02, 0.05
STREAMED = re.compile(rb'"stream"\s*:\s*true')
WAIT_S = 10.0
"""Seconds without an answer after which an agent that asked for a stream gets a comment, so that it waits on."""
PARTS = ("messages", "input", "system", "instructions", "tools", "stream")
"""Fields that identify a request."""
VOLATILE = re.compile(
    r"\b(?:[0-9a-f]{6,64}(?:-[0-9a-f]{4,12}){0,4}|\d{1,9}\.\d{1,9}(?= ?(?:ms|s|secs?|seconds)\b)"
    r"|\d{4}-\d\d-\d\d|\d\d?:\d\d(?::\d\d)?)\b"
)
"""Ids, durations, dates and times: they differ when a turn is repeated."""
QUIET = logging.getLogger(f"{__name__}.requests")
QUIET.disabled = True  # malformed requests are the agent's affair


@dataclass(frozen=True, slots=True)
class _Call:
    """A request that is forwarded; `key` identifies it in every attempt at the turn.

    `counted` is the body that asks for usage in a stream, if the agent did not.
    """

    api: Api | None
    target: str
    headers: dict[str, str]
    body: bytes = b""
    counted: bytes = b""
    key: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response; `usage` is None unless a reply was generated."""

    status: int
    headers: dict[str, str]
    body: bytes
    usage: Usage | None = None


class Meter:
    """One turn's requests. `usage` and `requests` include `replayed` ones, whose answers an earlier attempt has paid.

    `unmetered` counts answers without usage; `retries` and `rate_limited` are of the calls to the endpoint. `waited_s`
    are seconds of calls in addition to the attempts that were answered: for the budget, a limit, or another attempt.
    """

    def __init__(self, config: AgentConfig, slots: HeldSlots, log: Path) -> None:
        self.usage = NO_USAGE
        self.requests = self.unmetered = self.replayed = self.retries = self.rate_limited = 0
        self.waited_s = 0.0
        self.unit, self.payer = slots.unit, slots.payer
        self.under_way: set[asyncio.Task[_Answer | None]] = set()
        self.is_over = asyncio.Event()
        self._end: TurnEnd | Exception = "exit"
        self._limits, self._price = config.limits_of_turn, price_of(config)
        self._recorded: list[Callable[[], None]] = []
        self._log, self._writing = log, asyncio.Lock()
        self._kept: defaultdict[str, deque[_Answer]] = defaultdict(deque)
        for key, headers, body, usage in map(read_json, read_lines(log)):
            answer = _Answer(200, headers, body.encode("utf-8", "surrogateescape"), Usage.of(usage))
            self._kept[key].append(answer)

    async def over(self) -> TurnEnd:
        """The limit that was exceeded, as soon as one is.

        Raises `InfrastructureError` if the endpoint fails, `Stopped` as soon as the brake is pulled and the calls under
        way are kept, and `UserError` for a refused key, an unknown model or a wrong address.
        """
        try:
            await BRAKE.get().wait(self.is_over.wait())
        except Stopped as stopped:
            self.end(stopped)
            if self.under_way:
                await asyncio.wait(self.under_way)
        if isinstance(self._end, Exception):
            raise self._end
        return self._end

    def end(self, why: TurnEnd | Exception) -> None:
        """End the turn; the first reason counts."""
        if self.is_over.is_set():
            return
        if isinstance(why, InfrastructureError):
            why.retries += self.retries
            why.rate_limited += self.rate_limited
        self._end = why
        self.is_over.set()

    def begin(self, key: str) -> _Answer | None:
        """Count a request; the nth of a key gets the nth answer that an earlier attempt at this turn kept for it."""
        self.requests += 1
        if self.requests > self._limits.requests:
            self.end("requests")
        if self.is_over.is_set() or not self._kept[key]:
            return None
        answer = self._kept[key].popleft()
        self.replayed += 1
        self.count(answer.usage or NO_USAGE)
        return answer

    async def keep(self, key: str, answer: _Answer, usage: Usage) -> None:
        """Write an answer, so that the next attempt at this turn has it."""
        line = json.dumps([key, answer.headers, answer.body.decode("utf-8", "surrogateescape"), usage.fields()])
        async with self._writing:
            await asyncio.to_thread(append_line, self._log, line)

    def count(self, usage: Usage) -> None:
        """Count an answer's tokens; replayed ones too, since no step has recorded them."""
        self.usage += usage
        self.unmetered += usage == NO_USAGE
        self._recorded.append(PURSE.get().spend(self.payer, usage))
        limits = self._limits
        if limits.tokens is not None and self.usage.input_tokens + self.usage.output_tokens > limits.tokens:
            self.end("tokens")
        if limits.usd is not None and self._price is not None and self._price.cost(self.usage) > limits.usd:
            self.end("cost")

    async def close(self, *, finished: bool) -> None:
        """Cancel the calls under way. The caller records the tokens of a finished turn; others stay in the purse."""
        self.end("exit")
        for each in self.under_way:
            each.cancel()
        await asyncio.gather(*self.under_way, return_exceptions=True)
        for recorded in self._recorded if finished else ():
            recorded()


class Gateway:
    """The way of a cell's agents to the endpoint of their model.

    Belongs to the event loop of its first request until `aclose`. Raises `UserError` for a limit in dollars without
    prices.
    """

    def __init__(self, config: AgentConfig) -> None:
        if config.limits_of_turn.usd is not None and price_of(config) is None:
            place = key_of(config, "limits_of_turn.usd")
            raise UserError(f"{place} needs the model's prices", f"set {key_of(config, 'prices')} (docs/calls.md)")
        self.config = config
        address = urlsplit(config.address)
        self._origin = f"{address.scheme}://{address.netloc}"
        self._routes: dict[tuple[str, str], Api | None] = {}
        for base in (address.path, f"{address.path}/v1"):
            self._routes |= {("POST", base + path): api for path, api in GENERATING.items()}
            self._routes |= {(method, base + path): None for method, path in FREE.items()}
        self._failures = Failures(config, unknown_model="is there a /v1 missing in base_url, or one too many?")
        self._keys: dict[str, str] = {}  # by header
        self._transport: AioTransport | None = None
        self._counts_streams = True  # the endpoint takes `stream_options`
        self._answered, self._usual_reply = 0, float(FIRST_REPLY_TOKENS)

    @contextlib.asynccontextmanager
    async def metering(self, listener: socket.socket, log: Path) -> AsyncIterator[Meter]:
        """Serve one turn's requests on a listening socket, which stays open. Connections of earlier turns are closed.

        `log` has the answers of an interrupted attempt at the same turn; new ones are appended durably before the agent
        gets them. Calls have the caller's context: its brake, its purse, the step that pays. Raises `UserError` if the
        environment does not have the key.
        """
        key = key_from_environment(self.config)
        self._keys = {} if key is None else {"authorization": f"Bearer {key}", "x-api-key": key}
        self._transport = self._transport or AioTransport(self.config.address, headers_from_environment(self.config))
        meter = Meter(self.config, HELD_SLOTS.get() or HeldSlots(), log)
        loop, own = asyncio.get_running_loop(), listener.dup()
        own.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                own.accept()[0].close()
        server = web.Server(
            lambda request: self._serve(meter, request, keep_open=len(server.connections) < MOST_CONNECTIONS),
            request_factory=lambda head, payload, protocol, writer, task: web.BaseRequest(
                head, payload, protocol, writer, task, loop, client_max_size=MOST_BYTES
            ),
            keepalive_timeout=KEPT_OPEN_S,
            access_log=None,
            logger=QUIET,
        )
        accepting = asyncio.create_task(_accept(own, server))
        finished = False
        try:
            yield meter
            finished = True
        finally:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)
            own.close()
            await meter.close(finished=finished)
            await server.shutdown(CLOSING_S)

    async def aclose(self) -> None:
        """Close the connections to the endpoint; the next turn opens them again."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def _serve(self, meter: Meter, request: web.BaseRequest, *, keep_open: bool) -> web.StreamResponse:
        """Answer one request of the agent. Once the turn is over, the connection is closed instead."""
        path, _, query = request.raw_path.partition("?")
        if (request.method, path) not in self._routes or not QUERY.fullmatch(query):
            return web.Response(status=404)
        content = await request.read()
        asked = asyncio.create_task(self._answer(meter, request, self._routes[request.method, path], content))
        meter.under_way.add(asked)
        asked.add_done_callback(meter.under_way.discard)
        stream = None
        while not (await asyncio.wait({asked}, timeout=WAIT_S))[0]:
            if stream is None and STREAMED.search(content):
                stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
                await stream.prepare(request)
            if stream is not None:
                await stream.write(b": wait\n\n")
        answer = None if asked.cancelled() else asked.result()
        if answer is not None and stream is None:
            response = web.Response(status=answer.status, headers=answer.headers, body=answer.body)
            if not keep_open:
                response.force_close()
            return response
        if answer is not None and stream is not None and is_stream(answer.body):
            await stream.write(answer.body)
            return stream
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _answer(self, meter: Meter, request: web.BaseRequest, api: Api | None, content: bytes) -> _Answer | None:
        """The answer for the agent; None if the turn is over."""
        try:
            call = await asyncio.to_thread(self._call, request, api, content)  # a long body takes a second
            if call is None:
                return _Answer(400, {}, b"the body is no JSON object")
            if meter.is_over.is_set():
                return None
            answer = None if api is None else meter.begin(call.key)
            if answer is None and not meter.is_over.is_set():
                answer = await self._asked(meter, call)
        except Exception as problem:  # noqa: BLE001  `over` raises it
            meter.end(problem)
        return None if meter.is_over.is_set() else answer

    def _call(self, request: web.BaseRequest, api: Api | None, content: bytes) -> _Call | None:
        """The request to forward, with few of its headers and the config's model; None without JSON."""
        given = {name.lower(): value for name, value in request.headers.items()}
        headers = {
            name: value
            for name, value in given.items()
            if PASSED_ON.fullmatch(name) and value.isascii() and value.isprintable()
        }
        key_names = self._keys.keys() & given.keys() or self._keys.keys() & {"authorization"}
        headers |= {"content-type": "application/json", **{name: self._keys[name] for name in key_names}}
        if request.method == "GET":
            return _Call(None, request.raw_path, headers)
        counted = b""
        try:
            body = read_json(content) | {"model": self.config.name}
            encoded = json.dumps(body, allow_nan=False).encode()
            if api == "chat" and body.get("stream"):
                options = {**(body.get("stream_options") or {}), "include_usage": True}
                counted = json.dumps({**body, "stream_options": options}).encode()
        except (TypeError, ValueError):
            return None
        key = content_hash([request.raw_path, *(canonical_json(_stable(body.get(part))) for part in PARTS)])
        return _Call(api, request.raw_path, headers, encoded, counted, key)

    async def _asked(self, meter: Meter, call: _Call) -> _Answer:
        """The endpoint's answer, once the budget has room for it. It is kept before the agent gets it."""
        policy, endpoint = policy_of(self.config, STANDARD), endpoint_at(self.config.address)
        endpoint.join(self.config.limits)
        if call.api is None:
            return (await repeat(partial(self._attempt, call), policy, endpoint)).result
        sent, said = int(len(call.body) / CHARS_PER_TOKEN), int(self._usual_reply)
        began = time.monotonic()
        give_back = await PURSE.get().reserve(meter.unit, meter.payer, Usage(sent, said))
        try:
            tokens = sent + said if endpoint.counts_tokens else 0
            ended = await repeat(partial(self._attempt, call), policy, endpoint, tokens, _tokens_of)
            answer, usage = ended.result, ended.result.usage
            meter.waited_s += time.monotonic() - began - ended.seconds
            meter.retries += ended.retries
            meter.rate_limited += ended.rate_limited
            if usage is not None:
                await meter.keep(call.key, answer, usage)
                meter.count(usage)
                self._answered += 1
                self._usual_reply += (usage.output_tokens - self._usual_reply) / min(self._answered, 10)
        finally:
            give_back()
        return answer

    async def _attempt(self, call: _Call) -> _Answer:
        """The answer, or a refusal that the agent gets. Raises as an attempt of every model does."""
        asks_usage = bool(call.counted and self._counts_streams)
        response = await self._exchange(call, call.counted if asks_usage else call.body)
        headers = {name: value for name, value in response.headers.items() if name.lower() in PASSED_BACK}
        body = self._failures.without_secrets(response.content)
        answer = partial(_Answer, response.status_code, headers, body)
        refusal = None if response.status_code < 300 else refusal_of(response.status_code, response.text)
        if refusal is None and call.api is not None:
            try:
                reply = reply_of(call.api, body, response.headers.get("content-type", ""))
                with contextlib.suppress(ContextOverflow):
                    self._failures.check_end(reply)
                return answer(reply.usage)
            except Unreadable as error:
                refusal = error.refusal
                if refusal is None or not (refusal.is_overflow or refusal.is_about_money or refusal.status == TOO_MANY):
                    raise self._failures.of_answer(str(error)) from None
        if refusal is None:
            return answer()
        if asks_usage and refusal.names("stream_options"):
            self._counts_streams = False
            return await self._attempt(call)
        problem = self._failures.of_refusal(refusal, response.headers, has_answered=self._answered > 0)
        if call.api is None and not isinstance(problem, TransientFailure):
            return answer()
        if isinstance(problem, ContextOverflow) or (isinstance(problem, ConversationRefused) and not refusal.is_filter):
            return answer()
        raise problem

    async def _exchange(self, call: _Call, body: bytes) -> httpx2.Response:
        """The response of any status."""
        assert self._transport is not None
        limits, url = {"timeout": {"connect": CONNECT_TIMEOUT_S}}, self._origin + call.target
        method = "POST" if body else "GET"
        request = httpx2.Request(method, url, content=body, headers=call.headers, extensions=limits)
        try:
            return await self._transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise (self._failures.of_unreachable if self._answered else self._failures.of_nobody)(str(error)) from None
        except httpx2.TransportError as error:
            raise self._failures.of_connection(str(error)) from None


async def _accept(listener: socket.socket, server: web.Server) -> None:
    """Accept connections, whose requests have the context of this task."""
    HELD_SLOTS.set(None)  # answers are kept at once, so no call holds a slot of the endpoint until the turn is recorded
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(OSError):  # no connection waits, or this process has no free descriptor
            while len(server.connections) < MOST_CONNECTIONS:
                await loop.connect_accepted_socket(server, listener.accept()[0])
        await asyncio.sleep(POLL_S)


def _tokens_of(answer: _Answer) -> int:
    return 1 if answer.usage is None else max(1, answer.usage.input_tokens + answer.usage.output_tokens)


def _stable(value: Any) -> Any:
    """A JSON value without the parts that differ when a turn is repeated."""
    if isinstance(value, dict):
        return {name: _stable(each) for name, each in value.items() if name != "id"}
    if isinstance(value, list):
        return [_stable(each) for each in value]
    return VOLATILE.sub("*", value) if isinstance(value, str) else value
