"""Where a change comes from: what was out of reach before training, or what was within it.

The prompts are split by the first policy: *retain* are those that it solves in some of n attempts, *learn*
the others; and likewise the modes of a prompt. Take the attempts that chose the side as its accuracy before,
too, and every policy seems to learn: learn starts at exactly 0 by choice, and another n attempts of the same
policy bring it back up (regression to the mean). So the samples at step 0 are split: n choose, others
measure. All splits are averaged, exactly, without drawing any. With c of the K samples of a prompt correct at
step 0, a of the L after training, and miss(c, n) = C(K-c, n) / C(K, n), the chance that n of the K hold no
correct one:

    learn    weight miss(c, n),      before c / (K - n)   (no correct one is among those that chose)
    retain   weight 1 - miss(c, n),  before what is left of c / K, both weighted
    after    a / L on either side, from samples of their own

For the modes of a prompt, with c_m and a_m of its samples in mode m and the same n, sums over m are

    learn    before  miss(c_m, n) - miss(c_m, 2n)          absent in n samples, present in n others of step 0
             after   miss(c_m, n) (1 - miss(a_m, n))       absent at step 0, present after: gained
    retain   before  1 - 2 miss(c_m, n) + miss(c_m, 2n)    present in both
             after   (1 - miss(c_m, n)) (1 - miss(a_m, n)) present at step 0 and after: kept

the former as modes a prompt (how many are absent is not always known), the latter as shares of the modes
present in n samples. ``before`` is thus what a second look at the first policy shows, and each numerator and
each denominator is an unbiased estimate over the samples (U-statistics; Hoeffding 1948, Ann. Math. Stat.
19:293): the contribution of a side, its numerator over all prompts, has expectation exactly 0 under an
unchanged policy, and a change, being a ratio, has one of order 1 / prompts. Contributions of the two sides
add up to the whole change, exactly: of accuracy, and of modes@n.

The split into learn and retain by initial solves is that of SynCo (arXiv:2610.11345); the estimator is ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from modebench.analysis.intervals import MIN_RUNS, ratio_interval
from modebench.analysis.long_table import BoolArray, columns_of
from modebench.analysis.pairing import Pairs, pair_prompts
from modebench.analysis.pass_at_k import FloatArray, IntArray, draw_none
from modebench.errors import UsageError

ATTEMPTS = 8


class Side(NamedTuple):
    """One side of the split, a row a pair of prompts, [Q].

    Attributes:
        metric: ``accuracy`` or ``modes``.
        side: ``learn`` or ``retain``.
        weight: how much of the prompt (or how many of its modes) is on this side, expected over the splits.
        before: weighted value of the first policy.
        after: weighted value of the trained one.
        most: largest possible value.
        reach: largest possible contribution of a prompt.
    """

    metric: str
    side: str
    weight: FloatArray
    before: FloatArray
    after: FloatArray
    most: float
    reach: float


def learn_retain(
    before: pd.DataFrame,
    after: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "arm"),
    *,
    attempts: int | None = None,
    interval: float = 0.95,
    upper_level: str = "seed",
) -> pd.DataFrame:
    """Change of accuracy and of modes on both sides of the split by the first policy.

    Args:
        before: long table of the samples at step 0; see `modebench.analysis.long_table.read_long_table`.
        after: of the trained policy, on the same prompts; rows are paired by prompt, cell and seed.
        by: columns that make the cells.
        attempts: n, by which the sides are chosen; None for 8, or as many as the samples allow: half of those
            at step 0.
        interval: level of the intervals.
        upper_level: column whose values are told apart where there are several.

    Returns:
        a row a cell, metric and side: the `by` columns; ``metric`` (``accuracy``, ``modes``), ``side``
        (``learn``, ``retain``); ``attempts``; ``prompts`` (pairs that enter), ``left_out`` (pairs with fewer
        than 2n samples before or n after); ``weight`` (mean over pairs: the share of the prompts on this
        side; of modes those present at step 0, 1 for learn); ``before``, ``after``; ``change`` with ``low``
        and ``high``: t limits with prompts as observations, all seeds of a prompt together; from three seeds
        on ``seed_low`` and ``seed_high`` with seeds as observations, else NaN; ``contribution`` to the change
        over all prompts, with ``contribution_low``, ``contribution_high``.

    Raises:
        UsageError: no prompt was answered on both sides, some was on one side only, `attempts` is below 1, or
            no prompt has the samples that it takes.
        ValueError: as `read_long_table`.
    """
    keys = columns_of(by)
    units = [upper_level] if _several(before, after, upper_level) else []
    pairs = pair_prompts(before, after, keys, units[0] if units else None)
    if not len(pairs.identity):
        raise UsageError("no prompt was answered both before and after")
    if pairs.only_a or pairs.only_b:
        raise UsageError(
            f"{pairs.only_a} prompts were answered only before and {pairs.only_b} only after; give "
            "evaluations of the same tasks"
        )
    n = _attempts(pairs, attempts)
    enough = ((pairs.a["graded"] >= 2 * n) & (pairs.b["graded"] >= n)).to_numpy()
    if not enough.any():
        raise UsageError(f"no prompt has {2 * n} graded samples before and {n} after; take fewer attempts")
    cell = pairs.identity.groupby(keys, sort=True, dropna=False, observed=True).ngroup().to_numpy()
    prompt = _labels(pairs.identity, [str(name) for name in pairs.identity if name not in units])
    unit = _labels(pairs.identity, units) if units else np.zeros(len(cell), dtype=np.int64)
    rows = []
    for number in range(int(cell.max()) + 1):
        inside = (cell == number) & enough
        head = {name: pairs.identity[name].iloc[int(np.argmax(cell == number))] for name in keys}
        left_out = int(((cell == number) & ~enough).sum())
        for side in _sides(pairs, n):
            found = _row(side, inside, prompt, unit, interval)
            counts = {"attempts": n, "prompts": int(inside.sum()), "left_out": left_out}
            rows.append({**head, "metric": side.metric, "side": side.side, **counts, **found})
    return pd.DataFrame(rows)


def _several(before: pd.DataFrame, after: pd.DataFrame, column: str) -> bool:
    return all(column in table for table in (before, after)) and after[column].nunique() > 1


def _labels(identity: pd.DataFrame, columns: Sequence[str]) -> IntArray:
    groups = identity.groupby(list(columns), sort=True, dropna=False, observed=True)
    return groups.ngroup().to_numpy().astype(np.int64)


def _attempts(pairs: Pairs, asked: int | None) -> int:
    if asked is not None and asked < 1:
        raise UsageError(f"the number of attempts must be at least 1, not {asked}")
    most = min(int(pairs.a["graded"].max()) // 2, int(pairs.b["graded"].max()))
    if asked is None and not most:
        raise UsageError("a split takes at least 2 graded samples a prompt before and 1 after")
    return min(ATTEMPTS, most) if asked is None else asked


def _sides(pairs: Pairs, n: int) -> Iterator[Side]:
    """The rows of both sides, of accuracy and of modes; NaN where a prompt has too few samples."""
    k, correct = (pairs.a[name].to_numpy(dtype=np.int64) for name in ("graded", "correct"))
    accuracy = pairs.b["accuracy"].to_numpy(dtype=np.float64)
    missed = draw_none(correct, k, n)
    kept, learned = 1 - missed, missed * correct / np.maximum(k - n, 1)
    retained = correct / np.maximum(k, 1) - learned
    yield Side("accuracy", "learn", missed, learned, missed * accuracy, 1.0, 1.0)
    yield Side("accuracy", "retain", kept, retained, kept * accuracy, 1.0, 1.0)

    def summed(of_modes: FloatArray) -> FloatArray:
        return np.bincount(pairs.mode_pair, weights=of_modes, minlength=len(k)).astype(np.float64)

    of, graded = pairs.mode_pair, pairs.b["graded"].to_numpy(dtype=np.int64)
    once, twice = (draw_none(pairs.mode_a, k[of], draws) for draws in (n, 2 * n))
    found = 1 - draw_none(pairs.mode_b, graded[of], n)
    gained, kept = summed(once * found), summed((1 - once) * found)
    yield Side("modes", "learn", np.ones(len(k)), summed(once - twice), gained, float(n), float(n))
    yield Side("modes", "retain", summed(1 - once), summed(1 - 2 * once + twice), kept, 1.0, float(n))


def _row(side: Side, inside: BoolArray, prompt: IntArray, unit: IntArray, level: float) -> dict[str, Any]:
    weight, before, after = (values[inside] for values in (side.weight, side.before, side.after))
    change, total = after - before, float(weight.sum())
    of_side = ratio_interval(change, weight, prompt[inside], level, side.most)
    whole = ratio_interval(change, np.ones(len(weight)), prompt[inside], level, side.reach)
    seed_low = seed_high = np.nan
    if len(np.unique(unit[inside])) >= MIN_RUNS:
        _, seed_low, seed_high, _ = ratio_interval(change, weight, unit[inside], level, side.most)
    return {
        "weight": float(weight.mean()) if len(weight) else np.nan,
        "before": float(before.sum()) / total if total else np.nan,
        "after": float(after.sum()) / total if total else np.nan,
        "change": of_side.value,
        "low": of_side.low,
        "high": of_side.high,
        "seed_low": seed_low,
        "seed_high": seed_high,
        "contribution": whole.value,
        "contribution_low": whole.low,
        "contribution_high": whole.high,
    }
