"""What a written task is paid: its quality, and how much of a challenge it is to the learner.

The gated reward of SynCo (Yang et al. 2026, arXiv:2610.11345) is Gate(quality) Gate(reliability) T(mu), where
mu is the share of right solutions among K, and a rejected card is paid `REJECTED`. T is greatest where the
learner solves one in two. With the same K rollouts T(mu) > 0 exactly where the learner's group has a
gradient, so that the two agree says nothing of the task; fresh rollouts would.
"""

from __future__ import annotations

REJECTED = -0.5
"""Reward of a card that is no valid task."""
ADDITIVE_WEIGHTS = {
    "teachability": 0.30,
    "quality": 0.20,
    "reliability": 0.20,
    "novelty": 0.15,
    "format": 0.15,
}
"""Weights of the additive variant in the released code; which weight is whose is our reading."""


def gate(value: float) -> float:
    """0 up to a half, then linear to 1.

    >>> [gate(value) for value in (0.0, 0.5, 0.75, 1.0)]
    [0.0, 0.0, 0.5, 1.0]
    """
    return min(max((value - 0.5) / 0.5, 0.0), 1.0)


def teachability(mu: float, slope: float = 1.0) -> float:
    """T(mu): 2 mu up to a half, then 1 - slope (2 mu - 1), never below 0.

    Args:
        mu: share of right solutions, in [0, 1].
        slope: how fast it falls beyond a half; 1 makes it symmetric.

    >>> [teachability(mu) for mu in (0, 0.25, 0.5, 0.75, 1)]
    [0, 0.5, 1.0, 0.5, 0.0]
    """
    return 2 * mu if mu <= 0.5 else max(0.0, 1 - slope * 2 * (mu - 0.5))


def mode_teachability(mu: float, modes: int, size: int, slope: float = 1.0) -> float:
    """T(mu) (1 + modes / size) / 2: tasks that were solved in several ways are paid more (not in the paper).

    Args:
        mu: share of right solutions.
        modes: distinct modes among the right ones.
        size: solutions.
        slope: of `teachability`.

    >>> mode_teachability(0.5, 2, 4)
    0.75
    """
    return teachability(mu, slope) * (1 + modes / size) / 2


def gated_reward(quality: float, reliability: float, worth: float) -> float:
    """In [0, 1]: the reward of a valid card, of whose teachability `worth` is what counts."""
    return gate(quality) * gate(reliability) * worth


def additive_reward(
    *, quality: float, reliability: float, worth: float, novelty: float, format: float
) -> float:
    """In [0, 1]: the reward of a valid card in the additive variant, the weighted mean of its scores."""
    scores = {
        "teachability": worth,
        "quality": quality,
        "reliability": reliability,
        "novelty": novelty,
        "format": format,
    }
    return sum(weight * scores[name] for name, weight in ADDITIVE_WEIGHTS.items())
