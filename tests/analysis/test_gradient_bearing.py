"""Gradient-bearing shares over training: by hand, by source, over runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.analysis.gradient_bearing import gradient_bearing
from modebench.errors import UsageError


def log(shares: list[float], groups: list[int] | None = None, **columns: Any) -> pd.DataFrame:
    """A run of groups of 4 rollouts."""
    counts = groups or [2] * len(shares)
    table = pd.DataFrame(
        {
            "step": range(1, len(shares) + 1),
            "with_gradient": shares,
            "mixed_groups": [share / 2 for share in shares],
            "accuracy": [1 - share for share in shares],
            "total/rollouts": 4 * np.cumsum(counts),
        }
    )
    return table.assign(**{"arm": "a", "seed": 0} | columns)


def test_a_bin_is_the_share_of_its_groups() -> None:
    """Steps of 1 and 3 groups: (1·1 + 3·0)/4, then (1·0.5 + 1·0)/2."""
    found = gradient_bearing(log([1.0, 0.0, 0.5, 0.0], [1, 3, 1, 1]), by="arm", bins=2)
    assert found["with_gradient"].tolist() == [0.25, 0.25]
    assert found["mixed_groups"].tolist() == [0.125, 0.125]
    assert found[["from_step", "to_step"]].to_numpy().tolist() == [[1, 2], [3, 4]]
    assert np.isnan(found["change"].iloc[0])
    assert found["change"].iloc[1] == 0
    assert found["with_gradient_low"].isna().all()  # one run says nothing of other runs


def test_groups_are_counted_where_they_are_logged() -> None:
    """Twice the rollouts a group in the second step: by rollouts it would count twice."""
    table = log([1.0, 0.0], [1, 2])
    assert gradient_bearing(table, by="arm", bins=1)["with_gradient"].tolist() == [1 / 3]
    counted = table.assign(groups=[1, 1])
    assert gradient_bearing(counted, by="arm", bins=1)["with_gradient"].tolist() == [0.5]


def test_sources_stand_apart() -> None:
    made = {"svs/groups": [0.0, 3.0, 1.0], "svs/with_gradient": [None, 1 / 3, 1.0]}
    asked = {"svs/write/groups": [1.0] * 3, "svs/write/with_gradient": [0.0, 0.0, 1.0]}
    table = log([1.0, 1.0, 0.5]).assign(groups=2.0, **made, **asked)
    table["svs/mixed_groups"] = table["svs/accuracy"] = table["svs/with_gradient"]
    found = gradient_bearing(table, by="arm", bins=1).set_index("source")
    assert found.index.tolist() == ["tasks", "svs", "svs/write"]
    assert found["with_gradient"].tolist() == pytest.approx([2.5 / 3, (1 + 1) / 4, 1 / 3])
    assert np.isnan(found.loc["svs/write", "accuracy"])
    # What was never asked, and what never made a task, has no row.
    none = gradient_bearing(table.assign(with_gradient=np.nan), by="arm")
    assert set(none["source"]) == {"svs", "svs/write"}
    assert gradient_bearing(table.assign(**{"svs/with_gradient": np.nan}), by="arm")["source"].nunique() == 2


def test_runs_are_the_observations() -> None:
    """Runs 0.8 → 0.2, 0.6 → 0.4, 1 → 0: means 0.8, 0.2; differences -0.6, -0.2, -1, sd 0.4."""
    runs = [
        log([first, last], seed=seed) for seed, (first, last) in enumerate([(0.8, 0.2), (0.6, 0.4), (1, 0)])
    ]
    found = gradient_bearing(pd.concat(runs), by="arm", bins=2)
    assert found["with_gradient"].tolist() == pytest.approx([0.8, 0.2])
    last = found.iloc[1]
    assert last["runs"] == 3
    assert last["change"] == pytest.approx(-0.6)
    assert last["change_high"] == pytest.approx(-0.6 + 4.302653 * 0.4 / np.sqrt(3))
    assert last["change_low"] == -1  # cut off at the range
    two = gradient_bearing(pd.concat(runs[:2]), by="arm", bins=2)
    assert two[["with_gradient_low", "change_low"]].isna().all(axis=None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 15))
@settings(deadline=None, max_examples=30)
def test_bins_cover_all_steps_once(shares: list[float], bins: int) -> None:
    found = gradient_bearing(log(shares), by="arm", bins=bins)
    covered = [step for row in found.itertuples() for step in range(row.from_step, row.to_step + 1)]
    assert covered == list(range(1, len(shares) + 1))
    widths = found["to_step"] - found["from_step"] + 1
    assert widths.max() - widths.min() <= 1
    assert (found["with_gradient"] * widths).sum() == pytest.approx(sum(shares))


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1, not 0"):
        gradient_bearing(log([1.0]), by="arm", bins=0)
    with pytest.raises(UsageError, match=r"lacks the columns \['mixed_groups'\]"):
        gradient_bearing(log([1.0]).drop(columns="mixed_groups"), by="arm")
