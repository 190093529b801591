"""Diversity of the correct answers to one prompt, from the counts of its modes.

Notation: K graded attempts, n of them correct, c_m of those in mode m (sum c_m = n), S modes seen,
f_1 and f_2 modes seen exactly once and twice.

Every function takes `counts` of shape [..., M]: integers, one row a prompt, zeros allowed, so that rows of
unequal length are padded with zeros. It returns float64 of shape [...] with NaN where the estimator is
undefined. "Unbiased" means: over independent attempts at the prompt, whatever the accuracy; the plug-in
form 1 - sum (c/n)^2 is not offered, because it falls when only the accuracy falls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from modebench.analysis.pass_at_k import FloatArray, IntArray, draw_none, pass_at_k


def _checked(counts: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Counts as int64 [..., M] and their sums n [...]."""
    array = np.atleast_1d(np.asarray(counts))
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"counts must be integers, got {array.dtype}")
    array = array.astype(np.int64)
    if np.any(array < 0):
        raise ValueError("counts must not be negative")
    return array, array.sum(axis=-1)


def _checked_attempts(correct: IntArray, attempts: npt.ArrayLike) -> IntArray:
    total = np.broadcast_to(np.asarray(attempts, dtype=np.int64), correct.shape)
    if np.any(total < correct):
        raise ValueError("more correct answers than attempts")
    return total


def _ratio(numerator: npt.ArrayLike, denominator: npt.ArrayLike) -> FloatArray:
    """numerator / denominator; NaN where the denominator is not positive."""
    top, bottom = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0))


def _undefined(where: npt.ArrayLike) -> FloatArray:
    """NaN where the condition holds, else 0: added to a value, it blanks the undefined entries."""
    return np.where(where, np.nan, 0.0)


def _same_pairs(counts: IntArray) -> IntArray:
    """Ordered pairs of correct answers in the same mode: sum c(c - 1)."""
    return np.asarray((counts * (counts - 1)).sum(axis=-1))


def pcmd(counts: npt.ArrayLike) -> FloatArray:
    """Pairwise correct-mode diversity: the chance that two correct answers are different solutions.

    PCMD = 1 - sum c_m (c_m - 1) / (n (n - 1)); the unbiased Gini-Simpson index,
    Simpson 1949 (Nature 163:688), Hurlbert 1971 (Ecology 52:577). Needs n >= 2.

    >>> float(pcmd([3, 2, 2, 1]))  # 1 - (6 + 2 + 2 + 0) / 56
    0.8214285714285714
    >>> float(pcmd([1]))
    nan
    """
    c, n = _checked(counts)
    return 1.0 - _ratio(_same_pairs(c), n * (n - 1))


def pcmd_variance(counts: npt.ArrayLike) -> FloatArray:
    """Sampling variance of one prompt's PCMD: how far another n correct answers would move it.

    V = 2 / ((n - 2)(n - 3)) * [l2 + 2 (n - 2) l3 - (2 n - 3) l2^2] with l2 = sum c(c-1) / n(n-1) and
    l3 = sum c(c-1)(c-2) / n(n-1)(n-2); the unbiased estimator of Tiffeau-Mayer 2023, arXiv:2310.03439.
    An unbiased variance can come out negative; it is cut off at 0. Needs n >= 4.

    >>> round(float(pcmd_variance([4, 4])), 6)  # l2 = 3/7, l3 = 1/7: 1/15 * (21 + 84 - 117) / 49 < 0
    0.0
    >>> round(float(pcmd_variance([5, 2, 1])), 6)  # l2 = 22/56, l3 = 60/336
    0.035289
    """
    c, n = _checked(counts)
    l2 = _ratio(_same_pairs(c), n * (n - 1))
    l3 = _ratio((c * (c - 1) * (c - 2)).sum(axis=-1), n * (n - 1) * (n - 2))
    inner = l2 + 2 * (n - 2) * l3 - (2 * n - 3) * l2**2
    variance = _ratio(2 * inner, np.where(n >= 4, (n - 2) * (n - 3), 0))
    return np.asarray(np.maximum(variance, 0.0))


def distinct_pair_rate(counts: npt.ArrayLike, attempts: npt.ArrayLike) -> FloatArray:
    """The chance that two attempts are both correct and different solutions.

    [n (n - 1) - sum c (c - 1)] / (K (K - 1)): a U-statistic, unbiased for q^2 * PCMD at accuracy q, and
    defined for every prompt with K >= 2, so it needs no choice of "eligible" prompts.

    Args:
        counts: [..., M].
        attempts: K, broadcasts to [...].

    Raises:
        ValueError: more correct answers than attempts.

    >>> float(distinct_pair_rate([2, 1], attempts=5))  # (6 - 2) / 20
    0.2
    """
    c, n = _checked(counts)
    k = _checked_attempts(n, attempts)
    return _ratio(n * (n - 1) - _same_pairs(c), k * (k - 1))


def modes_at_k(counts: npt.ArrayLike, attempts: npt.ArrayLike, k: int) -> FloatArray:
    """Expected number of distinct correct solutions in k attempts.

    sum_m [1 - C(K - c_m, k) / C(K, k)]: rarefaction over all attempts, wrong ones included
    (Hurlbert 1971, Ecology 52:577). modes@1 is the accuracy. NaN where K < k.

    >>> float(modes_at_k([2, 1], attempts=4, k=2))  # (1 - 1/6) + (1 - 3/6)
    1.3333333333333335
    """
    c, n = _checked(counts)
    total = _checked_attempts(n, attempts)
    missed = draw_none(c, total[..., None], k)
    return np.asarray((1.0 - missed).sum(axis=-1) + _undefined(total < k))


def rarefied_modes(counts: npt.ArrayLike, r: int) -> FloatArray:
    """Expected number of distinct solutions among r correct answers: richness at equal correct counts.

    sum_m [1 - C(n - c_m, r) / C(n, r)] (Hurlbert 1971, Ecology 52:577). rarefied_modes(2) = 1 + PCMD.
    NaN where n < r.

    >>> round(float(rarefied_modes([4, 4], 3)), 6)
    1.857143
    """
    c, n = _checked(counts)
    return modes_at_k(c, n, r)


def hill_number(counts: npt.ArrayLike, order: float) -> FloatArray:
    """Effective number of modes of a given order, plug-in.

    (sum p^q)^(1/(1-q)), p = c/n; order 0 counts modes, order 1 is exp(entropy), order 2 is 1/sum p^2
    (Hill 1973, Ecology 54:427; Jost 2006, Oikos 113:363). Biased low at small n, the more so the lower the
    order, so compare it only at equal n; needs n >= 1.

    Raises:
        ValueError: a negative order.

    >>> [round(float(hill_number([2, 1, 1], q)), 4) for q in (0, 1, 2)]
    [3.0, 2.8284, 2.6667]
    """
    if order < 0:
        raise ValueError(f"the order must not be negative, got {order}")
    c, n = _checked(counts)
    p = _ratio(c, n[..., None])
    if order == 1:
        return np.asarray(np.exp(entr(p).sum(axis=-1))) + _undefined(n < 1)
    powers = np.where(c > 0, p**order, 0.0).sum(axis=-1)
    return np.asarray(np.where(n < 1, 1.0, powers) ** (1 / (1 - order))) + _undefined(n < 1)


def good_turing_coverage(counts: npt.ArrayLike) -> FloatArray:
    """Share of the model's correct answers that fall in modes already seen.

    1 - f_1 / n (Good 1953, Biometrika 40:237): unbiased for the coverage that n - 1 answers reach.
    Needs n >= 2.

    >>> float(good_turing_coverage([5, 2, 1]))
    0.875
    """
    c, n = _checked(counts)
    return 1.0 - _ratio((c == 1).sum(axis=-1), np.where(n >= 2, n, 0))


def chao1(counts: npt.ArrayLike) -> FloatArray:
    """Lower bound for the number of modes that the model can produce at all.

    S + (n - 1)/n * f_1^2 / (2 f_2), and S + (n - 1)/n * f_1 (f_1 - 1) / 2 when f_2 = 0
    (Chao 1984, Scand. J. Stat. 11:265). Needs n >= 2.

    >>> float(chao1([2, 1, 1]))  # 3 + 3/4 * 4/2
    4.5
    """
    c, n = _checked(counts)
    f1, f2 = (c == 1).sum(axis=-1), (c == 2).sum(axis=-1)
    unseen = np.where(f2 > 0, f1**2 / np.maximum(2 * f2, 1), f1 * (f1 - 1) / 2)
    return np.asarray((c > 0).sum(axis=-1) + _ratio(n - 1, np.where(n >= 2, n, 0)) * unseen)


def certified_coverage(found: npt.ArrayLike, modes: npt.ArrayLike) -> FloatArray:
    """Share of the existing modes that were found, where the existing ones are enumerated.

    Args:
        found: distinct correct modes found that stand in the enumeration.
        modes: number of existing modes, float with NaN where unknown.

    Returns:
        min(found, modes) / modes in [0, 1]; NaN where the number is unknown or not positive. More found
        than exist means that a key outside the enumeration came in: the excess never lifts the share.

    >>> certified_coverage([2, 9, 1], [8, 8, float("nan")]).tolist()
    [0.25, 1.0, nan]
    """
    existing = np.asarray(modes, dtype=np.float64)
    known = np.where(existing > 0, existing, 0.0)
    return _ratio(np.minimum(np.asarray(found, dtype=np.float64), known), known)


def effective_modes(mean_pcmd: npt.ArrayLike) -> FloatArray:
    """Number of equally likely modes that would give this mean PCMD: 1 / (1 - PCMD).

    The numbers equivalent of the mean (Jost 2007, Ecology 88:2427). Apply it after averaging over prompts:
    per prompt it is infinite whenever all correct answers differ. NaN at PCMD = 1.

    >>> effective_modes([0.0, 0.75, 1.0]).tolist()
    [1.0, 4.0, nan]
    """
    return _ratio(1.0, 1.0 - np.asarray(mean_pcmd, dtype=np.float64))


def prompt_diversity(
    counts: npt.ArrayLike, attempts: npt.ArrayLike, ks: Sequence[int]
) -> dict[str, FloatArray]:
    """Every per-prompt estimator that a cell averages, by its column name.

    Args:
        counts: [P, M].
        attempts: K per prompt, [P].
        ks: the k of pass@k and modes@k.

    Returns:
        column name -> float64 [P].

    >>> round(float(prompt_diversity([[2, 1]], [4], ks=(2,))["modes@2"][0]), 4)
    1.3333
    """
    c, n = _checked(counts)
    columns = {f"pass@{k}": pass_at_k(n, attempts, k) for k in ks}
    columns |= {f"modes@{k}": modes_at_k(c, attempts, k) for k in ks}
    columns |= {
        "distinct_pair_rate": distinct_pair_rate(c, attempts),
        "pcmd": pcmd(c),
        "pcmd_variance": pcmd_variance(c),
        "hill_0": hill_number(c, 0),
        "hill_1": hill_number(c, 1),
        "hill_2": hill_number(c, 2),
        "coverage_good_turing": good_turing_coverage(c),
        "chao1": chao1(c),
    }
    return columns
