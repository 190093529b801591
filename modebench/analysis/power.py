"""How many prompts and samples a difference needs to be seen.

Two models answer the same T prompts with K samples each. The mean difference of a metric over prompts has
the variance (omega^2 + s_A^2 + s_B^2) / T: omega^2 is how much the prompts' true differences vary, s^2 the
sampling noise of one prompt's estimate. A two-sided test at level alpha sees a true difference delta with
probability `power` when

    T = (z_{1 - alpha/2} + z_power)^2 (omega^2 + s_A^2 + s_B^2) / delta^2

(Miller 2024, arXiv:2411.00640, section 5, where s^2 = sigma^2 / K for a mean of K samples).

* accuracy: s^2 = E[q (1 - q)] / K, with q (1 - q) of each prompt estimated without bias by
  K' / (K' - 1) * p (1 - p) from K' pilot samples.
* PCMD: n of the K samples are correct and s^2 is the variance of a U-statistic of n draws,
  [2 a + 4 (n - 2) b] / (n (n - 1)) with a = l2 - l2^2, b = l3 - l2^2 and l_r the chance that r correct
  samples share their mode (Tiffeau-Mayer 2023, arXiv:2310.03439). Only prompts with two correct samples on
  both sides enter, so T is divided by their share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import binom

from modebench.analysis.long_table import distinct_counts, over_counts, read_long_table
from modebench.analysis.pass_at_k import FloatArray, IntArray

MetricName = Literal["accuracy", "pcmd"]
METRICS: tuple[MetricName, ...] = ("accuracy", "pcmd")
_LEAST_PROMPTS = 10


@dataclass(frozen=True)
class Power:
    """What a comparison needs.

    Attributes:
        metric: ``accuracy`` or ``pcmd``.
        delta: the true difference to be seen.
        samples: K, samples a prompt of each model.
        prompts: T, prompts to ask; for PCMD enough that their eligible share suffices.
        eligible: share of the prompts on which both sides define the metric.
        between_variance: omega^2, variance over prompts of the true difference.
        sampling_variance: s_A^2 + s_B^2 at K samples.
        alpha: level of the two-sided test.
        power: chance to see the difference.
    """

    metric: str
    delta: float
    samples: int
    prompts: int
    eligible: float
    between_variance: float
    sampling_variance: float
    alpha: float
    power: float


def prompts_needed(
    delta: float,
    between_variance: float,
    sampling_variance: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
) -> float:
    """Prompts that a difference of means over paired prompts needs; not rounded.

    Args:
        delta: the true difference, not 0.
        between_variance: omega^2, variance over prompts of the true difference.
        sampling_variance: s_A^2 + s_B^2, what sampling adds to one prompt's difference.
        alpha: level of the two-sided test.
        power: chance to see the difference.

    Raises:
        ValueError: delta is 0, a variance is negative, or a chance lies outside (0, 1).

    >>> round(prompts_needed(0.03, 1 / 9, 0.0))  # the worked example of Miller 2024, section 5: about 969
    969
    """
    if delta == 0 or not np.isfinite(delta):
        raise ValueError(f"the difference to be seen must be a number other than 0, got {delta}")
    if between_variance < 0 or sampling_variance < 0:
        raise ValueError(f"variances must not be negative, got {between_variance} and {sampling_variance}")
    if not (0 < alpha < 1 and 0 < power < 1):
        raise ValueError(f"alpha and power lie between 0 and 1, got {alpha} and {power}")
    z = float(ndtri(1 - alpha / 2) + ndtri(power))
    return z**2 * (between_variance + sampling_variance) / delta**2


@dataclass(frozen=True)
class Pilot:
    """What a pilot run says of its prompts. P prompts.

    Attributes:
        accuracy: share of correct samples, [P].
        attempts: graded samples, at least 2, [P].
        noise_a: estimate of a = l2 - l2^2, NaN below four correct samples, [P].
        noise_b: estimate of b = l3 - l2^2, likewise, [P].
        pcmd: [P].
        pcmd_variance: unbiased sampling variance of pcmd at the pilot's own samples, [P].
    """

    accuracy: FloatArray
    attempts: FloatArray
    noise_a: FloatArray
    noise_b: FloatArray
    pcmd: FloatArray
    pcmd_variance: FloatArray


def pilot_of(samples: pd.DataFrame) -> Pilot:
    """The estimates of a long table of samples; prompts with fewer than two graded samples are left out."""
    table = read_long_table(
        samples, [name for name in ("domain", "level", "seed") if name in samples] or "task_id"
    )
    graded = table.per_prompt(table.graded)
    found = table.mode >= 0
    row, count, _ = distinct_counts(table.prompt[found], table.mode[found])
    moments = over_counts(row, count, len(graded), lambda dense, _: _moments(dense))
    keep = graded >= 2
    correct = table.per_prompt(found)
    return Pilot(
        accuracy=(correct / np.maximum(graded, 1))[keep],
        attempts=graded[keep].astype(np.float64),
        **{name: values[keep] for name, values in moments.items()},
    )


def _moments(counts: IntArray) -> dict[str, FloatArray]:
    """Unbiased a, b, PCMD and its variance from mode counts [B, M]; NaN where there are too few."""
    n = counts.sum(axis=1).astype(np.float64)
    c = counts.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        l2 = (c * (c - 1)).sum(axis=1) / (n * (n - 1))
        l3 = (c * (c - 1) * (c - 2)).sum(axis=1) / (n * (n - 1) * (n - 2))
        # Not cut off at 0 as a reported variance is: an average of these has to be unbiased.
        variance = 2 * (l2 + 2 * (n - 2) * l3 - (2 * n - 3) * l2**2) / ((n - 2) * (n - 3))
    square = l2**2 - variance  # unbiased for the square of l2's expectation
    few = np.where(n >= 4, 0.0, np.nan)
    return {
        "noise_a": l2 - square + few,
        "noise_b": l3 - square + few,
        "pcmd": np.where(n >= 2, 1 - l2, np.nan),
        "pcmd_variance": variance + few,
    }


def power(
    delta: float,
    metric: MetricName = "pcmd",
    *,
    pilot: pd.DataFrame | None = None,
    between_variance: float | None = None,
    sampling_variance: float | None = None,
    samples: int = 32,
    correlation: float = 0.5,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Power:
    """Prompts that a comparison needs, with the variances of a pilot run or with given ones.

    From a pilot, both models are taken to vary over prompts as it does. How alike they find the prompts
    can't be known from one of them: omega^2 = 2 (1 - correlation) tau^2, with tau^2 the variance over
    prompts of the pilot's true values.

    Args:
        delta: the true difference to be seen, in units of the metric.
        metric: ``accuracy`` or ``pcmd``.
        pilot: long table of samples of one model on the prompts in question.
        between_variance: without a pilot: omega^2.
        sampling_variance: without a pilot: sigma^2 of one sample of one model, divided by K here.
        samples: K, samples a prompt of each model in the planned comparison.
        correlation: of the two models' true values over prompts, in [-1, 1].
        alpha: level of the two-sided test.
        power: chance to see the difference.

    Raises:
        ValueError: an unknown metric, a bad number, neither a pilot nor both variances, or a pilot with too
            few usable prompts.

    >>> power(0.05, "accuracy", between_variance=0.1, sampling_variance=0.2, samples=8).prompts
    473
    """
    if metric not in METRICS:
        raise ValueError(f"power is known for {' and '.join(METRICS)}, not {metric!r}")
    if samples < 2:
        raise ValueError(f"samples must be at least 2, got {samples}")
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation lies between -1 and 1, got {correlation}")
    eligible = 1.0
    if pilot is not None:
        if between_variance is not None or sampling_variance is not None:
            raise ValueError("variances are either given or those of a pilot, not both")
        found = pilot_of(pilot)
        variance, noise, eligible = (_of_accuracy if metric == "accuracy" else _of_pcmd)(found, samples)
        between = 2 * (1 - correlation) * variance
    elif between_variance is not None and sampling_variance is not None:
        between, noise = between_variance, sampling_variance / samples
    else:
        raise ValueError("a pilot is needed, or both the variance between prompts and that of sampling")
    # The test divides by an estimated deviation: z^2 / 2 more prompts (Guenther 1981, Am. Stat. 35:243).
    needed = prompts_needed(delta, between, 2 * noise, alpha=alpha, power=power)
    prompts = math.ceil((needed + float(ndtri(1 - alpha / 2)) ** 2 / 2) / eligible)
    return Power(metric, delta, samples, prompts, eligible, between, 2 * noise, alpha, power)


def _enough(prompts: int, what: str) -> None:
    if prompts < _LEAST_PROMPTS:
        raise ValueError(f"the pilot has {prompts} prompts with {what}; at least {_LEAST_PROMPTS} are needed")


def _of_accuracy(pilot: Pilot, samples: int) -> tuple[float, float, float]:
    """Variance of the true accuracies, sampling variance at K samples, eligible share."""
    _enough(len(pilot.accuracy), "two graded samples")
    p, k = pilot.accuracy, pilot.attempts
    one = k / (k - 1) * p * (1 - p)
    variance = float(p.var(ddof=1) - np.mean(one / k))
    return max(variance, 0.0), float(one.mean()) / samples, 1.0


def _of_pcmd(pilot: Pilot, samples: int) -> tuple[float, float, float]:
    """As `_of_accuracy`, for PCMD; eligible where both models have two correct samples."""
    usable = ~np.isnan(pilot.noise_a)
    _enough(int(usable.sum()), "four correct samples")
    variance = float(pilot.pcmd[usable].var(ddof=1) - pilot.pcmd_variance[usable].mean())
    n = np.maximum(samples * pilot.accuracy[usable], 2.0)
    noise = (2 * pilot.noise_a[usable] + 4 * (n - 2) * pilot.noise_b[usable]) / (n * (n - 1))
    eligible = float(np.mean(binom.sf(1, samples, pilot.accuracy) ** 2))
    return max(variance, 0.0), max(float(noise.mean()), 0.0), eligible
