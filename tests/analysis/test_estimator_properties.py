"""What must hold of the estimators for any counts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.analysis import diversity as d
from modebench.analysis import prompt_table, summary_document
from modebench.analysis.pass_at_k import pass_at_k

counts = st.lists(st.integers(0, 9), min_size=1, max_size=8)
signs = st.lists(st.sampled_from("AABC.?!"), min_size=1, max_size=10)
tables = st.lists(signs, min_size=1, max_size=5)


@settings(deadline=None)
@given(counts, st.randoms(use_true_random=False))
def test_labels_do_not_matter(c, random):
    shuffled = random.sample(c, len(c))
    np.testing.assert_allclose(d.pcmd(shuffled), d.pcmd(c))
    np.testing.assert_allclose(d.modes_at_k(shuffled, 80, 4), d.modes_at_k(c, 80, 4))


@given(st.lists(st.integers(0, 9), min_size=2, max_size=8))
def test_merging_two_modes_never_raises_diversity(c):
    merged = [c[0] + c[1], *c[2:]]
    total = sum(c) + 3
    if sum(c) >= 2:
        assert d.pcmd(merged) <= d.pcmd(c) + 1e-12
    assert d.modes_at_k(merged, total, 3) <= d.modes_at_k(c, total, 3) + 1e-12
    assert d.distinct_pair_rate(merged, total) <= d.distinct_pair_rate(c, total) + 1e-12


@given(counts)
def test_pcmd_lies_between_0_and_1(c):
    value = float(d.pcmd(c))
    assert np.isnan(value) == (sum(c) < 2)
    if sum(c) >= 2:
        assert 0 <= value <= 1
        assert (value == 0) == (sum(x > 0 for x in c) == 1)


@settings(max_examples=40)
@given(counts, st.integers(0, 12))
def test_modes_at_k_rises_ever_more_slowly(c, wrong):
    total = sum(c) + wrong
    curve = np.array([0.0, *(float(d.modes_at_k(c, total, k)) for k in range(1, total + 1))])
    steps = np.diff(curve)
    assert (steps >= -1e-12).all()
    assert (np.diff(steps) <= 1e-12).all()
    if total:
        assert curve[-1] == pytest.approx(sum(x > 0 for x in c))
        assert curve[1] == pytest.approx(sum(c) / total)
        assert pass_at_k(sum(c), total, 1) == pytest.approx(sum(c) / total)


@given(counts)
def test_orders_of_diversity(c):
    if sum(c):
        hill = [float(d.hill_number(c, q)) for q in (0, 1, 2)]
        assert hill[0] >= hill[1] - 1e-9
        assert hill[1] >= hill[2] - 1e-9
        assert hill[2] >= 1 - 1e-9
    if sum(c) >= 2:
        assert d.chao1(c) >= d.hill_number(c, 0)
        assert 0 <= d.good_turing_coverage(c) <= 1


def without_errors(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=["samples", "error", "error_rate"])


@settings(max_examples=10, deadline=None)
@given(tables, st.data())
def test_errors_change_their_own_rate_and_nothing_else(make_samples, prompts, data):
    extended = [[*p, *"!" * data.draw(st.integers(0, 2))] for p in prompts]
    ks = (1, 2, 3)
    before, after = (prompt_table(make_samples(p), ks=ks) for p in (prompts, extended))
    pd.testing.assert_frame_equal(without_errors(before), without_errors(after))
    old, new = (summary_document(make_samples(p), ks=ks)["cells"][0] for p in (prompts, extended))
    for name in old:
        if name not in ("counts", "error_rate", "samples_per_prompt"):
            assert old[name] == new[name], name


@settings(max_examples=10, deadline=None)
@given(tables, st.data())
def test_wrong_answers_never_touch_pcmd(make_samples, prompts, data):
    extended = [[*p, *data.draw(st.lists(st.sampled_from(".?"), max_size=3))] for p in prompts]
    before, after = (prompt_table(make_samples(p)) for p in (prompts, extended))
    for column in ("pcmd", "pcmd_variance", "hill_1", "chao1", "coverage_good_turing"):
        pd.testing.assert_series_equal(before[column], after[column])


@settings(max_examples=10, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_order_of_rows_and_names_of_modes_change_nothing_to_the_last_bit(make_samples, prompts, random):
    samples = make_samples(prompts)
    names = dict(zip("ABC", random.sample(["x", "y", "z"], 3), strict=True))
    other = samples.assign(mode=samples["mode"].map(names)).sample(frac=1, random_state=random.randint(0, 99))
    assert summary_document(samples) == summary_document(other)


@settings(max_examples=10, deadline=None)
@given(tables)
def test_modes_at_1_and_pass_at_1_are_the_accuracy(make_samples, prompts):
    table = prompt_table(make_samples(prompts))
    np.testing.assert_allclose(table["pass@1"], table["accuracy"], atol=1e-15)
    np.testing.assert_allclose(table["modes@1"], table["accuracy"], atol=1e-15)
