"""From advantages to the rows of the fresh loss: ratio, clipping, and how token losses are averaged.

The clipped loss of a token is -min(rho A, clip(rho, 1 - epsilon, 1 + epsilon_high) A) (PPO,
arXiv:1707.06347), rho the ratio of the token or of its sequence (GSPO; see `modebench.training.loss`). With
one update per batch of rollouts rho is 1 and clipping never binds. The three averages over an update of N
rollouts with lengths len_i differ in the weight of one token:

- ``seq-mean-token-sum-norm``: 1 / (N C), C = max_completion_length, a constant of the run (Dr. GRPO,
  arXiv:2503.20783). Some implementations divide by the padded width of the batch instead, which makes the
  loss depend on padding.
- ``token-mean``: 1 / sum of len (DAPO, arXiv:2503.14476), over the whole update, never a micro-batch.
- ``seq-mean-token-mean``: 1 / (N len_i) (GRPO, arXiv:2402.03300).

Where a batch of rollouts is cut into mini-batches an update is one of them, and N and the lengths are its
own, so two updates from one batch are those from two batches of half the size.

Rollouts that a selection dropped leave numerator and denominator, except the constant one: there N counts
every rollout, as the divisor is no property of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Row
from modebench.training.part import Kept, Part, TokenWeight

Aggregation = Literal["seq-mean-token-sum-norm", "token-mean", "seq-mean-token-mean"]
RatioLevel = Literal["token", "sequence"]


@dataclass(frozen=True)
class Surrogate(Part):
    """How the fresh loss is clipped and averaged.

    Attributes:
        loss_agg_mode: see the module.
        epsilon: the ratio is clipped at 1 - epsilon from below.
        epsilon_high: and at 1 + epsilon_high from above; None for epsilon.
        clip: False leaves every ratio as it is.
        importance_sampling_level: what the ratio is of.
    """

    name: ClassVar[str] = "surrogate"
    loss_agg_mode: Aggregation = "seq-mean-token-sum-norm"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    clip: bool = True
    importance_sampling_level: RatioLevel = "token"

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise UsageError(f"surrogate.epsilon must be in [0, 1], not {self.epsilon}")
        if self.epsilon_high is not None and self.epsilon_high < 0:
            raise UsageError(f"surrogate.epsilon_high must not be negative, not {self.epsilon_high}")

    @property
    def clip_range(self) -> tuple[float, float]:
        """How far a ratio may fall below and rise above 1."""
        if not self.clip:
            return 1.0, math.inf
        return self.epsilon, self.epsilon if self.epsilon_high is None else self.epsilon_high

    def token_weight(self, lengths: Sequence[int], rollouts: int, max_completion_length: int) -> TokenWeight:
        """The weight of a token in the fresh loss of one update, by the length of its response.

        Args:
            lengths: of the responses that count.
            rollouts: all of the update, those that don't count too.
            max_completion_length: C.

        Raises:
            UsageError: no C where it is the divisor.
        """
        if self.loss_agg_mode == "seq-mean-token-sum-norm":
            if max_completion_length < 1:
                raise UsageError("seq-mean-token-sum-norm divides by max_completion_length, which is not set")
            return lambda length: 1 / (rollouts * max_completion_length)
        tokens = sum(lengths)
        if not tokens:
            return lambda length: 0.0
        if self.loss_agg_mode == "token-mean":
            return lambda length: 1 / tokens
        return lambda length: 1 / (len(lengths) * max(length, 1))

    def rows(self, groups: Sequence[Group], advantages: Sequence[Floats], kept: Sequence[Kept]) -> list[Row]:
        """One surrogate row a rollout, in order, of token weight 1, or 0 where it doesn't count."""
        rows = []
        for index, (group, advantage_G, kept_G) in enumerate(zip(groups, advantages, kept, strict=True)):
            for rollout, advantage, counts in zip(group.rollouts, advantage_G, kept_G, strict=True):
                length = len(rollout.token_ids)
                rows.append(
                    Row(
                        prompt_ids=group.prompt_ids,
                        token_ids=rollout.token_ids,
                        kind="surrogate",
                        weight_T=np.full(length, float(counts)),
                        advantage_T=np.full(length, advantage),
                        sampler_logp_T=np.array(rollout.logp, dtype=np.float64) if rollout.logp else None,
                        group=index,
                        term=rollout.origin,
                    )
                )
        return rows

    def normalised(self, rows: Sequence[Row], max_completion_length: int) -> list[Row]:
        """The rows of one update with their token weights, whatever weights other than 0 they had."""
        counted = [len(row.token_ids) for row in rows if row.weight_T.any()]
        weight = self.token_weight(counted, len(rows), max_completion_length)
        return [
            replace(row, weight_T=(row.weight_T != 0) * weight(len(row.token_ids)), regularisers=())
            for row in rows
        ]

    def clipped(self, row: Row, logp_T: Floats) -> Kept:
        """[T] on which tokens of a row clipping binds, where the policy's log-probabilities are `logp_T`."""
        assert row.advantage_T is not None
        log_ratio_T = logp_T - (logp_T if row.logp_old_T is None else row.logp_old_T)
        if self.importance_sampling_level == "sequence":
            log_ratio_T = np.full_like(log_ratio_T, log_ratio_T.mean())
        low, high = self.clip_range
        ratio_T = np.exp(log_ratio_T)
        above_T = (row.advantage_T > 0) & (ratio_T > 1 + high)
        below_T = (row.advantage_T < 0) & (ratio_T < 1 - low)
        return np.asarray(above_T | below_T)
