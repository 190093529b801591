"""The estimators against scikit-bio and scipy, and against drawing without replacement."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from skbio.diversity import alpha

from modebench.analysis import diversity as d
from modebench.analysis.intervals import mean_interval, t_limits, wilson
from modebench.analysis.pass_at_k import pass_at_k, pass_hat_k

some_counts = st.lists(st.integers(0, 12), min_size=1, max_size=10).filter(lambda c: sum(c) >= 2)
quiet = settings(deadline=None, max_examples=200)


@quiet
@given(some_counts)
def test_pcmd_is_the_finite_simpson_index(counts):
    assert float(d.pcmd(counts)) == pytest.approx(alpha.simpson(counts, finite=True), abs=1e-12)
    assert 1 - float(d.pcmd(counts)) == pytest.approx(alpha.dominance(counts, finite=True), abs=1e-12)


@quiet
@given(some_counts, st.sampled_from([0, 0.5, 1, 2, 3]))
def test_hill_numbers(counts, order):
    assert float(d.hill_number(counts, order)) == pytest.approx(alpha.hill(counts, order=order), rel=1e-12)


@quiet
@given(some_counts)
def test_hill_number_1_is_the_exponential_of_scipys_entropy(counts):
    assert float(d.hill_number(counts, 1)) == pytest.approx(np.exp(stats.entropy(counts)), rel=1e-12)


@quiet
@given(some_counts)
def test_coverage(counts):
    assert float(d.good_turing_coverage(counts)) == pytest.approx(alpha.goods_coverage(counts), abs=1e-12)


@quiet
@given(some_counts)
def test_chao1_up_to_the_factor_that_scikit_bio_leaves_out(counts):
    n, seen = sum(counts), sum(c > 0 for c in counts)
    ours = seen + (float(d.chao1(counts)) - seen) * n / (n - 1)
    assert ours == pytest.approx(alpha.chao1(counts, bias_corrected=False), rel=1e-12)


@quiet
@given(some_counts, st.integers(0, 20), st.integers(1, 12))
def test_at_k_estimators_are_hypergeometric(counts, wrong, k):
    total = sum(counts) + wrong
    if k > total:
        assert np.isnan(d.modes_at_k(counts, total, k))
        return
    right = sum(counts)
    missed = stats.hypergeom.pmf(0, total, np.array(counts), k)
    assert float(d.modes_at_k(counts, total, k)) == pytest.approx(float(np.sum(1 - missed)), abs=1e-10)
    none = stats.hypergeom.pmf(0, total, right, k)
    assert float(pass_at_k(right, total, k)) == pytest.approx(1 - none, abs=1e-12)
    every = stats.hypergeom.pmf(k, total, right, k)
    assert float(pass_hat_k(right, total, k)) == pytest.approx(every, abs=1e-12)


def test_rarefaction_is_the_mean_over_draws_without_replacement():
    counts = np.array([7, 4, 2, 1, 1])
    rng = np.random.default_rng(0)
    draws = rng.multivariate_hypergeometric(counts, 6, size=40_000)
    seen = (draws > 0).sum(axis=1)
    error = seen.std() / np.sqrt(len(seen))
    assert abs(float(d.rarefied_modes(counts, 6)) - seen.mean()) < 4 * error
    exact = sum(1 - comb(15 - c, 6) / comb(15, 6) for c in (7, 4, 2, 1, 1))
    assert float(d.rarefied_modes(counts, 6)) == pytest.approx(exact, rel=1e-14)


def test_modes_at_k_is_the_mean_over_draws_with_wrong_answers_among_them():
    counts = np.array([9, 3, 1, 19])  # the last are wrong answers
    draws = np.random.default_rng(1).multivariate_hypergeometric(counts, 8, size=40_000)
    seen = (draws[:, :3] > 0).sum(axis=1)
    assert abs(float(d.modes_at_k([9, 3, 1], 32, 8)) - seen.mean()) < 4 * seen.std() / 200


def test_pcmd_variance_is_unbiased_for_the_variance_of_pcmd():
    """Tiffeau-Mayer's estimator, averaged before it is cut off at 0, over many sets of 12 answers."""
    p = [0.5, 0.3, 0.1, 0.05, 0.05]
    counts = np.random.default_rng(2).multinomial(12, p, size=60_000)
    observed = np.var(d.pcmd(counts), ddof=1)
    same = (counts * (counts - 1)).sum(1) / 132
    l3 = (counts * (counts - 1) * (counts - 2)).sum(1) / 1320
    uncut = 2 / (10 * 9) * (same + 20 * l3 - 21 * same**2)
    assert uncut.mean() == pytest.approx(observed, rel=0.03)
    np.testing.assert_allclose(d.pcmd_variance(counts), np.maximum(uncut, 0), atol=1e-12)


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (3, 30), (15, 30), (30, 30), (1, 400)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_wilson_is_scipys(hits, n, level):
    want = stats.binomtest(hits, n).proportion_ci(level, method="wilson")
    assert [float(x) for x in wilson(hits / n, n, level)] == pytest.approx([want.low, want.high], abs=1e-12)


def test_t_interval_is_scipys():
    values = np.random.default_rng(3).random(17)
    want = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    got = mean_interval(values, 0.9)
    assert (got.low, got.high) == pytest.approx((want.low, want.high), rel=1e-12)
    limits = t_limits(values.mean(), stats.sem(values), 17, 0.9)
    assert float(limits.low) == pytest.approx(want.low, rel=1e-12)
