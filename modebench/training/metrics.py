"""What is logged of a step's rollouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from modebench.analysis.diversity import pcmd
from modebench.training.batch import TASKS, Group, Row


def step_metrics(
    generated: Sequence[Group], trained: Sequence[Group], fresh: Sequence[Row], makers: Sequence[str] = ()
) -> dict[str, float | None]:
    """What is logged of a step, by where its groups are from.

    Args:
        generated: all groups, those that were discarded too.
        trained: those that were not, to which `Row.group` points.
        fresh: their rows.
        makers: the parts that make tasks.

    Returns:
        what `batch_metrics` tells of the answers to the run's own tasks; the same, as ``MAKER/accuracy`` and
        so on, of those to the tasks that a part made; and of the prompts that asked for tasks
        ``MAKER/write/groups``, reward (of those that were trained on), truncated, length and with_gradient.
    """

    def rows(source: str, purpose: str) -> list[Row]:
        kept = (trained[row.group] for row in fresh)
        return [row for row, g in zip(fresh, kept, strict=True) if (g.source, g.purpose) == (source, purpose)]

    logged: dict[str, float | None] = {}
    for source in (TASKS, *makers):
        answers = [group for group in generated if (group.source, group.purpose) == (source, "solve")]
        told = batch_metrics(answers, rows(source, "solve"))
        logged |= told if source == TASKS else {f"{source}/{name}": value for name, value in told.items()}
    for maker in makers:
        asked, paid = (
            [group for group in groups if (group.source, group.purpose) == (maker, "write")]
            for groups in (generated, trained)
        )
        told = _written_metrics(asked, paid, rows(maker, "write"))
        logged |= {f"{maker}/write/{name}": value for name, value in told.items()}
    return logged


def _written_metrics(
    generated: Sequence[Group], trained: Sequence[Group], fresh: Sequence[Row]
) -> dict[str, float | None]:
    """Likewise, of the prompts that asked for tasks."""
    rollouts = [rollout for group in generated for rollout in group.rollouts]
    return {
        "groups": float(len(generated)),
        "reward": _mean([rollout.reward for group in trained for rollout in group.rollouts]),
        "truncated": _mean([rollout.finish_reason == "length" for rollout in rollouts]),
        "length": _mean([len(rollout.token_ids) for rollout in rollouts]),
        "with_gradient": _share_with_gradient(generated, fresh),
    }


def batch_metrics(groups: Sequence[Group], fresh: Sequence[Row]) -> dict[str, float | None]:
    """Means over the rollouts or groups of one step.

    Args:
        groups: the step's groups, those that were discarded too.
        fresh: the rows of those that were not.

    Returns:
        groups (how many); reward, accuracy, malformed, truncated (shares of the rollouts), length (mean
        tokens); all_right, all_wrong, mixed_groups (shares of the groups, by reward), with_gradient (share
        of the groups with a row whose loss has a gradient); pcmd (mean over the groups where it is defined)
        and pcmd_groups (how many those are), modes (mean distinct correct modes of a group). Without groups
        all but their numbers are None.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    counts = [Counter(r.mode for r in group.rollouts if r.mode is not None) for group in groups]
    diversity = [float(pcmd(list(modes.values()) or [0])) for modes in counts]
    defined = [value for value in diversity if not np.isnan(value)]
    right = [all(rollout.reward > 0 for rollout in group.rollouts) for group in groups]
    wrong = [not any(rollout.reward > 0 for rollout in group.rollouts) for group in groups]
    return {
        "groups": float(len(groups)),
        "reward": _mean([rollout.reward for rollout in rollouts]),
        "accuracy": _mean([rollout.status == "correct" for rollout in rollouts]),
        "malformed": _mean([rollout.status == "malformed" for rollout in rollouts]),
        "truncated": _mean([rollout.finish_reason == "length" for rollout in rollouts]),
        "length": _mean([len(rollout.token_ids) for rollout in rollouts]),
        "all_right": _mean(right),
        "all_wrong": _mean(wrong),
        "mixed_groups": _mean([group.mixed for group in groups]),
        "with_gradient": _share_with_gradient(groups, fresh),
        "pcmd": _mean(defined),
        "pcmd_groups": len(defined),
        "modes": _mean([len(modes) for modes in counts]),
    }


def _share_with_gradient(groups: Sequence[Group], fresh: Sequence[Row]) -> float | None:
    return len({row.group for row in fresh if row.has_gradient}) / len(groups) if groups else None


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None
