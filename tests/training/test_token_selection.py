"""Clip-Cov, KL-Cov and top entropy: small cases by hand, and what they reduce to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.batch import Group, Row
from modebench.training.config import OptimizerConfig, TrainConfig
from modebench.training.likelihood import Scorer
from modebench.training.loss import backward
from modebench.training.method import Method
from modebench.training.methods import build
from modebench.training.part import Seen
from modebench.training.recipe import run_updates
from modebench.training.token_selection import ClipCov, KLCov, TopEntropy
from modebench.training.update import Score, Updater, with_old
from tests.training.groups import Bigram, rewarded

CAP = 10


def rows_of(advantages: Sequence[Sequence[float]], weight: float = 0.2) -> list[Row]:
    """Surrogate rows with a token of each advantage, all of one weight."""
    return [
        Row(
            (1,),
            (2,) * len(row),
            "surrogate",
            np.full(len(row), weight),
            advantage_T=np.array(row, dtype=np.float64),
        )
        for row in advantages
    ]


def seen_of(logp: Sequence[Sequence[float]], entropy: Sequence[Sequence[float]] | None = None) -> list[Seen]:
    entropy = logp if entropy is None else entropy
    return [
        Seen(
            np.array(one, dtype=np.float64), np.array(other, dtype=np.float64), np.zeros(len(one), dtype=bool)
        )
        for one, other in zip(logp, entropy, strict=True)
    ]


def weights(rows: Sequence[Row]) -> list[list[float]]:
    return [row.weight_T.tolist() for row in rows]


# A has mean 0 and logp mean -2 over the five tokens, so cov = A (logp + 2): 2, 0, 0, -.5, 7.5.
ADVANTAGES = [[2.0, 0.0, 1.0], [0.0, -3.0]]
LOGP = [[-1.0, -0.5, -2.0], [-2.0, -4.5]]


def test_clip_cov_by_hand() -> None:
    """One of five tokens has a covariance in (1, 5): it loses its gradient, the denominator stays 5."""
    part = ClipCov()
    state = part.state(seed=0)
    rows = part.reweigh(rows_of(ADVANTAGES), seen_of(LOGP), state)
    assert weights(rows) == [[0.0, 0.2, 0.2], [0.2, 0.2]]
    assert (state.candidates, state.tokens) == (1, 5)
    assert part.metrics([], [], len, state) == {"clip_cov/candidates": 0.2}
    wide = ClipCov(high=8.0, share=1.0)
    assert weights(wide.reweigh(rows_of(ADVANTAGES), seen_of(LOGP), wide.state(0))) == [
        [0, 0.2, 0.2],
        [0.2, 0],
    ]


def test_clip_cov_leaves_the_others_gradient_alone() -> None:
    """On a real policy: the gradient is that of the other tokens, each with the weight that it had."""
    method = build("clip_cov", {"clip_cov.low": -100, "clip_cov.high": 100}, max_completion_length=CAP)
    state, groups = method.state(0), [rewarded(1, 0, 0, lengths=(2, 5, 3))]
    rows, _, _ = reweighed(method, groups, state)
    plain = method.credit(groups, state)
    changed = [
        (place, t)
        for place, row in enumerate(rows)
        for t in range(len(row.token_ids))
        if row.weight_T[t] == 0
    ]
    assert len(changed) == 1  # max(1, floor(2e-4 · 10))
    ((place, t),) = changed
    for row, before in zip(rows, plain, strict=True):
        untouched = np.ones(len(row.token_ids), dtype=bool)
        if row is rows[place]:
            untouched[t] = False
        assert np.array_equal(row.weight_T[untouched], before.weight_T[untouched])
        assert row.weight_T[untouched] == pytest.approx(1 / 10)


def reweighed(method: Method, groups: Sequence[Group], state: Any) -> tuple[list[Row], list[Any], list[Any]]:
    """Fresh rows after a pass over the small policy."""
    rows = method.credit(groups, state)
    table_VV = torch.log_softmax(Bigram().logits.detach(), -1)
    entropy_V = -(table_VV.exp() * table_VV).sum(-1)
    places = [[row.prompt_ids[-1], *row.token_ids[:-1]] for row in rows]
    logp = [table_VV[place, list(row.token_ids)].numpy() for place, row in zip(places, rows, strict=True)]
    entropy = [entropy_V[place].numpy() for place in places]
    scores = [Score(*each) for each in zip(logp, entropy, strict=True)]
    return method.reweigh(rows, method.seen(rows, scores), state), logp, entropy


def test_an_empty_window_is_the_base_and_counts_nothing() -> None:
    """With short answers and advantages near 1 no token reaches the published window."""
    method = build("clip_cov", {"clip_cov.low": 50, "clip_cov.high": 60}, max_completion_length=CAP)
    state, groups = method.state(0), [rewarded(1, 0, 0, 1)]
    rows, _, _ = reweighed(method, groups, state)
    assert weights(rows) == weights(method.credit(groups, state))
    assert method.metrics(groups, [], state)["clip_cov/candidates"] == 0
    assert method.effects(state)["clip_cov"] == 0
    quantile = {"clip_cov.window": "quantile", "clip_cov.low": 0.5, "clip_cov.high": 1, "clip_cov.share": 0.2}
    always = build("clip_cov", quantile, max_completion_length=CAP)
    state = always.state(0)
    groups = [rewarded(1, 0, 0, 1, lengths=(2, 5, 3, 4))]
    rows, _, _ = reweighed(always, groups, state)
    candidates = always.metrics(groups, [], state)["clip_cov/candidates"]
    assert candidates is not None
    assert 0 < candidates <= 0.5
    assert 0 < always.effects(state)["clip_cov"] <= int(0.2 * 14)


def test_one_advantage_for_all_is_no_covariance() -> None:
    part = ClipCov(low=1e-9)
    rows = rows_of([[0.7, 0.7], [0.7]])
    assert weights(part.reweigh(rows, seen_of([[-1, -5], [-9]]), part.state(0))) == weights(rows)


@given(st.floats(-3, 3), st.integers(0, 2**32))
@settings(deadline=None, max_examples=60)
def test_a_shift_of_all_advantages_changes_no_choice(shift: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    advantages, logp = draw.normal(size=(4, 6)).round(2), -draw.gamma(2, 1, size=(4, 6)).round(2)
    for part in (ClipCov(low=0.5, share=0.1), KLCov(share=0.1)):
        chosen = []
        for moved in (0.0, shift):
            rows = rows_of((advantages + moved).tolist())
            after = part.reweigh(rows, seen_of(logp.tolist()), part.state(7))
            marks = [each.weight_T for row in after for each in row.regularisers]
            chosen.append([*(row.weight_T.tolist() for row in after), *(mark.tolist() for mark in marks)])
        assert chosen[0] == chosen[1]


@pytest.mark.parametrize(
    "part", [ClipCov(low=-99, high=99, share=1.0), KLCov(share=1.0), TopEntropy(share=1.0)]
)
def test_tokens_that_do_not_count_are_never_chosen_and_move_no_mean(part: Any) -> None:
    """Their covariance, infinite entropy or extreme log-probability would win otherwise."""
    rows = rows_of([*ADVANTAGES, [50.0, -50.0]])
    rows[2] = replace(rows[2], weight_T=np.zeros(2))
    told = seen_of([*LOGP, [-50.0, -0.1]])
    after = part.reweigh(rows, told, part.state(0))
    assert not after[2].weight_T.any()
    assert not any(each.weight_T.any() for each in after[2].regularisers)
    alone = part.reweigh(rows[:2], told[:2], part.state(0))
    assert weights(after[:2]) == weights(alone)
    # Means over all seven tokens would move the first one out of the published window.
    far = [*rows_of(ADVANTAGES), replace(rows_of([[60.0, -10.0]])[0], weight_T=np.zeros(2))]
    assert weights(ClipCov().reweigh(far, told, ClipCov().state(0))) == [[0, 0.2, 0.2], [0.2, 0.2], [0, 0]]
    nothing = [rows[2]]
    assert weights(part.reweigh(nothing, told[2:], part.state(0))) == [[0, 0]]


def test_tokens_that_clipping_holds_are_no_candidates() -> None:
    part = ClipCov()
    told = seen_of(LOGP)
    told[0] = told[0]._replace(clipped_T=np.array([True, False, False]))
    state = part.state(0)
    assert weights(part.reweigh(rows_of(ADVANTAGES), told, state)) == weights(rows_of(ADVANTAGES))
    assert state.candidates == 0


def test_the_surrogate_tells_what_it_clips() -> None:
    """A > 0 above, A < 0 below, nothing where A is 0 or the policy is the one that sampled."""
    logp_T = np.zeros(5)
    (row,) = rows_of([[1.0, -1.0, 1.0, -1.0, 0.0]])
    surrogate = build("clip_higher", max_completion_length=CAP).surrogate
    assert not surrogate.clipped(row, logp_T).any()
    row.logp_old_T = -np.log([1.27, 0.9, 1.29, 0.79, 5.0])
    assert surrogate.clipped(row, logp_T).tolist() == [False, False, True, True, False]
    assert not replace(surrogate, clip=False).clipped(row, logp_T).any()
    mean = float(np.log([1.27, 0.9, 1.29, 0.79, 5.0]).mean())
    level = replace(surrogate, importance_sampling_level="sequence")
    assert level.clipped(row, logp_T).tolist() == [math.exp(mean) > 1.28, False] * 2 + [False]


def test_draws_are_seeded_and_go_on_after_a_resume() -> None:
    part = ClipCov(low=-99, high=99, share=0.2)
    rows, told = rows_of([[float(n) for n in range(10)]]), seen_of([[-float(n % 3) for n in range(10)]])

    def choices(state: Any, times: int) -> list[list[list[float]]]:
        return [weights(part.reweigh(rows, told, state)) for _ in range(times)]

    straight = choices(part.state(3), 6)
    assert len({str(each) for each in straight}) > 1
    assert all(each[0].count(0.0) == 2 for each in straight)
    first, second = part.state(3), part.state(99)
    before = choices(first, 3)
    second.load_state_dict(first.state_dict())
    assert before + choices(second, 3) == straight
    assert choices(part.state(4), 6) != straight


def test_kl_cov_by_hand() -> None:
    """The fifth token has the largest covariance."""
    part = KLCov(share=0.2, coefficient=0.5)
    rows = part.reweigh(rows_of(ADVANTAGES), seen_of(LOGP), None)
    assert weights(rows) == weights(rows_of(ADVANTAGES))
    marks = [each for row in rows for each in row.regularisers]
    assert [(each.term, each.kind) for each in marks] == [("kl_cov", "abs_log_ratio")] * 2
    assert [each.weight_T.tolist() for each in marks] == [[0, 0, 0], [0, 0.1]]
    two = KLCov(share=0.4).reweigh(rows_of(ADVANTAGES), seen_of(LOGP), None)
    assert [each.weight_T.tolist() for row in two for each in row.regularisers] == [[0.2, 0, 0], [0, 0.2]]


def loss_of(method: Method, rows: Sequence[Row]) -> tuple[Any, torch.Tensor]:
    """What the trainer's backward pass says, and the gradient on the small policy."""
    model = Bigram()
    low, high = method.surrogate.clip_range
    told = backward(Scorer(model), rows, temperature=1.0, epsilon=low, epsilon_high=high)
    assert model.logits.grad is not None
    return told, model.logits.grad


def test_kl_cov_at_ratio_1_is_the_base_and_off_policy_it_is_not() -> None:
    groups = [rewarded(1, 0, 0, 1, lengths=(2, 5, 3, 4))]
    method = build("kl_cov", {"kl_cov.share": 0.1}, max_completion_length=CAP)
    state = method.state(0)
    rows, logp, _ = reweighed(method, groups, state)
    base = build(
        "grpo", {"surrogate.loss_agg_mode": "token-mean", "surrogate.clip": False}, max_completion_length=CAP
    )
    plain = base.credit(groups, base.state(0))
    on_policy, found = loss_of(method, rows)
    assert torch.equal(found, loss_of(base, plain)[1])
    assert on_policy.acting == {"kl_cov": 0}
    draw = np.random.default_rng(0)
    old = [logp_T + draw.normal(size=len(logp_T), scale=0.8) for logp_T in logp]
    off_policy, found = loss_of(method, with_old(rows, old))
    unheld, expected = loss_of(base, with_old(plain, old))
    assert unheld.clipped == 0  # ratios beyond 2 among them
    assert unheld.log_ratio_max > math.log(2)
    assert off_policy.acting == {"kl_cov": 1}  # floor(.1 · 14)
    held = sum(
        float((each.weight_T * np.abs(logp_T - old_T)).sum())
        for row, logp_T, old_T in zip(rows, logp, old, strict=True)
        for each in row.regularisers
    )
    assert off_policy.loss["kl_cov"] == pytest.approx(held)
    assert float((found - expected).norm()) > 1e-3
    nothing = build("kl_cov", {"kl_cov.coefficient": 0}, max_completion_length=CAP)
    rows, _, _ = reweighed(nothing, groups, nothing.state(0))
    assert torch.equal(loss_of(nothing, with_old(rows, old))[1], expected)


@given(st.lists(st.floats(0, 3), min_size=1, max_size=40), st.floats(0.01, 1))
@settings(deadline=None, max_examples=60)
def test_top_entropy_keeps_the_share_rounded_up(entropies: list[float], share: float) -> None:
    told = seen_of([[-1.0] * len(entropies)], [entropies])
    (row,) = TopEntropy(share=share).reweigh(
        rows_of([[1.0] * len(entropies)], 1 / len(entropies)), told, None
    )
    kept_T = row.weight_T > 0
    assert kept_T.sum() == math.ceil(round(share * len(entropies), 9))
    dropped = np.array(entropies)[~kept_T]
    assert not len(dropped) or dropped.max() <= np.array(entropies)[kept_T].min()
    assert row.weight_T[kept_T] == pytest.approx(1 / kept_T.sum())  # a mean over the kept


@pytest.mark.parametrize("name", ["top_entropy", "clip_cov"])
def test_what_tokens_are_chosen_by_has_no_gradient(name: str) -> None:
    """An update moves the policy along the gradient of the loss with the chosen weights as constants."""
    sets = {f"{name}.share": 0.4} | ({"clip_cov.low": -9, "clip_cov.high": 9} if name == "clip_cov" else {})
    method = build(name, sets, max_completion_length=CAP)
    groups = [rewarded(1, 0, 0, 1, lengths=(2, 5, 3, 4))]
    rows, _, _ = reweighed(method, groups, method.state(0))
    assert {bool(weight) for row in rows for weight in row.weight_T} == {True, False}
    model = Bigram()
    config = TrainConfig(optimizer=OptimizerConfig(learning_rate=1.0, max_grad_norm=0))
    descent = torch.optim.SGD(model.parameters(), lr=1.0)
    updater = Updater(Scorer(model), descent, Accelerator(cpu=True), config, method.surrogate)
    run_updates(method, method.state(0), updater, groups, config, 1)
    expected = Bigram().logits.detach() - loss_of(method, rows)[1]
    torch.testing.assert_close(model.logits.detach(), expected, rtol=1e-12, atol=1e-14)


def test_top_entropy_by_hand() -> None:
    """Pooled over both rows, of equal ones the first; the second row keeps nothing."""
    told = seen_of(LOGP, [[0.5, 2.0, 1.0], [1.0, 0.1]])
    rows = TopEntropy(share=0.4).reweigh(rows_of(ADVANTAGES), told, None)
    assert weights(rows) == [[0, pytest.approx(0.5), pytest.approx(0.5)], [0, 0]]
    assert not rows[1].has_gradient
    rows = TopEntropy(share=0.4, denominator="all").reweigh(rows_of(ADVANTAGES), told, None)
    assert weights(rows) == [[0, 0.2, 0.2], [0, 0]]
    assert math.ceil(0.07 * 100) == 8  # what floating point makes of 7
    (row,) = TopEntropy(share=0.07).reweigh(rows_of([[1.0] * 100]), seen_of([[-1.0] * 100]), None)
    assert np.count_nonzero(row.weight_T) == 7


def test_top_entropy_of_all_tokens_is_its_base() -> None:
    groups = [rewarded(1, 0, 0, 1, lengths=(2, 5, 3, 4))]
    method = build("top_entropy", {"top_entropy.share": 1}, max_completion_length=CAP)
    base = build("clip_higher", max_completion_length=CAP)
    state = method.state(0)
    rows, _, _ = reweighed(method, groups, state)
    plain = base.credit(groups, base.state(0))
    for row, other in zip(rows, plain, strict=True):
        assert row.weight_T == pytest.approx(other.weight_T, rel=1e-15)
    assert method.surrogate == base.surrogate


def test_the_mask_leaves_a_divergence_on_every_token() -> None:
    """As in TRL: the mask is of the policy gradient."""
    method = build("top_entropy", {"divergence.kind": "k3"}, ["divergence"], max_completion_length=CAP)
    groups = [rewarded(1, 0, lengths=(4, 6))]
    rows, _, _ = reweighed(method, groups, method.state(0))
    assert sum(np.count_nonzero(row.weight_T) for row in rows) == 2
    assert all(each.weight_T.all() for row in rows for each in row.regularisers)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"clip_cov.share": 0}, "clip_cov.share must be in (0, 1], not 0.0"),
        ({"clip_cov.low": 5}, "clip_cov.low must be below clip_cov.high, not 5.0 and 5.0"),
        ({"clip_cov.window": "quantile"}, "clip_cov.low and high must be in [0, 1], not 1.0 and 5.0"),
        ({"kl_cov.coefficient": -1}, "kl_cov.coefficient must not be negative"),
        ({"top_entropy.share": 1.5}, "top_entropy.share must be in (0, 1], not 1.5"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    (name,) = options
    with pytest.raises(UsageError) as refused:
        build(name.partition(".")[0], options, max_completion_length=CAP)
    assert said in str(refused.value)
