"""Mutual information of prefix and mode."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from modebench.analysis.prefix_information import mutual_information, prefix_information


@pytest.mark.parametrize(
    ("pairs", "bits"),
    [
        ([], 0.0),
        ([("a", "x")] * 5, 0.0),
        ([("a", "x"), ("b", "y")], 1.0),
        ([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")], 0.0),
        # Joint (2, 1; 0, 1) of 4: H(prefix) = .8113, H(mode) = 1, H(both) = 1.5.
        ([("a", "x"), ("a", "x"), ("a", "y"), ("b", "y")], 0.8112781 + 1 - 1.5),
    ],
)
def test_by_hand(pairs: list[tuple[str, str]], bits: float) -> None:
    assert mutual_information(pairs) == pytest.approx(bits, abs=1e-6)


def table(modes: dict[str, list[str]], tasks: int) -> pd.DataFrame:
    rng = random.Random(0)
    rows = [
        {"domain": "d", "level": 1, "task_id": str(task), "prefix": prefix, "mode": rng.choice(choices)}
        for task in range(tasks)
        for prefix, choices in modes.items()
        for _ in range(8)
    ]
    return pd.DataFrame(rows)


def test_prefixes_that_decide_have_all_the_information() -> None:
    [row] = prefix_information(table({"a": ["x"], "b": ["y"]}, 10)).to_dict("records")
    assert row["bits"] == 1
    assert row["bits_by_chance"] < 0.1
    assert row["low"] < row["bits_beyond"] < row["high"]


def test_prefixes_that_say_nothing_have_none_beyond_chance() -> None:
    modes = ["x", "y", "z"]
    [row] = prefix_information(table({"a": modes, "b": modes, "none": ["w"]}, 60)).to_dict("records")
    assert row["bits"] > 0.02
    assert abs(row["bits_beyond"]) < 0.03


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="prefix"):
        prefix_information(pd.DataFrame({"mode": []}))
