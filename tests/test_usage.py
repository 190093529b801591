"""Token and cost totals."""

from __future__ import annotations

import pandas as pd

from modebench.usage import usage_of, usage_text


def table(*rows: tuple[str, int | None, int | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["status", "input_tokens", "output_tokens"])


PRICES = {"price_in": 2.0, "price_out": 10.0}


def test_sums_and_cost_by_hand() -> None:
    samples = table(("correct", 1000, 10), ("malformed", 500, 40), ("error", None, None))
    [used] = usage_of(samples, PRICES).values()
    # 1500 × 2 / 10⁶ + 50 × 10 / 10⁶
    assert used == {"input_tokens": 1500, "output_tokens": 50, "uncounted_samples": 0, "cost": 0.0035}
    assert usage_of(samples, {})["usage"]["cost"] is None
    assert usage_of(samples, {"price_in": 1.0, "price_out": None})["usage"]["cost"] is None


def test_a_response_without_counts_makes_the_cost_unknown() -> None:
    used = usage_of(table(("correct", 1000, 10), ("correct", None, 5)), PRICES)["usage"]
    assert used == {"input_tokens": 1000, "output_tokens": 15, "uncounted_samples": 1, "cost": None}
    assert usage_text([{"usage": used}]) == "tokens: 1000 in, 15 out, unknown for 1 samples"


def test_an_engine_that_counts_nothing_has_no_usage() -> None:
    assert usage_of(table(("correct", None, None)), PRICES) == {}
    assert usage_of(table(("correct", None, None)).drop(columns=["input_tokens", "output_tokens"]), {}) == {}
    assert usage_text([{}, {}]) is None
