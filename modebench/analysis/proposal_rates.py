"""What became of the tasks that a method proposed: valid, within reach of the learner, worth a gradient.

A proposed task is *effective* when it passes the executable checks, lies in the band of group accuracy that
its method trains on, and its rollouts differ in reward. Of what fails the checks, the kinds of failure are
shares of all proposals; what fails them and lies in the band all the same is what a method without execution
would take for good (SVS, arXiv:2508.14029, lets a new problem inherit the old answer unchecked).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.intervals import MIN_RUNS, Interval, clustered_error, effective_n, t_limits, wilson
from modebench.analysis.long_table import BoolArray, columns_of
from modebench.analysis.pass_at_k import FloatArray, IntArray
from modebench.errors import UsageError

BAND = (0.125, 0.625)
"""Group accuracies for which SVS pays the writer of a task, both ends included."""


def in_band(correct: pd.Series, size: pd.Series, band: tuple[float, float] = BAND) -> BoolArray:
    """Whether low <= correct / size <= high, [N]; compared as exact fractions of the decimals that are given.

    >>> in_band(pd.Series([1, 5, 6, np.nan]), pd.Series([8, 8, 8, np.nan])).tolist()
    [True, True, False, False]
    """
    low, high = (Fraction(str(end)) for end in band)
    found = np.zeros(len(correct), dtype=np.bool_)
    for place, (right, asked) in enumerate(zip(correct, size, strict=True)):
        found[place] = asked > 0 and low <= Fraction(int(right), int(asked)) <= high
    return found


def proposal_rates(
    proposals: pd.DataFrame,
    by: str | Sequence[str] = ("arm", "part", "form"),
    *,
    band: tuple[float, float] = BAND,
    bins: int | None = None,
    interval: float = 0.95,
    upper_level: str = "seed",
) -> pd.DataFrame:
    """Shares of the proposed tasks that are valid, in band, mixed and effective, and of the kinds of failure.

    ``valid``: every executable check was passed. ``in_band``: valid, and the group accuracy lies in `band`.
    ``mixed``: valid, and some rollouts are right and some wrong. ``effective``: all three.
    ``invalid_in_band``: not valid, asked all the same, and in band. ``failure/KIND``: the kinds of failure.

    All are shares of the proposals of a cell. Proposals of one step share policy and sources, so steps are
    the observations (Wilson on the effective sample size, `modebench.analysis.intervals.effective_n`), and
    from three runs on the runs are (t).

    Args:
        proposals: a row a task; see `modebench.proposals.read_proposals` for the columns.
        by: columns that make the cells.
        band: lowest and highest group accuracy, both included.
        bins: split every cell into so many bins of steps, as even as can be; None for no such split.
        interval: level of the intervals.
        upper_level: column that tells runs apart, where there is one.

    Returns:
        a row a cell and metric: the `by` columns, with `bins` ``bin`` from 1, ``from_step``, ``to_step``;
        ``metric``, ``value``, ``low``, ``high``, ``count``, ``n`` (proposals).

    Raises:
        UsageError: `by` names no column, bins below 1, or a band that is not 0 <= low <= high <= 1.
    """
    keys = columns_of(by)
    missing = [name for name in keys if name not in proposals]
    if missing:
        raise UsageError(
            f"the proposed tasks have no column {missing[0]}; they have {', '.join(map(str, proposals))}"
        )
    if bins is not None and bins < 1:
        raise UsageError(f"the number of bins must be at least 1, not {bins}")
    if not 0 <= band[0] <= band[1] <= 1:
        raise UsageError(f"a band is two group accuracies, low and high, not {band[0]} and {band[1]}")
    if not len(proposals):
        return pd.DataFrame()
    frame = proposals.reset_index(drop=True)
    if bins is not None:
        frame = frame.assign(**_bins(frame["step"], bins))
        keys = [*keys, "bin", "from_step", "to_step"]
    marked = _marks(frame, band)
    run = frame[upper_level] if upper_level in frame else pd.Series(0, index=frame.index)
    unit = pd.factorize(run)[0].astype(np.int64)
    step = pd.factorize(pd.MultiIndex.from_arrays([unit, frame["step"]]))[0].astype(np.int64)
    rows: list[dict[str, Any]] = []
    for values, cell in frame.groupby(keys, sort=True, dropna=False, observed=True):
        inside = cell.index.to_numpy()
        for metric, marks in marked.items():
            found = _rate(marks[inside], step[inside], unit[inside], interval)
            head = dict(zip(keys, values, strict=True))
            rows.append({**head, "metric": metric, **found._asdict(), "count": int(marks[inside].sum())})
    return pd.DataFrame(rows)


def _bins(step: pd.Series, bins: int) -> dict[str, IntArray]:
    last = int(step.max())
    edges = np.array_split(np.arange(1, last + 1), min(bins, last))
    number = np.searchsorted([edge[-1] for edge in edges], step.to_numpy())
    first, final = (np.array([edge[end] for edge in edges]) for end in (0, -1))
    return {"bin": number + 1, "from_step": first[number], "to_step": final[number]}


def _marks(frame: pd.DataFrame, band: tuple[float, float]) -> dict[str, BoolArray]:
    """Which proposals count for each metric, [N]."""
    valid = frame["valid"].to_numpy(dtype=np.bool_)
    inside = in_band(frame["correct"], frame["size"], band)
    mixed = ((frame["correct"] > 0) & (frame["correct"] < frame["size"])).to_numpy(dtype=np.bool_)
    marks = {
        "valid": valid,
        "in_band": valid & inside,
        "mixed": valid & mixed,
        "effective": valid & inside & mixed,
        "invalid_in_band": ~valid & inside,
    }
    kinds = sorted(frame["failure"].dropna().unique())
    return marks | {f"failure/{kind}": (frame["failure"] == kind).to_numpy(dtype=np.bool_) for kind in kinds}


def _rate(marks: BoolArray, step: IntArray, unit: IntArray, level: float) -> Interval:
    """A share of proposals, with steps as observations, or runs from three on."""
    values: FloatArray = marks.astype(np.float64)[:, None]
    several = len(np.unique(unit)) >= MIN_RUNS
    mean, error, groups = clustered_error(values, unit if several else step)
    limits = (
        t_limits(mean, error, groups, level, 0.0, 1.0)
        if several
        else wilson(mean, effective_n(mean, error, groups, len(marks)), level)
    )
    return Interval(float(mean[0]), float(limits.low[0]), float(limits.high[0]), len(marks))
