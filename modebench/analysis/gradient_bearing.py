"""How many of the groups that a method generates bear a gradient, over its training.

A group of rollouts that are all paid alike has no advantage, and teaches nothing: such rollouts are generated
and not learned from. ``with_gradient`` is the share of the groups with a row whose loss has a gradient,
discarded groups among them; a divergence or an entropy bonus gives every row one, so ``mixed_groups``, the
share with unequal rewards (the "gradient-bearing" groups of SynCo, arXiv:2610.11345), stands beside it.
Rehearsal of stored responses counts in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.intervals import Interval, run_interval
from modebench.analysis.long_table import columns_of
from modebench.analysis.pass_at_k import FloatArray, IntArray
from modebench.errors import UsageError

SHARES = ("with_gradient", "mixed_groups", "accuracy")
TASKS = "tasks"
"""Source of the groups of the tasks that a run is given."""


def gradient_bearing(
    steps: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "arm"),
    *,
    bins: int = 5,
    interval: float = 0.95,
    upper_level: str = "seed",
) -> pd.DataFrame:
    """Shares of the groups by bins of steps, and how they differ from the first bin.

    Within a run the share of a bin is that of all its groups: a step counts by the groups that it generated
    (``groups``, or ``SOURCE/groups``; in a log without them, by its rollouts, to which the groups of equal
    size are proportional). The steps of one run depend on each other, so runs are the observations.

    Args:
        steps: a row a step of a run: the columns of `by` and `upper_level`, step (from 1), with_gradient,
            mixed_groups, accuracy, total/rollouts (up to this step), groups where it was logged, and the
            shares of the groups of every other source under ``SOURCE/``.
        by: columns that make the cells.
        bins: of steps, as even as can be; at most the steps of a cell.
        interval: level of the intervals.
        upper_level: column that tells the runs of a cell apart.

    Returns:
        a row a cell, source and bin: the `by` columns; ``source`` (``tasks``, the name of a part that made
        tasks, or ``PART/write`` for the groups that asked for tasks); ``bin`` from 1, ``from_step``,
        ``to_step``; ``runs``; for each of with_gradient, mixed_groups and accuracy the mean over runs, and of
        the first two ``NAME_low``, ``NAME_high`` (t over runs, NaN below three); ``change`` of with_gradient
        since the first bin, NaN there, with ``change_low``, ``change_high`` (t over the differences within
        runs).

    Raises:
        UsageError: `bins` below 1, or a column is missing.

    >>> log = pd.DataFrame({"arm": "a", "seed": 0, "step": [1, 2], "with_gradient": [1.0, 0.5],
    ...     "mixed_groups": [1.0, 0.5], "accuracy": [0.2, 0.6], "total/rollouts": [8, 16]})
    >>> gradient_bearing(log, by="arm", bins=2)["with_gradient"].tolist()
    [1.0, 0.5]
    """
    keys = columns_of(by)
    if bins < 1:
        raise UsageError(f"the number of bins must be at least 1, not {bins}")
    needed = [*keys, upper_level, "step", "total/rollouts", *SHARES]
    missing = [name for name in dict.fromkeys(needed) if name not in steps]
    if missing:
        raise UsageError(f"the log of steps lacks the columns {missing}")
    rows: list[dict[str, Any]] = []
    for values, cell in steps.groupby(keys, sort=True, dropna=False, observed=True):
        head = dict(zip(keys, values, strict=True))
        edges = np.array_split(np.arange(1, int(cell["step"].max()) + 1), min(bins, int(cell["step"].max())))
        for source in sources_of(cell):
            runs = [run.sort_values("step") for _, run in cell.groupby(upper_level, sort=True, dropna=False)]
            shares = np.array([_shares(run, source, edges) for run in runs])
            for number, edge in enumerate(edges):
                place = {
                    "source": source,
                    "bin": number + 1,
                    "from_step": int(edge[0]),
                    "to_step": int(edge[-1]),
                }
                rows.append({**head, **place, **_row(shares, number, interval)})
    return pd.DataFrame(rows)


def sources_of(steps: pd.DataFrame) -> list[str]:
    """Where the groups of a log are from, those that any step has: the run's own tasks first."""
    logged = [name for name in map(str, steps) if name.rpartition("/")[2] == "with_gradient"]
    found = [name for name in logged if steps[name].notna().any()]
    return [name.rpartition("/")[0] or TASKS for name in sorted(found, key=len)]


def _shares(run: pd.DataFrame, source: str, edges: Sequence[IntArray]) -> FloatArray:
    """[bins, 3] of one run: each of `SHARES` over the groups of a bin, NaN where there are none."""
    prefix = "" if source == TASKS else f"{source}/"
    if f"{prefix}groups" in run and run[f"{prefix}groups"].notna().any():
        weight = run[f"{prefix}groups"].to_numpy(dtype=np.float64)
    else:
        weight = np.diff(run["total/rollouts"].to_numpy(dtype=np.float64), prepend=0.0)
    names = [prefix + name for name in SHARES]
    # What asks for tasks has no accuracy.
    values = run.reindex(columns=names).to_numpy(dtype=np.float64)
    step, found = run["step"].to_numpy(), np.full((len(edges), len(SHARES)), np.nan)
    for number, edge in enumerate(edges):
        inside = (step >= edge[0]) & (step <= edge[-1])
        counts = np.where(np.isnan(values[inside]), 0.0, np.nan_to_num(weight[inside])[:, None])
        total = counts.sum(axis=0)
        sums = (counts * np.nan_to_num(values[inside])).sum(axis=0)
        found[number] = np.divide(sums, total, out=np.full(len(total), np.nan), where=total > 0)
    return found


def _row(shares: FloatArray, number: int, level: float) -> dict[str, float]:
    """Means over runs of [runs, bins, 3] shares in one bin, and what has changed since the first."""
    row: dict[str, float] = {}
    for place, name in enumerate(SHARES):
        found = run_interval(shares[:, number, place], level, 0.0, 1.0)
        row[name] = found.value
        if name == "with_gradient":
            row["runs"] = found.n
        if name != "accuracy":
            row |= {f"{name}_low": found.low, f"{name}_high": found.high}
    change = Interval(np.nan, np.nan, np.nan, 0)
    if number:
        change = run_interval(shares[:, number, 0] - shares[:, 0, 0], level, -1.0, 1.0)
    return {**row, "change": change.value, "change_low": change.low, "change_high": change.high}
