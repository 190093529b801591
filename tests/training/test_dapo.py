"""DAPO's four switches, Clip-Higher alone, and GSPO: by hand, and what they reduce to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.batch import Group, Row
from modebench.training.dapo import Overlong
from modebench.training.likelihood import Scorer
from modebench.training.loss import Statistics, backward
from modebench.training.method import Method
from modebench.training.methods import build
from tests.training.groups import Bigram, rewarded

CAP = 10
OFF = {"overlong.buffer": 0, "dynamic_sampling.max_rounds": 0, "surrogate.epsilon_high": "none"}


def mixed() -> list[Group]:
    return [rewarded(1, 0, 0, lengths=(2, 5, 3)), rewarded(1, 1, 0, prompt=(4,), lengths=(1, 6, 4))]


def off_policy(rows: list[Row], spread: float = 0.4) -> list[Row]:
    """The rows measured against a policy that lies somewhere else."""
    draw = np.random.default_rng(1)
    table_VV = torch.log_softmax(Bigram().logits.detach(), -1).numpy()
    return [
        replace(
            row,
            logp_old_T=table_VV[[row.prompt_ids[-1], *row.token_ids[:-1]], list(row.token_ids)]
            + draw.normal(size=len(row.token_ids), scale=spread),
        )
        for row in rows
    ]


def run(method: Method, rows: list[Row]) -> tuple[Statistics, torch.Tensor]:
    """The trainer's backward pass on the small policy."""
    model = Bigram()
    low, high = method.surrogate.clip_range
    told = backward(
        Scorer(model),
        rows,
        temperature=1.0,
        epsilon=low,
        epsilon_high=high,
        level=method.surrogate.importance_sampling_level,
    )
    return told, torch.zeros_like(model.logits) if model.logits.grad is None else model.logits.grad


def test_with_its_four_switches_off_dapo_is_grpo_with_a_token_mean() -> None:
    method = build("dapo", OFF, max_completion_length=CAP)
    groups = [*mixed(), rewarded(1, 1, 1), rewarded(0, 0, 0, lengths=(CAP, 9, 8))]
    assert method.filter(groups, method.state(0)) == groups
    assert method.rounds == 1
    for aggregation in ("seq-mean-token-mean", "token-mean"):
        sets = {**OFF, "surrogate.loss_agg_mode": aggregation}
        pair = (
            build("dapo", sets, max_completion_length=CAP),
            build("grpo", {"surrogate.loss_agg_mode": aggregation}, max_completion_length=CAP),
        )
        found = [run(each, off_policy(each.credit(groups, each.state(0)))) for each in pair]
        assert found[0][0] == found[1][0]
        assert found[0][0].clipped > 0
        assert torch.equal(found[0][1], found[1][1])


def test_after_filtering_no_group_has_a_deviation_of_zero() -> None:
    method = build("dapo", max_completion_length=CAP)
    state = method.state(0)
    groups = [rewarded(1, 1), rewarded(0, 1), rewarded(0, 0), rewarded(1, 0, 0)]
    kept = method.filter(groups, state)
    assert kept == [groups[1], groups[3]]
    assert all(group.reward_G.std() > 0 for group in kept)
    assert method.effects(state)["dynamic_sampling"] == 4  # rollouts of the two others
    assert method.rounds == 10


def test_the_filter_looks_at_the_verdicts_not_at_shaped_rewards() -> None:
    """All right, but of lengths that are paid differently: discarded all the same."""
    method = build("dapo", max_completion_length=CAP)
    group = rewarded(1, 1, lengths=(3, CAP))
    assert method.filter([group], method.state(0)) == []
    rows = method.credit([group], method.state(0))
    assert any(np.any(row.advantage_T) for row in rows)


def test_overlong_shaping_by_hand() -> None:
    """C = 20 and a buffer of 20 %: nothing up to 16 tokens, then a quarter a token down to -1."""
    part = Overlong().fitted(20)
    group = rewarded(1, 1, 0, 0, 1, 0, lengths=(1, 16, 17, 19, 20, 25))
    assert part.reward(group, group.reward_G, None).tolist() == [1, 1, -0.25, -0.75, 0, -1]


@given(st.integers(1, 200), st.floats(0.01, 1))
@settings(deadline=None, max_examples=60)
def test_the_penalty_is_continuous_monotone_and_between_minus_1_and_0(cap: int, buffer: float) -> None:
    part = Overlong(buffer=buffer, max_length=cap)
    lengths = np.arange(1, cap + 3)
    group = rewarded(*[0.0] * len(lengths), lengths=lengths.tolist())
    paid = part.reward(group, group.reward_G, None)
    assert paid.min() >= -1
    assert paid.max() <= 0
    assert (np.diff(paid) <= 1e-12).all()
    assert (np.diff(paid) >= -1 / (buffer * cap) - 1e-9).all()  # no jump at either knot
    assert paid[lengths >= cap] == pytest.approx(-1)
    assert paid[lengths <= cap - buffer * cap] == pytest.approx(0)


def test_the_length_of_the_run_is_filled_in_and_can_be_set() -> None:
    assert build("dapo", max_completion_length=64).options()["overlong"] == {"buffer": 0.2, "max_length": 64}
    sets = {"overlong.max_length": 32}
    assert build("dapo", sets, max_completion_length=64).options()["overlong"]["max_length"] == 32
    with pytest.raises(UsageError, match=r"overlong\.max_length is not set"):
        Overlong().reward(rewarded(1, 0), np.ones(2), None)
    for sets, said in (
        ({"overlong.buffer": 2}, "overlong.buffer must be in [0, 1], not 2.0"),
        ({"overlong.max_length": 0}, "overlong.max_length must be at least 1, not 0"),
        ({"dynamic_sampling.max_rounds": -1}, "dynamic_sampling.max_rounds must not be negative, not -1"),
    ):
        with pytest.raises(UsageError) as refused:
            build("dapo", sets, max_completion_length=64)
        assert said in str(refused.value)


def test_maxrl_refuses_shaped_rewards() -> None:
    with pytest.raises(UsageError, match="MaxRL is defined for rewards of 0 and 1"):
        build("maxrl", adds=["overlong"], max_completion_length=CAP)


def test_clip_higher_differs_between_the_two_bounds_for_good_tokens_only() -> None:
    """A > 0 and 1.2 < ratio <= 1.28, and nowhere at ratio 1."""
    ratio_T = np.array([1.0, 1.19, 1.21, 1.27, 1.29, 0.5, 0.81])
    table_VV = torch.log_softmax(Bigram().logits.detach(), -1).numpy()
    tokens = (3, 5, 1, 6, 2, 4, 0)
    logp_T = table_VV[[2, *tokens[:-1]], list(tokens)]
    for advantage in (1.0, -1.0):
        found = []
        for high in (0.28, "none"):
            method = build("clip_higher", {"surrogate.epsilon_high": high}, max_completion_length=CAP)
            losses = []
            for t in range(len(tokens)):
                weight_T = np.zeros(len(tokens))
                weight_T[t] = 1.0
                row = Row(
                    (1, 2),
                    tokens,
                    "surrogate",
                    weight_T,
                    advantage_T=np.full(len(tokens), advantage),
                    logp_old_T=logp_T - np.log(ratio_T),
                )
                told, gradient = run(method, [row])
                losses.append((told.loss["fresh"], float(gradient.norm())))
            found.append(losses)
        differs = [t for t in range(len(tokens)) if found[0][t] != pytest.approx(found[1][t])]
        # The last but two is clipped by both, at 1.28 and at 1.2: another value, no gradient in either.
        assert differs == ([2, 3, 4] if advantage > 0 else [])
        slopes = [[slope for _, slope in each] for each in found]
        moved = [t for t in range(len(tokens)) if slopes[0][t] != pytest.approx(slopes[1][t])]
        assert moved == ([2, 3] if advantage > 0 else [])


def sequence_form(method: Method, rows: list[Row]) -> torch.Tensor:
    """Gradient of the mean over responses of -min(s A, clip(s) A), s written with the gradient inside."""
    model = Bigram()
    low, high = method.surrogate.clip_range
    total = torch.zeros((), dtype=torch.float64)
    for row in rows:
        assert row.advantage_T is not None
        table_VV = torch.log_softmax(model.logits, -1)
        logp_T = table_VV[[row.prompt_ids[-1], *row.token_ids[:-1]], list(row.token_ids)]
        old_T = logp_T.detach() if row.logp_old_T is None else torch.from_numpy(row.logp_old_T)
        s, advantage = (logp_T - old_T).mean().exp(), float(row.advantage_T[0])
        total = total - torch.minimum(s * advantage, s.clamp(1 - low, 1 + high) * advantage) / len(rows)
    total.backward()
    assert model.logits.grad is not None
    return model.logits.grad


@pytest.mark.parametrize("width", [{}, {"surrogate.epsilon": 0.1, "surrogate.epsilon_high": 0.1}])
def test_gspo_by_tokens_has_the_gradient_of_the_sequence_ratio(width: dict[str, Any]) -> None:
    method = build("gspo", width, max_completion_length=CAP)
    rows = method.credit(mixed(), method.state(0))
    for case in (rows, off_policy(rows, 1e-4 if not width else 0.3)):
        told, found = run(method, case)
        torch.testing.assert_close(found, sequence_form(method, case), rtol=1e-10, atol=1e-14)
    assert 0 < told.clipped < told.surrogate_tokens or not width


def test_gspo_at_the_old_policy_is_grpo() -> None:
    method, grpo = build("gspo", max_completion_length=CAP), build("grpo", max_completion_length=CAP)
    rows, plain = (each.credit(mixed(), each.state(0)) for each in (method, grpo))
    torch.testing.assert_close(run(method, rows)[1], run(grpo, plain)[1], rtol=1e-12, atol=1e-15)


def test_gspo_clips_all_tokens_of_a_response_together() -> None:
    method = build("gspo", max_completion_length=CAP)
    rows = off_policy(method.credit(mixed(), method.state(0)))
    per_row = [run(method, [row])[0] for row in rows]
    assert {told.clipped for told in per_row} - {0} <= {told.surrogate_tokens for told in per_row}
    assert all(told.clipped in (0, told.surrogate_tokens) for told in per_row)
    assert any(told.clipped for told in per_row)


def test_gspo_takes_token_advantages_where_each_has_its_own() -> None:
    """GSPO-token: with an advantage on one token alone only its log-probability has a gradient."""
    method = build("gspo", {"surrogate.clip": False}, max_completion_length=CAP)
    row = method.credit(mixed(), method.state(0))[1]
    only = replace(row, advantage_T=np.array([0.0, 1, 0, 0, 0]))
    (only,) = off_policy([only])
    _, found = run(method, [only])
    assert only.logp_old_T is not None
    table_VV = torch.log_softmax(Bigram().logits.detach(), -1)
    places = [row.prompt_ids[-1], *row.token_ids[:-1]]
    s = float(np.exp((table_VV[places, list(row.token_ids)].numpy() - only.logp_old_T).mean()))
    expected = torch.zeros_like(found)
    expected[places[1]] = row.weight_T[1] * s * table_VV[places[1]].exp()
    expected[places[1], row.token_ids[1]] -= row.weight_T[1] * s
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-14)
