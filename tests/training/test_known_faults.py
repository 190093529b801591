"""Faults that users of other trainers reported, each as a test that this one doesn't have it.

Threads are named as repository#number on GitHub: trl is huggingface/trl, verl is verl-project/verl.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from modebench.errors import UsageError
from modebench.training.batch import Group, Row
from modebench.training.combining import UNMIXED_CREDIT
from modebench.training.likelihood import Scorer
from modebench.training.loss import backward
from modebench.training.method import Method
from modebench.training.methods import METHODS, build
from modebench.training.surrogates import Aggregation
from tests.training.groups import TASK, Bigram, gradient, rewarded, rollout

AGGREGATIONS = get_args(Aggregation)
RAGGED = (24, 4, 9, 20, 3, 24, 7, 15)


def method(aggregation: str, *adds: str, cap: int = 24) -> Method:
    return build("dr_grpo", {"surrogate.loss_agg_mode": aggregation}, adds, max_completion_length=cap)


def named(name: str, *adds: str) -> Method:
    """A method of the table; the task of these groups says nothing of its modes."""
    return build(name, {"gapo.support": 4} if name == "gapo" else {}, adds, max_completion_length=8)


def credits_mixtures_only(name: str) -> bool:
    return not any(UNMIXED_CREDIT in part.provides for part in METHODS[name].parts)


def rows_of(built: Method, *groups: Group) -> list[Row]:
    return built.credit(groups, built.state(seed=0))


def ragged() -> list[Group]:
    return [
        rewarded(1, 0, 0, 1, prompt=(1, 2), lengths=RAGGED[:4]),
        rewarded(0, 1, 0, 0, prompt=(2, 5, 1), lengths=RAGGED[4:]),
    ]


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_1_micro_batches_do_not_change_the_gradient(aggregation: str) -> None:
    """Token means under gradient accumulation: verl#906, verl#5625, trl#3021, trl#3938."""
    rows = rows_of(method(aggregation), *ragged())
    passes, gradients = [], []
    for tokens in (1, 60, 120, 8192):
        model = Bigram()
        calls: list[int] = []
        model.register_forward_hook(lambda *_, calls=calls: calls.append(1))
        gradients.append(gradient(model, rows, micro_batch_tokens=tokens))
        passes.append(len(calls))
    assert passes[0] == len(rows)
    assert passes == sorted(set(passes), reverse=True)
    for other in gradients[1:]:
        np.testing.assert_allclose(other, gradients[0], atol=1e-12)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_3_a_batch_twice_has_the_same_gradient(aggregation: str) -> None:
    """A sum where a mean is meant: verl#3741, verl#5366."""
    once = gradient(Bigram(), rows_of(method(aggregation), *ragged()))
    twice = gradient(Bigram(), rows_of(method(aggregation), *ragged(), *ragged()))
    np.testing.assert_allclose(twice, once, atol=1e-12)


def test_3_the_constant_divisor_is_of_the_run_not_of_the_batch() -> None:
    """The padded width of the batch as divisor: verl#6157, trl#3138, trl#3256."""
    short = rows_of(method("seq-mean-token-sum-norm"), rewarded(1, 0, lengths=(2, 3)))
    beside_long = rows_of(method("seq-mean-token-sum-norm"), rewarded(1, 0, lengths=(2, 24)))
    assert short[0].weight_T.tolist() == beside_long[0].weight_T.tolist() == [1 / 48, 1 / 48]


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_4_a_masked_rollout_leaves_the_denominator_too(aggregation: str) -> None:
    """Masked in the numerator, counted in the denominator: trl#6369. The constant divisor counts all."""
    cut = rollout([3] * 24, 0.0, None, "length")
    whole = rewarded(1, 0, 0, lengths=(4, 9, 20))
    group = replace(whole, rollouts=(*whole.rollouts, cut))
    *rows, masked = rows_of(method(aggregation, "mask_truncated"), group)
    assert not masked.weight_T.any()
    assert len(masked.token_ids) == 24
    without = rows_of(method(aggregation), whole)
    ratio = 3 / 4 if aggregation == "seq-mean-token-sum-norm" else 1
    for row, alone in zip(rows, without, strict=True):
        assert row.weight_T == pytest.approx(ratio * alone.weight_T)
    # Its reward stays in the mean: 1/4, not 1/3.
    assert [float(row.advantage_T[0]) for row in rows if row.advantage_T is not None] == [0.75, -0.25, -0.25]


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_4_with_nothing_left_the_weights_are_zero_not_nan(aggregation: str) -> None:
    group = Group(TASK, (1,), (rollout([3, 4], 0.0, None, "length"), rollout([5], 0.0, None, "length")))
    assert all(not row.weight_T.any() for row in rows_of(method(aggregation, "mask_truncated"), group))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "grpo_dropout"])
def test_5_credit_is_given_before_anything_is_dropped(name: str) -> None:
    """Rows dropped before the group statistics: open-instruct#1794 (allenai), Search-R1#88.

    GRPODropout is left out: it centres anew on what is kept, on purpose.
    """
    built = named(name, "mask_truncated")
    rollouts = rewarded(1, 0, 1, 0, lengths=(2, 3, 4, 5)).rollouts
    cut = tuple(
        replace(one, finish_reason="length") if index == 1 else one for index, one in enumerate(rollouts)
    )
    whole, masked = (rows_of(built, Group(TASK, (1, 2), each)) for each in (rollouts, cut))
    for one, other in zip(whole, masked, strict=True):
        assert np.array_equal(one.advantage_T, other.advantage_T)  # type: ignore[arg-type]
    backwards = rows_of(built, Group(TASK, (1, 2), rollouts[::-1]))
    for one, other in zip(whole, reversed(backwards), strict=True):
        assert one.token_ids == other.token_ids
        assert one.advantage_T == pytest.approx(other.advantage_T)
        assert one.weight_T == pytest.approx(other.weight_T)


@pytest.mark.parametrize(
    "name", [name for name in METHODS if credits_mixtures_only(name) and name not in ("maxrl", "re_max")]
)
def test_6_equal_rewards_give_exactly_zero(name: str) -> None:
    """Rounding left over by the mean, divided by a deviation near zero: NeMo-RL#4161 (NVIDIA-NeMo)."""
    rows = rows_of(named(name), rewarded(*[0.35] * 7))
    assert all(not np.any(row.advantage_T) for row in rows)


def test_6_a_reward_that_is_no_number_is_named() -> None:
    """One NaN poisons the group in silence: trl#5773."""
    built = build("grpo", max_completion_length=8)
    with pytest.raises(UsageError, match=r"test/0, sample 2: reward is nan"):
        built.observe([rewarded(0, 1, float("nan"), 1)], built.state(seed=0))


@pytest.mark.parametrize("name", [name for name in METHODS if name != "reinforce"])
def test_6_a_group_of_one_is_refused(name: str) -> None:
    """A group of one keeps its raw reward as advantage (verl), or 1e6 (MaxRL's code)."""
    with pytest.raises(UsageError, match="2 or more, not 1"):
        rows_of(named(name), rewarded(1))


def test_7_maxrl_takes_binary_rewards_only() -> None:
    """A mean near zero or below flips or blows up the advantages: trl#5026."""
    with pytest.raises(UsageError, match="rewards of 0 and 1; test/0 has others"):
        rows_of(build("maxrl", max_completion_length=8), rewarded(0.5, 0, 0, 1))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reinforce", [1, 0, 0, 0]),
        ("grpo", [1.5, -0.5, -0.5, -0.5]),
        ("dr_grpo", [0.75, -0.25, -0.25, -0.25]),
        *((name, [1.5, -0.5, -0.5, -0.5]) for name in ("clip_higher", "dapo", "gspo", "grpo_kl", "grpo_js")),
        *((name, [1.5, -0.5, -0.5, -0.5]) for name in ("clip_cov", "kl_cov", "top_entropy")),
        ("entropy_bonus", [0.75, -0.25, -0.25, -0.25]),
        ("maxrl", [3, -1, -1, -1]),
        ("re_dr", [0.75, -0.25, -0.25, -0.25]),
        ("re_max", [3, -1, -1, -1]),
    ],
)
def test_7_the_estimator_is_that_of_the_name(name: str, expected: list[float]) -> None:
    """A configuration that ran REINFORCE under another name: rlhf-book#391 (natolambert)."""
    rows = rows_of(build(name, max_completion_length=8), rewarded(1, 0, 0, 0))
    found = [float(row.advantage_T[0]) for row in rows if row.advantage_T is not None]
    assert found == pytest.approx(expected, abs=1e-5)


def test_10_the_first_update_has_ratio_one() -> None:
    """Old log-probabilities from another batch shape: verl#2088, verl#2996, RLinf#1534."""
    seen = backward(
        Scorer(Bigram()), rows_of(method("token-mean"), *ragged()), temperature=1.0, epsilon=0, epsilon_high=0
    )
    assert (seen.clipped, seen.log_ratio_max) == (0, 0.0)
    assert seen.surrogate_tokens == sum(RAGGED)
