"""Per-prompt estimators against exact rationals and full enumeration."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from modebench.analysis import diversity as d
from modebench.analysis.pass_at_k import distinct_group, draw_none, pass_at_k, pass_group, pass_hat_k

CASES = [[], [0], [1], [2], [1, 1], [3, 2, 2, 1], [4, 0, 4], [1] * 6, [7, 1], [5, 4, 3, 2, 1]]


def subsets(counts, attempts, k):
    """Every way to draw k of the attempts; wrong ones are None."""
    labels = [m for m, c in enumerate(counts) for _ in range(c)]
    labels += [None] * (attempts - len(labels))
    return list(itertools.combinations(labels, k))


@pytest.mark.parametrize("counts", CASES)
def test_pcmd_is_the_share_of_unequal_pairs(counts):
    pairs = subsets(counts, sum(counts), 2)
    if not pairs:
        assert math.isnan(d.pcmd(counts))
    else:
        exact = Fraction(sum(a != b for a, b in pairs), len(pairs))
        assert float(d.pcmd(counts)) == pytest.approx(float(exact), abs=1e-15)


@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("wrong", [0, 1, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_at_k_metrics_average_over_all_subsets(counts, wrong, k):
    n, total = sum(counts), sum(counts) + wrong
    drawn = subsets(counts, total, k)
    got = [
        pass_at_k(n, total, k),
        pass_hat_k(n, total, k),
        d.modes_at_k(counts, total, k),
    ]
    if not drawn:
        assert all(math.isnan(x) for x in got)
        return
    exact = [
        Fraction(sum(any(x is not None for x in s) for s in drawn), len(drawn)),
        Fraction(sum(all(x is not None for x in s) for s in drawn), len(drawn)),
        Fraction(sum(len(set(s) - {None}) for s in drawn), len(drawn)),
    ]
    assert [float(x) for x in got] == pytest.approx([float(x) for x in exact], abs=1e-14)


@pytest.mark.parametrize("counts", CASES)
@pytest.mark.parametrize("wrong", [0, 1, 4])
def test_distinct_pair_rate_counts_pairs_both_correct_and_different(counts, wrong):
    pairs = subsets(counts, sum(counts) + wrong, 2)
    got = float(d.distinct_pair_rate(counts, sum(counts) + wrong))
    if not pairs:
        assert math.isnan(got)
    else:
        hits = sum(a is not None and b is not None and a != b for a, b in pairs)
        assert got == pytest.approx(float(Fraction(hits, len(pairs))), abs=1e-15)


def expectation(statistic, probabilities, n):
    """Exact mean of a statistic of the counts of n draws."""
    total = Fraction(0)
    for draws in itertools.product(range(len(probabilities)), repeat=n):
        weight = math.prod((probabilities[x] for x in draws), start=Fraction(1))
        total += weight * statistic(list(Counter(draws).values()))
    return total


def exact_concentration(counts):
    n = sum(counts)
    return Fraction(sum(c * (c - 1) for c in counts), n * (n - 1))


def exact_variance(counts):
    n = sum(counts)
    l2 = exact_concentration(counts)
    l3 = Fraction(sum(c * (c - 1) * (c - 2) for c in counts), n * (n - 1) * (n - 2))
    return Fraction(2, (n - 2) * (n - 3)) * (l2 + 2 * (n - 2) * l3 - (2 * n - 3) * l2**2)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_pcmd_and_its_variance_are_unbiased(n):
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    mean = expectation(exact_concentration, p, n)
    assert mean == sum(x**2 for x in p)
    variance = expectation(lambda c: exact_concentration(c) ** 2, p, n) - mean**2
    assert expectation(exact_variance, p, n) == variance


@pytest.mark.parametrize("counts", [[4], [4, 4], [3, 1], [1, 1, 1, 1], [5, 2, 1], [9, 3, 1, 1]])
def test_variance_equals_the_exact_rational_cut_off_at_zero(counts):
    exact = max(float(exact_variance(counts)), 0.0)
    assert float(d.pcmd_variance(counts)) == pytest.approx(exact, abs=1e-14)


def test_variance_needs_four_correct():
    assert np.isnan(d.pcmd_variance([[2, 1], [1, 1], [0, 0]])).all()
    assert float(d.pcmd_variance([4])) == 0.0


def test_rarefied_modes_is_modes_at_k_without_wrong_answers():
    counts = [5, 2, 1]
    assert float(d.rarefied_modes(counts, 2)) == pytest.approx(1 + float(d.pcmd(counts)))
    assert float(d.rarefied_modes(counts, 8)) == 3.0
    assert math.isnan(d.rarefied_modes(counts, 9))


def test_hill_numbers():
    uniform = [3, 3, 3, 3]
    for order in (0, 0.5, 1, 2, 5):
        assert float(d.hill_number(uniform, order)) == pytest.approx(4)
    counts = [4, 2, 1, 1]
    p = np.array(counts) / 8
    assert float(d.hill_number(counts, 0)) == 4
    assert float(d.hill_number(counts, 1)) == pytest.approx(math.exp(-(p * np.log(p)).sum()))
    assert float(d.hill_number(counts, 2)) == pytest.approx(64 / 22)
    for order in (0, 1, 2):
        assert math.isnan(d.hill_number([0, 0], order))
        assert math.isnan(d.hill_number([], order))


def test_good_turing_and_chao1():
    assert float(d.good_turing_coverage([1, 1, 1])) == 0
    assert float(d.good_turing_coverage([3])) == 1
    assert float(d.chao1([3])) == 1
    assert float(d.chao1([1, 1, 1])) == 3 + 2 / 3 * 3
    assert float(d.chao1([2, 2, 1])) == 3 + 4 / 5 * 1 / 4
    assert np.isnan([d.good_turing_coverage([1]), d.chao1([1]), d.chao1([])]).all()


def test_good_turing_is_unbiased_for_the_coverage_of_one_draw_fewer():
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    n = 4
    estimate = expectation(lambda c: 1 - Fraction(sum(x == 1 for x in c), sum(c)), p, n)
    assert estimate == sum(x * (1 - (1 - x) ** (n - 1)) for x in p)


def test_dense_rows_give_the_same_as_single_ones():
    rows = [[3, 2, 0], [1, 0, 0], [0, 0, 0], [2, 2, 2]]
    for estimator in (d.pcmd, d.pcmd_variance, d.good_turing_coverage, d.chao1):
        np.testing.assert_array_equal(estimator(rows), [float(estimator(r)) for r in rows])
    np.testing.assert_array_equal(
        d.modes_at_k(rows, [6, 6, 6, 7], 2),
        [float(d.modes_at_k(r, k, 2)) for r, k in zip(rows, [6, 6, 6, 7], strict=True)],
    )
    assert d.modes_at_k(np.zeros((2, 0), int), [3, 1], 2).tolist()[0] == 0.0
    assert np.isnan(d.modes_at_k(np.zeros((2, 0), int), [3, 1], 2)[1])


def test_large_counts_stay_accurate():
    exact = 1 - Fraction(math.comb(900, 512), math.comb(1024, 512))
    assert float(pass_at_k(124, 1024, 512)) == float(exact)
    exact = Fraction(math.comb(1014, 100), math.comb(1024, 100))
    assert float(draw_none(10, 1024, 100)) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: d.pcmd([0.5, 1.5]), TypeError, "integers"),
        (lambda: d.pcmd([True, False]), TypeError, "integers"),
        (lambda: d.pcmd([-1, 3]), ValueError, "negative"),
        (lambda: d.modes_at_k([3], 2, 1), ValueError, "more correct answers than attempts"),
        (lambda: d.distinct_pair_rate([3], 2), ValueError, "more correct answers than attempts"),
        (lambda: d.hill_number([1], -1), ValueError, "order"),
        (lambda: pass_at_k(1, 2, 0), ValueError, "k must be at least 1"),
        (lambda: pass_at_k(3, 2, 1), ValueError, "between 0 and the total"),
    ],
)
def test_impossible_input_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_group_forms_equal_the_unbiased_ones_at_full_size():
    correct = np.arange(9)
    assert pass_group(correct, 8, 8).tolist() == pass_at_k(correct, 8, 8).tolist()
    counts = [[3, 2, 0], [0, 0, 0], [1, 1, 1]]
    assert distinct_group([2, 0, 3], 8, 8).tolist() == d.modes_at_k(counts, 8, 8).tolist()
    assert np.isnan(pass_group(1, 7, 8))
    assert np.isnan(distinct_group(1, 9, 8))
