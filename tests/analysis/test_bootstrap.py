import numpy as np
import pandas as pd
import pytest
from scipy import stats

from modebench.analysis import prompt_table, summary_document
from modebench.analysis.bootstrap import bootstrap_intervals


def interval(values, **options):
    [found] = bootstrap_intervals(np.asarray(values, dtype=float)[:, None], **options)
    return found


def test_agrees_with_scipy_and_is_seeded():
    values = np.random.default_rng(3).gamma(1.0, size=80)
    want = stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="BCa", random_state=np.random.default_rng(5)
    ).confidence_interval
    got = interval(values, draws=20000, seed=2)
    width = want.high - want.low
    assert got.low == pytest.approx(want.low, abs=0.03 * width)
    assert got.high == pytest.approx(want.high, abs=0.03 * width)
    assert got == interval(values, draws=20000, seed=2)
    assert got != interval(values, draws=20000, seed=3)


def test_metrics_share_their_draws():
    values = np.random.default_rng(1).random((30, 3))
    together = bootstrap_intervals(values, draws=300, seed=5)
    for column, found in enumerate(together):
        assert found == pytest.approx(interval(values[:, column], draws=300, seed=5))


def test_undefined_prompts_stay_in_the_draws():
    values = np.concatenate([np.tile([0.0, 1.0], 20), np.full(60, np.nan)])
    found = interval(values, draws=4000)
    assert (found.value, found.n) == (0.5, 40)
    # a ratio of two sums: about as wide as over the 40 alone, which are as many on average
    alone = interval(values[:40], draws=4000)
    assert found.high - found.low == pytest.approx(alone.high - alone.low, rel=0.1)


def test_edges():
    assert np.isnan(interval([0.4])[1:3]).all()
    assert interval([0.4])[0] == 0.4
    assert np.isnan(interval([])[0])
    assert interval([0.3] * 9)[:3] == (0.3, 0.3, 0.3)
    assert interval([np.nan, np.nan]).n == 0
    with pytest.raises(ValueError, match="at least 1"):
        interval([0.1, 0.2], draws=0)


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()
    interval([0.1, 0.4, 0.3], draws=50)
    assert (np.random.get_state()[1] == before).all()


def crossed(rng, units, prompts, of_unit, of_prompt, noise=0.1):
    """Values [units * prompts] of runs that all answer the same prompts, with their labels."""
    unit, prompt = np.repeat(np.arange(units), prompts), np.tile(np.arange(prompts), units)
    values = of_unit * rng.normal(size=units)[unit] + of_prompt * rng.normal(size=prompts)[prompt]
    return values + noise * rng.normal(size=units * prompts), unit, prompt


def test_units_widen_where_they_differ():
    values, unit, prompt = crossed(np.random.default_rng(0), 5, 40, of_unit=0.5, of_prompt=0.1)
    flat = interval(values, draws=500)
    upper = interval(values, draws=500, units=unit, prompts=prompt)
    assert upper.high - upper.low > 3 * (flat.high - flat.low)
    assert upper.n == 200
    assert np.isnan(interval(values, units=np.zeros(200))[1:3]).all()


def test_prompts_that_all_units_answer_are_not_counted_once_a_unit():
    values, unit, prompt = crossed(np.random.default_rng(0), 5, 40, of_unit=0.0, of_prompt=1.0)
    truth = values.reshape(5, 40).mean(0).std(ddof=1) / np.sqrt(40)
    upper = interval(values, draws=2000, units=unit, prompts=prompt)
    assert (upper.high - upper.low) / (2 * 1.96) == pytest.approx(truth, rel=0.1)
    nested = interval(values, draws=2000, units=unit)  # as if every run had prompts of its own
    assert nested.high - nested.low < 0.7 * (upper.high - upper.low)


@pytest.mark.slow
def test_two_levels_cover_at_ten_seeds():
    rng = np.random.default_rng(8)
    inside = 0
    for number in range(400):
        values, unit, prompt = crossed(rng, 10, 40, of_unit=0.3, of_prompt=1.0, noise=0.5)
        found = interval(values, draws=400, seed=number, units=unit, prompts=prompt)
        inside += found.low <= 0 <= found.high
    assert 0.91 <= inside / 400 <= 0.99


def seeds(make_samples, *groups):
    return pd.concat([make_samples(prompts, seed=number) for number, prompts in enumerate(groups)])


def test_a_summary_over_seeds(make_samples):
    samples = seeds(make_samples, ["AB..", "AAAA"], ["A...", "AAA."], ["ABC.", "AAAA"])
    with pytest.raises(ValueError, match="tells the runs apart"):
        summary_document(samples, bootstrap=50)
    document = summary_document(samples, bootstrap=200, upper_level="seed")
    assert document["interval_method"] == "bootstrap over seed, then prompts"
    [cell] = document["cells"]
    assert cell["prompts"] == 6
    assert cell["accuracy"]["value"] == pytest.approx((0.5 + 1 + 0.25 + 0.75 + 0.75 + 1) / 6)
    table = prompt_table(samples, by=("domain", "level", "seed"))
    want = interval(
        table["accuracy"], draws=200, units=table["seed"], prompts=table["task_id"].factorize()[0]
    )
    assert [cell["accuracy"][k] for k in ("value", "low", "high", "n")] == pytest.approx(list(want))


def test_an_upper_level_must_tell_rows_apart(make_samples):
    samples = seeds(make_samples, ["AB"], ["A."])
    with pytest.raises(ValueError, match="column of `by`"):
        summary_document(samples, by="seed", bootstrap=9, upper_level="seed")
    with pytest.raises(ValueError, match="lacks the columns"):
        summary_document(samples, bootstrap=9, upper_level="arm")


def test_a_summary_over_seeds_without_draws_is_t_over_their_means(make_samples):
    samples = seeds(make_samples, ["AB..", "AAAA"], ["A...", "AAA."], ["ABC.", "AAAA"])
    document = summary_document(samples, upper_level="seed")
    assert document["interval_method"] == "t over seeds"
    [cell] = document["cells"]
    assert cell["units"] == 3
    means = [0.75, 0.5, 0.875]
    want = stats.ttest_1samp(means, 0).confidence_interval(0.95)
    got = cell["accuracy"]
    assert got["value"] == pytest.approx(np.mean(means))
    assert (got["low"], got["high"]) == pytest.approx((want.low, min(want.high, 1)))
    # PCMD: 1 and 0; 0; 1 and 0. The mean of the defined prompts is 2/5; with S - N mean = .2, -.4, .2 the
    # error is sqrt(3/2 * .24) / 5 = .12.
    pcmd = cell["pcmd"]
    assert pcmd["value"] == pytest.approx(0.4)
    assert pcmd["low"] == pytest.approx(max(0.4 - stats.t.ppf(0.975, 2) * 0.12, 0))
    assert pcmd["high"] == pytest.approx(0.4 + stats.t.ppf(0.975, 2) * 0.12)
    assert "units" not in summary_document(samples[samples["seed"] == 0])["cells"][0]
