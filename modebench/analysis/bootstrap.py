"""Bootstrap intervals of means over prompts: every metric of a cell from one set of draws.

A draw gives each of the P prompts a count, how often it was drawn; the mean of a metric in that draw is the
ratio of two sums, (counts @ values) / (counts @ defined), so all draws of all metrics are two matrix
products. A prompt where a metric is undefined stays in the draw and adds to neither sum: the number of
prompts that define a metric is as uncertain as it really is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from modebench.analysis.intervals import Interval, tail_of
from modebench.analysis.pass_at_k import FloatArray, IntArray

_BLOCK = 1 << 20  # counts at a time


def bootstrap_intervals(
    values: npt.ArrayLike,
    *,
    draws: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    units: npt.ArrayLike | None = None,
    prompts: npt.ArrayLike | None = None,
) -> list[Interval]:
    """Means over prompts with bootstrap intervals.

    Over prompts alone: bias-corrected and accelerated limits (BCa; Efron 1987, JASA 82:171), prompts
    resampled whole.

    With `units` (the seed of each training run, say): units are resampled first and prompts second, and a
    row counts (draws of its unit) x (draws of its prompt). Runs of several seeds answer the *same* prompts,
    so a drawn prompt is drawn in every unit; prompts drawn anew within each unit would let their common
    difficulty average out over units, and the limits would be too narrow by up to the root of the number of
    units. The variance is at most too large (the product weights of Owen 2007, Ann. Appl. Stat. 1:386).
    Limits are plain percentiles: a handful of units carries no usable acceleration. With fewer than about
    five units the limits are too narrow whatever is drawn; a t interval over the means of the units is the
    safer one there.

    Args:
        values: [N, M] one row a prompt (and unit), one column a metric, NaN where undefined.
        draws: bootstrap samples.
        seed: seed of a generator that this call owns.
        level: confidence level.
        units: [N] labels of the units above the prompts; None for no such level.
        prompts: [N] labels of the prompts; None where every row is a prompt of its own.

    Returns:
        an interval a metric, n being its defined rows; limits NaN below two of them or below two units.

    Raises:
        ValueError: draws below 1, or a level outside (0, 1).

    >>> [interval] = bootstrap_intervals([[0.0], [1.0]] * 20, seed=1)
    >>> interval.value, interval.low < 0.4, interval.high > 0.6
    (0.5, True, True)
    """
    if draws < 1:
        raise ValueError(f"bootstrap draws must be at least 1, got {draws}")
    table = np.asarray(values, dtype=np.float64)
    rows, metrics = table.shape
    tail = tail_of(level)
    if not rows:
        return [Interval(np.nan, np.nan, np.nan, 0)] * metrics
    defined = ~np.isnan(table)
    n = defined.sum(axis=0)
    mean = np.divide(np.where(defined, table, 0.0).sum(axis=0), n, out=np.full(metrics, np.nan), where=n > 0)
    # Centred, so that prompts that all agree give a mean without rounding noise.
    centred = np.where(defined, table - np.where(n > 0, mean, 0.0), 0.0)
    if units is None:
        moved = _one_level(centred, defined, draws, np.random.default_rng(seed))
        enough = n >= 2
    else:
        unit = np.unique(np.asarray(units), return_inverse=True)[1]
        prompt = (
            np.arange(rows) if prompts is None else np.unique(np.asarray(prompts), return_inverse=True)[1]
        )
        moved = _two_levels(centred, defined, unit, prompt, draws, np.random.default_rng(seed))
        seen = np.zeros((int(unit.max(initial=-1)) + 1, metrics), dtype=np.bool_)
        np.logical_or.at(seen, unit, defined)
        enough = seen.sum(axis=0) >= 2
    intervals = []
    for column in range(metrics):
        low = high = np.nan
        if enough[column]:
            drawn = moved[:, column]
            drawn = drawn[~np.isnan(drawn)]
            at = _bca_quantiles(centred[:, column], drawn, tail) if units is None else [1 - tail, tail]
            low, high = mean[column] + np.quantile(drawn, at)
        intervals.append(Interval(float(mean[column]), float(low), float(high), int(n[column])))
    return intervals


def resampled_counts(rng: np.random.Generator, size: int, draws: int) -> Iterator[tuple[slice, FloatArray]]:
    """How often each of `size` things comes up in `size` draws with replacement, in blocks [draws, size]."""
    block = max(1, _BLOCK // max(size, 1))
    for start in range(0, draws, block):
        number = min(block, draws - start)
        drawn = rng.integers(size, size=(number, size))
        drawn += np.arange(number)[:, None] * size
        counts = np.bincount(drawn.ravel(), minlength=number * size).reshape(number, size)
        yield slice(start, start + number), counts.astype(np.float64)


def _one_level(
    centred: FloatArray, defined: npt.NDArray[np.bool_], draws: int, rng: np.random.Generator
) -> FloatArray:
    """[draws, M] deviations of the resampled means from the mean; NaN where no defined prompt was drawn."""
    both = np.concatenate([centred, defined], axis=1)
    sums = np.empty((draws, both.shape[1]))
    for where, counts in resampled_counts(rng, len(centred), draws):
        sums[where] = counts @ both
    return _ratios(sums)


def _two_levels(
    centred: FloatArray,
    defined: npt.NDArray[np.bool_],
    unit: IntArray,
    prompt: IntArray,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """As `_one_level`, with counts of units and of prompts multiplied."""
    units, prompts = int(unit.max(initial=-1)) + 1, int(prompt.max(initial=-1)) + 1
    both = np.concatenate([centred, defined], axis=1)
    dense = np.zeros((prompts, units, both.shape[1]))
    np.add.at(dense, (prompt, unit), both)
    flat = dense.reshape(prompts, -1)
    chosen = rng.multinomial(units, np.full(units, 1 / units), size=draws).astype(np.float64)
    sums = np.empty((draws, both.shape[1]))
    for where, counts in resampled_counts(rng, prompts, draws):
        per_unit = (counts @ flat).reshape(len(counts), units, -1)
        sums[where] = np.einsum("bu,bum->bm", chosen[where], per_unit)
    return _ratios(sums)


def _ratios(sums: FloatArray) -> FloatArray:
    total, number = np.split(sums, 2, axis=1)
    return np.asarray(np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0))


def _bca_quantiles(centred: FloatArray, moved: FloatArray, tail: float) -> FloatArray:
    """Which quantiles of the bootstrap deviations are the BCa limits (Efron 1987).

    The influence of a prompt on a mean over defined prompts is its centred value, 0 where undefined, so
    the acceleration is a ratio of their moments.
    """
    spread = float((centred**2).sum())
    if spread <= 1e-24 * centred.size:
        return np.array([1 - tail, tail])
    acceleration = float((centred**3).sum()) / (6 * spread**1.5)
    tied = np.abs(moved) <= 1e-12
    below = float(np.mean(np.where(tied, 0.5, moved < 0)))
    shift = float(ndtri(np.clip(below, 1 / moved.size, 1 - 1 / moved.size)))
    z = shift + ndtri(np.array([1 - tail, tail]))
    return np.asarray(ndtr(shift + z / (1 - acceleration * z)))
