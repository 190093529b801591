"""Advantages: small groups by hand, their properties, and expected gradients by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.advantages import Advantage, Kind
from modebench.training.batch import Floats
from tests.training.groups import rewarded

BINARY = st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=16)
REAL = st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=2, max_size=16)
CENTRED: tuple[Kind, ...] = ("mean_centered", "group_std", "maxrl")


def credit(part: Advantage, rewards: Sequence[float]) -> Floats:
    group = rewarded(*rewards)
    return part.advantage(group, group.reward_G, None)


@pytest.mark.parametrize(
    ("kind", "rewards", "expected"),
    [
        ("none", [1, 0, 0, 1], [1, 0, 0, 1]),
        ("mean_centered", [1, 0, 0, 0], [0.75, -0.25, -0.25, -0.25]),
        ("mean_centered", [1, 1, 0, 0], [0.5, 0.5, -0.5, -0.5]),
        ("maxrl", [1, 0, 0, 0, 0, 0, 0, 0], [7, -1, -1, -1, -1, -1, -1, -1]),
        ("maxrl", [1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, -1, -1, -1, -1]),
        ("maxrl", [0, 0, 0], [0, 0, 0]),
        ("maxrl", [1, 1, 1], [0, 0, 0]),
        ("maxrl_full", [1, 1, 0, 0], [1, 1, -1, -1]),
        ("maxrl_full", [0, 0, 0], [-1, -1, -1]),
        ("maxrl_conditional", [1, 1, 0, 0], [2, 2, 0, 0]),
        ("maxrl_conditional", [0, 0], [0, 0]),
    ],
)
def test_by_hand(kind: Kind, rewards: list[float], expected: list[float]) -> None:
    assert credit(Advantage(kind), rewards).tolist() == expected


def test_group_std_by_hand_with_both_deviations() -> None:
    # Deviations of [1, 0, 0, 0]: squares sum to 3/4, so std is 1/2 with ddof 1 and sqrt(3)/4 with ddof 0.
    assert credit(Advantage("group_std", eps=0), [1, 0, 0, 0]) == pytest.approx([1.5, -0.5, -0.5, -0.5])
    with_zero = credit(Advantage("group_std", eps=0, ddof=0), [1, 0, 0, 0])
    assert with_zero == pytest.approx(np.array([3, -1, -1, -1]) / math.sqrt(3))
    assert credit(Advantage("group_std", eps=0.5), [1, 0, 0, 0])[0] == pytest.approx(0.75)


@pytest.mark.parametrize("size", [2, 4, 16, 64])
def test_a_lone_success(size: int) -> None:
    lone = [1.0] + [0.0] * (size - 1)
    assert credit(Advantage("group_std", eps=0), lone)[0] == pytest.approx((size - 1) / math.sqrt(size))
    assert credit(Advantage("mean_centered"), lone)[0] == pytest.approx((size - 1) / size)
    assert credit(Advantage("maxrl"), lone)[0] == pytest.approx(size - 1)


@settings(deadline=None, max_examples=60)
@given(REAL)
def test_advantages_sum_to_zero(rewards: list[float]) -> None:
    for kind in ("mean_centered", "group_std"):
        assert credit(Advantage(kind), rewards).sum() == pytest.approx(0, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(BINARY)
def test_maxrl_weighs_successes_by_what_is_left(rewards: list[float]) -> None:
    size, successes = len(rewards), int(sum(rewards))
    advantage_G = credit(Advantage("maxrl"), rewards)
    assert advantage_G.sum() == pytest.approx(0, abs=1e-9)
    mass = 2 * (size - successes) if successes else 0
    assert np.abs(advantage_G).sum() == pytest.approx(mass)


@settings(deadline=None, max_examples=60)
@given(BINARY)
def test_how_much_weight_a_group_has_by_its_successes(rewards: list[float]) -> None:
    """Sum of |A|: Dr. GRPO 2K(N - K)/N, GRPO 2 sqrt(K(N - K)(N - 1)/N), highest where half are right."""
    size, successes = len(rewards), int(sum(rewards))
    product = successes * (size - successes)
    centred = np.abs(credit(Advantage("mean_centered"), rewards)).sum()
    assert centred == pytest.approx(2 * product / size)
    standardised = np.abs(credit(Advantage("group_std", eps=0), rewards)).sum()
    assert standardised == pytest.approx(2 * math.sqrt(product * (size - 1) / size))


@settings(deadline=None, max_examples=60)
@given(REAL, st.floats(0.5, 8), st.floats(-4, 4))
def test_group_std_does_not_see_scale_and_shift(rewards: list[float], scale: float, shift: float) -> None:
    part = Advantage("group_std", eps=1e-9)
    moved = [scale * reward + shift for reward in rewards]
    # All-equal rewards may differ in the last bit once they are moved.
    if len(set(rewards)) > 1:
        assert credit(part, moved) == pytest.approx(credit(part, rewards), abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(BINARY)
def test_mean_centred_advantages_are_bounded_by_one(rewards: list[float]) -> None:
    assert np.abs(credit(Advantage("mean_centered"), rewards)).max() < 1


@settings(deadline=None, max_examples=60)
@given(BINARY.flatmap(lambda rewards: st.tuples(st.just(rewards), st.permutations(range(len(rewards))))))
def test_they_permute_with_the_rollouts(case: tuple[list[float], list[int]]) -> None:
    rewards, order = case
    for kind in CENTRED:
        before = credit(Advantage(kind), rewards)
        assert credit(Advantage(kind), [rewards[index] for index in order]) == pytest.approx(before[order])


def expected_gradient(kind: Kind, size: int, chance: float) -> float:
    """E of (1/G) sum_i A_i d log p(y_i) over all 2^G outcomes of a coin with the logit as its parameter."""
    total = 0.0
    for rewards in itertools.product([0.0, 1.0], repeat=size):
        likelihood = math.prod(chance if reward else 1 - chance for reward in rewards)
        score_G = np.array(rewards) - chance
        total += likelihood * float((credit(Advantage(kind), rewards) * score_G).mean())
    return total


@pytest.mark.parametrize("chance", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_expected_gradients_by_enumeration(size: int, chance: float) -> None:
    slope = chance * (1 - chance)  # d p / d logit
    order = size - 1
    maxrl = (1 - (1 - chance) ** order) / chance
    assert expected_gradient("none", size, chance) == pytest.approx(slope)
    assert expected_gradient("mean_centered", size, chance) == pytest.approx((1 - 1 / size) * slope)
    # Subtracting the mean and leaving out groups without a success costs one order of the truncation.
    assert expected_gradient("maxrl", size, chance) == pytest.approx(maxrl * slope)
    whole = (1 - (1 - chance) ** size) / chance
    assert expected_gradient("maxrl_full", size, chance) == pytest.approx(whole * slope)
    assert expected_gradient("maxrl_conditional", size, chance) == pytest.approx(whole * slope)


def test_maxrl_goes_from_reinforce_to_the_gradient_of_the_logarithm() -> None:
    chance = 0.6
    slope = chance * (1 - chance)
    assert expected_gradient("maxrl", 2, chance) == pytest.approx(slope)
    assert expected_gradient("maxrl", 12, chance) == pytest.approx(slope / chance, rel=1e-4)


@pytest.mark.parametrize(("field", "value"), [("eps", -1.0), ("ddof", 2)])
def test_options_out_of_range(field: str, value: float) -> None:
    with pytest.raises(UsageError, match=rf"advantage\.{field} must"):
        Advantage("group_std", **{field: value})  # type: ignore[arg-type]
