"""Further losses of a token: how far the policy is from a reference, how random it is, how far it has moved.

With p the policy, q the reference (the policy as the run began, frozen), y the sampled token, and
d = log q(y) - log p(y), a divergence adds beta times the value of its kind to the loss of every fresh token,
averaged as the fresh loss is. A kind is judged by its gradient where rollouts come from p, since the
gradient is not taken through the sampling:

| kind          | value of a token                              | expected gradient                        |
|---------------|-----------------------------------------------|------------------------------------------|
| `exact_kl`    | sum over the vocabulary of p log(p/q)         | that of KL(p ‖ q)                        |
| `exact_js`    | KL(p ‖ m)/2 + KL(q ‖ m)/2, m = (p + q)/2       | that of the divergence, at most log 2    |
| `k2`          | d²/2                                          | that of KL(p ‖ q)                        |
| `k3`          | exp(d) - 1 - d                                | that of KL(q ‖ p), the other direction   |
| `k1`          | -d                                            | zero: it adds noise and nothing else     |
| `released_kl` | the same                                      | zero                                     |
| `released_js` | log(sqrt(p q)(y)) - log m(y)                  | away from q: the sign is wrong           |

k1, k2, k3 are Schulman's estimators of KL(p ‖ q) (2020, joschu.net/blog/kl-approx.html); that an unbiased
estimate of a value need not have an unbiased gradient is why k1 does nothing as a loss. k3 is the loss of
GRPO (Shao et al. 2024, arXiv:2402.03300, equation 4). The two `released_` kinds are what the options ``kl``
and ``js`` of the released code of Mesh Learning come to; they are here to measure what published comparisons
with "GRPO+KL" and "GRPO+JS" rest on, not to train with.

Shape suffixes: _K tokens of a micro-batch, _C those of a chunk, _V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from modebench.errors import UsageError
from modebench.training.batch import Regulariser, Row
from modebench.training.part import Part

if TYPE_CHECKING:
    import torch

    from modebench.training.likelihood import TokenScores

ROUNDING = 1e-5
"""Nats by which a log-probability may differ when the same policy scores a token in another batch."""

Kind = Literal["exact_kl", "exact_js", "k1", "k2", "k3", "released_kl", "released_js"]


@dataclass(frozen=True)
class Divergence(Part):
    """Holds the policy to the reference.

    Attributes:
        kind: see the module.
        beta: the weight of its mean over the fresh tokens; 0 holds no reference.
    """

    name: ClassVar[str] = "divergence"
    kind: Kind = "exact_kl"
    beta: float = 0.04

    def __post_init__(self) -> None:
        if self.beta < 0:
            raise UsageError(f"divergence.beta must not be negative, not {self.beta}")

    @property
    def needs_reference(self) -> bool:
        return self.beta > 0

    def regularise(self, rows: list[Row], state: Any) -> list[Row]:
        return regularised(rows, self.name, self.kind, self.beta) if self.beta else rows


@dataclass(frozen=True)
class Entropy(Part):
    """Pays for randomness: -coefficient times the mean entropy of the policy, over the whole vocabulary, at
    the fresh tokens (Williams and Peng 1991, Connection Science 3:241-268; Mnih et al. 2016,
    arXiv:1602.01783).

    The gradient is that of the entropy at each place, given the tokens before it; that the places themselves
    depend on the policy is left out, as is usual.

    Attributes:
        coefficient: of the mean.
    """

    name: ClassVar[str] = "entropy"
    coefficient: float = 1e-3

    def __post_init__(self) -> None:
        if self.coefficient < 0:
            raise UsageError(f"entropy.coefficient must not be negative, not {self.coefficient}")

    def regularise(self, rows: list[Row], state: Any) -> list[Row]:
        return regularised(rows, self.name, "entropy", -self.coefficient)


def regularised(rows: Sequence[Row], term: str, kind: str, factor: float) -> list[Row]:
    """The rows with a further loss on every token, of `factor` times the token's weight in the fresh loss."""
    return [
        replace(row, regularisers=(*row.regularisers, Regulariser(term, kind, factor * row.weight_T)))
        for row in rows
    ]


def token_values(kind: str, scores: TokenScores, log_ratio_K: torch.Tensor) -> torch.Tensor:
    """[K] the value of a kind at every token, in nats, with gradient.

    Args:
        kind: of a divergence; ``entropy``; or ``abs_log_ratio``, |logp - logp_old|, of no value and no
            gradient where the two are equal but for `ROUNDING`: its slope would be full on noise.
        scores: of the tokens; those of a divergence with the reference.
        log_ratio_K: logp - logp_old.
    """
    if kind in _PRESENT:
        return _PRESENT[kind](scores, log_ratio_K)
    assert scores.reference_K is not None
    return _SAMPLED[kind](scores.logp_K, scores.reference_K)


def _js_as_released(logp_K: torch.Tensor, reference_K: torch.Tensor) -> torch.Tensor:
    difference_K = reference_K - logp_K
    return difference_K / 2 - _middle(difference_K)


def _middle(difference: torch.Tensor) -> torch.Tensor:
    """log(m/p), m = (p + q)/2, from log(q/p): softplus(log(q/p)) - log 2, exactly 0 at 0."""
    import torch

    softplus = torch.nn.functional.softplus
    middle: torch.Tensor = softplus(difference) - softplus(torch.zeros_like(difference[..., :1]))
    return middle


_SAMPLED: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "k1": lambda logp_K, reference_K: logp_K - reference_K,
    "k2": lambda logp_K, reference_K: (logp_K - reference_K) ** 2 / 2,
    "k3": lambda logp_K, reference_K: (reference_K - logp_K).expm1() - (reference_K - logp_K),
    "released_kl": lambda logp_K, reference_K: logp_K - reference_K,
    "released_js": _js_as_released,
}
_PRESENT: dict[str, Callable[[TokenScores, torch.Tensor], Any]] = {
    "exact_kl": lambda scores, log_ratio_K: scores.exact["exact_kl"],
    "exact_js": lambda scores, log_ratio_K: scores.exact["exact_js"],
    "entropy": lambda scores, log_ratio_K: scores.entropy_K,
    "abs_log_ratio": lambda scores, log_ratio_K: log_ratio_K.abs() * (log_ratio_K.abs() > ROUNDING),
}
EXACT = ("exact_kl", "exact_js")
REFERENCE_KINDS = (*EXACT, *_SAMPLED)


def exact_divergence(kind: str, logp_CV: torch.Tensor, reference_CV: torch.Tensor) -> torch.Tensor:
    """[C] exact KL(p ‖ q) or Jensen-Shannon divergence of two rows of log-probabilities, in nats.

    Exactly zero where the two are equal. Forbidden tokens (-inf) must have been clamped to a finite floor.
    """
    difference_CV = reference_CV - logp_CV
    if kind == "exact_kl":
        return -(logp_CV.exp() * difference_CV).sum(-1)
    halves_CV = logp_CV.exp() * _middle(difference_CV) + reference_CV.exp() * _middle(-difference_CV)
    return -halves_CV.sum(-1) / 2
