"""Speed of the endpoint engine against vLLM's own offline batch.

The same requests (prompts, seeds, temperature, token limit) go twice through the same vLLM with the same
weights on the same machine: in one call of ``LLM.generate`` in a process of its own, then over HTTP
through the endpoint engine to vLLM's server. What is printed is the ratio of the two times by the clock;
neither loading nor starting is in them, and both have answered some requests before the clock starts.

    make test-vllm    # builds the environment with vLLM
    .venv-vllm/bin/python benchmarks/endpoint.py --model "$(.venv/bin/python scripts/fetch_smollm2.py)"
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from modebench.config import EvalConfig, Selection
from modebench.evaluation import task_seeds
from modebench.prompts import build_messages
from modebench.sampling import EngineOptions, load_engine
from modebench.sampling.base import GenerationSettings, Group

CONTEXT = 1024
WARM_UP = 2
# Left alone, vLLM's cache takes most of the memory of a CPU machine; both sides get the same.
# Not told which cores to take, vLLM computes on one.
CORES = f"0-{(os.cpu_count() or 1) - 1}"
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": CORES}
# One process for everything on the offline side: it starts faster, and schedules the same.
OFFLINE_ENVIRONMENT = {**ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}


def make_groups(requests: int, samples: int) -> list[Group]:
    """Groups of level-1 tasks, `requests` samples in all, and some before them to warm up."""
    config = EvalConfig(selection=Selection(split="train"), samples=samples)
    tasks = [task for tasks in config.selection.load() for task in tasks]
    wanted = WARM_UP + -(-requests // samples)
    return [
        Group(task, build_messages(task), tuple(task_seeds(config, task.id, samples)))
        for task in tasks[:: len(tasks) // wanted][:wanted]
    ]


def timed(engine: Any, groups: list[Group], settings: GenerationSettings) -> dict[str, float]:
    """Seconds and response tokens of all groups but the first ones."""
    list(engine.generate(groups[:WARM_UP], settings))
    start = time.perf_counter()
    samples = [sample for _, drawn in engine.generate(groups[WARM_UP:], settings) for sample in drawn]
    seconds = time.perf_counter() - start
    errors = [sample.error for sample in samples if sample.error]
    if errors:
        sys.exit(f"{len(errors)} of {len(samples)} requests failed: {errors[0]}")
    return {"seconds": seconds, "tokens": sum(sample.output_tokens or 0 for sample in samples)}


def offline(args: argparse.Namespace) -> None:
    """The offline side, in a process of its own; prints its figures as JSON."""
    engine = load_engine(f"vllm/{args.model}", EngineOptions(dtype=args.dtype, max_model_len=CONTEXT))
    groups = make_groups(args.requests, args.samples)
    print(json.dumps(timed(engine, groups, GenerationSettings(max_tokens=args.max_tokens))))


def run_offline(args: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, *sys.argv[1:], "--offline"]
    environment = {**os.environ, **OFFLINE_ENVIRONMENT}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextmanager
def server(args: argparse.Namespace) -> Iterator[str]:
    """The URL of vLLM's server, up while the context lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", args.model]
    command += ["--served-model-name", "m", "--dtype", args.dtype, "--max-model-len", str(CONTEXT)]
    command += ["--enforce-eager", "--no-enable-chunked-prefill", "--disable-uvicorn-access-log"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=sys.stderr, env={**os.environ, **ENVIRONMENT})
    try:
        while True:
            if process.poll() is not None:
                sys.exit("the server ended")
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--samples", type=int, default=8, help="requests a prompt")
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--concurrency", type=int, default=256)
    parser.add_argument("--offline", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.offline:
        return offline(args)
    alone = run_offline(args)
    groups = make_groups(args.requests, args.samples)
    with server(args) as url:
        engine = load_engine(
            "openai/m", EngineOptions(base_url=url, concurrency=args.concurrency, timeout=3600)
        )
        served = timed(engine, groups, GenerationSettings(max_tokens=args.max_tokens))
    for name, figures in (("offline", alone), ("server", served)):
        rate = figures["tokens"] / figures["seconds"]
        print(f"{name:8} {figures['seconds']:8.1f} s  {figures['tokens']:.0f} tokens  {rate:.0f} tokens/s")
    print(f"server / offline: {served['seconds'] / alone['seconds']:.3f} of the time")
    return None


if __name__ == "__main__":
    main()
