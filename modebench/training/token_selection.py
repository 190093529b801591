"""Which tokens of an update train the policy, and which are held back: by covariance or by entropy.

The entropy of a softmax policy falls in one step by about the learning rate times the covariance of
log-probability and advantage (Cui et al. 2025, arXiv:2505.22617), and few tokens carry nearly all of it. With
means over the N tokens of the update that count, all without gradient:

    cov_t = (A_t - mean A) (logp_t - mean logp)

- Clip-Cov: of the tokens with low < cov_t < high that clipping does not hold already, max(1, floor(share N))
  are drawn at random; they are left out of the loss, not out of its denominator.
- KL-Cov: the max(1, floor(share N)) tokens of the largest cov_t have coefficient |logp_t - logp_old_t| added
  to their loss. With ratio 1 its gradient is zero.
- Top entropy: only the ceil(share N) tokens of the highest entropy are in the loss, and in its denominator
  (Wang et al. 2025, arXiv:2506.01939).

The releases pool the tokens of a micro-batch, so that memory settings decide what is held back; here they are
those of the update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Regulariser, Row
from modebench.training.draws import draws
from modebench.training.part import Kept, Part, Seen, Stage, TokenWeight


@dataclass
class Drawn:
    """The state of Clip-Cov: what seeds its draws, and what the last update had to choose from.

    Attributes:
        seed: of the run.
        updates: draws so far.
        candidates, tokens: of the last update; tokens are those that count.
    """

    seed: int
    updates: int = 0
    candidates: int = 0
    tokens: int = 0

    def state_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"seed": self.seed, "updates": self.updates}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.seed, self.updates = saved["seed"], saved["updates"]


@dataclass(frozen=True)
class ClipCov(Part):
    """Some tokens of large covariance have no gradient.

    Attributes:
        share: of the tokens, how many are drawn.
        window: what `low` and `high` are. The published bounds are ``absolute``, and with short answers or
            advantages below 1 no token may reach them; ``quantile`` is ours: shares of the tokens, of which
            some always lie between.
        low, high: bounds of the covariance, exclusive.
    """

    name: ClassVar[str] = "clip_cov"
    needs_statistics: ClassVar[bool] = True
    stage: ClassVar[Stage] = Stage.SELECT
    share: float = 2e-4
    window: Literal["absolute", "quantile"] = "absolute"
    low: float = 1.0
    high: float = 5.0

    def __post_init__(self) -> None:
        _check_share(self.name, self.share)
        if not self.low < self.high:
            raise UsageError(f"clip_cov.low must be below clip_cov.high, not {self.low} and {self.high}")
        if self.window == "quantile" and not (self.low >= 0 and self.high <= 1):
            raise UsageError(f"clip_cov.low and high must be in [0, 1], not {self.low} and {self.high}")

    def state(self, seed: int) -> Drawn:
        return Drawn(seed)

    def reweigh(self, rows: list[Row], seen: Sequence[Seen], state: Drawn) -> list[Row]:
        state.updates += 1
        counts_K, cov_K = _covariance(rows, seen)
        state.tokens = int(counts_K.sum())
        low, high = self.low, self.high
        if self.window == "quantile" and state.tokens:
            low, high = np.quantile(cov_K[counts_K], [low, high])
        free_K = counts_K & ~np.concatenate([each.clipped_T for each in seen])
        candidates = np.flatnonzero(free_K & (cov_K > low) & (cov_K < high))
        state.candidates = len(candidates)
        size = min(max(1, int(self.share * state.tokens)), len(candidates))
        drawn = draws(state.seed, self.name, state.updates).choice(candidates, size, replace=False)
        held_K = np.zeros(len(cov_K), dtype=np.bool_)
        held_K[drawn] = True
        return [
            replace(row, weight_T=np.where(held_T, 0.0, row.weight_T))
            for row, held_T in zip(rows, _by_row(held_K, rows), strict=True)
        ]

    def metrics(
        self, groups: Sequence[Group], extra: Sequence[Row], fresh: TokenWeight, state: Drawn
    ) -> dict[str, float | None]:
        """Share of the tokens that lie in the window, in the last update of the step."""
        return {"clip_cov/candidates": state.candidates / state.tokens if state.tokens else None}


@dataclass(frozen=True)
class KLCov(Part):
    """Tokens of the largest covariance are held near the policy that sampled them.

    Attributes:
        share: of the tokens, how many.
        coefficient: of |logp - logp_old|.
    """

    name: ClassVar[str] = "kl_cov"
    needs_statistics: ClassVar[bool] = True
    stage: ClassVar[Stage] = Stage.SELECT
    share: float = 2e-3
    coefficient: float = 1.0

    def __post_init__(self) -> None:
        _check_share(self.name, self.share)
        if self.coefficient < 0:
            raise UsageError(f"kl_cov.coefficient must not be negative, not {self.coefficient}")

    def reweigh(self, rows: list[Row], seen: Sequence[Seen], state: Any) -> list[Row]:
        counts_K, cov_K = _covariance(rows, seen)
        tokens = int(counts_K.sum())
        held_K = _largest(np.where(counts_K, cov_K, -math.inf), min(max(1, int(self.share * tokens)), tokens))
        return [
            replace(
                row,
                regularisers=(
                    *row.regularisers,
                    Regulariser(self.name, "abs_log_ratio", self.coefficient * row.weight_T * held_T),
                ),
            )
            for row, held_T in zip(rows, _by_row(held_K, rows), strict=True)
        ]


@dataclass(frozen=True)
class TopEntropy(Part):
    """Only the tokens at which the policy is most undecided are trained.

    Attributes:
        share: of the tokens, how many.
        denominator: ``kept``: the weights that stay are scaled to the sum of all, which makes a token mean
            one over the kept tokens, as in the released code; ``all``: they stay as they are, as in TRL.
    """

    name: ClassVar[str] = "top_entropy"
    needs_statistics: ClassVar[bool] = True
    stage: ClassVar[Stage] = Stage.SELECT
    share: float = 0.2
    denominator: Literal["kept", "all"] = "kept"

    def __post_init__(self) -> None:
        _check_share(self.name, self.share)

    def reweigh(self, rows: list[Row], seen: Sequence[Seen], state: Any) -> list[Row]:
        weight_K = np.concatenate([row.weight_T for row in rows])
        counts_K = weight_K != 0
        # Not rounded up for what floating point adds to the product: 0.07 of 100 tokens are 7.
        size = math.ceil(round(self.share * int(counts_K.sum()), 9))
        entropy_K = np.concatenate([each.entropy_T for each in seen])
        kept_K = _largest(np.where(counts_K, entropy_K, -math.inf), size)
        left_K = np.where(kept_K, weight_K, 0.0)
        if self.denominator == "kept" and kept_K.any():
            left_K = left_K * (weight_K.sum() / left_K.sum())
        return [
            replace(row, weight_T=weight_T) for row, weight_T in zip(rows, _by_row(left_K, rows), strict=True)
        ]


def _check_share(part: str, share: float) -> None:
    if not 0 < share <= 1:
        raise UsageError(f"{part}.share must be in (0, 1], not {share}")


def _covariance(rows: Sequence[Row], seen: Sequence[Seen]) -> tuple[Kept, Floats]:
    """[K] which tokens count, and [K] their covariances; the other tokens' are of no meaning."""
    counts_K = np.concatenate([row.weight_T != 0 for row in rows])
    advantage_K = np.concatenate([row.advantage_T for row in rows if row.advantage_T is not None])
    logp_K = np.concatenate([each.logp_T for each in seen])
    if not counts_K.any():
        return counts_K, np.zeros_like(logp_K)
    centred = (values_K - values_K[counts_K].mean() for values_K in (advantage_K, logp_K))
    return counts_K, math.prod(centred, start=np.ones_like(logp_K))


def _largest(values_K: Floats, size: int) -> Kept:
    """[K] whether a value is among the `size` largest; of equal ones the first."""
    chosen_K = np.zeros(len(values_K), dtype=np.bool_)
    chosen_K[np.argsort(-values_K, kind="stable")[:size]] = True
    return chosen_K


def _by_row(values_K: Any, rows: Sequence[Row]) -> list[Any]:
    """The values of each row's tokens."""
    ends = np.cumsum([len(row.token_ids) for row in rows])
    return np.split(values_K, ends[:-1])
