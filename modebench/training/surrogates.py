"""From advantages to the rows of the fresh loss: clipping, and how token losses are averaged.

The clipped loss of a token is -min(rho A, clip(rho, 1 - epsilon, 1 + epsilon_high) A) (PPO,
arXiv:1707.06347). With one update per batch of rollouts rho is 1 and clipping never binds. The three averages
over a batch of N rollouts with lengths len_i differ in the weight of one token:

- ``seq-mean-token-sum-norm``: 1 / (N C), C = max_completion_length, a constant of the run (Dr. GRPO,
  arXiv:2503.20783). Some implementations divide by the padded width of the batch instead, which makes the
  loss depend on padding.
- ``token-mean``: 1 / sum of len (DAPO, arXiv:2503.14476), over the whole batch, never a micro-batch.
- ``seq-mean-token-mean``: 1 / (N len_i) (GRPO, arXiv:2402.03300).

Rollouts that a selection dropped leave numerator and denominator, except the constant one: there N counts
every rollout, as the divisor is no property of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Row
from modebench.training.part import Kept, Part, TokenWeight

Aggregation = Literal["seq-mean-token-sum-norm", "token-mean", "seq-mean-token-mean"]


@dataclass(frozen=True)
class Surrogate(Part):
    """How the fresh loss is clipped and averaged.

    Attributes:
        loss_agg_mode: see the module.
        epsilon: the ratio is clipped at 1 - epsilon from below.
        epsilon_high: and at 1 + epsilon_high from above; None for epsilon.
    """

    name: ClassVar[str] = "surrogate"
    loss_agg_mode: Aggregation = "seq-mean-token-sum-norm"
    epsilon: float = 0.2
    epsilon_high: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise UsageError(f"surrogate.epsilon must be in [0, 1], not {self.epsilon}")
        if self.epsilon_high is not None and self.epsilon_high < 0:
            raise UsageError(f"surrogate.epsilon_high must not be negative, not {self.epsilon_high}")

    def token_weight(
        self, groups: Sequence[Group], kept: Sequence[Kept], max_completion_length: int
    ) -> TokenWeight:
        """The weight of a token in the fresh loss of `groups`, by the length of its response.

        Args:
            groups: the batch of one update.
            kept: [G] a group: which rollouts count.
            max_completion_length: C.

        Raises:
            UsageError: no C where it is the divisor.
        """
        if self.loss_agg_mode == "seq-mean-token-sum-norm":
            if max_completion_length < 1:
                raise UsageError("seq-mean-token-sum-norm divides by max_completion_length, which is not set")
            rollouts = sum(group.size for group in groups)
            return lambda length: 1 / (rollouts * max_completion_length)
        lengths = [
            len(rollout.token_ids)
            for group, kept_G in zip(groups, kept, strict=True)
            for rollout, counts in zip(group.rollouts, kept_G, strict=True)
            if counts
        ]
        tokens = sum(lengths)
        if not tokens:
            return lambda length: 0.0
        if self.loss_agg_mode == "token-mean":
            return lambda length: 1 / tokens
        return lambda length: 1 / (len(lengths) * max(length, 1))

    def rows(
        self, groups: Sequence[Group], advantages: Sequence[Floats], kept: Sequence[Kept], weight: TokenWeight
    ) -> list[Row]:
        """One surrogate row a rollout, in order; those that don't count have weight 0."""
        rows = []
        for index, (group, advantage_G, kept_G) in enumerate(zip(groups, advantages, kept, strict=True)):
            for rollout, advantage, counts in zip(group.rollouts, advantage_G, kept_G, strict=True):
                length = len(rollout.token_ids)
                rows.append(
                    Row(
                        prompt_ids=group.prompt_ids,
                        token_ids=rollout.token_ids,
                        kind="surrogate",
                        weight_T=np.full(length, weight(length) if counts else 0.0),
                        advantage_T=np.full(length, advantage),
                        sampler_logp_T=np.array(rollout.logp, dtype=np.float64) if rollout.logp else None,
                        group=index,
                        term=rollout.origin,
                    )
                )
        return rows
