"""The loss of rows, its gradient, and what is seen on the way.

The loss of any set of rows is a plain sum over tokens (see `modebench.training.batch`): of a surrogate row
weight_t · −min(ρ_t A_t, clip(ρ_t, 1 − ε, 1 + ε_high) A_t) with ρ_t = exp(logp_t − logp_old_t) (Schulman et
al. 2017, arXiv:1707.06347, equation 7; ε_high apart from ε: Yu et al. 2025, arXiv:2503.14476), of a
likelihood row −weight_t logp_t, and of both the row's regularisers (`modebench.training.divergence`).

At ``sequence`` level the ratio of every token of a row is that of the sequence to the power of 1/length,
s = exp(mean of logp − logp_old), which clips all its tokens together, and each token has the gradient of its
own logp: ρ_t = sg[s] exp(logp_t − sg[logp_t]), where sg stops the gradient (GSPO-token, Zheng et al. 2025,
arXiv:2507.18071). Where all tokens of a row have one advantage and one weight, its gradient is that of s.

Shape suffixes: _T tokens of a response, _K those of all responses of a micro-batch, row after row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch

from modebench.training.batch import Floats, Row
from modebench.training.divergence import ROUNDING, token_values
from modebench.training.likelihood import MICRO_BATCH_TOKENS, Scorer, TokenScores
from modebench.training.packing import micro_batches
from modebench.training.residuals import Grams
from modebench.training.surrogates import RatioLevel


@dataclass
class Statistics:
    """What a backward pass saw, as sums that add up over micro-batches and processes.

    Entropy, clipping, ratios and gaps are of surrogate rows, rows without gradient included.

    Attributes:
        loss, tokens: of each term.
        surrogate_tokens: tokens of surrogate rows.
        entropy: sum of entropies, nats.
        off_policy_tokens: tokens whose |logp − logp_old| is more than rounding.
        clipped: tokens whose ratio lies outside the clip range on the side where clipping binds.
        acting: of each regulariser, the tokens on which its value is not exactly 0.
        log_ratio_abs, log_ratio_max: sum and maximum of |logp − logp_old|.
        compared_tokens: tokens whose sampler's log-probability is known.
        gap_abs, gap_max: sum and maximum of |logp − that of the sampler|, nats.
        reference_rows: rows that the reference scored.
        grams: by group, inner products of its rollouts' residuals where they were asked for.
        gap_k3: sum of ρ − 1 − log ρ with ρ the policy's over the sampler's probability, the estimate "k3" of
            KL(sampler ‖ policy) (Schulman 2020, joschu.net/blog/kl-approx.html).
    """

    loss: dict[str, float] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    acting: dict[str, int] = field(default_factory=dict)
    surrogate_tokens: int = 0
    entropy: float = 0.0
    off_policy_tokens: int = 0
    clipped: int = 0
    log_ratio_abs: float = 0.0
    log_ratio_max: float = 0.0
    compared_tokens: int = 0
    gap_abs: float = 0.0
    gap_max: float = 0.0
    gap_k3: float = 0.0
    reference_rows: int = 0
    grams: dict[int, Floats] = field(default_factory=dict)

    def __add__(self, other: Statistics) -> Statistics:
        merged = {each.name: _merge(each.name, self, other) for each in fields(self)}
        return Statistics(**merged)

    def metrics(self, updates: int = 1) -> dict[str, float]:
        """Means and maxima by name; those of nothing are left out.

        Args:
            updates: that these are the sums of; losses are means over them.
        """
        metrics = {f"loss/{term}": value / updates for term, value in self.loss.items()}
        if count := self.surrogate_tokens:
            metrics |= {
                "entropy": self.entropy / count,
                "clip_fraction": self.clipped / count,
                "log_ratio_abs_mean": self.log_ratio_abs / count,
                "log_ratio_abs_max": self.log_ratio_max,
            }
        if count := self.compared_tokens:
            metrics |= {
                "sampler_gap_mean": self.gap_abs / count,
                "sampler_gap_max": self.gap_max,
                "sampler_kl": self.gap_k3 / count,
            }
        return metrics


def _merge(name: str, first: Statistics, second: Statistics) -> Any:
    one, two = getattr(first, name), getattr(second, name)
    if isinstance(one, dict):
        return {term: one.get(term, 0) + two.get(term, 0) for term in {**one, **two}}
    return max(one, two) if name.endswith("_max") else one + two


def backward(
    scorer: Scorer,
    rows: Sequence[Row],
    *,
    temperature: float,
    epsilon: float,
    epsilon_high: float,
    level: RatioLevel = "token",
    reference: Scorer | None = None,
    micro_batch_tokens: int = MICRO_BATCH_TOKENS,
    chunk: int | None = None,
    grams: bool = False,
) -> Statistics:
    """Add the gradient of the rows' summed loss to the parameters' ``grad``.

    Rows whose gradient is zero by their weights, advantages and regularisers are scored without a backward
    pass.

    Args:
        scorer: of the model.
        rows: the rows of one optimisation step, or of this process's share.
        temperature: that the responses were sampled with.
        epsilon, epsilon_high: how far a ratio may fall below and rise above 1.
        level: of the ratio.
        reference: of the policy that divergences are measured from.
        micro_batch_tokens: padded tokens of a forward pass; decides memory and speed, not the result.
        chunk: places whose logits exist at once; None chooses.
        grams: note those of the groups.

    Raises:
        ValueError: a row without prompt or response tokens, or whose arrays differ in length from it or are
            not finite; a divergence without a reference.
    """
    for index, row in enumerate(rows):
        _check(index, row)
    total = Statistics()
    found = Grams(rows if grams else [])
    options: dict[str, Any] = {"reference": reference, "chunk": chunk, "residuals": grams}
    for live in (True, False):
        part = [place for place, row in enumerate(rows) if row.has_gradient is live]
        chosen = [rows[place] for place in part]
        with torch.set_grad_enabled(live):
            for packs in micro_batches(chosen, micro_batch_tokens, scorer.hidden_size):
                members = [member for pack in packs for member in pack.members]
                within = [chosen[member] for member in members]
                wanted = {each.kind for row in within for each in row.regularisers} if live else ()
                _, scores = scorer.score(packs, temperature, wanted=wanted, **options)
                if scores.residual_RV is not None:
                    found.add([part[member] for member in members], scores.residual_RV)
                loss_K, statistics = _losses(within, scores, epsilon, epsilon_high, level)
                if live:
                    loss_K.sum().backward()
                total += statistics
    total.grams = found.found
    return total


def _check(index: int, row: Row) -> None:
    if (row.kind == "surrogate") != (row.advantage_T is not None):
        raise ValueError(f"row {index} is a {row.kind} row, and advantage_T is {row.advantage_T!r}")
    for name in ("weight_T", "advantage_T", "logp_old_T", "sampler_logp_T"):
        value_T = getattr(row, name)
        if value_T is not None and len(value_T) != len(row.token_ids):
            raise ValueError(f"row {index}: {name} has {len(value_T)} values for {len(row.token_ids)} tokens")
        if value_T is not None and not np.isfinite(value_T).all():
            raise ValueError(f"row {index}: {name} is not finite")
    for each in row.regularisers:
        if len(each.weight_T) != len(row.token_ids) or not np.isfinite(each.weight_T).all():
            raise ValueError(f"row {index}: the weights of {each.term} are not a finite one for each token")


def _losses(
    rows: Sequence[Row], scores: TokenScores, epsilon: float, epsilon_high: float, level: RatioLevel
) -> tuple[torch.Tensor, Statistics]:
    """Loss [K] of the tokens of `rows`, which lie in `scores` one after another, and what is told of them."""
    logp_K = scores.logp_K
    present_K = logp_K.detach()
    advantage_K, old_K = _column(rows, "advantage_T", logp_K), _column(rows, "logp_old_T", logp_K)
    surrogate_K = ~advantage_K.isnan()
    advantage_K = advantage_K.nan_to_num()  # a NaN in the branch not taken would still reach the gradient
    log_ratio_K = logp_K - torch.where(old_K.isnan(), present_K, old_K)
    lengths = [len(row.token_ids) for row in rows]
    if level == "sequence":
        means = [log_ratio_T.mean().expand(len(log_ratio_T)) for log_ratio_T in log_ratio_K.split(lengths)]
        ratio_K = (torch.cat(means).detach() + logp_K - present_K).exp()
    else:
        ratio_K = log_ratio_K.exp()
    clipped_K = ratio_K.clamp(1 - epsilon, 1 + epsilon_high)
    objective_K = torch.minimum(ratio_K * advantage_K, clipped_K * advantage_K)
    loss_K = -_column(rows, "weight_T", logp_K) * torch.where(surrogate_K, objective_K, logp_K)
    high_K, low_K = ratio_K > 1 + epsilon_high, ratio_K < 1 - epsilon
    binds_K = (advantage_K > 0) & high_K | (advantage_K < 0) & low_K
    log_ratio_abs_K = log_ratio_K.detach()[surrogate_K].abs()
    gap_K = present_K - _column(rows, "sampler_logp_T", logp_K)
    gap_K = gap_K[surrogate_K & ~gap_K.isnan()]
    statistics = Statistics(
        surrogate_tokens=len(log_ratio_abs_K),
        entropy=scores.entropy_K.detach()[surrogate_K].sum().item(),
        off_policy_tokens=int((log_ratio_abs_K > ROUNDING).sum()),
        clipped=int(binds_K.sum()),
        log_ratio_abs=log_ratio_abs_K.sum().item(),
        log_ratio_max=_largest(log_ratio_abs_K),
        compared_tokens=len(gap_K),
        gap_abs=gap_K.abs().sum().item(),
        gap_max=_largest(gap_K.abs()),
        gap_k3=(gap_K.exp() - 1 - gap_K).sum().item(),
        reference_rows=0 if scores.reference_K is None else len(rows),
    )
    for row, loss_T in zip(rows, loss_K.detach().split(lengths), strict=True):
        statistics.loss[row.term] = statistics.loss.get(row.term, 0.0) + loss_T.sum().item()
        statistics.tokens[row.term] = statistics.tokens.get(row.term, 0) + len(loss_T)
    if logp_K.requires_grad:
        loss_K = loss_K + _regularisers(rows, scores, log_ratio_K, statistics)
    return loss_K, statistics


def _regularisers(
    rows: Sequence[Row], scores: TokenScores, log_ratio_K: torch.Tensor, statistics: Statistics
) -> torch.Tensor:
    """Summed loss [K] of the regularisers of `rows`; notes each in `statistics`."""
    total_K = torch.zeros_like(log_ratio_K)
    for term, kind in sorted({(each.term, each.kind) for row in rows for each in row.regularisers}):
        weights = [
            sum(
                (each.weight_T for each in row.regularisers if each.term == term),
                np.zeros(len(row.token_ids)),
            )
            for row in rows
        ]
        weight_K = torch.from_numpy(np.concatenate(weights)).to(log_ratio_K)
        value_K = token_values(kind, scores, log_ratio_K)
        term_K = weight_K * value_K
        total_K = total_K + term_K
        statistics.loss[term] = statistics.loss.get(term, 0.0) + term_K.detach().sum().item()
        acting = int((weight_K * value_K.detach()).count_nonzero())
        statistics.acting[term] = statistics.acting.get(term, 0) + acting
    return total_K


def _column(rows: Sequence[Row], name: str, like: torch.Tensor) -> torch.Tensor:
    """[K] a field of all rows, NaN where a row lacks it, with type and device of `like`."""
    values = [getattr(row, name) for row in rows]
    missing = [np.full(len(row.token_ids), np.nan) for row in rows]
    joined_K = np.concatenate([m if v is None else v for v, m in zip(values, missing, strict=True)])
    return torch.from_numpy(joined_K).to(like)


def _largest(values: torch.Tensor) -> float:
    return values.max().item() if len(values) else 0.0
