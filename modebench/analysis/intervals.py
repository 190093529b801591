"""Confidence intervals over prompts.

The unit of observation is the prompt. K samples of one prompt share its difficulty, so an interval that
treats P * K samples as independent is far too narrow; the spread of the P per-prompt means already contains
the sampling noise (Miller 2024, arXiv:2411.00640).

Rates get a Wilson interval on an effective sample size, everything else a t interval. All functions are
elementwise over arrays of cells; undefined limits are NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

from modebench.analysis.pass_at_k import FloatArray, IntArray

MIN_RUNS = 3
"""Runs from which there is an interval over them: with two, t limits stand 12.7 standard errors away."""


class Interval(NamedTuple):
    """A mean over prompts with its limits.

    Attributes:
        value: mean over the prompts where the metric is defined; NaN when there are none.
        low: lower limit; NaN when undefined.
        high: upper limit; NaN when undefined.
        n: prompts that enter the mean.
    """

    value: float
    low: float
    high: float
    n: int


class Limits(NamedTuple):
    """Lower and upper limits, arrays of one shape."""

    low: FloatArray
    high: FloatArray


def tail_of(level: float) -> float:
    """The quantile at which the upper limit of a two-sided interval stands.

    Raises:
        ValueError: a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"an interval level lies between 0 and 1, got {level}")
    return 0.5 + level / 2


def effective_n(
    rate: npt.ArrayLike,
    standard_error: npt.ArrayLike,
    prompts: npt.ArrayLike,
    samples: npt.ArrayLike = np.inf,
) -> FloatArray:
    """How many independent yes-or-no draws a mean of per-prompt rates is worth.

    n_eff = p (1 - p) / SE^2 (Kish 1965; Korn & Graubard 1998, Survey Methodology 24:193).

    * Where SE is 0 or unknown (all prompts alike, so always at p = 0 and p = 1; or a single prompt) the
      formula gives nothing, and n_eff is the number of prompts. Samples of one prompt may agree perfectly,
      so counting more than one draw a prompt is not warranted there.
    * It is at most the number of samples: P prompts with K draws each are never worth more than P * K.

    Args:
        rate: mean of the per-prompt rates, in [0, 1].
        standard_error: standard error of that mean over prompts; NaN where unknown.
        prompts: number of prompts.
        samples: number of samples behind them; infinite for no upper limit.

    >>> effective_n([0.5, 0.0], [0.05, 0.0], prompts=40, samples=320).round(6).tolist()
    [100.0, 40.0]
    """
    p, se, count, most = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (rate, standard_error, prompts, samples))
    )
    # Sums of equal floats leave a standard error of rounding size, which is a zero.
    known = se > 1e-12
    size = np.divide(p * (1 - p), se**2, out=count.astype(np.float64), where=known)
    return np.where(known, np.minimum(size, most), count)


def wilson(rate: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Limits:
    """Wilson's score interval for a rate seen on n (effective) draws.

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)  (Wilson 1927, JASA 22:209).

    Returns:
        limits within [0, 1] and around `rate`; NaN where n is not positive or the rate is NaN.

    >>> [round(float(x), 4) for x in wilson(0.0, 40)]
    [0.0, 0.0876]
    """
    p, size = np.broadcast_arrays(np.asarray(rate, np.float64), np.asarray(n, np.float64))
    draws = np.where(size > 0, size, np.nan)
    z2 = float(ndtri(tail_of(level))) ** 2
    centre = p + z2 / (2 * draws)
    half = np.sqrt(np.maximum(z2 * (p * (1 - p) / draws + z2 / (4 * draws**2)), 0))
    scale = 1 + z2 / draws
    low, high = (centre - half) / scale, (centre + half) / scale
    # Rounding must not push a limit past the rate itself or out of [0, 1].
    return Limits(np.clip(np.minimum(low, p), 0, 1), np.clip(np.maximum(high, p), 0, 1))


def t_limits(
    mean: npt.ArrayLike,
    standard_error: npt.ArrayLike,
    n: npt.ArrayLike,
    level: float = 0.95,
    lower: npt.ArrayLike = -np.inf,
    upper: npt.ArrayLike = np.inf,
) -> Limits:
    """Student's t interval of a mean over n prompts, kept inside the metric's range.

    mean -+ t_{n-1} SE, cut off at `lower` and `upper`. When every prompt stands at the same end of the range
    (PCMD 0 everywhere, say) SE is 0 and the interval would have no width, as if no prompt could ever differ.
    The mean is then treated as a rate of n draws on that range (Wilson), its worst case.

    Returns:
        limits; NaN where n < 2.

    >>> [round(float(x), 4) for x in t_limits(0.5, 0.1, 5, lower=0, upper=1)]
    [0.2224, 0.7776]
    >>> [round(float(x), 4) for x in t_limits(0.0, 0.0, 40, lower=0, upper=1)]
    [0.0, 0.0876]
    """
    value, se, count, least, most = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (mean, standard_error, n, lower, upper))
    )
    enough = count >= 2
    half = stdtrit(np.where(enough, count - 1, 1), tail_of(level)) * se
    low, high = np.maximum(value - half, least), np.minimum(value + half, most)
    width = most - least
    at_end = (value <= least) | (value >= most)
    flat = enough & at_end & (se <= 1e-12) & np.isfinite(width)
    if np.any(flat):
        base, span = np.where(flat, least, 0.0), np.where(flat, width, 1.0)
        worst = wilson(np.where(flat, (value - base) / span, np.nan), count, level)
        low = np.where(flat, base + span * worst.low, low)
        high = np.where(flat, base + span * worst.high, high)
    return Limits(np.where(enough, low, np.nan), np.where(enough, high, np.nan))


def _moments(values: npt.ArrayLike) -> tuple[FloatArray, float, float]:
    """Defined values, their mean and the standard error of the mean (NaN below two values)."""
    defined = np.asarray(values, dtype=np.float64)
    defined = defined[~np.isnan(defined)]
    n = defined.size
    mean = float(defined.mean()) if n else np.nan
    error = float(defined.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return defined, mean, error


def rate_interval(values: npt.ArrayLike, samples: float = np.inf, level: float = 0.95) -> Interval:
    """Mean of per-prompt rates with the Wilson interval on the effective sample size.

    Args:
        values: [P] rates in [0, 1], NaN where undefined.
        samples: total number of samples behind them, if known.
        level: confidence level.

    >>> rate_interval([0.0, 0.5, 1.0, float("nan")]).n
    3
    """
    defined, mean, error = _moments(values)
    low, high = wilson(mean, effective_n(mean, error, defined.size, samples), level)
    return Interval(mean, float(low), float(high), defined.size)


def mean_interval(
    values: npt.ArrayLike, level: float = 0.95, lower: float = -np.inf, upper: float = np.inf
) -> Interval:
    """Mean over prompts with the t interval.

    Args:
        values: [P], NaN where undefined.
        level: confidence level.
        lower: smallest possible value of the metric.
        upper: largest possible value of the metric.

    >>> round(mean_interval([0.2, 0.4, 0.6], lower=0, upper=1).low, 4)
    0.0
    """
    defined, mean, error = _moments(values)
    low, high = t_limits(mean, error, defined.size, level, lower, upper)
    return Interval(mean, float(low), float(high), defined.size)


def run_interval(
    values: npt.ArrayLike, level: float = 0.95, lower: float = -np.inf, upper: float = np.inf
) -> Interval:
    """Mean over training runs with the t interval, as `mean_interval`; limits only from `MIN_RUNS` runs on.

    >>> run_interval([0.2, 0.4])
    Interval(value=0.30000000000000004, low=nan, high=nan, n=2)
    """
    found = mean_interval(values, level, lower, upper)
    return found if found.n >= MIN_RUNS else found._replace(low=np.nan, high=np.nan)


def clustered_limits(values: FloatArray, label: IntArray, level: float, width: FloatArray) -> Limits:
    """t limits of the mean of each column, rows with one label being one observation.

    The mean of the defined rows is a ratio of sums over the G labels, S_g / N_g; with
    u_g = S_g - N_g mean, SE^2 = G / (G - 1) * sum u_g^2 / (sum N_g)^2 (the cluster-robust error; Miller 2024,
    arXiv:2411.00640, section 2.2), which with one row a label is the plain sd / sqrt(n). Columns where every
    label agrees get the worst case of a rate that no label has shown yet (Wilson at 0), so that the limits
    have width.

    Args:
        values: [Q, M], NaN where undefined.
        label: [Q].
        level: confidence level.
        width: [M] values lie in [-width, width].

    >>> limits = clustered_limits(np.array([[0.2], [0.4], [0.6]]), np.arange(3), 0.95, np.array([1.0]))
    >>> [round(float(x[0]), 4) for x in limits]  # 0.4 -+ 4.3027 * 0.2 / sqrt(3)
    [-0.0968, 0.8968]
    """
    mean, error, groups = clustered_error(values, label)
    return _with_width(mean, error, groups, level, width)


def _with_width(
    mean: npt.ArrayLike, error: npt.ArrayLike, n: npt.ArrayLike, level: float, width: npt.ArrayLike
) -> Limits:
    """t limits of means in [-width, width] over n observations that have some width where all agree."""
    value, se, count, most = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (mean, error, n, width))
    )
    low, high = t_limits(value, se, count, level, -most, most)
    flat = (count >= 2) & (se <= 1e-12) & np.isfinite(most)
    reach = np.where(flat, most, 0.0) * wilson(0.0, np.maximum(count, 1), level).high
    low = np.where(flat, np.maximum(value - reach, -most), low)
    return Limits(low, np.where(flat, np.minimum(value + reach, most), high))


def ratio_interval(
    total: FloatArray, weight: FloatArray, label: IntArray, level: float = 0.95, width: float = np.inf
) -> Interval:
    """A weighted mean, sum of totals over sum of weights, rows with one label being one observation.

    With S_g and W_g the sums over a label, R = sum S_g / sum W_g and u_g = S_g - R W_g, the error of the
    linearised ratio is SE^2 = n / (n - 1) * sum u_g^2 / (sum W_g)^2 (Cochran 1977, Sampling Techniques,
    section 6.3). A label of little weight tells little, so n is the effective number of labels,
    (sum W_g)^2 / sum W_g^2 (Kish 1965), also for the degrees of freedom of the t limits. With equal weights
    this is `clustered_limits`.

    Args:
        total: [Q] weight times value.
        weight: [Q] not negative.
        label: [Q].
        level: confidence level.
        width: values lie in [-width, width].

    Returns:
        the interval, n being the rows of positive weight; NaN without any weight, limits NaN below two
        effective labels.

    >>> found = ratio_interval(np.array([0.2, 0.4, 0.6]), np.ones(3), np.arange(3), width=1.0)
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.4, -0.0968, 0.8968)
    """
    rows = int((weight > 0).sum())
    if not rows:
        return Interval(np.nan, np.nan, np.nan, 0)
    sums, _ = sums_by_label(np.stack([total, weight], axis=1), label)
    whole = float(sums[:, 1].sum())
    value = float(sums[:, 0].sum()) / whole
    effective = whole**2 / float((sums[:, 1] ** 2).sum())
    rest = sums[:, 0] - value * sums[:, 1]
    # Rounding may leave an effective number a hair below a whole one.
    n = max(round(effective, 9), 1.0)
    error = np.sqrt(n / max(n - 1, 1e-9) * float((rest**2).sum())) / whole
    low, high = _with_width(value, error, n, level, width)
    return Interval(value, float(low), float(high), rows)


def clustered_error(values: FloatArray, label: IntArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Mean of the defined rows of each column, its cluster-robust error (see `clustered_limits`), and the
    number of labels with a defined row: [M] each."""
    sums, counts = sums_by_label(values, label)
    total, groups = counts.sum(axis=0), (counts > 0).sum(axis=0)
    mean = np.divide(sums.sum(axis=0), total, out=np.full(len(total), np.nan), where=total > 0)
    spread = ((sums - counts * np.where(total > 0, mean, 0.0)) ** 2).sum(axis=0)
    return mean, np.sqrt(groups / np.maximum(groups - 1, 1) * spread) / np.maximum(total, 1), groups


def sums_by_label(values: FloatArray, label: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums and numbers of the defined values of every label, [G, M]."""
    code = np.unique(label, return_inverse=True)[1]
    sums = np.zeros((int(code.max(initial=-1)) + 1, values.shape[1]))
    counts = np.zeros_like(sums)
    np.add.at(sums, code, np.nan_to_num(values))
    np.add.at(counts, code, ~np.isnan(values))
    return sums, counts


def mean_of_cells(values: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike) -> Interval:
    """Equal mean of independent cells, its limits recovered from theirs.

    With C cells of value v and lower limit l, L = mean - sqrt(sum (v - l)^2) / C, and likewise above: each
    side's variance is recovered from the cells' own intervals (MOVER; Zou & Donner 2008, Stat. Med.
    27:1693), so unsymmetric intervals stay unsymmetric.

    Returns:
        the interval with n = number of cells; the value is NaN when any cell's is, and so are the limits.

    >>> round(mean_of_cells([0.2, 0.4], [0.1, 0.3], [0.3, 0.5]).low, 4)
    0.2293
    """
    cells, least, most = (np.asarray(x, dtype=np.float64) for x in (values, low, high))
    if cells.size == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    mean = float(cells.mean())
    below, above = np.sqrt(np.sum((cells - least) ** 2)), np.sqrt(np.sum((most - cells) ** 2))
    return Interval(mean, mean - float(below) / cells.size, mean + float(above) / cells.size, int(cells.size))
