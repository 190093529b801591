"""The sign-flip test of paired differences, and Holm's adjustment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from modebench.analysis.pass_at_k import FloatArray

# Up to so many prompts that differ, all signs are listed: 2^16 of them.
_MOST_LISTED = 16
_BLOCK = 1 << 22


def sign_flip_p(differences: FloatArray, draws: int = 10_000, seed: int = 0) -> FloatArray:
    """Two-sided p-values of the hypothesis that differences are as likely to be +d as -d.

    If A and B are exchangeable on every prompt, each difference could as well have had the other sign
    (Fisher 1935; Pitman 1937). The p-value is the share of sign patterns whose absolute sum reaches the one
    seen. Prompts that do not differ change nothing. With at most 16 that do, all patterns are listed and the
    p-value is exact; else `draws` random ones give (1 + b) / (1 + draws) (Phipson & Smyth 2010,
    doi:10.2202/1544-6115.1585).

    Args:
        differences: [P, M] one row a prompt, one column a metric; 0 or NaN where there is none.
        draws: random patterns.
        seed: seed of a generator that this call owns.

    Returns:
        [M] p-values in (0, 1].

    >>> sign_flip_p(np.array([[1.0], [2.0], [3.0], [-0.5]])).tolist()  # |sum| >= 5.5 in 4 of 16 patterns
    [0.25]
    """
    table = np.nan_to_num(np.asarray(differences, dtype=np.float64))
    moving = (table != 0).sum(axis=0)
    p = np.ones(table.shape[1])
    for column in np.flatnonzero((moving > 0) & (moving <= _MOST_LISTED)):
        values = table[table[:, column] != 0, column]
        signs = 1.0 - 2.0 * (np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1)
        p[column] = np.mean(_reaches(signs @ values[:, None], values[:, None]))
    many = np.flatnonzero(moving > _MOST_LISTED)
    if len(many):
        p[many] = _drawn(table[:, many], draws, np.random.default_rng(seed))
    return p


def _drawn(table: FloatArray, draws: int, rng: np.random.Generator) -> FloatArray:
    block = max(1, _BLOCK // len(table))
    reached = np.zeros(table.shape[1])
    for start in range(0, draws, block):
        signs = 1.0 - 2.0 * rng.integers(2, size=(min(block, draws - start), len(table)), dtype=np.int8)
        reached += _reaches(signs @ table, table).sum(axis=0)
    return np.asarray((1 + reached) / (1 + draws))


def _reaches(sums: FloatArray, table: FloatArray) -> npt.NDArray[np.bool_]:
    """Which sums [B, M] are as far from 0 as the one seen, rounding aside."""
    slack = 1e-12 * np.abs(table).sum(axis=0)
    return np.asarray(np.abs(sums) >= np.abs(table.sum(axis=0)) - slack)


def holm(p_values: Sequence[float]) -> FloatArray:
    """p-values adjusted for their number, so that the family-wise error is controlled.

    Holm 1979 (Scand. J. Stat. 6:65): the i-th smallest of m becomes the running maximum of
    (m - i + 1) p_(i), at most 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
