"""Mode replay: the bank, its schedule, doses and gradients."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.batch import Group, Row, prompt_key
from modebench.training.method import Method, MethodState
from modebench.training.methods import build
from tests.training.groups import TASK, Bigram, gradient, moded, rewarded, rollout

MODES = st.lists(st.sampled_from([None, "a", "b", "c", "d"]), min_size=2, max_size=8)


def re_dr(cap: int = 24, **options: object) -> Method:
    return build(
        "re_dr", {f"replay.{name}": value for name, value in options.items()}, max_completion_length=cap
    )


def update(method: Method, state: MethodState, *groups: Group) -> list[Row]:
    method.observe(groups, state)
    return method.extra_rows(groups, state)


def bank(state: MethodState, group: Group) -> dict[str, object]:
    return dict(state.state_dict()["replay"]["banks"][group.key])


def in_key_order(*prompts: tuple[int, ...]) -> list[tuple[int, ...]]:
    return sorted(prompts, key=prompt_key)


def test_the_exemplar_is_the_smallest_token_sequence_and_stays() -> None:
    first = Group(TASK, (1,), (rollout([3, 7], 1, "m"), rollout([3, 4, 7], 1, "m")))
    smaller = Group(TASK, (1,), (rollout([2, 7], 1, "m"), rollout([0], 0)))
    method, state = re_dr(), re_dr().state(0)
    update(method, state, first)
    (row,) = update(method, state, smaller)
    assert row.token_ids == (3, 4, 7)
    assert bank(state, first)["counts"] == {"m": 3}


def test_the_newest_exemplar_is_of_the_last_group_that_has_the_mode() -> None:
    method = re_dr(exemplar="newest", capacity=1)
    state = method.state(0)
    update(method, state, Group(TASK, (1,), (rollout([3, 7], 1, "m"), rollout([2, 7], 1, "m"))))
    (row,) = update(method, state, Group(TASK, (1,), (rollout([5, 7], 1, "m"), rollout([1, 7], 1, "other"))))
    assert row.token_ids == (5, 7)
    (row,) = update(method, state, Group(TASK, (1,), (rollout([1, 7], 1, "other"), rollout([0], 0))))
    assert row.token_ids == (5, 7)


def test_a_random_exemplar_is_drawn_once_by_seed_prompt_and_mode() -> None:
    method = re_dr(exemplar="random")
    members = [rollout([token, 7], 1, "m") for token in range(6)]
    stored = set()
    for seed in range(8):
        drawn = []
        for order in (members, members[::-1]):
            state = method.state(seed)
            (row,) = update(method, state, Group(TASK, (1,), tuple(order)))
            (later,) = update(method, state, Group(TASK, (1,), (members[0], members[1])))
            assert later.token_ids == row.token_ids
            drawn.append(row.token_ids)
        assert drawn[0] == drawn[1]
        stored.add(drawn[0])
    assert len(stored) > 2


def test_only_whole_verified_responses_with_a_mode_are_admitted() -> None:
    group = Group(
        TASK,
        (1,),
        (
            rollout([3, 7], 0, None),
            rollout([4, 7], 1, None),
            rollout([5, 7], 1, "cut", "length"),
            rollout([6, 7], 0, "unpaid"),
        ),
    )
    method, state = re_dr(), re_dr().state(0)
    assert update(method, state, group) == []
    assert state.state_dict()["replay"]["banks"] == {}


def test_a_full_bank_shuts_modes_out_for_good() -> None:
    method = re_dr(capacity=2)
    state = method.state(0)
    group = moded("c", "a", "b", None)
    update(method, state, group)
    update(method, state, moded("c", "c", None, None))
    assert list(bank(state, group)["exemplars"]) == ["a", "b"]  # type: ignore[call-overload]
    assert bank(state, group)["counts"] == {"a": 1, "b": 1, "c": 3}


def test_capacity_one_keeps_the_first_mode() -> None:
    method = re_dr(capacity=1)
    state = method.state(0)
    (first,) = update(method, state, moded("b", None))
    (second,) = update(method, state, moded("a", "a"))
    assert first.token_ids == second.token_ids
    assert second.weight_T == pytest.approx(first.weight_T)


@settings(deadline=None, max_examples=60)
@given(
    MODES.flatmap(lambda modes: st.tuples(st.just(modes), st.permutations(range(len(modes))))),
    st.integers(1, 4),
)
def test_the_order_of_the_rollouts_has_no_part_in_it(
    case: tuple[list[str | None], list[int]], capacity: int
) -> None:
    modes, order = case
    method = re_dr(capacity=capacity)
    group = moded(*modes)
    shuffled = replace(group, rollouts=tuple(group.rollouts[index] for index in order))
    states = [method.state(0), method.state(0)]
    rows = [update(method, state, each) for state, each in zip(states, (group, shuffled), strict=True)]
    assert states[0].state_dict() == states[1].state_dict()
    assert [row.token_ids for row in rows[0]] == [row.token_ids for row in rows[1]]
    stored = [tokens for each in rows[0] for tokens in [each.token_ids]]
    assert len(stored) == min(capacity, len({mode for mode in modes if mode}))
    correct = {one.token_ids for one in group.rollouts if one.reward}
    assert set(stored) <= correct


def test_prompts_never_share_a_key() -> None:
    assert len({prompt_key(ids) for ids in [(1, 23), (12, 3), (123,), (1, 2, 3), ()]}) == 5
    # printf '[1,2]' | sha256sum
    assert moded("a").key == "49a64717d5d4cb19952e6eac2946415cf6879adacf9908e7d872332d32c6e684"


def test_round_robin_over_sorted_keys_with_the_present_group_eligible() -> None:
    one, two, three = in_key_order((1,), (2,), (3,))
    method = re_dr()
    state = method.state(0)
    visited = [
        update(method, state, moded("a", None, prompt=prompt))[0].prompt_ids
        # Banks: {two}, {two}, {one, two} from 0, from 1; {one, two, three} from 0, 1, 2, 0.
        for prompt in (two, two, one, one, three, three, three, three)
    ]
    assert visited == [two, two, one, two, one, two, three, one]


def test_as_many_banks_as_prompts_and_their_mean() -> None:
    one, two, three = in_key_order((1,), (2,), (3,))
    method = re_dr(coefficient=1)
    state = method.state(0)
    groups = [moded("a", "b", None, None, prompt=one), moded("a", None, None, None, prompt=two)]
    rows = update(method, state, *groups, moded(None, None, None, None, prompt=three))
    assert [row.prompt_ids for row in rows] == [one, one, two]
    # (G-1)/G^2 = 3/16; mean over 2 banks; shares 1/2, 1/2 and 1; 3 tokens each.
    assert [row.weight_T.sum() for row in rows] == pytest.approx([3 / 64, 3 / 64, 3 / 32])
    later = update(method, state, moded(None, "a", prompt=three))
    assert [row.prompt_ids for row in later] == [one, one]


def test_frequency_weights_are_the_ledgers_shares() -> None:
    method = re_dr(weighting="frequency", coefficient=1, capacity=2)
    state = method.state(0)
    update(method, state, moded("a", "b", "c", None))
    rows = update(method, state, moded("a", "a", "c", "c"))
    # Counts a 3, b 1 of the stored modes; c (3) found no room and has no share.
    assert [row.weight_T.sum() for row in rows] == pytest.approx([3 / 16 * 3 / 4, 3 / 16 * 1 / 4])


@pytest.mark.parametrize("cap", [24, 48])
def test_the_ratio_to_a_lone_success(cap: int) -> None:
    group = moded("a", "b", "c", None)  # 3 modes of 3 tokens
    for normaliser, expected in (("published", 0.1 * cap / (3 * 3)), ("length_matched", 0.1 / 3)):
        method = re_dr(cap, normaliser=normaliser)
        state = method.state(0)
        logged = method.metrics([group], update(method, state, group), state)
        assert logged["replay/to_lone_success"] == pytest.approx(expected)
        assert (logged["replay/banks"], logged["replay/modes_per_bank"]) == (1, 3)


@pytest.mark.parametrize("aggregation", ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum-norm"])
def test_length_matched_means_the_weight_of_a_fresh_token(aggregation: str) -> None:
    """With lambda 1 and one mode, a replayed token weighs what A = (G-1)/G gives it in the fresh loss."""
    options = {"surrogate.loss_agg_mode": aggregation, "replay.normaliser": "length_matched"}
    method = build("re_dr", {**options, "replay.coefficient": 1}, max_completion_length=24)
    state = method.state(0)
    groups = [moded("a", None, None, None), rewarded(0, 0, 0, 0, prompt=(3,), lengths=(2, 9, 5, 4))]
    (row,) = update(method, state, *groups)
    success = method.credit(groups, state)[0]
    assert success.advantage_T is not None
    # One bank for two prompts: it carries the whole mean over banks.
    assert row.weight_T == pytest.approx(2 * success.weight_T * success.advantage_T)


def test_metrics_without_a_bank() -> None:
    method = re_dr()
    state, group = method.state(0), rewarded(0, 0)
    logged = method.metrics([group], update(method, state, group), state)
    assert logged["replay/banks"] == 0
    assert logged["replay/modes_per_bank"] is None
    assert logged["replay/to_lone_success"] is None


def one_token_modes(counts: dict[int, int]) -> Group:
    """A group whose responses are single tokens, each token a mode of its own."""
    tokens = [token for token, count in counts.items() for _ in range(count)]
    return Group(TASK, (1,), tuple(rollout([token], 1, f"mode{token}") for token in tokens))


def test_the_gradient_pulls_the_stored_modes_to_equal_shares() -> None:
    """lambda (G-1)/G^2 (pi_b - 1/k) on the logits: it sums to zero and raises rare modes."""
    group = one_token_modes(dict.fromkeys(range(8), 2))
    method, model = re_dr(), Bigram()
    state = method.state(0)
    found = gradient(model, update(method, state, group))
    share = torch.softmax(model.logits.detach()[1], -1)
    np.testing.assert_allclose(found[1], 0.1 * 15 / 256 * (share - 1 / 8), atol=1e-12)
    assert found[1].sum().abs() < 1e-12
    assert (found[1][share < 1 / 8] < 0).all()
    with torch.no_grad():
        model.logits[1] = 0.5
    np.testing.assert_allclose(gradient(model, method.extra_rows([group], state)), 0, atol=1e-12)


def test_a_mode_that_the_policy_has_all_but_lost_is_pulled_with_a_force_that_stays() -> None:
    """lambda (G-1)/G^2 / k in the limit, where its own chance to be sampled is gone."""
    group = one_token_modes(dict.fromkeys(range(4), 4))
    method, model = re_dr(), Bigram()
    rows = update(method, method.state(0), group)
    pulls = []
    for logit in (-5.0, -20.0, -80.0):
        with torch.no_grad():
            model.logits[1, 2] = logit
        pulls.append(-float(gradient(model, rows)[1, 2]))
    assert pulls == sorted(pulls)
    assert pulls[-1] == pytest.approx(0.1 * 15 / 256 / 4)


def test_a_bank_of_one_is_likelihood_training_on_it() -> None:
    method, model = re_dr(), Bigram()
    rows = update(method, method.state(0), moded("a", None, None, None))
    (row,) = rows
    logp_SV = torch.log_softmax(model.logits[list(row.prompt_ids[-1:] + row.token_ids[:-1])], -1)
    loss = -logp_SV.gather(1, torch.tensor(row.token_ids)[:, None]).mean()
    (expected,) = torch.autograd.grad(0.1 * 3 / 16 * loss, [model.logits])
    np.testing.assert_allclose(gradient(model, rows), expected, atol=1e-12)


def test_a_resumed_state_goes_on_as_if_nothing_had_been() -> None:
    method = re_dr(control="random")
    straight, resumed = method.state(3), method.state(99)
    groups = [moded("a", "b", None, prompt=(prompt,)) for prompt in (1, 2, 3)]
    for group in groups:
        update(method, straight, group)
    resumed.load_state_dict(json.loads(json.dumps(straight.state_dict())))
    for group in (*groups, moded("c", "d", "a")):
        expected = update(method, straight, group)
        found = update(method, resumed, group)
        assert [(row.token_ids, row.weight_T.tolist()) for row in found] == [
            (row.token_ids, row.weight_T.tolist()) for row in expected
        ]
    assert resumed.state_dict() == straight.state_dict()


def test_the_random_control_draws_successes_as_often_as_they_were_seen() -> None:
    method = re_dr(control="random")
    state = method.state(0)
    group = one_token_modes({3: 3, 4: 1})
    method.observe([group], state)
    drawn = [method.extra_rows([group], state) for _ in range(400)]
    assert all(len(rows) == 1 for rows in drawn)
    # The weight of the whole bank.
    assert [rows[0].weight_T.sum() for rows in drawn] == pytest.approx([0.1 * 3 / 16] * 400)
    often = sum(rows[0].token_ids == (3,) for rows in drawn)
    assert 260 < often < 340  # 300 expected, standard deviation 8.7


def test_the_noise_control_keeps_the_norm_of_every_tensor() -> None:
    method = re_dr(control="noise")
    state, group = method.state(0), moded("a", "b", None)
    update(method, state, group)
    given_gradients = [
        torch.arange(6.0).reshape(2, 3),
        torch.zeros(2),
        torch.full((4,), -2.0, dtype=torch.float64),
    ]
    noise = method.extra_gradient(given_gradients, state)
    for one, other in zip(noise, given_gradients, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one.norm(), other.norm())
    assert not torch.allclose(noise[0], given_gradients[0])
    method.extra_rows([group], state)
    assert not torch.equal(method.extra_gradient(given_gradients, state)[0], noise[0])
    again = method.state(0)
    update(method, again, group)
    assert torch.equal(method.extra_gradient(given_gradients, again)[0], noise[0])


def test_replay_proper_leaves_the_gradient_alone() -> None:
    gradients = [torch.ones(2)]
    assert re_dr().extra_gradient(gradients, re_dr().state(0)) is gradients


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("coefficient", -0.1, "replay.coefficient must not be negative"),
        ("capacity", 0, "replay.capacity must be at least 1"),
        ("capacity", "2.5", "replay.capacity must be a whole number, not '2.5'"),
        ("control", "off", "replay.control must be one of none, zero, random, noise, not 'off'"),
        ("weights", "uniform", "did you mean 'weighting'?"),
    ],
)
def test_bad_options(option: str, value: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        re_dr(**{option: value})
    assert said in str(refused.value)


def test_groups_of_one_have_no_dose() -> None:
    method = build("reinforce", adds=["replay"], max_completion_length=8)
    with pytest.raises(UsageError, match="needs 2 or more rollouts a prompt"):
        update(method, method.state(0), moded("a"))
