"""Costs of arms and their ratios to a base arm, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from modebench.analysis.overhead import PER_STEP, SIZES, overhead
from modebench.errors import UsageError


def costs(arm: str, seed: int, learner: float, steps: int = 10, **more: Any) -> dict[str, Any]:
    row = {"domain": "countdown", "arm": arm, "seed": seed, "steps": steps, "state_bytes": 2}
    row |= dict.fromkeys(PER_STEP, 100) | {"scored": 0, "checkpoint_bytes": 1000}
    return row | {"learner_seconds": learner} | more


def row(table: pd.DataFrame, arm: str, cost: str) -> dict[str, Any]:
    [found] = table[(table["arm"] == arm) & (table["cost"] == cost)].to_dict("records")
    return found


def test_means_a_step_and_ratios_of_paired_runs() -> None:
    """Seconds a step 1, 2, 4 beside 2, 4, 8: ratio 2 in every seed. Over 20 steps half as many rollouts."""
    base = [costs("grpo", seed, 10 * 2**seed) for seed in range(3)]
    own = [costs("svs", seed, 40 * 2**seed, steps=20, state_bytes=50) for seed in range(3)]
    found = overhead(pd.DataFrame(base + own), "grpo")
    assert len(found) == 2 * len((*PER_STEP, *SIZES))
    seconds = row(found, "svs", "learner_seconds")
    assert seconds["value"] == pytest.approx((2 + 4 + 8) / 3)
    assert seconds["ratio"] == pytest.approx(2)
    assert (seconds["ratio_low"], seconds["ratio_high"]) == pytest.approx((2, 2))
    assert row(found, "svs", "rollouts")["value"] == 5
    assert row(found, "svs", "rollouts")["ratio"] == pytest.approx(0.5)
    assert row(found, "svs", "state_bytes")["ratio"] == pytest.approx(25)
    assert row(found, "grpo", "learner_seconds")["ratio"] == pytest.approx(1)
    assert np.isnan(row(found, "svs", "scored")["ratio"])  # none beside none


def test_ratios_are_averaged_as_logarithms() -> None:
    """Twice in one seed and half in the other is no difference."""
    rows = [costs("a", 0, 10), costs("a", 1, 10), costs("b", 0, 20), costs("b", 1, 5)]
    found = row(overhead(pd.DataFrame(rows), "a"), "b", "learner_seconds")
    assert found["ratio"] == pytest.approx(1)
    assert np.isnan(found["ratio_low"])
    rows += [costs("a", 2, 10), costs("b", 2, 10)]
    found = row(overhead(pd.DataFrame(rows), "a"), "b", "learner_seconds")
    assert found["ratio_high"] == pytest.approx(np.exp(4.302653 * np.log(2) / np.sqrt(3)))


def test_a_checkpoint_that_is_gone_is_unknown_and_not_free() -> None:
    found = overhead(pd.DataFrame([costs("a", 0, 1, state_bytes=None, checkpoint_bytes=None)]))
    assert np.isnan(row(found, "a", "state_bytes")["value"])
    assert row(found, "a", "state_bytes")["runs"] == 0
    assert "ratio" not in found


def test_only_seeds_of_both_arms_are_compared() -> None:
    rows = [costs("a", 0, 10), costs("a", 1, 10), costs("b", 1, 30), costs("b", 2, 99)]
    assert row(overhead(pd.DataFrame(rows), "a"), "b", "learner_seconds")["ratio"] == pytest.approx(3)


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="countdown has no finished run of the base arm c; it has a, b"):
        overhead(pd.DataFrame([costs("a", 0, 1), costs("b", 0, 1)]), "c")
    with pytest.raises(UsageError, match="countdown/b and countdown/a share no seed"):
        overhead(pd.DataFrame([costs("a", 0, 1), costs("b", 1, 1)]), "a")
