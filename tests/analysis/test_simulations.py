"""What the estimators and intervals do on data whose truth is known; minutes, so `make test-slow`."""

from __future__ import annotations

import numpy as np
import pytest

from modebench.analysis import diversity as d
from modebench.analysis.bootstrap import bootstrap_intervals
from modebench.analysis.intervals import Interval, mean_interval, rate_interval, wilson

pytestmark = pytest.mark.slow


def answers(rng, prompts, samples, accuracy, modes):
    """Counts of the modes, [prompts, modes], of answers that are correct with this chance [prompts]."""
    correct = rng.binomial(samples, accuracy, size=prompts)
    return rng.multinomial(correct, np.full(modes, 1 / modes), size=prompts)


@pytest.mark.parametrize("accuracy", [0.1, 0.5, 1.0])
def test_pcmd_of_four_even_modes_does_not_depend_on_accuracy(accuracy):
    counts = answers(np.random.default_rng(1), 200_000, 8, accuracy, 4)
    values = d.pcmd(counts)
    defined = values[~np.isnan(values)]
    assert abs(defined.mean() - 0.75) < 4 * defined.std() / np.sqrt(defined.size)
    # what the plug-in form would say: 1 - sum p^2 falls with the accuracy alone
    n = counts.sum(axis=1)
    plug_in = 1 - ((counts[n > 1] / n[n > 1, None]) ** 2).sum(axis=1)
    assert plug_in.mean() == pytest.approx({0.1: 0.40, 0.5: 0.55, 1.0: 0.66}[accuracy], abs=0.01)


def covered(make_interval, truth, draws=2000, seed=0):
    """Share of the intervals that hold the truth."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(draws):
        interval = make_interval(rng)
        hits += interval.low <= truth <= interval.high
    return hits / draws


def rates(rng, prompts, mean, samples=8, concentration=2.0):
    """Accuracies of prompts of unequal difficulty, each seen through its samples, [prompts]."""
    chance = rng.beta(mean * concentration, (1 - mean) * concentration, size=prompts)
    return rng.binomial(samples, chance) / samples


# (prompts, accuracy) -> coverage of the Wilson interval on the effective sample size
@pytest.mark.parametrize(
    ("prompts", "mean", "low", "high"),
    [
        (128, 0.5, 0.93, 0.97),
        (128, 0.2, 0.93, 0.97),
        (128, 0.8, 0.93, 0.97),
        (30, 0.5, 0.92, 0.97),
        (30, 0.2, 0.90, 0.97),
        (30, 0.05, 0.86, 0.92),
        (30, 0.02, 0.93, 0.99),
        (128, 0.02, 0.89, 0.94),
    ],
)
def test_wilson_coverage(prompts, mean, low, high):
    coverage = covered(lambda rng: rate_interval(rates(rng, prompts, mean), prompts * 8), mean)
    assert low <= coverage <= high


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_wilson_at_the_ends(rate):
    """No width is ever zero: at T=30 a rate of 0 reaches to 11 %, as if each prompt were one draw."""
    interval = rate_interval(np.full(30, rate), 240)
    assert interval.high - interval.low == pytest.approx(0.1135, abs=1e-4)
    assert rate in (interval.low, interval.high)


def diversity_values(rng, prompts, accuracy=0.5):
    """PCMD of prompts with 2, 4 or 8 even modes, [prompts]; the truth is the mean of 1/2, 3/4, 7/8."""
    modes = rng.choice([2, 4, 8], size=prompts)
    return np.concatenate([d.pcmd(answers(rng, int((modes == m).sum()), 8, accuracy, m)) for m in (2, 4, 8)])


TRUE_PCMD = (1 / 2 + 3 / 4 + 7 / 8) / 3


@pytest.mark.parametrize(("prompts", "low", "high"), [(128, 0.93, 0.97), (30, 0.92, 0.97)])
def test_t_coverage_of_pcmd(prompts, low, high):
    coverage = covered(lambda rng: mean_interval(diversity_values(rng, prompts), 0.95, 0, 1), TRUE_PCMD)
    assert low <= coverage <= high


@pytest.mark.parametrize(("prompts", "low", "high"), [(128, 0.93, 0.97), (30, 0.90, 0.97)])
def test_bootstrap_coverage_of_pcmd(prompts, low, high):
    def interval(rng):
        values = diversity_values(rng, prompts)
        return bootstrap_intervals(values[:, None], draws=1000, seed=int(rng.integers(1 << 30)))[0]

    coverage = covered(interval, TRUE_PCMD, draws=1000)
    assert low <= coverage <= high


def test_collapse_everywhere_keeps_a_width():
    """All of 30 prompts at PCMD 0: the limits are those of a rate of 0 in 30."""
    interval = mean_interval(np.zeros(30), 0.95, 0, 1)
    assert interval.low == 0
    assert interval.high == pytest.approx(0.1135, abs=1e-4)


def test_intervals_over_samples_would_be_far_too_narrow():
    """Wilson over T*K samples as if independent; the reason why prompts are the unit here."""

    def pooled(rng):
        mean = rates(rng, 128, 0.5, samples=16).mean()
        low, high = wilson(mean, 128 * 16)
        return Interval(float(mean), float(low), float(high), 128)

    coverage = covered(pooled, 0.5)
    assert 0.5 < coverage < 0.7
