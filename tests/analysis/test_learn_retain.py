"""Learn/retain attribution: cases by hand, exact expectations of an unchanged policy, sums that agree."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from modebench.analysis.intervals import clustered_limits, ratio_interval
from modebench.analysis.learn_retain import learn_retain
from modebench.analysis.prompts import prompt_table
from modebench.errors import UsageError
from tests.analysis.conftest import _samples as samples

Make = Callable[..., pd.DataFrame]
PROMPT = st.text(alphabet="AB.?", min_size=4, max_size=8)


def row(table: pd.DataFrame, metric: str, side: str) -> dict[str, float]:
    [found] = table[(table["metric"] == metric) & (table["side"] == side)].to_dict("records")
    return found


def test_by_hand(make_samples: Make) -> None:
    """Two of four samples choose: none is right in 1 of 6 splits of the first prompt, in 3 of the second."""
    before, after = make_samples(["AB..", "A..."]), make_samples(["AAAA", "AC.."])
    found = learn_retain(before, after, by="domain", attempts=2)
    learn = row(found, "accuracy", "learn")
    assert learn["weight"] == pytest.approx((1 / 6 + 1 / 2) / 2)
    # 1/6 of a prompt with 2 of 2 right elsewhere, 1/2 of one with 1 of 2
    assert learn["before"] == pytest.approx((1 / 6 * 1 + 1 / 2 * 1 / 2) / (2 / 3))
    assert learn["after"] == pytest.approx((1 / 6 * 1 + 1 / 2 * 1 / 2) / (2 / 3))
    assert learn["change"] == pytest.approx(0)
    retain = row(found, "accuracy", "retain")
    assert retain["weight"] == pytest.approx((5 / 6 + 1 / 2) / 2)
    # first: of the 5 splits 4 have 1 right among the others, 1 has none; second: none
    assert retain["before"] == pytest.approx((1 / 6 * (4 * 1 / 2)) / (4 / 3))
    assert retain["after"] == pytest.approx((5 / 6 + 1 / 2 * 1 / 2) / (4 / 3))
    modes = row(found, "modes", "learn")
    # a mode that 1 of 4 samples has is absent from 2 of them half the time, and then in the other 2
    assert modes["before"] == pytest.approx((2 * 1 / 2 + 1 / 2) / 2)
    # first: A is gained where it was absent; second: A and C, each in 2 of the 4 samples with chance 1/2
    assert modes["after"] == pytest.approx((1 / 2 + 1 / 2 * 1 / 2 + 1 / 2) / 2)
    assert modes["weight"] == 1
    kept = row(found, "modes", "retain")
    assert kept["weight"] == pytest.approx((1 + 1 / 2) / 2)
    assert kept["before"] == pytest.approx(0)  # one sample of a mode can't be in both halves
    assert kept["after"] == pytest.approx((1 / 2 + 1 / 2 * 1 / 2) / 1.5)
    assert set(found["attempts"]) == {2}


@given(st.lists(st.tuples(PROMPT, PROMPT), min_size=1, max_size=6))
@settings(deadline=None, max_examples=15)
def test_contributions_add_up_to_the_whole_change(prompts: list[tuple[str, str]]) -> None:
    sides = [samples([pair[side] for pair in prompts]) for side in (0, 1)]
    found = learn_retain(*sides, by="domain", attempts=2)
    tables = [prompt_table(side, by="domain", ks=(2,)) for side in sides]
    for metric, column in (("accuracy", "accuracy"), ("modes", "modes@2")):
        whole = float((tables[1][column] - tables[0][column]).mean())
        parts = [row(found, metric, side)["contribution"] for side in ("learn", "retain")]
        assert sum(parts) == pytest.approx(whole, abs=1e-12)


@given(st.lists(PROMPT, min_size=1, max_size=5), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=8)
def test_order_of_samples_and_prompts_does_not_matter(prompts: list[str], rng) -> None:  # type: ignore[no-untyped-def]
    mixed = ["".join(rng.sample(text, len(text))) for text in prompts]
    one, other = samples(prompts), samples(mixed).sample(frac=1, random_state=0)
    numbers = ["weight", "before", "after", "change", "contribution"]
    first, second = (learn_retain(table, one, by="domain", attempts=2)[numbers] for table in (one, other))
    np.testing.assert_allclose(first, second, atol=1e-12)


def chance_of(text: str, chances: dict[str, float]) -> float:
    """Probability of these samples in any order."""
    ways, left = 1, len(text)
    for sign in chances:
        ways *= comb(left, text.count(sign))
        left -= text.count(sign)
    return ways * float(np.prod([chances[sign] for sign in text]))


def test_of_an_unchanged_policy_the_expected_change_is_zero(make_samples: Make) -> None:
    """Every draw of 4 samples before and 2 after, weighed by its probability: numerators cancel exactly."""
    chances = {"A": 0.3, "B": 0.15, ".": 0.55}
    befores, afters = (["".join(draw) for draw in combinations_with_replacement("AB.", k)] for k in (4, 2))
    draws = list(product(befores, afters))
    probability = np.array([chance_of(first, chances) * chance_of(later, chances) for first, later in draws])
    assert probability.sum() == pytest.approx(1)
    sides = [make_samples([draw[side] for draw in draws]) for side in (0, 1)]
    found = learn_retain(*sides, by="task_id", attempts=2)
    for _, of_side in found.groupby(["metric", "side"]):
        values = of_side["contribution"].to_numpy()
        assert np.abs(values).max() > 0.1
        assert probability @ values == pytest.approx(0, abs=1e-12)
    # The same samples as choice and baseline: everything that comes back counts as learned.
    tables = [prompt_table(side, by="task_id")["accuracy"].to_numpy() for side in sides]
    naive = probability @ np.where(tables[0] == 0, tables[1], 0)
    assert naive == pytest.approx(0.55**4 * 0.45)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("p", [0.05, 0.3, 0.9])
def test_the_weight_is_the_chance_to_fail_every_attempt(make_samples: Make, n: int, p: float) -> None:
    """E over c ~ Bin(K, p) of C(K-c, n)/C(K, n) is (1-p)^n; of it times c/(K-n), (1-p)^n p."""
    k = 2 * n + 1
    chance = np.array([comb(k, c) * p**c * (1 - p) ** (k - c) for c in range(k + 1)])
    before = make_samples(["A" * c + "." * (k - c) for c in range(k + 1)])
    found = learn_retain(before, make_samples(["." * n] * (k + 1)), by="task_id", attempts=n)
    learn = found[(found["metric"] == "accuracy") & (found["side"] == "learn")]
    assert chance @ learn["weight"] == pytest.approx((1 - p) ** n)
    assert chance @ -learn["contribution"] == pytest.approx((1 - p) ** n * p)


def test_many_prompts_of_an_unchanged_policy(make_samples: Make) -> None:
    """Of 2,000 prompts of unequal difficulty none learns; the naive change would be far above 0."""
    rng = np.random.default_rng(3)
    chance = rng.beta(0.3, 1.0, size=2000)

    def drawn(size: int) -> pd.DataFrame:
        right = rng.random((len(chance), size)) < chance[:, None]
        modes = rng.choice(list("ABCD"), p=[0.6, 0.3, 0.08, 0.02], size=right.shape)
        return make_samples(np.where(right, modes, "."))

    before, after = drawn(16), drawn(16)
    found = learn_retain(before, after, by="domain")
    assert set(found["attempts"]) == {8}
    width = found["high"] - found["low"]
    assert (found["change"].abs() < width).all()  # four standard errors
    assert (width < [0.05, 0.05, 0.12, 0.05]).all()
    tables = [prompt_table(side, by="domain").set_index("task_id")["accuracy"] for side in (before, after)]
    unsolved = tables[0] == 0
    assert (tables[1] - tables[0])[unsolved].mean() > found["high"].iloc[0] / 2 > 0


@pytest.mark.slow
def test_coverage_of_the_intervals(make_samples: Make) -> None:
    """400 cells of 60 prompts in three kinds: the truth lies in the interval in about 95 % of them."""
    rng = np.random.default_rng(11)
    first, last = np.array([0.05, 0.2, 0.6]), np.array([0.25, 0.3, 0.6])
    kind = rng.integers(3, size=400 * 60)

    def drawn(chance: np.ndarray) -> pd.DataFrame:  # type: ignore[type-arg]
        right = rng.random((len(kind), 16)) < chance[kind][:, None]
        table = make_samples(np.where(right, rng.choice(list("AB"), size=right.shape), "."))
        return table.assign(cell=np.repeat(np.arange(len(kind)) // 60, 16))

    found = learn_retain(drawn(first), drawn(last), by="cell", attempts=8)
    missed = (1 - first) ** 8
    truth = {
        "learn": (missed @ (last - first)) / missed.sum(),
        "retain": ((1 - missed) @ (last - first)) / (1 - missed).sum(),
    }
    for side, wanted in truth.items():
        rows = found[(found["metric"] == "accuracy") & (found["side"] == side)]
        covered = ((rows["low"] <= wanted) & (wanted <= rows["high"])).mean()
        assert 0.92 <= covered <= 0.98, (side, covered)
        assert rows["change"].mean() == pytest.approx(wanted, abs=0.01)


def test_a_policy_that_learns_and_forgets(make_samples: Make) -> None:
    before = make_samples(["." * 8] * 10 + ["AABBAABB"] * 10)
    after = make_samples(["CCCC"] * 10 + ["AAAA"] * 10)
    found = learn_retain(before, after, by="domain")
    learn, retain = row(found, "accuracy", "learn"), row(found, "accuracy", "retain")
    assert (learn["weight"], learn["before"], learn["after"]) == (pytest.approx(0.5, abs=0.01), 0.0, 1.0)
    assert (retain["before"], retain["after"], retain["change"]) == (1.0, 1.0, 0.0)
    assert retain["low"] < 0 < retain["high"]  # no interval without width
    gained, kept = row(found, "modes", "learn"), row(found, "modes", "retain")
    assert gained["after"] == pytest.approx(0.5 + (1 / 70) / 2)  # C for ten prompts; A where it was missed
    assert kept["after"] == pytest.approx(0.5)
    assert kept["change"] < 0


def test_seeds(make_samples: Make) -> None:
    """Prompts are clustered over seeds; from three seeds on there is an interval over them."""
    prompts = ["AB..", "A...", "ABC."]
    later = [["AAAA", "BB..", "...."], ["AA..", "BBB.", "A..."], ["A...", "BB.C", "AB.."]]
    before = pd.concat([make_samples(prompts, seed=seed) for seed in range(3)])
    after = pd.concat([make_samples(texts, seed=seed) for seed, texts in enumerate(later)])
    found = learn_retain(before, after, by="domain", attempts=2)
    assert found["seed_low"].notna().all()
    assert (found["prompts"] == 9).all()
    two = learn_retain(before[before.seed < 2], after[after.seed < 2], by="domain", attempts=2)
    assert two["seed_low"].isna().all()
    alone = learn_retain(before[before.seed == 0], after[after.seed == 0], by="domain", attempts=2)
    assert (alone["prompts"] == 3).all()
    # The same run three times over is no more evidence than once.
    copies = [
        pd.concat([t.assign(seed=s) for s in range(3)])
        for t in (make_samples(prompts), make_samples(later[0]))
    ]
    thrice = learn_retain(*copies, by="domain", attempts=2)
    np.testing.assert_allclose(thrice[["low", "high"]], alone[["low", "high"]])


def test_prompts_with_too_few_samples_are_left_out_and_counted(make_samples: Make) -> None:
    found = learn_retain(make_samples(["AB..", "A!!!"]), make_samples(["AAAA", "AAAA"]), by="domain")
    assert set(found["attempts"]) == {2}
    assert set(found["prompts"]) == {1}
    assert set(found["left_out"]) == {1}


def test_what_is_refused(make_samples: Make) -> None:
    one, four = make_samples(["A"]), make_samples(["AAAA"])
    with pytest.raises(UsageError, match="at least 2 graded samples"):
        learn_retain(one, one, by="domain")
    with pytest.raises(UsageError, match="no prompt has 6 graded samples before and 3 after"):
        learn_retain(four, four, by="domain", attempts=3)
    with pytest.raises(UsageError, match="at least 1, not 0"):
        learn_retain(four, four, by="domain", attempts=0)
    with pytest.raises(UsageError, match="1 prompts were answered only before"):
        learn_retain(make_samples(["AA", "AA"]), make_samples(["AA"]), by="domain")
    with pytest.raises(UsageError, match="no prompt was answered both"):
        learn_retain(make_samples(["AA"]), make_samples(["!!"]), by="domain")


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8), st.integers(1, 3))
@settings(deadline=None)
def test_a_ratio_with_equal_weights_is_a_clustered_mean(values: list[float], repeats: int) -> None:
    column = np.repeat(values, repeats)
    label = np.repeat(np.arange(len(values)), repeats)
    found = ratio_interval(column, np.ones(len(column)), label, width=1.0)
    low, high = clustered_limits(column[:, None], label, 0.95, np.array([1.0]))
    assert (found.low, found.high) == pytest.approx((float(low[0]), float(high[0])), abs=1e-9)


def test_a_ratio_of_unequal_weights() -> None:
    """By hand; weights 3 and 1 are n = 16/10 effective labels, too few for limits."""
    found = ratio_interval(np.array([1.0, 2.0]), np.array([3.0, 1.0]), np.arange(2))
    assert found.value == pytest.approx(3 / 4)
    assert np.isnan(found.low)
    # three labels, weights 1, 1, 2: n = 16/6, R = 1/2, u = (1/2, -1/2, 0)
    found = ratio_interval(np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 2.0]), np.arange(3))
    error = np.sqrt(16 / 6 / (10 / 6) * 0.5) / 4
    assert found.value == 0.5
    assert found.high - found.value == pytest.approx(stdtrit(10 / 6, 0.975) * error)
    assert np.isnan(ratio_interval(np.zeros(2), np.zeros(2), np.arange(2)).value)
