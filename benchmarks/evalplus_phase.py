"""Runs `evalplus.evaluate` on a samples file and prints the seconds of its checking phase alone.

    python benchmarks/evalplus_phase.py DATASET SAMPLES WORKERS

The phase is from the moment when every sample has been submitted to the last result; loading and expected values are
left out, and so is the thread that keeps the command alive in steps of 20 seconds. Expects HUMANEVAL_OVERRIDE_PATH
or MBPP_OVERRIDE_PATH to name the release's JSONL.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import as_completed
from typing import Any

import evalplus.evaluate


def timed(futures: Any, **options: Any) -> Iterator[Any]:
    began = time.perf_counter()
    yield from as_completed(futures, **options)
    print("PHASE " + json.dumps({"checking_s": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    evalplus.evaluate.as_completed = timed
    dataset, samples, workers = sys.argv[1:4]
    evalplus.evaluate.evaluate(dataset, samples=samples, parallel=int(workers), i_just_wanna_run=False)
    sys.stdout.flush()
    os._exit(0)
