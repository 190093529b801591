"""UCPO: what right rollouts share, by hand and its invariants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.advantages import Advantage
from modebench.training.batch import Floats, Group
from modebench.training.methods import build
from modebench.training.ucpo import Ucpo
from tests.training.groups import moded, surprising, worth

CASES = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.floats(0, 8)), min_size=2, max_size=8)


def before(group: Group) -> Floats:
    return Advantage("group_std").advantage(group, group.reward_G, None)


def after(group: Group, **options: Any) -> Floats:
    return Ucpo(**options).advantage(group, before(group), None)


def with_likelihoods(likelihoods: Sequence[float]) -> Group:
    """Right rollouts with these likelihoods, and a wrong one."""
    return surprising([*(1.0 for _ in likelihoods), 0.0], [*(-np.log(likelihoods)), 1.0])


def test_by_hand() -> None:
    group = with_likelihoods([0.7, 0.2, 0.05, 0.05])
    common = before(group)[0]
    inverse = np.array([1 / 0.7, 5, 20, 20])
    expected = 4 * common * (0.8 / 4 + 0.2 * inverse / inverse.sum())
    assert after(group)[:4] == pytest.approx(expected)
    assert after(group)[4] == before(group)[4]
    method = build("ucpo", max_completion_length=8)
    moved = np.abs(expected - common).sum() / 2 / (4 * common)
    seen = method.metrics([group, surprising([1, 0], [1, 1])], [], method.state(0))
    assert seen["ucpo/moved"] == pytest.approx(moved)
    assert method.metrics([surprising([1, 0], [1, 1])], [], method.state(0))["ucpo/moved"] is None


@settings(deadline=None, max_examples=60)
@given(CASES, st.floats(0, 1), st.sampled_from(["mean", "sum", "mode"]))
def test_invariants(case: list[tuple[float, float]], tau: float, rarity: Any) -> None:
    group = surprising([reward for reward, _ in case], [surprisal for _, surprisal in case])
    was_G, is_G = before(group), after(group, tau=tau, rarity=rarity)
    right_G = group.reward_G > 0
    count = right_G.sum()
    assert is_G[right_G].sum() == pytest.approx(was_G[right_G].sum(), abs=1e-9)
    assert (is_G[~right_G] == was_G[~right_G]).all()
    common = was_G[right_G]
    assert (is_G[right_G] >= (1 - tau) * common - 1e-9).all()
    assert (is_G[right_G] <= (1 - tau + tau * count) * common + 1e-9).all()
    likely_first = np.argsort(
        [surprisal for (_, surprisal), right in zip(case, right_G, strict=True) if right]
    )
    if rarity != "mode":
        assert (np.diff(is_G[right_G][likely_first]) >= -1e-9).all()  # the rarest gets most


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=2, max_size=8), st.floats(0.01, 1))
def test_the_rarer_mode_gets_more_and_the_same_mode_the_same(modes: list[str], tau: float) -> None:
    group = moded(*modes, None)
    is_G = after(group, tau=tau, rarity="mode")
    for one, its in zip(modes, is_G, strict=False):
        for other, others in zip(modes, is_G, strict=False):
            assert (modes.count(one) < modes.count(other)) == (its > others + 1e-9)


def test_nothing_changes() -> None:
    group = with_likelihoods([0.7, 0.2, 0.1])
    assert after(group, tau=0).tolist() == before(group).tolist()
    equal = with_likelihoods([0.25, 0.25, 0.25])
    assert after(equal) == pytest.approx(before(equal))
    alone = with_likelihoods([0.3])
    assert after(alone) is not None
    assert after(alone).tolist() == before(alone).tolist()
    all_right = surprising([1, 1, 1], [1, 2, 3])
    assert after(all_right).tolist() == [0, 0, 0]


def test_the_mean_does_not_see_lengths_and_the_sum_does() -> None:
    group = surprising([1, 1, 0], [1, 1, 1], lengths=[2, 6, 3])
    assert after(group, rarity="mean")[0] == pytest.approx(after(group, rarity="mean")[1])
    sums = after(group, rarity="sum")
    common = before(group)[0]
    # The longer one is exp(-4) times as likely: nearly all of tau is its own.
    share = 1 / (1 + np.exp(-4))
    assert sums[1] == pytest.approx(2 * common * (0.4 + 0.2 * share))


def test_a_share_is_never_below_the_floor() -> None:
    group = with_likelihoods([1.0, 1e-30])
    common = before(group)[0]
    share = 1 / (1 + 0.5)  # inverse shares 1 and 1/floor = 2
    assert after(group, floor=0.5)[1] == pytest.approx(2 * common * (0.4 + 0.2 * share))


def test_rarity_of_modes_is_not_that_of_wordings() -> None:
    """A rare wording of the usual solution is boosted by likelihood, and not by mode."""
    group = moded("a", "a", "a", "b", None)
    logps = (-1.0, -1.0, -9.0, -1.0, -1.0)
    group = replace(
        group,
        rollouts=tuple(
            replace(one, logp=(logp,) * 3) for one, logp in zip(group.rollouts, logps, strict=True)
        ),
    )
    common = before(group)[0]
    assert np.argmax(after(group)) == 2
    by_mode = after(group, rarity="mode")
    inverse = np.array([4 / 3, 4 / 3, 4 / 3, 4])
    assert by_mode[:4] == pytest.approx(4 * common * (0.2 + 0.2 * inverse / inverse.sum()))


def test_right_rollouts_must_be_worth_the_same() -> None:
    group = with_likelihoods([0.5, 0.5])
    with pytest.raises(UsageError, match="right rollouts of one worth; those of test/0 differ"):
        Ucpo().advantage(group, np.array([1.0, 0.5, 0.0]), None)


@pytest.mark.parametrize("options", [{"tau": -0.1}, {"tau": 1.1}, {"floor": 0.0}, {"floor": 2.0}])
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=rf"ucpo\.{next(iter(options))} must"):
        Ucpo(**options)  # type: ignore[arg-type]


def test_a_bonus_is_added_after_sharing_whatever_the_order_of_the_parts() -> None:
    group = with_likelihoods([0.7, 0.2, 0.1])
    found = []
    for adds in (["ucpo", "setpo"], ["setpo", "ucpo"]):
        method = build("grpo", adds=adds, max_completion_length=8)
        found.append(worth(method, group))
    assert found[0] == found[1]
