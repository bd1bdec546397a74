"""llama.cpp's server in Python: command line, environment, readiness, and the reasons of a failed start.

It has one slot, and listens only once the model is loaded. While it writes, it answers no page about the model.
"""

import http
import os
import re
import shlex
import sys
from importlib.util import find_spec

from codechat.base.errors import UserError
from codechat.models.gguf import INSTALL
from codechat.models.hardware import HardwareConfig
from codechat.models.serving.planning import Placement
from codechat.models.serving.server import Need, Server, local_url, page_of

KEPT = re.compile(
    r"(PATH|HOME|USER|LANG|LC_|TZ|TMPDIR|PYTHON|VIRTUAL_ENV|LD_|OMP_|GGML_|LLAMA_|CUDA_|HIP_|ROCR_|VK_|GGUF_|CODECHAT_)"
)
"""The variables that the server is given: it reads its options from others, such as HOST, PORT, API_KEY and SEED."""


def command(need: Need) -> list[str]:
    """The command without its arguments. Raises `UserError` if the server is not installed."""
    if find_spec("llama_cpp") is None:
        raise UserError(f"llama_cpp, which would serve {need.server.name}, is not installed", INSTALL)
    return [sys.executable, "-m", "llama_cpp.server", "--model", str(need.server.file)]


def arguments_of(server: Server, place: Placement, hardware: HardwareConfig) -> list[str]:
    """The arguments of `llama_cpp.server`, without the file, host and port.

    `--n_ctx 0`: the model's own length. `--logits_all false`: else it computes and keeps the logits of every token of a
    prompt. `--interrupt_requests false`: else a new request cuts off a streamed answer.
    """
    words = ["--model_alias", server.name, "--n_ctx", str(server.weights.max_model_len or 0)]
    words += ["--logits_all", "false", "--interrupt_requests", "false"]
    return [*words, *shlex.split(hardware.llama_cpp_args)]


def environment_of(place: Placement) -> dict[str, str]:
    """The variables of a server's process."""
    return {name: value for name, value in os.environ.items() if KEPT.match(name)}


def is_ready(port: int) -> bool:
    """Whether the server on a port answers the page that does not wait for the model."""
    page = page_of(local_url(port), "/openapi.json")
    return page is not None and page[0] == http.HTTPStatus.OK and "llama.cpp" in page[1]


CAUSES: tuple[tuple[str, str, str], ...] = (
    (r"No module named", "a package of its server is not installed", INSTALL),
    (r"unknown model architecture", "this llama.cpp does not know the model",
     "pip install -U llama-cpp-python, which compiles a newer one; or take another file"),
    (r"unable to allocate|failed to allocate|out of memory|MemoryError|bad_alloc|Failed to create llama_context",
     "the memory is too small",
     "set {place}.weights.max_model_len lower, which makes another cell; or take a smaller file"),
    (r"Failed to load model from file|Model path does not exist", "llama.cpp cannot load its file",
     "fetch the file again: it may be cut off, or one part of several; the log has llama.cpp's words"),
    (r"unrecognized arguments|error: argument", "llama_cpp.server does not know an option",
     "check hardware.llama_cpp_args; pip install -U 'codechat[local]'"),
)  # fmt: skip
