"""Scores of proposed tasks against rollouts that did not make them: by hand, against oracles, of a null
model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modebench.analysis.teachability import (
    asked_again,
    chance_mixed,
    correlations,
    highest_quarter,
    teachability,
    teaching_value,
)
from modebench.errors import UsageError

Make = Callable[..., pd.DataFrame]


def tasks(correct: list[int], size: int = 4, **columns: Any) -> pd.DataFrame:
    ids = [f"t{number:04d}" for number in range(len(correct))]
    return pd.DataFrame({"task_id": ids, "size": float(size), "correct": np.array(correct, float), **columns})


def entry(table: pd.DataFrame, score: str, target: str) -> dict[str, Any]:
    [found] = table[(table["score"] == score) & (table["target"] == target)].to_dict("records")
    return found


def test_the_teaching_value() -> None:
    assert teaching_value(np.arange(5) / 4).tolist() == [0, 0.5, 1, 0.5, 0]
    assert teaching_value([0.75, 1.0], slope=2.0).tolist() == [0, 0]
    assert teaching_value([0.25, 0.75, 1.0], slope=0.5).tolist() == [0.5, 0.75, 0.5]


@given(st.integers(0, 7), st.integers(1, 4))
@settings(deadline=None)
def test_the_chance_to_be_mixed_counts_all_groups(correct: int, k: int) -> None:
    drawn = [sum(group) for group in combinations([1] * correct + [0] * (7 - correct), k)]
    share = np.mean([0 < right < k for right in drawn])
    assert chance_mixed([correct], [7], [k])[0] == pytest.approx(share)


def test_further_rollouts_by_hand(make_samples: Make) -> None:
    """K = 2: the first two graded rollouts are the fresh ones, all that follow make the estimate."""
    samples = make_samples(["A.A..", "!AAAAA", "....AA", "AAA", "AA.A"])
    found = asked_again(tasks([1, 2, 1, 1, 0], size=2), samples.sample(frac=1, random_state=1))
    assert found["task_id"].tolist() == ["t0000", "t0001", "t0002", "t0004"]  # t0003 has too few
    assert found["teachability"].tolist() == [1, 0, 1, 0]
    assert found["same"].tolist() == [1, 0, 1, 0]
    assert found["fresh"].tolist() == [1, 0, 0, 0]
    assert found["rollouts"].tolist() == [3, 3, 4, 2]
    # of A..: 2 of 3 pairs; of AAA: none; of ..AA: 4 of 6; of .A: its only pair
    assert found["estimate"].tolist() == pytest.approx([2 / 3, 0, 2 / 3, 1])


def test_difficulties_are_numbers_or_words_in_order(make_samples: Make) -> None:
    labels = ["easy", "hard", "learnable", "0.25", "very hard"]
    found = asked_again(tasks([1] * 5, size=1, difficulty=labels), make_samples(["AA"] * 5))
    assert found["difficulty"].tolist()[:4] == [0, 2, 1, 0.25]
    assert np.isnan(found["difficulty"].iloc[4])
    table = teachability(found, draws=10)
    assert entry(table, "difficulty", "fresh")["n"] == 4


@given(st.integers(0, 1000), st.integers(4, 30))
@settings(deadline=None, max_examples=25)
def test_correlation_and_quarter_against_plain_counting(seed: int, n: int) -> None:
    """numpy's corrcoef on the tasks repeated; the mean over all orders of ties by drawing fractions."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 3, n).astype(float), rng.integers(0, 2, (n, 2)).astype(float)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=3).astype(float)
    found, top = correlations(counts, x, y), highest_quarter(counts, x, y)
    for draw in range(3):
        repeated = np.repeat(np.arange(n), counts[draw].astype(int))
        for column in range(2):
            one, other = x[repeated], y[repeated, column]
            if one.std() > 0 and other.std() > 0:
                assert found[draw, column] == pytest.approx(np.corrcoef(one, other)[0, 1])
            else:
                assert np.isnan(found[draw, column])
            left, total = n / 4, 0.0
            for value in sorted(set(one), reverse=True):
                tied = other[one == value]
                total += min(left, len(tied)) * tied.mean()
                left -= min(left, len(tied))
            assert top[draw, column] == pytest.approx(total / (n / 4))


def rolled(chance: np.ndarray[Any, Any], rng: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    return np.where(rng.random((len(chance), size)) < chance[:, None], "A", ".")


def test_tasks_that_are_all_alike(make_samples: Make) -> None:
    """Nothing can be told about them, and still teachability correlates with its own rollouts."""
    rng = np.random.default_rng(5)
    chance = np.full(400, 0.15)
    first = (rolled(chance, rng, 4) == "A").sum(axis=1).tolist()
    found = teachability(asked_again(tasks(first), make_samples(rolled(chance, rng, 68))), draws=400)
    same, fresh, estimate = (entry(found, "teachability", t) for t in ("same", "fresh", "estimate"))
    assert same["r"] > 0.85
    assert same["r_low"] > 0.8
    assert same["top"] == 1
    for told in (fresh, estimate):
        assert abs(told["r"]) < 0.2
        assert told["r_low"] < 0 < told["r_high"]
    assert fresh["top_low"] < fresh["mixed"] < fresh["top_high"]
    assert abs(entry(found, "estimate", "fresh")["r"]) < 0.2


def test_tasks_of_which_half_can_teach(make_samples: Make) -> None:
    """Half at accuracy 0, half at 1/2: the score carries over, and less so than on its own rollouts."""
    rng = np.random.default_rng(6)
    chance = np.repeat([0.0, 0.5], 200)
    first = (rolled(chance, rng, 4) == "A").sum(axis=1).tolist()
    noise = rng.random(400)
    table = tasks(first, novelty=noise)
    found = teachability(asked_again(table, make_samples(rolled(chance, rng, 68))), draws=200)
    same, fresh = (entry(found, "teachability", target) for target in ("same", "fresh"))
    assert 0.5 < fresh["r"] < same["r"]
    assert fresh["top"] > 0.8  # 7/8 of the tasks that can teach
    assert entry(found, "estimate", "fresh")["r"] > fresh["r"]
    assert abs(entry(found, "novelty", "fresh")["r"]) < 0.15
    assert entry(found, "novelty", "fresh")["top_low"] < 0.44 < entry(found, "novelty", "fresh")["top_high"]


@pytest.mark.slow
def test_coverage_of_the_bootstrap(make_samples: Make) -> None:
    """200 null models of 100 tasks: the interval of the fresh r holds 0 in about 95 %."""
    rng = np.random.default_rng(7)
    chance, hits = np.full(100, 0.3), 0
    for _ in range(200):
        first = (rolled(chance, rng, 4) == "A").sum(axis=1).tolist()
        asked = asked_again(tasks(first), make_samples(rolled(chance, rng, 8)))
        told = entry(teachability(asked, draws=300), "teachability", "fresh")
        hits += told["r_low"] <= 0 <= told["r_high"]
    assert 0.90 <= hits / 200 <= 0.99


def test_repeatable(make_samples: Make) -> None:
    asked = asked_again(tasks([0, 1, 2, 3, 4] * 4), make_samples(["A.A.A.A."] * 10 + ["........"] * 10))
    pd.testing.assert_frame_equal(teachability(asked, draws=50), teachability(asked, draws=50))


def test_a_constant_target_has_no_correlation(make_samples: Make) -> None:
    found = teachability(asked_again(tasks([0, 1, 2], size=2), make_samples(["A.A."] * 3)), draws=20)
    assert np.isnan(entry(found, "teachability", "fresh")["r"])
    assert entry(found, "teachability", "fresh")["top"] == 1


def test_a_score_that_few_tasks_have_leaves_no_interval(make_samples: Make) -> None:
    """One of 30 tasks is paid: a third of the draws miss it, and the others do not say how r varies."""
    table = tasks([1] * 30, size=2, reward=[1.0] + [0.0] * 29)
    found = teachability(asked_again(table, make_samples(["A.A."] * 15 + ["AAAA"] * 15)), draws=200)
    paid = entry(found, "reward", "fresh")
    assert paid["r"] == pytest.approx(np.corrcoef([1] + [0] * 29, [1] * 15 + [0] * 15)[0, 1])
    assert np.isnan(paid["r_low"])
    assert np.isnan(paid["r_high"])
    assert np.isfinite(paid["top_low"])


def test_what_is_refused(make_samples: Make) -> None:
    with pytest.raises(UsageError, match="no task has 8 further graded rollouts"):
        asked_again(tasks([1]), make_samples(["AAAA"]))
    with pytest.raises(UsageError, match="no sample of the proposed tasks"):
        asked_again(tasks([1]).assign(task_id="x"), make_samples(["AAAA"]))
    with pytest.raises(UsageError, match="t0000 stands twice"):
        asked_again(tasks([1, 1]).assign(task_id="t0000"), make_samples(["AAAA"]))
    with pytest.raises(UsageError, match="at least 1, got 0"):
        teachability(asked_again(tasks([1], size=1), make_samples(["AA"])), draws=0)
