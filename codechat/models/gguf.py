"""A model in a GGUF file, which codechat serves by llama.cpp on this machine.

The file's content identifies the weights, in the cell id and in the response cache's keys; its place does not.
"""

import contextlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator, model_validator

from codechat.base.config import original_option, place_option, result_option, run_option
from codechat.base.environment import cache_root
from codechat.base.errors import UserError
from codechat.base.files import content_hash, file_hash, write_atomically
from codechat.models import MODELS
from codechat.models.endpoints import Weights
from codechat.models.openai import OpenAIApi, OpenAIConfig
from codechat.models.remote import Remote

IN_PACKAGE = "package:"
MAGIC = b"GGUF"
DIGITS = 16
CELLS = 256
"""llama.cpp rounds its context up to a multiple; its server then fails (500) at a prompt between the two lengths."""
INSTALL = "pip install 'codechat[local]', which compiles llama.cpp: it needs a C++ compiler and some minutes"
REMEDY = "model.path names a GGUF file of this machine"


class GgufConfig(OpenAIConfig):
    """The file, and how its model decodes."""

    kind: Literal["gguf"] = original_option("gguf", "which provider answers")
    name: str = original_option("", "the name that the records show; empty: the file's")
    path: str = place_option(
        ..., "a GGUF file, or package:PACKAGE/FILE of an installed package: its content is part of the id", min_length=1
    )
    max_tokens: int | None = original_option(
        1024, "most tokens of one reply: small models loop; null leaves it to the context", ge=1
    )
    weights: Weights = result_option(Weights(max_model_len=8192), "the length of conversations (max_model_len)")
    neutral: dict[str, float] = run_option(
        {"repeat_penalty": 1, "top_p": 1, "top_k": 0, "min_p": 0}, "fields sent in place of the server's own defaults"
    )
    base_url: str = run_option("http://127.0.0.1:8030/v1", "where the server is put if that port is free, up to /v1")
    max_concurrency: int = run_option(1, "most calls under way at once: the server has one slot", ge=1)
    slots: int | None = run_option(1, "conversations that the server keeps at once", ge=1)
    served_by: Literal["llama_cpp"] = run_option("llama_cpp", "what is started on this machine")

    @model_validator(mode="before")
    @classmethod
    def _named_after_file(cls, values: dict[str, Any]) -> dict[str, Any]:
        unnamed = not values.get("name") and values.get("path")
        return {**values, "name": Path(str(values["path"])).name.removesuffix(".gguf")} if unnamed else values

    @field_validator("weights")
    @classmethod
    def _are_the_file_s(cls, weights: Weights) -> Weights:
        if own := [name for name in ("revision", "dtype", "quantization") if getattr(weights, name) is not None]:
            raise ValueError(f"a GGUF file has its own {own[0]}")
        if (weights.max_model_len or 0) % CELLS:
            raise ValueError(f"max_model_len must be a multiple of {CELLS}: llama.cpp has no other context")
        return weights

    def file(self) -> Path:
        """The file. Raises `UserError` if its package is not installed."""
        if not self.path.startswith(IN_PACKAGE):
            return Path(self.path).expanduser()
        package, _, name = self.path.removeprefix(IN_PACKAGE).partition("/")
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise UserError(f"{package}, the package with the weights of {self.name}, is not installed", INSTALL)
        return Path(spec.origin).parent / name

    def loaded_weights(self) -> Weights:
        """The weights with the content of the file as their revision. Raises `UserError` if it is no GGUF file."""
        return self.weights.model_copy(update={"revision": f"sha256:{content_of(self.file())[:DIGITS]}"})

    def identity(self, older: int = 0) -> dict[str, Any]:
        """The options and the file's content. Raises `UserError` if it is no GGUF file."""
        return {**super().identity(older), "weights": self.loaded_weights().identity()}


@MODELS.register("gguf", GgufConfig)
def gguf_model(config: GgufConfig) -> Remote:
    """A GGUF file (model.path), served by llama.cpp on this machine."""
    return Remote(config, OpenAIApi(config))


def content_of(path: Path) -> str:
    """Hex SHA-256 of a GGUF file. Raises `UserError`."""
    try:
        stat = path.stat()
        with path.open("rb") as stream:
            magic = stream.read(len(MAGIC))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", REMEDY) from error
    if magic != MAGIC:
        raise UserError(f"{path} is no GGUF file", REMEDY)
    return _read_once(path.resolve(), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=256)
def _read_once(path: Path, size: int, changed_ns: int) -> str:
    """The hash of a file's state, kept in the cache folder: to read 40 GB takes a minute."""
    kept = cache_root() / "gguf" / content_hash([str(path), size, changed_ns])
    with contextlib.suppress(OSError):
        return kept.read_text(encoding="ascii")
    digest = file_hash(path, REMEDY)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, digest)
    return digest
