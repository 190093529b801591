"""What MEI costs: a training step of the packaged policy with the part `mei` beside one without.

The same rollouts are updated on in turns with and without it, the weights put back each time; the difference
of the medians is set against the median of a step, rollouts included. Both by the processor time of this
process, the one to read on a busy machine. Wanted: at most 5 %.

    python benchmarks/mei.py [--domain NAME] [--prompts N] [--repeats N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from modebench.training.methods import build
from modebench.training.recipe import run_updates
from modebench.training.settings import from_values
from modebench.training.setup import open_trainer, plan
from modebench.training.trainer import Trainer


def measured(trainer: Trainer, repeats: int) -> tuple[float, float, float]:
    """Median seconds of the rollouts, and of an update without and with MEI."""
    config = trainer.config
    length = config.rollout.max_completion_length
    methods = [build(config.method, adds=adds, max_completion_length=length) for adds in ([], ["mei"])]
    weights = {name: value.clone() for name, value in trainer.policy.model.state_dict().items()}
    sampling: list[float] = []
    updates: tuple[list[float], list[float]] = ([], [])
    for step in range(1, repeats + 1):
        began = time.process_time()
        groups, _ = trainer._rollouts(step)
        sampling.append(time.process_time() - began)
        for method, seconds in zip(methods, updates, strict=True):
            began = time.process_time()
            report = run_updates(method, method.state(0), trainer.updater, groups, config, step)
            method.gram_metrics(groups, report.rows, report.grams)
            seconds.append(time.process_time() - began)
            trainer.policy.model.load_state_dict(weights)
    without, with_mei = map(statistics.median, updates)
    return statistics.median(sampling), without, with_mei


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--domain", default="countdown")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = {
        "method": "grpo",
        "model": "tiny",
        "steps": arguments.repeats,
        "data.domains": arguments.domain,
        "rollout.num_prompts": arguments.prompts,
    }
    with tempfile.TemporaryDirectory() as folder:
        trainer = open_trainer(plan([from_values(settings, "benchmark")]), Path(folder) / "run")
        sampling, without, with_mei = measured(trainer, arguments.repeats)
    share = (with_mei - without) / (sampling + without)
    print(f"rollouts {sampling:.3f} s, update {without:.3f} s, with MEI {with_mei:.3f} s")
    print(f"{share:+.1%} of a step")


if __name__ == "__main__":
    main()
