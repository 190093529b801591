"""Semantic MaxEnt: the bonus of rare modes, by hand and its expectation."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.errors import UsageError
from modebench.training.batch import Group
from modebench.training.methods import build
from modebench.training.semantic_maxent import History, SemanticMaxEnt, surprise
from tests.training.groups import moded, worth

COUNTS = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 400), min_size=1)


def after(*groups: Group) -> History:
    """A history of these groups."""
    history = History()
    for group in groups:
        history.observe([group])
    history.observe([])
    return history


def test_by_hand() -> None:
    # Counts a: 5 + 2, b: 1, c: 1; one unit a mode and one for the unseen: 7 + 1 + 1 + 4 = 13.
    p = {"a": 8 / 13, "b": 2 / 13, "c": 2 / 13, "unseen": 1 / 13}
    mean = -sum(each * math.log(each) for each in p.values())
    counts = {"a": 7, "b": 1, "c": 1}
    assert surprise("a", counts, 1, 5) == pytest.approx(-math.log(8 / 13) - mean)
    assert surprise("b", counts, 1, 5) == pytest.approx(-math.log(2 / 13) - mean)
    assert surprise("new", counts, 1, 5) == pytest.approx(-math.log(1 / 13) - mean)


def test_a_group_by_hand() -> None:
    """Own counts leave the rollout itself out; history and group are added; wrong rollouts get nothing."""
    history = after(moded("a", "a", "b", None))
    bonus_G = SemanticMaxEnt().bonus(moded("a", "a", "c", None), history)
    assert bonus_G[:2] == pytest.approx([0.02 * surprise("a", {"a": 3, "b": 1, "c": 1}, 1, 5)] * 2)
    assert bonus_G[2] == pytest.approx(0.02 * surprise("c", {"a": 4, "b": 1}, 1, 5))
    assert bonus_G[3] == 0
    assert bonus_G[2] > 0 > bonus_G[0]


@settings(deadline=None, max_examples=60)
@given(COUNTS, st.floats(0.1, 5), st.floats(0.1, 8))
def test_the_bonus_has_mean_zero_and_is_bounded(
    counts: dict[str, int], pseudocount: float, kappa: float
) -> None:
    total = sum(counts.values()) + pseudocount * (len(counts) + 1)
    p = {mode: (count + pseudocount) / total for mode, count in counts.items()} | {"new": pseudocount / total}
    assert sum(p.values()) == pytest.approx(1)
    found = {mode: surprise(mode, counts, pseudocount, kappa) for mode in p}
    assert sum(p[mode] * found[mode] for mode in p) == pytest.approx(0, abs=1e-9)
    assert max(map(abs, found.values())) <= kappa
    ordered = sorted(p, key=lambda mode: p[mode])
    assert all(found[one] >= found[other] for one, other in pairwise(ordered))


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.integers(1, 50))
def test_equal_counts_are_worth_a_little_less_than_nothing(modes: int, count: int) -> None:
    """The unit of the unseen mode has the rest."""
    counts = {str(mode): count for mode in range(modes)}
    found = {surprise(mode, counts, 1, 5) for mode in counts}
    assert len(found) == 1
    assert max(found) <= 0


MODES = st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=2, max_size=8)


@settings(deadline=None, max_examples=60)
@given(MODES, MODES, st.floats(0, 3), st.floats(0.1, 8))
def test_the_bonus_of_a_group(
    past: list[str | None], modes: list[str | None], eta: float, kappa: float
) -> None:
    """In [-eta, eta], 0 for wrong rollouts, one for all of a mode, and never less for the rarer mode."""
    history = after(moded(*past))
    bonus_G = SemanticMaxEnt(eta=eta, kappa=kappa).bonus(moded(*modes), history)
    assert np.abs(bonus_G).max() <= eta + 1e-12
    counts = Counter(past) + Counter(modes)
    of_mode: dict[str, float] = {}
    for mode, bonus in zip(modes, bonus_G, strict=True):
        if mode is None:
            assert bonus == 0
        else:
            assert of_mode.setdefault(mode, bonus) == bonus
    known = {mode for mode in past if mode} | {mode for mode in of_mode if modes.count(mode) > 1}
    ordered = sorted((mode for mode in of_mode if mode in known), key=lambda mode: counts[mode])
    assert all(of_mode[one] >= of_mode[other] - 1e-12 for one, other in pairwise(ordered))


def test_without_counts_there_is_no_bonus() -> None:
    assert SemanticMaxEnt().bonus(moded("a", None), History()).tolist() == [0, 0]
    assert surprise("a", {}, 1, 5) == 0
    assert surprise("a", {"b": 0}, 1, 5) == 0


def test_a_group_enters_the_history_after_it_was_scored() -> None:
    method = build("semantic_maxent", max_completion_length=8)
    state = method.state(0)
    group = moded("a", "a", "b", None)
    found = []
    for _ in range(2):
        method.observe([group], state)
        found.append(worth(method, group, state))
    base_G = np.array([0.25, 0.25, 0.25, -0.75])
    assert found[0] == pytest.approx(base_G + SemanticMaxEnt().bonus(group, History()))
    assert found[1] == pytest.approx(base_G + SemanticMaxEnt().bonus(group, after(group)))
    # Added after centring, so the advantages do not sum to 0.
    assert sum(found[1]) != pytest.approx(0, abs=1e-6)


def test_all_right_groups_have_a_gradient() -> None:
    method = build("semantic_maxent", max_completion_length=8)
    assert any(row.has_gradient for row in method.credit([moded("a", "a", "b")], method.state(0)))


def test_the_state_goes_through_json() -> None:
    method = build("semantic_maxent", max_completion_length=8)
    state, again = method.state(0), method.state(0)
    groups = [moded("a", "b", None), moded("c", "c", prompt=(5,)), moded("a", "a", prompt=(5,))]
    for group in groups:
        method.observe([group], state)
    again.load_state_dict(json.loads(json.dumps(state.state_dict())))
    for each in (state, again):
        method.observe([groups[0]], each)
    assert again.state_dict() == state.state_dict()
    assert worth(method, groups[2], again) == worth(method, groups[2], state)
    logged = method.metrics([groups[0]], [], state)
    assert logged["semantic_maxent/prompts"] == 2
    right = np.abs(SemanticMaxEnt().bonus(groups[0], again.parts["semantic_maxent"]))[:2]  # type: ignore[arg-type]
    assert logged["semantic_maxent/bonus"] == pytest.approx(right.mean())


@pytest.mark.parametrize("options", [{"eta": -1.0}, {"kappa": 0.0}, {"pseudocount": 0.0}])
def test_options_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=rf"semantic_maxent\.{next(iter(options))} must"):
        SemanticMaxEnt(**options)
