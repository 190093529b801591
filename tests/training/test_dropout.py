"""GRPODropout: what is left out, by hand and against all subsets; what recentring is for; its switches."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.advantages import Advantage
from modebench.training.batch import Floats, Group
from modebench.training.config import TrainConfig
from modebench.training.dropout import GRPODropout, largest_feasible, pushes, surprisals
from modebench.training.method import Method
from modebench.training.methods import build
from modebench.training.part import Kept
from modebench.training.settings import from_assignments
from modebench.training.setup import _method
from tests.training.groups import rollout, surprising

SUBSETS_SG = np.array(list(itertools.product([False, True], repeat=8)))
GROUPS = st.integers(3, 8).flatmap(
    lambda size: st.tuples(
        st.lists(st.sampled_from([0.0, 1.0]), min_size=size, max_size=size),
        st.lists(st.integers(1, 10**6), min_size=size, max_size=size, unique=True),
    )
)


def standardised(group: Group) -> Floats:
    return Advantage("group_std").advantage(group, group.reward_G, None)


def select(part: GRPODropout, group: Group, kept_G: Kept | None = None) -> tuple[Floats, Kept]:
    everything = np.ones(group.size, dtype=np.bool_)
    return part.select(group, standardised(group), everything if kept_G is None else kept_G, None)


def random_cases(count: int, shift: float = 0.0) -> Iterator[tuple[Floats, Floats]]:
    """Rewards and surprisals of mixed groups of eight: success rates uniform, surprisals of Gamma(2), of
    wrong answers higher by `shift`."""
    random = np.random.default_rng(1)
    while count:
        reward_G = (random.random(8) < random.random()).astype(float)
        surprisal_G = random.gamma(2, 1, 8) + shift * (1 - reward_G)
        if 0 < reward_G.sum() < 8:
            count -= 1
            yield reward_G, surprisal_G


def random_groups(count: int) -> list[Group]:
    return [surprising(reward_G, surprisal_G) for reward_G, surprisal_G in random_cases(count)]


def test_the_four_steps_by_hand() -> None:
    # Deviations of the rewards [1, 1, 0, 0]: std 1/sqrt(3), so A = +-sqrt(3)/2; mean surprisal 2.5.
    group = surprising([1, 1, 0, 0], [1, 4, 2, 3])
    half = np.sqrt(3) / 2
    assert standardised(group) == pytest.approx([half, half, -half, -half], abs=1e-5)
    push_G = pushes(standardised(group), surprisals(group))
    assert push_G == pytest.approx(np.array([-1.5, 1.5, 0.5, -0.5]) * half / 4, abs=1e-5)
    # They sum to 0: nothing has to go. With the first success likelier the sum is negative, and it goes.
    assert select(GRPODropout(), group)[1].all()
    group = surprising([1, 1, 0, 0], [0, 4, 2, 3])
    advantage_G, kept_G = select(GRPODropout(), group)
    assert kept_G.tolist() == [False, True, True, True]
    weight = np.exp([-4.0, -2.0, -3.0])
    weight /= weight.sum()
    mean = half * (weight[0] - weight[1] - weight[2])
    assert advantage_G == pytest.approx([0, half - mean, -half - mean, -half - mean], abs=1e-5)


def test_no_larger_set_is_feasible_among_all_subsets() -> None:
    """A thousand random groups, every one of the 256 subsets; the sum of pushes is a covariance over all."""
    for group in random_groups(1000):
        advantage_G, surprisal_G = standardised(group), surprisals(group)
        push_G = pushes(advantage_G, surprisal_G)
        kept_G = largest_feasible(push_G)
        feasible_S = SUBSETS_SG @ push_G >= -1e-12
        assert kept_G.sum() == SUBSETS_SG[feasible_S].sum(axis=1).max()
        assert push_G[kept_G].sum() >= -1e-12
        gated_G = advantage_G * kept_G
        covariance = (gated_G * surprisal_G).mean() - gated_G.mean() * surprisal_G.mean()
        assert covariance == pytest.approx(push_G[kept_G].sum(), abs=1e-9)


@pytest.mark.parametrize("dropped", [(), (0,), (1, 2), (3,)])
def test_the_sum_of_pushes_is_the_slope_of_the_entropy(dropped: tuple[int, ...]) -> None:
    """A group that holds every response as often as the policy gives it, and the proximal step on what is
    kept, p exp(eta A) up to its sum: the first-order view that the filter rests on."""
    p_Y, times = np.array([4, 2, 1, 1]) / 8, [4, 2, 1, 1]
    response_G = np.repeat(np.arange(4), times)
    group = surprising(np.array([1.0, 0.0, 1.0, 0.0])[response_G], -np.log(p_Y)[response_G])
    kept_G = ~np.isin(response_G, dropped)
    gated_Y = np.zeros(4)
    gated_Y[response_G[kept_G]] = standardised(group)[kept_G]

    def entropy(eta: float) -> float:
        moved_Y = p_Y * np.exp(eta * gated_Y)
        moved_Y /= moved_Y.sum()
        return float(-moved_Y @ np.log(moved_Y))

    slope = (entropy(1e-4) - entropy(-1e-4)) / 2e-4
    push_G = pushes(standardised(group), surprisals(group))
    assert slope == pytest.approx(push_G[kept_G].sum(), abs=1e-6)
    assert abs(slope) > 0.01


def test_the_mean_surprisal_is_that_of_the_whole_group() -> None:
    group = surprising([1, 1, 0, 0], [0, 4, 2, 3])
    kept_G = largest_feasible(pushes(standardised(group), surprisals(group)))
    over_all = pushes(standardised(group), surprisals(group))[kept_G].sum()
    over_kept = pushes(standardised(group)[kept_G], surprisals(group)[kept_G]).sum()
    assert over_kept != pytest.approx(over_all, abs=0.01)


def frequencies(count: int, shift: float) -> tuple[float, float]:
    """How often the constraint is broken after the restore step, and how often no positive row is left."""
    broken = silent = 0
    for reward_G, surprisal_G in random_cases(count, shift):
        advantage_G = (reward_G - reward_G.mean()) / reward_G.std(ddof=1)
        push_G = pushes(advantage_G, surprisal_G)
        left_G = largest_feasible(push_G) | (advantage_G <= 0)
        broken += push_G[left_G].sum() < -1e-12
        silent += not (advantage_G[left_G] > 0).any()
    return broken / count, silent / count


@pytest.mark.parametrize(("shift", "silent"), [(0, 0.10), (1, 0.21), (2, 0.37), (4, 0.59)])
def test_how_often_a_group_falls_silent(shift: float, silent: float) -> None:
    """More often the more surprising wrong answers are; the constraint breaks in 44 % of the first groups."""
    broken, found = frequencies(2000, shift)
    assert found == pytest.approx(silent, abs=0.035)
    if shift == 0:
        assert broken == pytest.approx(0.44, abs=0.035)


def test_metrics_count_what_happened() -> None:
    method = build("grpo_dropout", max_completion_length=8)
    seen = method.metrics([*random_groups(300), surprising([1, 1], [1, 2])], [], method.state(0))
    broken, silent = frequencies(300, 0)
    assert seen["grpo_dropout/credited_groups"] == 300
    assert seen["grpo_dropout/negative_sum"] == pytest.approx(broken)
    assert seen["grpo_dropout/no_positives"] == pytest.approx(silent)
    # With rewards of 0 and 1 a group is silent exactly when it lost its positive rollouts.
    assert seen["grpo_dropout/silent_groups"] == pytest.approx(silent)
    alone = method.metrics([surprising([1, 1], [1, 2])], [], method.state(0))
    assert alone["grpo_dropout/silent_groups"] is None


def test_an_empty_filter_leaves_the_rows_that_are_restored() -> None:
    group = surprising([1, 1, 0, 0], [1, 1, 3, 3])
    assert not largest_feasible(pushes(standardised(group), surprisals(group))).any()
    advantage_G, kept_G = select(GRPODropout(), group)
    assert kept_G.tolist() == [False, False, True, True]
    assert advantage_G.tolist() == [0, 0, 0, 0]  # exactly, so no row of it costs a backward pass
    method = build("grpo_dropout", max_completion_length=8)
    rows = method.credit([group], method.state(0))
    assert not any(row.has_gradient for row in rows)
    advantage_G, kept_G = select(GRPODropout(target="both"), group)
    assert not kept_G.any()


@settings(deadline=None, max_examples=60)
@given(GROUPS, st.sampled_from(["prob", "uniform"]))
def test_recentred_advantages(case: tuple[list[float], list[int]], recentre: Any) -> None:
    rewards, ranks = case
    group = surprising(rewards, [rank / 2e5 for rank in ranks])
    before_G = standardised(group)
    after_G, kept_G = select(GRPODropout(recentre=recentre), group)
    weight_G = np.exp(-surprisals(group)) if recentre == "prob" else np.ones(group.size)
    assert weight_G[kept_G] @ after_G[kept_G] / weight_G[kept_G].sum() == pytest.approx(0, abs=1e-9)
    left, was = after_G[kept_G], before_G[kept_G]
    assert np.subtract.outer(left, left) == pytest.approx(np.subtract.outer(was, was))
    assert kept_G[before_G <= 0].all()
    assert not after_G[~kept_G].any()


@settings(deadline=None, max_examples=60)
@given(GROUPS, st.floats(-3, 3), st.randoms())
def test_order_and_a_common_surprisal_have_no_part_in_it(
    case: tuple[list[float], list[int]], constant: float, random: Any
) -> None:
    rewards, ranks = case
    surprisal_G = np.array(ranks) / 2e5
    advantage_G, kept_G = select(GRPODropout(), surprising(rewards, surprisal_G))
    push_G = pushes(standardised(surprising(rewards, surprisal_G)), surprisal_G)
    order = list(range(len(rewards)))
    random.shuffle(order)
    moved = surprising([rewards[index] for index in order], surprisal_G[order] + constant)
    moved_G, moved_kept_G = select(GRPODropout(), moved)
    ties = len(set(push_G.round(9))) < len(push_G) or abs(np.cumsum(np.sort(push_G)[::-1])).min() < 1e-9
    if not ties:
        assert moved_kept_G.tolist() == kept_G[order].tolist()
        assert moved_G == pytest.approx(advantage_G[order], abs=1e-9)


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize(
    "options", [{}, {"target": "both", "strict": True}, {"zero_push": "drop", "floor": "quarter"}]
)
def test_groups_without_a_mixture_are_left_alone(reward: float, options: dict[str, Any]) -> None:
    advantage_G, kept_G = select(GRPODropout(**options), surprising([reward] * 4, [1, 2, 3, 9]))
    assert kept_G.all()
    assert not advantage_G.any()


def after_a_step(recentre: Any, eta: float) -> tuple[Floats, Floats, float]:
    """A policy over six responses, five of them a group: drift of log p outside the update after a proximal
    step, gradient of the logits there, and the mean advantage under the policy."""
    p_Y = np.array([0.3, 0.25, 0.15, 0.12, 0.1, 0.08])
    group = surprising([1, 1, 0, 0, 1], -np.log(p_Y[:5]))
    advantage_G, kept_G = select(GRPODropout(recentre=recentre), group)
    assert 0 < kept_G.sum() < 5
    advantage_Y = np.append(advantage_G, 0.0)
    moved_Y = p_Y * np.exp(eta * advantage_Y)
    moved_Y /= moved_Y.sum()
    outside_Y = np.append(~kept_G, True)
    logits_Y = torch.tensor(np.log(p_Y), requires_grad=True)
    (torch.tensor(p_Y * advantage_Y) * torch.log_softmax(logits_Y, -1)).sum().backward()
    assert logits_Y.grad is not None
    return np.log(moved_Y / p_Y)[outside_Y] / eta, logits_Y.grad.numpy()[outside_Y], float(p_Y @ advantage_Y)


def test_rows_outside_the_update_do_not_drift() -> None:
    """Proposition 4: they drift by minus the mean advantage under the policy, which weighted recentring
    makes 0; equal weights and no recentring do not."""
    for eta in (1e-3, 1e-4):
        drift_Y, slope_Y, mean = after_a_step("prob", eta)
        assert mean == pytest.approx(0, abs=1e-15)
        assert np.abs(drift_Y).max() < eta  # second order in the step
        assert np.abs(slope_Y).max() < 1e-15
    for recentre in ("uniform", "none"):
        drift_Y, slope_Y, mean = after_a_step(recentre, 1e-5)
        assert abs(mean) > 0.01
        assert drift_Y == pytest.approx(-mean, abs=1e-4)
        assert np.abs(slope_Y).min() > 1e-4


def kept(group: Group, **options: Any) -> list[int]:
    return np.flatnonzero(select(GRPODropout(**options), group)[1]).tolist()


def test_targets() -> None:
    # Pushes have the signs -, +, -, +: the likely success and the unlikely failure lower the entropy.
    group = surprising([1, 1, 0, 0], [0.5, 3, 4, 2])
    signs = np.sign(pushes(standardised(group), surprisals(group))).tolist()
    assert signs == [-1, 1, -1, 1]
    assert kept(group, target="both") == [1, 3]
    assert kept(group, target="positive") == [1, 2, 3]
    assert kept(group, target="negative") == [0, 1, 3]


def test_strict_needs_a_positive_sum() -> None:
    group = surprising([1, 1, 0, 0], [1, 4, 2, 3])  # pushes -1.5, 1.5, .5, -.5 sum to 0
    assert kept(group, target="both") == [0, 1, 2, 3]
    assert kept(group, target="both", strict=True) == [1, 2, 3]


def test_rows_without_a_push_can_be_left_out() -> None:
    group = surprising([1, 1, 0], [2, 3, 1])  # mean 2: the first pushes nothing
    assert kept(group) == [0, 1, 2]
    assert kept(group, zero_push="drop") == [1, 2]


def test_the_floor_brings_the_best_rows_back() -> None:
    group = surprising([1, 1, 1, 1, 0, 0, 0, 0], [1, 1.1, 1.2, 1.3, 3, 3.1, 3.2, 3.3])
    assert kept(group, target="both") == []
    assert kept(group, target="both", floor="quarter") == [3, 4]
    assert kept(group, target="positive", floor="quarter") == [3, 4, 5, 6, 7]


def test_recomputed_advantages_have_the_direction_of_native_ones() -> None:
    group = surprising([1, 1, 0, 0, 0], [0, 4, 2, 3, 2.5])
    native_G, kept_G = select(GRPODropout(), group)
    recomputed_G, same_G = select(GRPODropout(advantages="recomputed"), group)
    assert kept_G.tolist() == same_G.tolist() == [False, True, True, True, True]
    reward_N, weight_N = group.reward_G[1:], np.exp(-surprisals(group)[1:])
    expected = (reward_N - weight_N @ reward_N / weight_N.sum()) / reward_N.std(ddof=1)
    assert recomputed_G[1:] == pytest.approx(expected)
    assert recomputed_G[1:] / native_G[1:] == pytest.approx(np.full(4, recomputed_G[1] / native_G[1]))
    silent_G, _ = select(
        GRPODropout(advantages="recomputed", recentre="none"), surprising([1, 0, 0], [0, 2, 2])
    )
    assert silent_G.tolist() == [0, 0, 0]


def test_dropped_rollouts_leave_numerator_and_denominator() -> None:
    group = surprising([1, 1, 0, 0], [0, 4, 2, 3], lengths=[5, 2, 3, 4])
    method = build("grpo_dropout", max_completion_length=8)
    weights = [set(row.weight_T) for row in method.credit([group], method.state(0))]
    assert weights == [{0.0}, {1 / 9}, {1 / 9}, {1 / 9}]
    method = build("grpo_dropout", {"grpo_dropout.control": "keep_scale"}, max_completion_length=8)
    rows = method.credit([group], method.state(0))
    assert {weight for row in rows for weight in row.weight_T} == {1 / 14}
    assert [row.has_gradient for row in rows] == [False, True, True, True]
    assert method.metrics([group], [], method.state(0))["grpo_dropout/kept"] == 0.75


def test_the_random_control_drops_as_many_and_is_a_function_of_seed_update_and_prompt() -> None:
    method = build("grpo_dropout", {"grpo_dropout.control": "random"}, max_completion_length=8)
    group = surprising([1, 1, 1, 1, 1, 1, 0, 0], [0, 0.1, 1, 1.2, 1.4, 3, 2, 3])
    count = len(kept(group))
    assert count == 6
    state, again = method.state(0), method.state(0)
    seen = set()
    for _ in range(12):
        method.observe([group], state)
        again.load_state_dict(json.loads(json.dumps(state.state_dict())))
        dropped = [left(method, each, group) for each in (state, again, state)]
        assert dropped[0] == dropped[1] == dropped[2]
        assert len(dropped[0]) == count
        assert {6, 7} < set(dropped[0])
        seen.add(tuple(dropped[0]))
    assert len(seen) > 3


def left(method: Method, state: Any, group: Group) -> list[int]:
    return [index for index, row in enumerate(method.credit([group], state)) if row.weight_T.any()]


def test_rows_that_an_earlier_part_dropped_stay_out() -> None:
    members = [rollout([3, 7], 1, "a", "length", logp=-3.2), rollout([3, 7], 1, "a", logp=-0.1)]
    members += [rollout([3, 7], 0, logp=-1.1), rollout([3, 7], 1, "b", logp=-1.6)]
    group = Group(surprising([1], [1]).task, (1, 2), tuple(members))
    one = build("grpo_dropout", adds=["mask_truncated"], max_completion_length=8)
    other = build("grpo", adds=["grpo_dropout", "mask_truncated"], max_completion_length=8)
    for method in (one, other):
        rows = method.credit([group], method.state(0))
        assert [bool(row.weight_T.any()) for row in rows] == [False, False, True, True]
        advantage_N = np.array([row.advantage_T[0] for row in rows[2:] if row.advantage_T is not None])
        # Recentring is over what both left in.
        assert np.exp([-1.1, -1.6]) @ advantage_N == pytest.approx(0, abs=1e-12)


def test_the_headline_is_weighted_by_credited_groups() -> None:
    method = build("grpo_dropout", max_completion_length=8)
    name, weight = "grpo_dropout/silent_groups", "grpo_dropout/credited_groups"
    steps = [
        {name: 1.0, weight: 1.0, "grpo_dropout/kept": 0.5},
        {name: 0.0, weight: 3.0},
        {name: None, weight: 0.0},
    ]
    assert method.headline(steps) == {name: 0.25, "grpo_dropout/kept": 0.5}
    assert method.headline([]) == {name: None, "grpo_dropout/kept": None}
    assert build("grpo", max_completion_length=8).headline(steps) == {}


@pytest.mark.parametrize("target", ["positive", "negative", "both"])
@pytest.mark.parametrize("recentre", ["none", "uniform", "prob"])
def test_the_ablations_are_settings(target: str, recentre: str) -> None:
    given = from_assignments([f"grpo_dropout.target={target}", f"grpo_dropout.recentre={recentre}"])
    method = _method(TrainConfig(method="grpo_dropout"), given)
    options = method.options()["grpo_dropout"]
    assert (options["target"], options["recentre"]) == (target, recentre)
    rows = method.credit(random_groups(4), method.state(0))
    assert any(row.has_gradient for row in rows)


def test_a_group_of_one_is_refused() -> None:
    with pytest.raises(UsageError, match="2 or more"):
        GRPODropout().select(surprising([1], [1]), np.ones(1), np.ones(1, dtype=np.bool_), None)
