"""The strategy-balancing regulariser: its value and gradient, and which rollouts it reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.batch import Floats, Group, Row
from modebench.training.method import Method
from modebench.training.methods import METHODS, build
from modebench.training.part import Seen
from modebench.training.strategy_balance import StrategyBalance, Told, balance
from modebench.training.update import Score
from tests.training.groups import Bigram, gradient, moded

MU: dict[str, Any] = {"kappa": None, "mu": 1.0}
GAINS = st.lists(st.floats(-30, 30), min_size=2, max_size=6).map(np.array)
DIVERGENCES = ("kl_uniform", "js")


@settings(deadline=None)
@given(r_M=GAINS, shift=st.floats(-50, 50))
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_it_is_not_negative_and_the_same_for_a_common_shift(
    divergence: Any, r_M: Floats, shift: float
) -> None:
    told, moved = balance(r_M, divergence), balance(r_M + shift, divergence)
    assert told.value >= -1e-12
    assert moved.value == pytest.approx(told.value, abs=1e-9)
    assert moved.slope_M == pytest.approx(told.slope_M, abs=1e-9)
    assert told.slope_M.sum() == pytest.approx(0, abs=1e-12)


@settings(deadline=None)
@given(r_M=st.lists(st.floats(-4, 4), min_size=2, max_size=5).map(np.array))
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_slope_is_that_of_the_value(divergence: Any, r_M: Floats) -> None:
    step = 1e-5
    for place, slope in enumerate(balance(r_M, divergence).slope_M):
        up, down = (r_M + sign * step * np.eye(len(r_M))[place] for sign in (1, -1))
        found = (balance(up, divergence).value - balance(down, divergence).value) / (2 * step)
        assert found == pytest.approx(slope, abs=1e-8)


def test_two_strategies_by_hand() -> None:
    told = balance(np.log([3.0, 1.0]))
    assert told.share_M == pytest.approx([0.75, 0.25])
    assert told.slope_M == pytest.approx([0.25, -0.25])
    assert told.value == pytest.approx(-np.log(1.5) / 2 - np.log(0.5) / 2)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_it_is_zero_only_where_all_are_equal(divergence: Any) -> None:
    even = balance(np.full(3, -7.5), divergence)
    assert even.value == pytest.approx(0, abs=1e-15)
    assert np.array_equal(even.slope_M, np.zeros(3)) or divergence == "js"
    assert even.slope_M == pytest.approx(np.zeros(3), abs=1e-15)
    assert balance(np.array([0.0, 0.1, 0.0]), divergence).value > 1e-5


def coached(*modes: str) -> list[Group]:
    """A group for each text, a rollout a letter: its mode, ``-`` for a wrong one; the prefixes p0, p1, …"""
    return [
        replace(
            moded(*(None if letter == "-" else letter for letter in text), prompt=(1, 2 + place)),
            prefix=f"p{place}",
        )
        for place, text in enumerate(modes)
    ]


def seen_of(rows: Sequence[Row], gains: Sequence[float]) -> list[Seen]:
    """Every token of a row gained so much since the reference."""
    found = []
    for row, gain in zip(rows, gains, strict=True):
        length = len(row.token_ids)
        old_T = np.full(length, -1.0)
        never_T = np.zeros(length, dtype=np.bool_)
        found.append(Seen(old_T + gain, np.ones(length), never_T, old_T, np.eye(8)[row.token_ids[0]]))
    return found


def further(
    part: StrategyBalance, groups: Sequence[Group], gains: Sequence[float], state: Told | None = None
) -> list[Row]:
    rows = base().credit(groups, base().state(0))
    told = part.state(0) if state is None else state
    seen = seen_of(rows, gains)
    return part.further_rows(groups, rows, seen, lambda length: 1 / (len(rows) * length), told)


def base() -> Method:
    return build("reinforce", max_completion_length=8)


def weights(rows: Sequence[Row]) -> list[float]:
    return [float(row.weight_T[0]) for row in rows]


def test_prefixes_by_hand() -> None:
    """r is 3 log 3 / 3 for p0, whose two right rollouts gained alike, and 0 for p1: shares 3/4 and 1/4."""
    gains = [np.log(3) / 3, np.log(3) / 3, 9.0, 0.0, 9.0, 9.0]
    rows = further(StrategyBalance(**MU), coached("aa-", "a--"), gains)
    assert [row.kind for row in rows] == ["likelihood"] * 3
    assert weights(rows) == pytest.approx([-0.25 / 2, -0.25 / 2, 0.25])
    mean = further(StrategyBalance(z="token_mean", **MU), coached("aa-", "a--"), gains)
    share = 3 ** (1 / 3) / (1 + 3 ** (1 / 3)) - 0.5
    assert weights(mean) == pytest.approx([-share / 2 / 3, -share / 2 / 3, share / 3])


def test_wrong_rows_have_none_and_one_strategy_is_nothing() -> None:
    assert further(StrategyBalance(**MU), coached("a-", "--"), [1.0, 2, 3, 4]) == []
    assert further(StrategyBalance(**MU), coached("--", "--"), [1.0, 2, 3, 4]) == []
    groups = coached("a-", "a-")
    right = {group.rollouts[0].token_ids for group in groups}
    rows = further(StrategyBalance(**MU), groups, [1.0, 2, 3, 4])
    assert {row.token_ids for row in rows} == right
    assert {row.prompt_ids for row in rows} == {(1, 2), (1, 3)}


def test_a_missing_strategy_is_left_out_or_on_the_floor() -> None:
    groups = coached("a", "a", "-")
    state = Told()
    left_out = further(StrategyBalance(**MU), groups, [0.0, 0.0, 0.0], state)
    assert weights(left_out) == [0, 0]
    assert (state.values, state.strategies) == ([0.0], [2])
    floored = further(StrategyBalance(missing="floor", **MU), groups, [0.0, 0.0, 0.0], state)
    assert weights(floored) == pytest.approx([-(1 / 2 - 1 / 3)] * 2)
    assert state.strategies == [3]
    assert np.isfinite(state.values).all()
    assert state.values[0] > 1e8


@pytest.mark.parametrize(("group_by", "strategies"), [("prefix", 2), ("row", 4), ("mode", 3), ("cluster", 2)])
def test_what_a_strategy_is(group_by: Any, strategies: int) -> None:
    """Residuals are the rows' first tokens, of which every group has two."""
    state = Told()
    groups = coached("ab", "bc")
    rows = further(StrategyBalance(group_by=group_by, **MU), groups, [1.0, 0, 0, 0], state)
    assert state.strategies == [strategies]
    assert sum(map(float, weights(rows))) != pytest.approx(1)
    assert len(rows) == 4


def test_the_order_of_groups_and_rollouts_changes_nothing() -> None:
    """Unlike blocks of adjacent rows."""
    groups, gains = coached("aab-", "a-bb"), [0.3, 0.1, 0.9, 2.0, 0.2, 0.4, 0.0, 0.7]
    part = StrategyBalance(**MU)
    plain = {(row.prompt_ids, row.token_ids): weights([row]) for row in further(part, groups, gains)}
    turned = [replace(group, rollouts=group.rollouts[::-1]) for group in groups[::-1]]
    after = {(row.prompt_ids, row.token_ids): weights([row]) for row in further(part, turned, gains[::-1])}
    assert after.keys() == plain.keys()
    assert all(after[key] == pytest.approx(plain[key]) for key in plain)


def test_responses_of_other_times_have_no_part_in_it() -> None:
    groups, part = coached("a-", "a-"), StrategyBalance(**MU)
    rows = base().credit(groups, base().state(0))
    seen = seen_of(rows, [0.4, 0.0, 0.0, 0.0])
    joined = replace(rows[0], term="rlep")
    with_joined = [*rows[:2], joined, *rows[2:]], [*seen[:2], seen[0], *seen[2:]]
    plain, after = (
        part.further_rows(groups, *each, lambda length: 0.1, Told()) for each in ((rows, seen), with_joined)
    )
    assert weights(after) == weights(plain)
    assert abs(weights(plain)[0]) > 0.01


def test_tasks_are_averaged_or_added() -> None:
    first = coached("a", "a")
    other = [replace(group, task=replace(group.task, id="test/1")) for group in coached("a", "a")]
    gains = [0.5, 0.0, 0.0, 0.2]
    averaged = weights(further(StrategyBalance(**MU), [*first, *other], gains))
    summed = weights(further(StrategyBalance(reduce="sum", **MU), [*first, *other], gains))
    assert summed == pytest.approx([2 * weight for weight in averaged])
    alone = weights(further(StrategyBalance(**MU), first, gains[:2]))
    assert summed[:2] == pytest.approx(alone)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("strategies", [2, 4])
def test_kappa_is_mu_times_m_less_one_times_length(size: int, strategies: int) -> None:
    """The closed form for GRPO's average, whose rows here have 3 tokens."""
    state = Told()
    further(
        StrategyBalance(kappa=0.12), coached(*["a" * size] * strategies), [0.0] * size * strategies, state
    )
    assert state.mu == pytest.approx(0.12 / ((strategies - 1) * 3))


def test_the_gradient_of_the_rows_is_that_of_the_formula() -> None:
    """Autograd through J on the small policy, a reference beside it, against the rows' own loss."""
    method = build(
        "mesh", {"strategy_balance.kappa": None, "strategy_balance.mu": 0.7}, max_completion_length=8
    )
    model, reference = Bigram(), Bigram()
    with torch.no_grad():
        model.logits += 0.3 * torch.arange(64.0).reshape(8, 8).sin()
    groups = coached("aa-", "ab-", "---")
    rows = method.credit(groups, method.state(0))

    def logp(policy: Bigram, row: Row) -> torch.Tensor:
        places = [row.prompt_ids[-1], *row.token_ids[:-1]]
        return torch.log_softmax(policy.logits, -1)[places, list(row.token_ids)]

    scores = [
        Score(logp(model, r).detach().numpy(), np.zeros(3), logp(reference, r).detach().numpy()) for r in rows
    ]
    told = method.further_rows(groups, groups, rows, method.seen(rows, scores), method.state(0))
    r_M = torch.stack(
        [
            torch.stack([(logp(model, r) - logp(reference, r).detach()).sum() for r in pair]).mean()
            for pair in (rows[0:2], rows[3:5])
        ]
    )
    value = -0.7 * (torch.log_softmax(r_M, 0) + np.log(2)).mean()
    [expected] = torch.autograd.grad(value, [model.logits])
    torch.testing.assert_close(gradient(model, told), expected)
    assert expected.abs().max() > 1e-4


def test_without_strength_it_is_nothing() -> None:
    """The arm of a sweep that coach prompting alone must equal."""
    rows = further(StrategyBalance(kappa=0.0), coached("aab", "abb", "a--"), [0.3, 0.1, 0.2] * 3)
    assert not any(row.has_gradient for row in rows)


def test_nothing_before_the_first_update() -> None:
    rows = further(StrategyBalance(kappa=1.0), coached("aab", "abb", "a--"), [0.0] * 9)
    assert weights(rows) == [0.0] * 7
    assert not any(row.has_gradient for row in rows)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mu": 1.0}, "one of kappa and mu"),
        ({"kappa": None}, "one of kappa and mu"),
        ({"kappa": -1.0}, "kappa must not be negative"),
        ({"missing": "floor", "group_by": "mode"}, "no mode is known before it is found"),
    ],
)
def test_refused_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        StrategyBalance(**options)


def test_prefixes_are_needed_where_they_are_the_strategies() -> None:
    with pytest.raises(UsageError, match="needs prefixes"):
        build("dr_grpo", adds=["strategy_balance"], max_completion_length=8)
    build("dr_grpo", {"strategy_balance.group_by": "mode"}, ["strategy_balance"], max_completion_length=8)
    for name in METHODS.keys() - {
        "mesh",
        "coach_only",
        "synco",
    }:  # SynCo asks no task of the run with a prefix
        build(name, adds=["strategy_balance", "coaching"], max_completion_length=8)
