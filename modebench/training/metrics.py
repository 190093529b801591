"""What is logged of a step's rollouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from modebench.analysis.diversity import pcmd
from modebench.training.batch import Group, Row


def batch_metrics(groups: Sequence[Group], fresh: Sequence[Row]) -> dict[str, float | None]:
    """Means over the rollouts or groups of one step.

    Args:
        groups: the step's groups, those that were discarded too.
        fresh: the rows of those that were not.

    Returns:
        reward, accuracy, malformed, truncated (shares of the rollouts), length (mean tokens); all_right,
        all_wrong, mixed_groups (shares of the groups, by reward), with_gradient (share of the groups with a
        row whose loss has a gradient); pcmd (mean over the groups where it is defined, else None) and
        pcmd_groups (how many those are), modes (mean distinct correct modes of a group).
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    counts = [Counter(r.mode for r in group.rollouts if r.mode is not None) for group in groups]
    diversity = [float(pcmd(list(modes.values()) or [0])) for modes in counts]
    defined = [value for value in diversity if not np.isnan(value)]
    right = [all(rollout.reward > 0 for rollout in group.rollouts) for group in groups]
    wrong = [not any(rollout.reward > 0 for rollout in group.rollouts) for group in groups]
    return {
        "reward": _mean([rollout.reward for rollout in rollouts]),
        "accuracy": _mean([rollout.status == "correct" for rollout in rollouts]),
        "malformed": _mean([rollout.status == "malformed" for rollout in rollouts]),
        "truncated": _mean([rollout.finish_reason == "length" for rollout in rollouts]),
        "length": _mean([len(rollout.token_ids) for rollout in rollouts]),
        "all_right": _mean(right),
        "all_wrong": _mean(wrong),
        "mixed_groups": _mean([group.mixed for group in groups]),
        "with_gradient": len({row.group for row in fresh if row.has_gradient}) / len(groups),
        "pcmd": _mean(defined) if defined else None,
        "pcmd_groups": len(defined),
        "modes": _mean([len(modes) for modes in counts]),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
