"""Rates of proposed tasks: a table by hand, exact bands, clustered intervals, a null model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.analysis.intervals import effective_n, wilson
from modebench.analysis.proposal_rates import in_band, proposal_rates
from modebench.errors import UsageError


def proposed(
    rows: list[tuple[int, bool, str | None, int | None, int | None]], **columns: Any
) -> pd.DataFrame:
    """(step, valid, failure, correct, size) each."""
    table = pd.DataFrame(rows, columns=["step", "valid", "failure", "correct", "size"])
    table = table.astype({"correct": np.float64, "size": np.float64})
    return table.assign(**{"arm": "svs", "part": "svs", "form": "menu", "seed": 0} | columns)


ROWS = [
    (1, True, None, 4, 8),
    (1, True, None, 8, 8),
    (1, False, "copy", None, None),
    (1, True, None, 6, 8),
    (2, False, "wrong", 3, 8),  # asked although it is wrong: the check was off
    (2, True, None, None, None),
]


def rate(table: pd.DataFrame, metric: str, column: str = "value") -> Any:
    [value] = table.loc[table["metric"] == metric, column]
    return value


def test_by_hand() -> None:
    found = proposal_rates(proposed(ROWS))
    counts = dict(zip(found["metric"], found["count"], strict=True))
    assert counts == {
        "valid": 4, "in_band": 1, "mixed": 2, "effective": 1, "invalid_in_band": 1,
        "failure/copy": 1, "failure/wrong": 1,
    }  # fmt: skip
    assert set(found["n"]) == {6}
    assert rate(found, "valid") == pytest.approx(4 / 6)
    # two steps: u = (3 - 4·2/3, 1 - 2·2/3), SE² = 2 Σu²/36
    error = np.sqrt(2 * (2 * (1 / 3) ** 2)) / 6
    low, high = wilson(2 / 3, effective_n(2 / 3, error, 2, 6))
    assert rate(found, "valid", "low") == pytest.approx(float(low))
    assert rate(found, "valid", "high") == pytest.approx(float(high))
    wide = proposal_rates(proposed(ROWS), band=(0.0, 1.0))
    assert rate(wide, "in_band", "count") == 3
    assert rate(wide, "effective", "count") == 2


def test_bins_of_steps() -> None:
    found = proposal_rates(proposed(ROWS), by="form", bins=2)
    valid = found[found["metric"] == "valid"]
    assert valid[["bin", "from_step", "to_step", "n", "count"]].to_numpy().tolist() == [
        [1, 1, 1, 4, 3], [2, 2, 2, 2, 1],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("band", "size", "inside"), [((0.125, 0.5), 8, range(1, 5)), ((0.1, 0.3), 10, range(1, 4))]
)
def test_both_ends_of_a_band_are_in_it(band: tuple[float, float], size: int, inside: range) -> None:
    """Also 3 of 10, where 0.1 * 3 is not 0.3 to a float."""
    found = in_band(pd.Series(range(size + 1)), pd.Series([size] * (size + 1)), band)
    assert np.flatnonzero(found).tolist() == list(inside)


def test_runs_are_the_observations_from_three_on() -> None:
    """Valid shares 1, 1/2, 0 of equal runs: mean 1/2, sd 1/2."""
    shares = [[True, True], [True, False], [False, False]]
    tables = [
        proposed([(1, valid, None, 1, 2) for valid in run], seed=seed) for seed, run in enumerate(shares)
    ]
    found = proposal_rates(pd.concat(tables), by="form")
    assert rate(found, "valid") == 0.5
    assert (rate(found, "valid", "low"), rate(found, "valid", "high")) == (0, 1)
    thirds = [[True] * k + [False] * (20 - k) for k in (10, 11, 12)]
    tables = [
        proposed([(1, valid, None, 1, 2) for valid in run], seed=seed) for seed, run in enumerate(thirds)
    ]
    found = proposal_rates(pd.concat(tables), by="form")
    assert rate(found, "valid", "high") - 0.55 == pytest.approx(4.302653 * 0.05 / np.sqrt(3))


def test_steps_of_like_proposals_are_worth_one_each() -> None:
    """40 steps, all proposals of a step alike: the interval is that of 40 draws, not of 400."""
    rng = np.random.default_rng(2)
    rows = [
        (step, bool(valid), None, 1, 2)
        for step, valid in enumerate(rng.random(40) < 0.5, 1)
        for _ in range(10)
    ]
    found = proposal_rates(proposed(rows), by="form")
    width = rate(found, "valid", "high") - rate(found, "valid", "low")
    low, high = wilson(rate(found, "valid"), 40)
    assert width == pytest.approx(float(high - low), rel=0.05)


@given(st.lists(st.sampled_from(ROWS), min_size=1, max_size=12))
@settings(deadline=None, max_examples=30)
def test_order_of_the_rates(rows: list[Any]) -> None:
    found = proposal_rates(proposed(rows), by="form").set_index("metric")
    assert found.loc["effective", "count"] <= min(found.loc["in_band", "count"], found.loc["mixed", "count"])
    failures = [name for name in found.index if name.startswith("failure/")]
    assert found.loc["valid", "count"] + found.loc[failures, "count"].sum() == len(rows)
    assert (found["low"] <= found["value"]).all()
    assert (found["value"] <= found["high"]).all()


def test_what_is_refused() -> None:
    table = proposed(ROWS)
    with pytest.raises(UsageError, match="no column operator; they have step, "):
        proposal_rates(table, by="operator")
    with pytest.raises(UsageError, match="at least 1, not 0"):
        proposal_rates(table, bins=0)
    with pytest.raises(UsageError, match=r"low and high, not 0\.5 and 0\.25"):
        proposal_rates(table, band=(0.5, 0.25))
