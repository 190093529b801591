"""What the harness itself costs a sample, and its memory, with a mock model that answers at once.

    python benchmarks/harness.py [--samples 25000,250000]

Every size runs in a process of its own over the frozen level-1 tasks of the five domains: generation
(response lines), grading (verdict lines, chance included) and the summary. Printed are CPU milliseconds a
sample by stage and the peak of resident memory after each stage, and last the growth of that peak from
the smallest size to the largest.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modebench.config import EvalConfig, Selection
from modebench.domains import DOMAINS
from modebench.evaluation import create_run, generate, grade, summarize_run
from modebench.sampling.mock import MockEngine

TASKS = 128 * len(DOMAINS)


def measure(model: str, samples: int) -> dict[str, Any]:
    """Milliseconds a sample and peak MiB of every stage of one run."""
    engine = MockEngine(model)
    config = EvalConfig(selection=Selection(domains=DOMAINS), samples=samples // TASKS)
    figures: dict[str, Any] = {"samples": samples // TASKS * TASKS}
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run", engine, f"mock/{model}", config)
        stages: dict[str, Callable[[], object]] = {
            "generate": lambda: generate(run, engine),
            "grade": lambda: grade(run),
            "summarize": lambda: summarize_run(run),
        }
        for name, stage in stages.items():
            start = time.process_time()
            stage()
            ms = (time.process_time() - start) * 1_000 / figures["samples"]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
            figures[name] = {"ms": ms, "peak_mib": peak}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", default="25000,250000")
    parser.add_argument("--model", default="random", help="which mock answers")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.model, options.one)))
        return
    peaks = []
    for size in options.samples.split(","):
        command = [sys.executable, __file__, "--model", options.model, "--one", size]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        stages = {name: value for name, value in figures.items() if name != "samples"}
        parts = ", ".join(f"{name} {s['ms']:.3f} ms ({s['peak_mib']:.0f} MiB)" for name, s in stages.items())
        total = sum(s["ms"] for s in stages.values())
        print(f"{figures['samples']:>8} samples: {total:.3f} ms a sample: {parts}", flush=True)
        peaks.append({name: s["peak_mib"] for name, s in stages.items()})
    growth = ", ".join(f"{name} {peaks[-1][name] - peaks[0][name]:+.0f} MiB" for name in peaks[0])
    print(f"growth of the peak: {growth}")


if __name__ == "__main__":
    main()
