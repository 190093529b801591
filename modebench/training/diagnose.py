"""What a saved policy shows of its strategies: MEI, coupling, and whether coupling agrees with modes.

Every task is asked for G rollouts. Of all of them come entropy and MEI in its forms; of the right ones of a
task the coupling kernels of two places, the strategies that follow from each (`modebench.training.coupling`)
and the modes that the verifier gives. Agreement of the two partitions is a test of the claim that strategies
defined by the optimiser are those that execute differently (Mesh Learning, arXiv:2610.02835).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from modebench.analysis.diversity import pcmd
from modebench.evaluation import sample_seed
from modebench.sampling.base import GenerationSettings
from modebench.tasks import Task
from modebench.training.batch import Floats, Group, Row
from modebench.training.coupling import (
    NEIGHBOURHOOD,
    adjusted_rand,
    cosines,
    gradient_kernel,
    head_kernel,
    last_block,
    neighbourhoods,
)
from modebench.training.likelihood import RowScore, row_logprobs
from modebench.training.mei import mean_of_ratios, mei_forms, pull
from modebench.training.policy import Policy
from modebench.training.sampling import rollouts

Kernel = Callable[[Sequence[Row]], Floats]
PLACES = ("head", "last_block")


def diagnose(
    policy: Policy,
    tasks: Sequence[Task],
    settings: GenerationSettings,
    *,
    samples: int = 16,
    seed: int = 0,
    epsilon: float = NEIGHBOURHOOD,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Diagnose a policy on the tasks of one cell.

    Args:
        policy: is asked, and left as it is.
        tasks: a group each.
        settings: of the rollouts; at a temperature other than that of training MEI means something else.
        samples: rollouts of a task, G.
        seed: every rollout's own derives from it.
        epsilon: of the neighbourhoods.
        progress: called with (tasks done, tasks).

    Returns:
        samples, tasks, epsilon, temperature; accuracy, entropy (mean over tokens, nats), pcmd (None where
        undefined), mei (see `modebench.training.mei`), groups (by task mei and entropy, from which a
        threshold is set); coupling: by place, what `_coupling` gives, with the number of tasks behind it.

    Raises:
        ValueError: the model's output layer cannot be applied apart, or it has no blocks.
    """
    block = last_block(policy.model)
    kernels: dict[str, Kernel] = {
        "head": lambda rows: head_kernel(policy.scorer, rows, settings.temperature),
        "last_block": lambda rows: gradient_kernel(policy.scorer, rows, block, settings.temperature),
    }
    found: list[dict[str, Any]] = []
    for number, task in enumerate(tasks):
        seeds = [sample_seed(seed, 0, task.id, index) for index in range(samples)]
        [group] = rollouts(policy, [task], [seeds], settings)
        found.append(_group(policy, group, settings.temperature, kernels, epsilon))
        if progress:
            progress(number + 1, len(tasks))
    diversity = [float(pcmd(list(each["modes"].values()) or [0])) for each in found]
    grams, rewards = [each["gram"] for each in found], [each["reward"] for each in found]
    centred = [reward_G - reward_G.mean() for reward_G in rewards]
    return {
        "samples": samples,
        "tasks": len(tasks),
        "epsilon": epsilon,
        "temperature": settings.temperature,
        "accuracy": float(np.mean(rewards)),
        "entropy": _mean([each["entropy"] for each in found]),
        "pcmd": _mean([value for value in diversity if not np.isnan(value)]),
        "mei": mei_forms(grams, centred, rewards),
        "groups": {
            "mei": [mean_of_ratios([pull(gram_GG)]) for gram_GG in grams],
            "entropy": [each["entropy"] for each in found],
        },
        "coupling": {place: _averaged([each["coupling"].get(place) for each in found]) for place in PLACES},
    }


def _group(
    policy: Policy, group: Group, temperature: float, kernels: Mapping[str, Kernel], epsilon: float
) -> dict[str, Any]:
    """What one group shows."""
    rows = _rows(group)
    gram_GG, entropy = residual_gram(policy, group, temperature)
    right = [place for place, each in enumerate(group.rollouts) if each.reward > 0]
    modes = [str(group.rollouts[place].mode) for place in right]
    coupling = {}
    if len(right) > 1:
        chosen = [rows[place] for place in right]
        coupling = {place: _coupling(kernel(chosen), modes, epsilon) for place, kernel in kernels.items()}
    return {
        "gram": gram_GG,
        "reward": group.reward_G,
        "entropy": entropy,
        "modes": Counter(modes),
        "coupling": coupling,
    }


def residual_gram(policy: Policy, group: Group, temperature: float) -> tuple[Floats, float]:
    """[G, G] inner products of the residuals of a group's rollouts under the policy (see
    `modebench.training.residuals`), and the mean entropy of their tokens in nats."""
    with torch.no_grad():
        scores = row_logprobs(policy.scorer, _rows(group), temperature=temperature, residuals=True)
    residual_GV = torch.stack([_residual(score) for score in scores]).double()
    gram_GG: Floats = (residual_GV @ residual_GV.T).cpu().numpy()
    return gram_GG, float(torch.cat([score.entropy_T for score in scores]).mean())


def _rows(group: Group) -> list[Row]:
    return [
        Row(group.prompt_ids, each.token_ids, "likelihood", np.zeros(len(each.token_ids)))
        for each in group.rollouts
    ]


def _residual(score: RowScore) -> torch.Tensor:
    assert score.residual_V is not None  # asked for
    return score.residual_V


def _coupling(kernel_NN: Floats, modes: Sequence[str], epsilon: float) -> dict[str, float | None]:
    """Of the right rollouts of a task: mean cosine and mean product of pairs of one mode and of two, how many
    strategies and of modes, their agreement (adjusted Rand), and the share of the largest strategy."""
    cosine_NN = cosines(kernel_NN)
    strategies = neighbourhoods(cosine_NN, epsilon)
    same_NN = np.equal.outer(np.array(modes), np.array(modes))
    other_NN = ~np.eye(len(modes), dtype=np.bool_)
    return {
        "cosine_same_mode": _mean(cosine_NN[same_NN & other_NN]),
        "cosine_other_mode": _mean(cosine_NN[~same_NN]),
        "raw_same_mode": _mean(kernel_NN[same_NN & other_NN]),
        "raw_other_mode": _mean(kernel_NN[~same_NN]),
        "strategies": float(len(set(strategies))),
        "modes": float(len(set(modes))),
        "adjusted_rand": adjusted_rand(strategies, modes),
        "largest_strategy": max(Counter(strategies).values()) / len(strategies),
    }


def _averaged(found: Sequence[dict[str, float | None] | None]) -> dict[str, float | None]:
    """Means over the tasks where each is defined, and how many tasks had two right rollouts."""
    there = [each for each in found if each is not None]
    names = there[0] if there else {}
    return {"tasks": float(len(there))} | {
        name: _mean([value for each in there if (value := each[name]) is not None]) for name in names
    }


def _mean(values: Sequence[float] | Floats) -> float | None:
    return float(np.mean(values)) if len(values) else None
