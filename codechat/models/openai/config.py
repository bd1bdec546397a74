"""The options of a model behind the OpenAI protocol."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator

from codechat.config import original_option, run_option
from codechat.models.openai.protocol import Api
from codechat.models.remote.config import RemoteConfig

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
