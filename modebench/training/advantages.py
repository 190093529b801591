"""What a rollout is worth beside the others of its group.

With rewards r_1..r_G of one prompt, mean r and K = sum r:

- ``none``: A_i = r_i (REINFORCE, Williams 1992).
- ``mean_centered``: A_i = r_i - mean(r) (Dr. GRPO, arXiv:2503.20783). With a single success A is (G-1)/G.
- ``group_std``: A_i = (r_i - mean(r)) / (std(r) + eps) (GRPO, arXiv:2402.03300). Implementations differ in
  the deviation: divided by G - 1 (``ddof=1``: verl, TRL, understand-r1-zero) or by G (``ddof=0``), and in
  eps (1e-6 in verl, 1e-8 in understand-r1-zero, 1e-4 in TRL).
- ``maxrl``: A_i = G r_i / K - 1 if K > 0, else 0 (MaxRL, arXiv:2602.02710), the paper's (r_i - mean) / mean.
  The released code adds 1e-6 to the divisor; we don't. The mean is subtracted and groups without a success
  are left out, so with p the chance of a success the expected gradient is w_{G-1}(p) grad p, where
  w_n(p) = (1 - (1-p)^n) / p: one truncation order below the estimator without the mean.
- ``maxrl_full``: the same, but -1 if K = 0: the mean is subtracted everywhere, and the weight is w_G(p).
- ``maxrl_conditional``: G r_i / K if K > 0, else 0: without the mean; the weight is w_G(p).

All-equal rewards give exactly zero, but with ``none`` and the last two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group
from modebench.training.combining import BASELINE, FOREIGN_ROLLOUTS, GRADED_REWARDS, UNMIXED_CREDIT
from modebench.training.part import Part, Stage

Kind = Literal["none", "mean_centered", "group_std", "maxrl", "maxrl_full", "maxrl_conditional"]


@dataclass(frozen=True)
class Advantage(Part):
    """The advantage of every rollout of a group.

    Attributes:
        kind: see the module.
        eps: added to the deviation of ``group_std``.
        ddof: the deviation of ``group_std`` divides by G - ddof.
    """

    name: ClassVar[str] = "advantage"
    credits_written: ClassVar[bool] = True
    stage: ClassVar[Stage] = Stage.ESTIMATE
    kind: Kind = "mean_centered"
    eps: float = 1e-6
    ddof: int = 1

    def __post_init__(self) -> None:
        if self.eps < 0:
            raise UsageError(f"advantage.eps must not be negative, not {self.eps}")
        if self.ddof not in (0, 1):
            raise UsageError(f"advantage.ddof must be 0 or 1, not {self.ddof}")
        if self.kind != "group_std" and (self.eps, self.ddof) != (Advantage.eps, Advantage.ddof):
            raise UsageError(f"advantage.eps and advantage.ddof are of group_std; the kind is {self.kind}")

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({UNMIXED_CREDIT if self.kind in ("none", "maxrl_conditional") else BASELINE})

    @property
    def refuses(self) -> Mapping[str, str]:
        if not self.kind.startswith("maxrl"):
            return {}
        return {
            GRADED_REWARDS: "MaxRL is defined for rewards of 0 and 1",
            FOREIGN_ROLLOUTS: "MaxRL weighs a prompt by the successes of the policy's own rollouts",
        }

    def advantage(self, group: Group, advantage_G: Floats, state: Any) -> Floats:
        """[G] advantages of [G] rewards.

        Raises:
            UsageError: a group of one with a kind that compares, or MaxRL with rewards other than 0 and 1.
        """
        if self.kind == "none":
            return advantage_G
        if advantage_G.size < 2:
            raise UsageError(
                f"advantage.kind={self.kind} compares the rollouts of a prompt: ask for 2 or more, "
                f"not {advantage_G.size}"
            )
        if self.kind.startswith("maxrl") and not np.isin(advantage_G, (0.0, 1.0)).all():
            raise UsageError(
                f"advantage.kind={self.kind} is defined for rewards of 0 and 1; {group.task.id} has others"
            )
        if self.kind in ("maxrl_full", "maxrl_conditional"):
            mean = advantage_G.mean()
            relative_G = advantage_G / mean if mean else advantage_G
            return np.asarray(relative_G - 1 if self.kind == "maxrl_full" else relative_G)
        if np.ptp(advantage_G) == 0:
            return np.zeros_like(advantage_G)
        mean = advantage_G.mean()
        if self.kind == "maxrl":
            return np.asarray(advantage_G / mean - 1)
        if self.kind == "group_std":
            return np.asarray((advantage_G - mean) / (advantage_G.std(ddof=self.ddof) + self.eps))
        return np.asarray(advantage_G - mean)
