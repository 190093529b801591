import numpy as np
import pytest
from scipy import stats

from modebench.analysis import intervals as iv
from modebench.analysis.diversity import pcmd


def test_wilson_is_the_textbook_interval():
    for hits, n in [(0, 10), (3, 10), (10, 10), (17, 216)]:
        want = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
        low, high = iv.wilson(hits / n, n)
        assert (float(low), float(high)) == pytest.approx((want.low, want.high), abs=1e-12)


def test_wilson_contains_its_rate_and_stays_in_range():
    rate = np.linspace(0, 1, 101)
    for n in (0.5, 1, 7.3, 1e9):
        low, high = iv.wilson(rate, n)
        assert (low <= rate).all()
        assert (rate <= high).all()
        assert low.min() == 0
        assert high.max() == 1
    assert np.isnan(iv.wilson(0.5, 0)).all()
    assert np.isnan(iv.wilson(np.nan, 9)).all()


def test_effective_n():
    assert float(iv.effective_n(0.5, 0.05, 40)) == pytest.approx(100)
    assert float(iv.effective_n(0.5, 0.001, 40, samples=320)) == 320
    # no spread, or none known: one draw a prompt
    for rate, error in [(0, 0), (1, 0), (0.5, 0), (0.3, np.nan)]:
        assert float(iv.effective_n(rate, error, 40, 320)) == 40


def test_rate_interval_at_the_edges():
    assert iv.rate_interval([0.0] * 40, samples=320)[:2] == (0.0, 0.0)
    assert iv.rate_interval([0.0] * 40, samples=320).high == pytest.approx(0.0876, abs=1e-4)
    assert iv.rate_interval([1.0] * 40)[2] == 1.0
    single = iv.rate_interval([0.5])
    assert (single.n, single.low < 0.1, single.high > 0.9) == (1, True, True)
    empty = iv.rate_interval([np.nan])
    assert empty.n == 0
    assert np.isnan(empty[:3]).all()


def test_mean_interval_is_the_t_interval():
    values = np.array([0.2, 0.5, 0.1, 0.9, np.nan])
    want = stats.ttest_1samp(values[:4], 0).confidence_interval(0.9)
    got = iv.mean_interval(values, level=0.9)
    assert (got.low, got.high, got.n) == (pytest.approx(want.low), pytest.approx(want.high), 4)
    assert iv.mean_interval(values, lower=0, upper=1).low == 0
    assert np.isnan(iv.mean_interval([0.4])[1:3]).all()


def test_agreement_at_an_end_of_the_range_is_not_certainty():
    collapsed = iv.mean_interval([0.0] * 40, lower=0, upper=1)
    assert collapsed.low == 0
    assert collapsed.high == pytest.approx(0.0876, abs=1e-4)
    scaled = iv.mean_interval([8.0] * 40, lower=0, upper=8)
    assert scaled.high == 8
    assert scaled.low == pytest.approx(8 * (1 - 0.0876), abs=1e-3)
    inside = iv.mean_interval([0.5] * 40, lower=0, upper=1)
    assert inside[:3] == (0.5, 0.5, 0.5)
    unbounded = iv.mean_interval([3.0] * 40)
    assert unbounded[:3] == (3.0, 3.0, 3.0)


def test_levels_are_checked():
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match="between 0 and 1"):
            iv.wilson(0.5, 10, level)


def beta_rates(rng, p, runs, prompts, samples):
    """[runs, prompts] accuracies of prompts of different difficulty, mean p."""
    truth = rng.beta(2 * p, 2 * (1 - p), size=(runs, prompts))
    return rng.binomial(samples, truth) / samples


@pytest.mark.parametrize(("p", "prompts", "low"), [(0.5, 50, 0.93), (0.3, 216, 0.93), (0.02, 50, 0.85)])
def test_wilson_on_the_effective_size_covers(p, prompts, low):
    rng = np.random.default_rng(7)
    rates = beta_rates(rng, p, 4000, prompts, 16)
    mean, error = rates.mean(1), rates.std(1, ddof=1) / np.sqrt(prompts)
    limits = iv.wilson(mean, iv.effective_n(mean, error, prompts, prompts * 16))
    coverage = np.mean((limits.low <= p) & (p <= limits.high))
    assert low <= coverage <= 0.97
    # the pooled interval, one draw a sample, is what this is not
    pooled = iv.wilson(mean, prompts * 16)
    assert np.mean((pooled.low <= p) & (p <= pooled.high)) < 0.75


@pytest.mark.parametrize("prompts", [50, 216])
def test_t_over_prompts_covers_mean_pcmd(prompts):
    rng = np.random.default_rng(11)
    shares = rng.dirichlet([1.0] * 4, size=(2000, prompts))
    counts = rng.multinomial(8, shares)
    truth = 1 - 4 * 2 / (4 * 5)  # sum of E[p^2] under a flat Dirichlet of 4
    values = pcmd(counts)
    mean, error = values.mean(1), values.std(1, ddof=1) / np.sqrt(prompts)
    limits = iv.t_limits(mean, error, prompts, lower=0, upper=1)
    assert 0.93 <= np.mean((limits.low <= truth) & (truth <= limits.high)) <= 0.97


def test_mean_of_cells():
    got = iv.mean_of_cells([0.2, 0.4], [0.1, 0.3], [0.3, 0.5])
    assert got.value == pytest.approx(0.3)
    assert got.high - got.value == pytest.approx(np.sqrt(0.02) / 2)
    assert got.n == 2
    one = iv.mean_of_cells([0.2], [0.1], [0.5])
    assert one[:3] == pytest.approx((0.2, 0.1, 0.5))
    assert np.isnan(iv.mean_of_cells([0.2, np.nan], [0.1, 0.1], [0.3, 0.3])[:2]).all()
    assert iv.mean_of_cells([], [], []).n == 0
