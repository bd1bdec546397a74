"""The options of a model behind the OpenAI protocol."""

from typing import Any, Literal

from codechat.config import original_option, run_option
from codechat.models.openai_protocol import Api
from codechat.models.remote_config import RemoteConfig


class OpenAIConfig(RemoteConfig):
    """The model's endpoint and decoding."""

    kind: Literal["openai"] = original_option("openai", "which provider answers")
    api: Api = original_option("chat", "which API of the endpoint is called: chat or responses")
    reasoning_effort: str | None = original_option(None, "reasoning effort, e.g. low, medium or high; null sends none")
    extra_body: dict[str, Any] = original_option({}, "further fields of the request's JSON body, e.g. {top_p: 1}")
    base_url: str = run_option("http://127.0.0.1:8000/v1", "the endpoint's address up to /v1")
