"""What MEI costs: a training step of the packaged policy with the part `mei` beside one without.

The same rollouts are updated on with and without it, which of the two comes first changing with every step
and the weights put back each time; the median of the differences is set against the median of a step,
rollouts included. Both by the processor time of this process, the one to read on a busy machine. Wanted: at
most 5 %.

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


def measured(trainer: Trainer, repeats: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds of the rollouts of every step, and of its update without and with MEI, after a first one."""
    config = trainer.config
    length = config.rollout.max_completion_length
    methods = [build(config.method, adds=adds, max_completion_length=length) for adds in ([], ["mei"])]
    weights = {name: value.clone() for name, value in trainer.policy.model.state_dict().items()}
    sampling: list[float] = []
    updates: tuple[list[float], list[float]] = ([], [])
    for step in range(1, repeats + 2):
        began = time.process_time()
        groups, _ = trainer._rollouts(step)
        sampling.append(time.process_time() - began)
        for place in (0, 1) if step % 2 else (1, 0):
            method = methods[place]
            began = time.process_time()
            report = run_updates(method, method.state(0), trainer.updater, groups, config, step)
            method.gram_metrics(groups, report.rows, report.grams)
            updates[place].append(time.process_time() - began)
            trainer.policy.model.load_state_dict(weights)
    return sampling[1:], updates[0][1:], updates[1][1:]


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
        "steps": arguments.repeats + 1,
        "data.domains": arguments.domain,
        "rollout.num_prompts": arguments.prompts,
    }
    with tempfile.TemporaryDirectory() as folder:
        trainer = open_trainer(plan([from_values(settings, "benchmark")]), Path(folder) / "run")
        sampling, without, with_mei = measured(trainer, arguments.repeats)
    more = [b - a for a, b in zip(without, with_mei, strict=True)]
    step = statistics.median(sampling) + statistics.median(without)
    low, middle, high = (each / step for each in statistics.quantiles(more, n=4))
    print(f"rollouts {statistics.median(sampling):.3f} s, update {statistics.median(without):.3f} s")
    print(f"MEI {middle:+.1%} of a step, quartiles {low:+.1%} and {high:+.1%}")


if __name__ == "__main__":
    main()
