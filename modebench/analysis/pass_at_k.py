"""pass@k, pass^k, and the published per-group forms.

A prompt was attempted K times and n attempts were correct. Drawing k of the K attempts without
replacement, the chance of drawing none of the n marked ones is

    draw_none(n, K, k) = C(K - n, k) / C(K, k) = prod_{i<k} (K - n - i) / (K - i)

and every estimator in this module and in `diversity` that speaks of "k attempts" is a sum of such terms.
Undefined values are NaN, never 0 or 1: a prompt with fewer than k attempts says nothing about pass@k.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def draw_none(marked: npt.ArrayLike, total: npt.ArrayLike, k: int) -> FloatArray:
    """Chance that k draws without replacement from `total` items miss all `marked` ones.

    Args:
        marked: number of marked items, integers in [0, total]; broadcasts against `total`.
        total: number of items, integers.
        k: draws, at least 1.

    Returns:
        float64 of the broadcast shape; NaN where total < k.

    Raises:
        ValueError: k below 1, or a number of marked items outside [0, total].

    >>> float(draw_none(1, 4, 2))  # C(3, 2) / C(4, 2) = 3 / 6
    0.5
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    m, t = np.asarray(marked, dtype=np.int64), np.asarray(total, dtype=np.int64)
    if np.any(m < 0) or np.any(m > t):
        raise ValueError("the number of marked items must lie between 0 and the total")
    shape = np.broadcast_shapes(m.shape, t.shape)
    if 0 in shape:
        return np.empty(shape)
    # The value depends on two small integers only: one small table, then look-ups.
    totals, row = np.unique(t, return_inverse=True)
    left = totals[:, None] - np.arange(int(m.max()) + 1)
    table = np.ones(left.shape)
    for i in range(k):
        table *= np.maximum(left - i, 0) / np.maximum(totals - i, 1)[:, None]
    table[totals < k] = np.nan
    return np.asarray(table[row.reshape(t.shape), m])


def pass_at_k(correct: npt.ArrayLike, attempts: npt.ArrayLike, k: int) -> FloatArray:
    """Unbiased estimate of the chance that at least one of k attempts is correct.

    pass@k = 1 - C(K - n, k) / C(K, k); Chen et al. 2021, arXiv:2107.03374, equation 1.

    Args:
        correct: n, correct attempts per prompt, integers, any shape.
        attempts: K, graded attempts per prompt; broadcasts against `correct`.
        k: attempts allowed.

    Returns:
        float64 of the broadcast shape; NaN where K < k.

    >>> pass_at_k([0, 1, 8], 8, 2).tolist()
    [0.0, 0.25, 1.0]
    """
    return 1.0 - draw_none(correct, attempts, k)


def pass_hat_k(correct: npt.ArrayLike, attempts: npt.ArrayLike, k: int) -> FloatArray:
    """Unbiased estimate of pass^k, the chance that all of k attempts are correct.

    pass^k = C(n, k) / C(K, k); Yao et al. 2024, arXiv:2406.12045.

    Args and returns are those of `pass_at_k`.

    >>> pass_hat_k([0, 2, 4], 4, 2).round(4).tolist()
    [0.0, 0.1667, 1.0]
    """
    wrong = np.asarray(attempts, dtype=np.int64) - np.asarray(correct, dtype=np.int64)
    return draw_none(wrong, attempts, k)


def pass_group(correct: npt.ArrayLike, size: npt.ArrayLike, k: int) -> FloatArray:
    """The published ``pass@k_group`` of each group: did any of its k responses pass.

    No combinatorics: a group counts when it has exactly k graded responses. The published numbers average
    it over the groups of a prompt and then over prompts. At K = k it equals `pass_at_k`.

    Args:
        correct: correct responses per group.
        size: graded responses per group.
        k: the group size that the metric is named after.

    Returns:
        float64, 0 or 1 per group; NaN where the group has another size.

    >>> pass_group([0, 3, 1], [8, 8, 7], 8).tolist()
    [0.0, 1.0, nan]
    """
    passed = (np.asarray(correct) > 0).astype(np.float64)
    return np.where(np.asarray(size) == k, passed, np.nan)


def distinct_group(distinct: npt.ArrayLike, size: npt.ArrayLike, k: int) -> FloatArray:
    """The published ``distinct@k_group`` of each group: distinct correct modes among its k responses.

    At K = k it equals `modebench.analysis.diversity.modes_at_k`.

    Args:
        distinct: distinct correct modes per group.
        size: graded responses per group.
        k: the group size that the metric is named after.

    Returns:
        float64 per group; NaN where the group has another size.

    >>> distinct_group([0, 2], [8, 8], 8).tolist()
    [0.0, 2.0]
    """
    return np.where(np.asarray(size) == k, np.asarray(distinct, dtype=np.float64), np.nan)
