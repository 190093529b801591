"""Token weights of the three averages, by hand."""

from __future__ import annotations

import pytest

from modebench.training.batch import Row
from modebench.training.methods import build
from tests.training.groups import rewarded


def weights(
    aggregation: str, lengths: tuple[int, ...], *, method: str = "dr_grpo", cap: int = 10
) -> list[float]:
    """The weight of a token of each rollout of one group."""
    rewards = [1.0] + [0.0] * (len(lengths) - 1)
    built = build(method, {"surrogate.loss_agg_mode": aggregation}, max_completion_length=cap)
    rows: list[Row] = built.credit([rewarded(*rewards, lengths=lengths)], built.state(0))
    assert [len(row.weight_T) for row in rows] == list(lengths)
    assert all(len(set(row.weight_T)) == 1 for row in rows)
    return [float(row.weight_T[0]) for row in rows]


@pytest.mark.parametrize("method", ["grpo", "dr_grpo"])
@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("seq-mean-token-sum-norm", [1 / 40] * 4),  # 4 rollouts, C = 10
        ("token-mean", [1 / 20] * 4),  # 20 tokens
        ("seq-mean-token-mean", [1 / 8, 1 / 16, 1 / 20, 1 / 36]),
    ],
)
def test_by_hand(aggregation: str, expected: list[float], method: str) -> None:
    assert weights(aggregation, (2, 4, 5, 9), method=method) == pytest.approx(expected)


def test_twice_the_length_is_twice_the_sum_of_weights_unless_it_is_divided_out() -> None:
    for aggregation, factor in (("seq-mean-token-sum-norm", 2), ("seq-mean-token-mean", 1)):
        once, twice = (sum([weights(aggregation, (length, 3))[0]] * length) for length in (4, 8))
        assert twice == pytest.approx(factor * once)


def test_the_constant_is_the_length_of_the_run() -> None:
    short, long = (weights("seq-mean-token-sum-norm", (2, 3), cap=cap) for cap in (10, 20))
    assert short == pytest.approx([2 * weight for weight in long])
