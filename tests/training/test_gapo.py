"""GAPO: rewards by the frequency of modes, small groups by hand and properties."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.advantages import Advantage
from modebench.training.batch import Group
from modebench.training.gapo import Gapo
from modebench.training.methods import build
from tests.training.groups import moded, worth

MODES = st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=2, max_size=8)


def known(support: int | None, *modes: str | None) -> Group:
    group = moded(*modes)
    return replace(group, task=replace(group.task, modes=support))


def paid(group: Group, **options: Any) -> list[float]:
    return Gapo(**options).reward(group, group.reward_G, None).tolist()


@pytest.mark.parametrize(
    ("support", "modes", "expected"),
    [
        (4, "abcd", [1, 1, 1, 1]),  # even coverage
        (4, "aaaa", [1 / 4] * 4),  # collapse
        (4, "a---", [1 / 4, -1, -1, -1]),  # a lone success is all of the right ones
        (4, "----", [-1, -1, -1, -1]),
        (2, "aab-", [5 / 6, 5 / 6, 7 / 6, -1]),
        (100, "aaaa", [0.01] * 4),
    ],
)
def test_by_hand(support: int, modes: str, expected: list[float]) -> None:
    group = known(support, *(None if mode == "-" else mode for mode in modes))
    assert paid(group) == pytest.approx(expected)
    right = group.reward_G > 0
    ported = paid(group, scale="ported")
    assert ported == pytest.approx([(value + 1) / 2 for value in expected])
    assert not np.any(np.array(ported)[~right])


@settings(deadline=None, max_examples=60)
@given(MODES, st.integers(1, 500), st.randoms())
def test_properties(modes: list[str | None], support: int, random: Any) -> None:
    group = known(support, *modes)
    reward_G = np.array(paid(group))
    counts = Counter(mode for mode in modes if mode)
    right_G = group.reward_G > 0
    assert (reward_G[right_G] >= 1 / support - 1e-12).all()  # right always pays more than wrong
    assert (reward_G[~right_G] == -1).all()
    for one, paid_one in zip(modes, reward_G, strict=True):
        for other, paid_other in zip(modes, reward_G, strict=True):
            if one and other:
                assert (counts[one] < counts[other]) == (paid_one > paid_other + 1e-12)
    order = list(range(len(modes)))
    random.shuffle(order)
    assert paid(known(support, *(modes[index] for index in order))) == reward_G[order].tolist()


def test_with_one_mode_the_order_is_that_of_correctness() -> None:
    group = known(7, "a", None, "a", None)
    assert (np.argsort(paid(group), kind="stable") == np.argsort(group.reward_G, kind="stable")).all()
    advantage_G = Advantage("group_std", eps=0).advantage(group, np.array(paid(group)), None)
    plain_G = Advantage("group_std", eps=0).advantage(group, group.reward_G, None)
    assert advantage_G == pytest.approx(plain_G)


def advantages(method: str, adds: list[str], group: Group, **sets: object) -> list[float]:
    return worth(build(method, sets, adds, max_completion_length=8), group)


def test_groups_without_right_answers_have_no_gradient() -> None:
    assert advantages("gapo", [], known(4, None, None, None)) == [0, 0, 0]


def test_the_frequent_mode_is_pushed_down_where_all_are_right() -> None:
    advantage_G = advantages("gapo", [], known(2, "a", "a", "a", "b"))
    assert max(advantage_G[:3]) < 0 < advantage_G[3]
    method = build("gapo", max_completion_length=8)
    seen = [method.metrics([known(2, *modes)], [], method.state(0)) for modes in ("aaab", (None, None))]
    assert [each["gapo/right_below_zero"] for each in seen] == [0.75, None]


def test_the_ported_scale_halves_centred_advantages_and_leaves_standardised_ones() -> None:
    group = known(4, "a", "a", "b", None)
    paper = advantages("dr_grpo", ["gapo"], group)
    ported = advantages("dr_grpo", ["gapo"], group, **{"gapo.scale": "ported"})
    assert ported == pytest.approx([value / 2 for value in paper])
    standardised = [advantages("gapo", [], group, **{"gapo.scale": scale}) for scale in ("paper", "ported")]
    assert standardised[0] == pytest.approx(standardised[1], rel=1e-5)
    # Against plain Dr. GRPO the gap between right and wrong shrinks: a lone mode is paid (1 + 1/L) / 2.
    assert paid(known(4, "a", "a"), scale="ported") == [0.625, 0.625]


def test_the_number_of_modes_must_be_known() -> None:
    with pytest.raises(UsageError, match=r"gapo needs the number of modes of test/0.*gapo\.support=N"):
        paid(known(None, "a", None))
    assert paid(known(None, "a", None), support=5) == [0.2, -1]
    assert paid(known(4, "a", None), support=5) == [0.25, -1]
    with pytest.raises(UsageError, match="at least 1"):
        Gapo(support=0)


def test_a_right_answer_needs_a_mode() -> None:
    group = known(4, "a", None)
    group = replace(group, rollouts=tuple(replace(one, mode=None) for one in group.rollouts))
    with pytest.raises(UsageError, match="the mode of every right answer"):
        paid(group)
