import numpy as np
import pandas as pd
import pytest
from scipy import stats

from modebench.analysis.diversity import pcmd
from modebench.analysis.power import pilot_of, power, prompts_needed


def long_table(counts, samples):
    """A long table from mode counts [P, M] of `samples` draws each; the rest is wrong."""
    signs = [
        [f"m{mode}" for mode, count in enumerate(row) for _ in range(count)] + ["."] * (samples - sum(row))
        for row in counts.tolist()
    ]
    rows = [
        {
            "task_id": f"t{prompt:05d}", "domain": "d", "level": 1, "sample": sample,
            "status": "incorrect" if sign == "." else "correct", "mode": None if sign == "." else sign,
        }
        for prompt, row in enumerate(signs) for sample, sign in enumerate(row)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_the_formula():
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert prompts_needed(0.05, 0.1, 0.02) == pytest.approx(z**2 * 0.12 / 0.0025)
    assert prompts_needed(-0.05, 0.1, 0.02) == prompts_needed(0.05, 0.1, 0.02)
    assert prompts_needed(0.05, 0.1, 0.02, power=0.9) > prompts_needed(0.05, 0.1, 0.02)


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        ((0.0, 0.1, 0.1), {}, "other than 0"),
        ((0.1, -0.1, 0.1), {}, "must not be negative"),
        ((0.1, 0.1, 0.1), {"alpha": 5}, "between 0 and 1"),
        ((0.1, 0.1, 0.1), {"power": 1.0}, "between 0 and 1"),
    ],
)
def test_bad_numbers(arguments, options, problem):
    with pytest.raises(ValueError, match=problem):
        prompts_needed(*arguments, **options)


def test_bad_requests(make_samples):
    few = make_samples(["AABB"] * 3)
    with pytest.raises(ValueError, match="3 prompts with four correct samples; at least 10"):
        power(0.1, pilot=few)
    with pytest.raises(ValueError, match="a pilot is needed"):
        power(0.1)
    with pytest.raises(ValueError, match="not both"):
        power(0.1, pilot=few, between_variance=1.0)
    with pytest.raises(ValueError, match="not 'beauty'"):
        power(0.1, "beauty", pilot=few)
    with pytest.raises(ValueError, match="between -1 and 1"):
        power(0.1, pilot=few, correlation=2)
    with pytest.raises(ValueError, match="at least 2"):
        power(0.1, pilot=few, samples=1)


def test_accuracy_by_hand(make_samples):
    found = power(0.1, "accuracy", pilot=make_samples(["AA..", "A..."] * 8), samples=8, correlation=0.0)
    one = (4 / 3) * (0.25 + 0.1875) / 2
    assert found.sampling_variance == pytest.approx(2 * one / 8)
    spread = np.tile([0.5, 0.25], 8).var(ddof=1)
    assert found.between_variance == pytest.approx(2 * max(spread - one / 4, 0))


def test_the_sampling_variance_of_pcmd_at_other_sample_counts():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1.0] * 4, size=3000)
    pilot = long_table(rng.multinomial(16, shares), 16)
    for samples in (8, 32):
        truth = np.mean([pcmd(rng.multinomial(samples, s, size=200)).var() for s in shares[:400]])
        found = power(0.05, pilot=pilot, samples=samples)
        assert found.sampling_variance == pytest.approx(2 * truth, rel=0.15), samples
        assert found.eligible == 1


def test_the_estimates_of_a_pilot_are_unbiased():
    rng = np.random.default_rng(1)
    share = np.array([0.5, 0.3, 0.2])
    l2, l3 = (share**2).sum(), (share**3).sum()
    pilot = pilot_of(long_table(rng.multinomial(5, share, size=20000), 5))
    assert pilot.noise_a.mean() == pytest.approx(l2 - l2**2, abs=0.01)
    assert pilot.noise_b.mean() == pytest.approx(l3 - l2**2, abs=0.01)


def test_prompts_that_cannot_be_eligible_are_paid_for():
    rng = np.random.default_rng(2)
    shares = np.concatenate([0.5 * rng.dirichlet([1.0] * 3, size=300), np.full((300, 1), 0.5)], axis=1)
    counts = rng.multinomial(16, shares)[:, :3]
    found = power(0.1, pilot=long_table(counts, 16), samples=4)
    one_side = 1 - 0.5**4 - 4 * 0.5**4
    assert found.eligible == pytest.approx(one_side**2, rel=0.25)
    assert found.prompts > 1.5 * found.eligible * found.prompts


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "delta", "samples"), [("accuracy", 0.05, 8), ("pcmd", 0.05, 16)])
def test_the_promised_power_is_reached(metric, delta, samples):
    """A pilot of one model, then many comparisons of the size that it asks for."""
    rng = np.random.default_rng(5)
    gap = 3 / 7 - 1 / 3  # of a Dirichlet(2, 2, 2) to the uniform, on average

    def truths(prompts):
        """Mode shares [P, 3] of A and B, wrong answers left over; B's metric is higher by `delta`."""
        q = rng.beta(4, 3, size=prompts) * 0.8 + 0.1
        within = rng.dirichlet([2.0] * 3, size=prompts)
        a = q[:, None] * within
        if metric == "accuracy":
            return a, a + delta * within
        # Mixing with the uniform closes a known part of the gap to its Gini-Simpson index.
        weight = 1 - np.sqrt(1 - delta / gap)
        return a, q[:, None] * ((1 - weight) * within + weight / 3)

    def draw(shares):
        full = np.concatenate([shares, 1 - shares.sum(1, keepdims=True)], axis=1)
        return rng.multinomial(samples, np.clip(full, 0, 1))[:, :3]

    pilot, _ = truths(1500)
    # What 2 (1 - correlation) tau^2 has to be here: accuracy moves by delta on every prompt, PCMD by
    # delta / gap times the prompt's own gap.
    correlation = 1.0 if metric == "accuracy" else 1 - (delta / gap) ** 2 / 2
    table = long_table(draw(pilot), samples)
    asked = power(delta, metric, pilot=table, samples=samples, correlation=correlation)
    seen = 0
    for _ in range(600):
        a, b = (draw(t) for t in truths(asked.prompts))
        values = [counts.sum(1) / samples if metric == "accuracy" else pcmd(counts) for counts in (a, b)]
        difference = values[1] - values[0]
        seen += stats.ttest_1samp(difference[~np.isnan(difference)], 0).pvalue < 0.05
    assert 0.74 <= seen / 600 <= 0.9
