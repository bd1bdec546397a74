"""The options of a model that a provider's own protocol reaches."""

from typing import Any, Literal

from codechat.config import result_option, run_option
from codechat.models.remote.config import RemoteConfig


class ProviderConfig(RemoteConfig):
    """Whose model it is, and what its protocol takes."""

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
