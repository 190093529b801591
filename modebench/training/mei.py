"""MEI, the mutual enhancement of the responses of a prompt (Mesh Learning, arXiv:2610.02835).

With v_i the residual of response i (`modebench.training.residuals`),

    MEI = ‖sum_i a_i v_i‖² / sum_i a_i² ‖v_i‖²,  in [0, number of responses with a_i != 0],

1 where they are orthogonal, G where all G are the same, G/c where they are c orthogonal bundles of equal
norm. In four forms:

- ``mean``: a_i = 1, the mean of the groups' ratios. The released form, though of at most 4 responses.
- ``ratio_of_sums``: the sum of the groups' numerators over that of their denominators.
- ``advantage``: a_i the advantages, the mean of ratios; groups without advantages are left out.
- ``correct``: a_i = 1 for right responses, 0 for others, the mean over groups with two or more.

What it can and cannot tell. Under a policy's own sampling at the temperature of the scores, with nothing
cut off, v_i is a sum of martingale differences: E<v_i, v_j> = 0, and the expectations of numerator and
denominator are equal for every policy, of one mode or of many. What rises with collapse is the mean of
ratios, by groups in which nearly all responses coincide: it senses near-determinism, not the number of
strategies. Every number depends on G, which is logged beside it, and a published threshold (1.013) holds for
its model, G and domain at best.

Beside it stands the mass of the strategies: among the right responses of a group, how many clusters the
cosines of their residuals make (`modebench.training.coupling`), and the share that is in the largest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from modebench.training.batch import Floats, Group, Row
from modebench.training.coupling import clusters
from modebench.training.part import Part


class Pull(NamedTuple):
    """Numerator and denominator of one group's ratio."""

    together: float
    apart: float


def pull(gram_GG: Floats, weight_G: Floats | None = None) -> Pull:
    """The two of a group with [G, G] inner products of residuals and [G] weights, 1 each where None.

    >>> pull(np.ones((4, 4)))
    Pull(together=16.0, apart=4.0)
    """
    weight_G = np.ones(len(gram_GG)) if weight_G is None else weight_G
    return Pull(max(0.0, float(weight_G @ gram_GG @ weight_G)), float((weight_G**2 * np.diag(gram_GG)).sum()))


def mean_of_ratios(pulls: Sequence[Pull]) -> float | None:
    """Over groups with a denominator; None without any."""
    ratios = [each.together / each.apart for each in pulls if each.apart > 0]
    return float(np.mean(ratios)) if ratios else None


def ratio_of_sums(pulls: Sequence[Pull]) -> float | None:
    """None where the denominators are 0."""
    apart = sum(each.apart for each in pulls)
    return sum(each.together for each in pulls) / apart if apart > 0 else None


def mei_forms(
    grams: Sequence[Floats], advantages: Sequence[Floats], rewards: Sequence[Floats]
) -> dict[str, float | None]:
    """MEI of some groups in its four forms, with the mean number of responses of a group as ``G``.

    Args:
        grams: [G, G] each.
        advantages, rewards: [G] each.
    """
    plain = [pull(gram_GG) for gram_GG in grams]
    right = [
        (gram_GG, (reward_G > 0).astype(float)) for gram_GG, reward_G in zip(grams, rewards, strict=True)
    ]
    return {
        "mean": mean_of_ratios(plain),
        "ratio_of_sums": ratio_of_sums(plain),
        "advantage": mean_of_ratios([pull(*each) for each in zip(grams, advantages, strict=True)]),
        "correct": mean_of_ratios([pull(*each) for each in right if each[1].sum() > 1]),
        "G": float(np.mean([len(gram_GG) for gram_GG in grams])) if grams else None,
    }


def strategy_mass(grams: Sequence[Floats], rewards: Sequence[Floats]) -> dict[str, float | None]:
    """Means over the groups with two right responses or more: ``strategies``, how many clusters these make,
    and ``largest_strategy``, the share of the largest.

    Args:
        grams: [G, G] each.
        rewards: [G] each.
    """
    found = []
    for gram_GG, reward_G in zip(grams, rewards, strict=True):
        right = np.flatnonzero(reward_G > 0)
        if len(right) > 1:
            found.append(Counter(clusters(gram_GG[np.ix_(right, right)])))
    return {
        "strategies": float(np.mean([len(sizes) for sizes in found])) if found else None,
        "largest_strategy": float(np.mean([max(sizes.values()) / sizes.total() for sizes in found]))
        if found
        else None,
    }


@dataclass(frozen=True)
class Mei(Part):
    """Logs MEI at every step, of the first update, in which the policy is the one that sampled. It changes
    nothing; residuals are taken from logits that the update makes anyway."""

    name: ClassVar[str] = "mei"
    needs_grams: ClassVar[bool] = True
    needs_whole_groups: ClassVar[bool] = True
    only_observes: ClassVar[bool] = True

    def gram_metrics(
        self, groups: Sequence[Group], rows: Sequence[Row], grams: Mapping[int, Floats]
    ) -> dict[str, float | None]:
        """``mei/mean``, ``mei/ratio_of_sums``, ``mei/advantage``, ``mei/correct``, ``mei/G``,
        ``mei/strategies`` and ``mei/largest_strategy``."""
        advantages: dict[int, list[float]] = {place: [] for place in grams}
        for row in rows:
            if row.term == "fresh" and row.group in grams and row.advantage_T is not None:
                advantages[row.group].append(float(row.advantage_T[0]))
        known, rewards = list(grams.values()), [groups[place].reward_G for place in grams]
        forms = mei_forms(known, [np.array(advantages[place]) for place in grams], rewards)
        return {f"mei/{name}": value for name, value in (forms | strategy_mass(known, rewards)).items()}
