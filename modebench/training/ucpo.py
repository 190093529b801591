"""UCPO: what the right rollouts of a group earn is shared out anew, more to the unlikely ones.

With A+ the advantage that the n right rollouts have in common and q_i the share of rollout i's likelihood
among them, each is worth n A+ [(1 - tau) / n + tau v_i / sum v], v_i = 1 / max(q_i, floor) (Lochab, Li &
Zhang 2026, arXiv:2605.00365). Their sum stays n A+, wrong rollouts stay as they are, and groups with fewer
than two right rollouts, or with A+ = 0, do not change. q is

- ``mean``: the softmax of the mean log-probability of a token, as in the released code;
- ``sum``: the softmax of the log-probability of the response, as in the port of arXiv:2610.11064: lengths
  then decide, and nearly all of tau goes to the least likely rollout;
- ``mode``: the share of the rollout's mode among the right rollouts, which is not of the publication: a
  rare wording of the usual solution is not rare here.

Log-probabilities are the sampler's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Rollout
from modebench.training.combining import FOREIGN_ROLLOUTS, GRADED_REWARDS
from modebench.training.part import Credit, Part, Stage


@dataclass(frozen=True)
class Ucpo(Part):
    """Redistribution among right rollouts.

    Attributes:
        tau: the part that is shared out by rarity; 0 changes nothing.
        rarity: what q is; see the module.
        floor: smallest q.
    """

    name: ClassVar[str] = "ucpo"
    stage: ClassVar[Stage] = Stage.REDISTRIBUTE
    tau: float = 0.2
    rarity: Literal["mean", "sum", "mode"] = "mean"
    floor: float = 1e-6

    def __post_init__(self) -> None:
        if not 0 <= self.tau <= 1:
            raise UsageError(f"ucpo.tau must be in [0, 1], not {self.tau}")
        if not 0 < self.floor <= 1:
            raise UsageError(f"ucpo.floor must be above 0 and at most 1, not {self.floor}")

    @property
    def refuses(self) -> Mapping[str, str]:
        return {
            GRADED_REWARDS: "it shares out what all right rollouts have in common",
            FOREIGN_ROLLOUTS: "it compares likelihoods under the policy that sampled",
        }

    def advantage(self, group: Group, advantage_G: Floats, state: Any) -> Floats:
        """[G] advantages, those of right rollouts shared out anew.

        Raises:
            UsageError: right rollouts of unequal worth.
        """
        right = np.flatnonzero(group.reward_G > 0)
        if len(right) < 2:
            return advantage_G
        common = advantage_G[right]
        if np.ptp(common) > 0:
            raise UsageError(f"ucpo needs right rollouts of one worth; those of {group.task.id} differ")
        changed_G = advantage_G.copy()
        changed_G[right] = common * self._weights([group.rollouts[index] for index in right])
        return changed_G

    def _weights(self, rollouts: Sequence[Rollout]) -> Floats:
        """[n] what right rollouts get, in units of A+; the mean is 1."""
        inverse = 1 / np.maximum(self._shares(rollouts), self.floor)
        return np.asarray(1 - self.tau + self.tau * len(rollouts) * inverse / inverse.sum())

    def _shares(self, rollouts: Sequence[Rollout]) -> Floats:
        """[n] q of the right rollouts."""
        if self.rarity == "mode":
            counts = Counter(rollout.mode for rollout in rollouts)
            return np.array([counts[rollout.mode] / len(rollouts) for rollout in rollouts])
        reduce = np.mean if self.rarity == "mean" else np.sum
        score = np.array([reduce(rollout.logp) for rollout in rollouts])
        likelihood = np.exp(score - score.max())
        return np.asarray(likelihood / likelihood.sum())

    def credit_metrics(self, credits: Sequence[Credit], state: Any) -> dict[str, float | None]:
        """What share of the right rollouts' sum changed hands, mean over the groups with two or more."""
        right = [[one for one in each.group.rollouts if one.reward > 0] for each in credits]
        moved = [np.abs(self._weights(rollouts) - 1).mean() / 2 for rollouts in right if len(rollouts) > 1]
        return {"ucpo/moved": float(np.mean(moved)) if moved else None}
