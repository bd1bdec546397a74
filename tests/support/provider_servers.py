"""Servers on loopback that speak other protocols than OpenAI's, as far as a conversation of texts needs them.

A behaviour sees every call as one of OpenAI's chat; what was really sent is under `sent` in its body. Each server has
its protocol's errors.
"""

import json
import re
import time
from collections import Counter
from typing import Any
from urllib.parse import unquote

from codechat.testing import Answer, BatchServer, Call, Fault, OpenAIServer, error
from codechat.testing.batches import MadeBatch
from codechat.testing.streams import events


def _words(texts: list[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _counts(call: Call, answer: Answer) -> tuple[int, int]:
    return _words([message["content"] for message in call.messages]), _words([answer.text or ""])


class AnthropicServer(OpenAIServer):
    """Anthropic's Messages API."""

    provider = "anthropic"

    @property
    def base_url(self) -> str:
        return super().base_url.removesuffix("/v1")

    def reads(self, path: str, body: bytes) -> dict[str, Any] | None:
        if path.partition("?")[0] != "/v1/messages":
            return None
        sent = json.loads(body)
        system = sent.get("system") or []
        parts = [("system", system)] * bool(system) + [(each["role"], each["content"]) for each in sent["messages"]]
        messages = [{"role": role, "content": _joined(content)} for role, content in parts]
        return {"model": sent["model"], "messages": messages, "sent": sent, "stream": sent.get("stream")}

    def streams(self, call: Call, written: dict[str, Any]) -> str:
        """Anthropic's events, each text in two pieces."""
        usage, values = written["usage"], list[dict[str, Any]]()
        begun = {**written, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        for index, block in enumerate(written["content"]):
            name = block["type"]
            values.append({"type": "content_block_start", "index": index, "content_block": {**block, name: ""}})
            for part in (block[name][:3], block[name][3:]):
                delta = {"type": f"{name}_delta", name: part}
                values.append({"type": "content_block_delta", "index": index, "delta": delta})
            values.append({"type": "content_block_stop", "index": index})
        end = {"stop_reason": written["stop_reason"], "stop_sequence": None}
        last = {"type": "message_delta", "delta": end, "usage": {"output_tokens": usage["output_tokens"]}}
        first = {"type": "message_start", "message": begun}
        return events([first, {"type": "ping"}, *values, last, {"type": "message_stop"}], named=True)

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
        received, written = _counts(call, answer)
        thought = {"type": "thinking", "thinking": "Let me think.", "signature": "s"}
        return {
            "id": f"msg_{call.number}", "type": "message", "role": "assistant",
            "model": self.fingerprint or call.body["model"],
            "content": [thought] + [{"type": "text", "text": answer.text}] * bool(answer.text),
            "stop_reason": reasons.get(answer.finish_reason, answer.finish_reason), "stop_sequence": None,
            "usage": {"input_tokens": received, "output_tokens": written, "cache_read_input_tokens": 3,
                      "cache_creation_input_tokens": 0},
        }  # fmt: skip

    def error(self, status: int, message: str, kind: str = "", **headers: str) -> Fault:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
                 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip
        error = {"type": kind or kinds.get(status, "api_error"), "message": message}
        return Fault(status, {"type": "error", "error": error, "request_id": "req_1"}, headers)

    overflow = "prompt is too long: 200001 tokens > 200000 maximum"
    unknown = (404, "model: claude-nothing", "")
    wrong_key = (401, "invalid x-api-key", "")
    no_money = (400, "Your credit balance is too low to access the Anthropic API.", "")


class GoogleServer(OpenAIServer):
    """The Gemini API's generateContent."""

    provider = "google"

    @property
    def base_url(self) -> str:
        return super().base_url.removesuffix("/v1")

    def reads(self, path: str, body: bytes) -> dict[str, Any] | None:
        found = re.fullmatch(r"/v1beta/models/(.+):generateContent", unquote(path.partition("?")[0]))
        if found is None:
            return None
        sent = json.loads(body)
        system = sent.get("systemInstruction") or sent.get("system_instruction")
        parts = [("system", system["parts"])] if system else []
        parts += [("assistant" if each["role"] == "model" else "user", each["parts"]) for each in sent["contents"]]
        return {
            "model": found[1],
            "messages": [{"role": role, "content": _joined(content)} for role, content in parts],
            "sent": sent,
        }

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        reasons = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
        received, written = _counts(call, answer)
        thought = {"text": "Let me think.", "thought": True}
        parts = [thought, {"text": answer.text}] if answer.text else []
        content = {"role": "model"} | ({"parts": parts} if parts else {})
        return {
            "candidates": [{"content": content, "finishReason": reasons.get(answer.finish_reason, answer.finish_reason), "index": 0}],
            "usageMetadata": {"promptTokenCount": received, "candidatesTokenCount": written, "cachedContentTokenCount": 3,
                              "totalTokenCount": received + written},
            "modelVersion": self.fingerprint or call.body["model"], "responseId": f"r{call.number}",
        }  # fmt: skip

    def error(self, status: int, message: str, kind: str = "", **headers: str) -> Fault:
        kinds = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED",
                 500: "INTERNAL", 503: "UNAVAILABLE"}  # fmt: skip
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": kind}] if kind else []
        error = {"code": status, "message": message, "status": kinds.get(status, "UNKNOWN"), "details": details}
        return Fault(status, {"error": error}, headers)

    overflow = "The input token count (9000) exceeds the maximum number of tokens allowed (8192)."
    unknown = (404, "models/gemini-nothing is not found for API version v1beta", "")
    wrong_key = (400, "API key not valid. Please pass a valid API key.", "API_KEY_INVALID")
    no_money = (402, "Billing is not set up for this project.", "")


class BedrockServer(OpenAIServer):
    """Amazon Bedrock's Converse."""

    provider = "bedrock"

    @property
    def base_url(self) -> str:
        return super().base_url.removesuffix("/v1")

    def reads(self, path: str, body: bytes) -> dict[str, Any] | None:
        found = re.fullmatch(r"/model/(.+)/converse", unquote(path))
        if found is None:
            return None
        sent = json.loads(body)
        parts = [("system", sent["system"])] if sent.get("system") else []
        parts += [(each["role"], each["content"]) for each in sent["messages"]]
        return {
            "model": found[1],
            "messages": [{"role": role, "content": _joined(content)} for role, content in parts],
            "sent": sent,
        }

    def writes(self, call: Call, answer: Answer) -> dict[str, Any]:
        reasons = {"stop": "end_turn", "length": "max_tokens", "content_filter": "guardrail_intervened"}
        received, written = _counts(call, answer)
        thought = {"reasoningContent": {"reasoningText": {"text": "Let me think.", "signature": "s"}}}
        content = [thought] + [{"text": answer.text}] * bool(answer.text)
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reasons.get(answer.finish_reason, answer.finish_reason),
            "usage": {"inputTokens": received, "outputTokens": written, "totalTokens": received + written,
                      "cacheReadInputTokens": 3},
            "metrics": {"latencyMs": 5},
        }  # fmt: skip

    def error(self, status: int, message: str, kind: str = "", **headers: str) -> Fault:
        kinds = {400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException",
                 408: "ModelTimeoutException", 429: "ThrottlingException", 500: "InternalServerException",
                 503: "ServiceUnavailableException"}  # fmt: skip
        told = {"x-amzn-errortype": kind or kinds.get(status, "InternalServerException")}
        return Fault(status, {"message": message}, told | headers)

    overflow = "Input is too long for requested model."
    unknown = (400, "The provided model identifier is invalid.", "")
    wrong_key = (403, "The security token included in the request is invalid.", "UnrecognizedClientException")
    no_money = (400, "You have exceeded the quota of this account.", "ServiceQuotaExceededException")


Server = AnthropicServer | GoogleServer | BedrockServer
AWS = {
    "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "aws-secret", "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
}  # fmt: skip
"""An environment in which boto3 finds credentials without asking anybody."""
SERVERS: dict[str, type[Server]] = {each.provider: each for each in (AnthropicServer, GoogleServer, BedrockServer)}


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


class MessageBatches(BatchServer):
    """Anthropic's Message Batches, for a server of its Messages API: `class S(MessageBatches, AnthropicServer)`."""

    def _about_batches(
        self, method: str, path: str, query: dict[str, list[str]], headers: dict[str, str], body: bytes
    ) -> Fault:
        parts = path.removeprefix("/v1/messages/").split("/")
        assert headers["anthropic-version"] and ("x-api-key" in headers or "authorization" in headers)
        match (method, *parts[1:]):
            case ("POST",):
                asked = json.loads(body)["requests"]
                requests = [(each["custom_id"], json.dumps(each["params"]).encode()) for each in asked]
                return Fault(200, self._said(self.add(requests, "/v1/messages")))
            case ("GET", name, "results") if (batch := self.batches.get(name)) and batch.results is not None:
                return Fault(200, "\n".join(json.dumps(_result(*each)) for each in batch.results))
            case ("GET", *names):
                return self._show(names, query, "after_id")
        return error(404, f"no {method} {path} here")

    def _said(self, batch: MadeBatch) -> dict[str, Any]:
        ended = batch.results is not None
        kinds = Counter(_result(name, each)["result"]["type"] for name, each in batch.results or [])
        waiting = 0 if ended else len(batch.requests)
        return {
            "id": batch.name, "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": waiting, "canceled": 0, **{
                kind: kinds[kind] for kind in ("succeeded", "errored", "expired")}},
            "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.made)),
            "results_url": f"{self.base_url}/v1/messages/batches/{batch.name}/results" if ended else None,
        }  # fmt: skip


def _result(name: str, response: Fault | None) -> dict[str, Any]:
    if response is None:
        return {"custom_id": name, "result": {"type": "expired"}}
    if response.status == 200:
        return {"custom_id": name, "result": {"type": "succeeded", "message": response.body}}
    return {"custom_id": name, "result": {"type": "errored", "error": response.body}}
