"""Rewards of a writer of tasks (methods of arXiv:2610.11345), by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.analysis.teachability import teaching_value
from modebench.synthesis.teaching import (
    ADDITIVE_WEIGHTS,
    REJECTED,
    additive_reward,
    gate,
    gated_reward,
    mode_teachability,
    teachability,
)

SHARES = st.floats(0, 1)


def test_teachability_by_hand() -> None:
    assert [teachability(mu) for mu in (0, 0.25, 0.5, 0.75, 1)] == [0, 0.5, 1, 0.5, 0]
    assert [teachability(mu, slope=0.5) for mu in (0.25, 0.5, 0.75, 1)] == [0.5, 1, 0.75, 0.5]
    assert [teachability(mu, slope=2) for mu in (0.5, 0.75, 1)] == [1, 0, 0]


@settings(deadline=None)
@given(SHARES)
def test_teachability_is_symmetric_and_a_share(mu: float) -> None:
    assert teachability(mu) == pytest.approx(teachability(1 - mu))
    assert 0 <= teachability(mu) <= 1


@settings(deadline=None)
@given(SHARES, st.floats(0, 5))
def test_what_is_paid_is_what_is_analysed(mu: float, slope: float) -> None:
    assert float(teaching_value(mu, slope)) == pytest.approx(teachability(mu, slope))


@settings(deadline=None)
@given(st.floats(0, 5))
def test_teachability_is_continuous_at_a_half(slope: float) -> None:
    assert teachability(0.5, slope) == 1
    assert teachability(0.5 + 1e-9, slope) == pytest.approx(1, abs=1e-7)
    assert teachability(0.5 - 1e-9, slope) == pytest.approx(1, abs=1e-7)


@settings(deadline=None)
@given(SHARES, SHARES)
def test_the_gate_is_monotone(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert gate(low) <= gate(high)
    assert gate(min(low, 0.5)) == 0
    assert gate(1) == 1


@settings(deadline=None)
@given(SHARES, SHARES, SHARES)
def test_a_gated_reward_is_a_share(quality: float, reliability: float, mu: float) -> None:
    reward = gated_reward(quality, reliability, teachability(mu))
    assert 0 <= reward <= 1
    assert gated_reward(quality, 0.5, 1) == 0
    assert gated_reward(1, 1, teachability(mu)) == teachability(mu)
    assert REJECTED == -0.5


def test_more_modes_pay_more() -> None:
    assert [mode_teachability(0.5, modes, 4) for modes in (1, 2)] == [0.625, 0.75]
    assert mode_teachability(1, 4, 4) == mode_teachability(0, 0, 4) == 0
    assert mode_teachability(1, 4, 4, slope=0) == 1


def test_the_additive_reward_is_a_weighted_mean() -> None:
    assert sum(ADDITIVE_WEIGHTS.values()) == pytest.approx(1)
    full = {"quality": 1.0, "reliability": 1.0, "worth": 1.0, "novelty": 1.0, "format": 1.0}
    assert additive_reward(**full) == pytest.approx(1)
    assert additive_reward(**{**full, "worth": 0.5, "novelty": 0.0}) == pytest.approx(0.70)
