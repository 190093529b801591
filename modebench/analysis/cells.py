"""The prompts of every cell, and the intervals of their means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from modebench.analysis.bootstrap import bootstrap_intervals
from modebench.analysis.intervals import Interval, clustered_error, effective_n, t_limits, wilson
from modebench.analysis.metrics import Metric
from modebench.analysis.pass_at_k import IntArray


class IntervalSettings(NamedTuple):
    """How intervals are made.

    Attributes:
        level: of confidence.
        draws: of the bootstrap; 0 for closed forms.
        seed: of the bootstrap.
        units: label of each prompt's unit of the upper level, [P]; None without one.
        prompts: label of each prompt, the same in every unit, [P].
    """

    level: float
    draws: int
    seed: int
    units: IntArray | None
    prompts: IntArray


def interval_settings(
    identity: pd.DataFrame, level: float, draws: int, seed: int, upper_level: str | None
) -> IntervalSettings:
    """The settings for prompts that these columns identify, [P]."""

    def labels(columns: list[str]) -> IntArray:
        return identity.groupby(columns, dropna=False, observed=True).ngroup().to_numpy().astype(np.int64)

    units = None if upper_level is None else labels([upper_level])
    prompts = labels([str(name) for name in identity if name != upper_level])
    return IntervalSettings(level, draws, seed, units, prompts)


class Cells:
    """The prompts of every cell, and the intervals of their means.

    Attributes:
        prompts: the prompt table.
        rows: row numbers of each cell's prompts, cells sorted by their keys.
    """

    def __init__(self, prompts: pd.DataFrame, by: list[str], metrics: Sequence[Metric]) -> None:
        self.prompts = prompts
        groups = prompts.groupby(by, sort=True, dropna=False, observed=True)
        number = groups.ngroup().to_numpy()
        self.rows = [np.flatnonzero(number == cell) for cell in range(int(number.max(initial=-1)) + 1)]
        names = [m.name for m in metrics]
        self.n, self.mean, self.spread = groups[names].count(), groups[names].mean(), groups[names].std()
        self.total = groups[["samples", "graded"]].sum()
        self.sampling_variance = groups["pcmd_variance"].mean().to_numpy(dtype=np.float64)

    def intervals(self, metrics: Sequence[Metric], how: IntervalSettings) -> dict[str, list[Interval]]:
        """Intervals of the metrics in every cell, by name: from the bootstrap when there are draws, else
        t over units where there are some, else the metric's own closed form over prompts."""
        if not how.draws and how.units is not None:
            cells = [self._over_units(metrics, rows, how.units[rows], how.level) for rows in self.rows]
            return {metric.name: [cell[i] for cell in cells] for i, metric in enumerate(metrics)}
        if not how.draws:
            return {metric.name: self._closed_form(metric, how.level) for metric in metrics}
        values = self.prompts[[metric.name for metric in metrics]].to_numpy(dtype=np.float64)
        cells = [
            bootstrap_intervals(
                values[rows],
                draws=how.draws,
                seed=how.seed,
                level=how.level,
                units=None if how.units is None else how.units[rows],
                prompts=how.prompts[rows],
            )
            for rows in self.rows
        ]
        return {metric.name: [cell[i] for cell in cells] for i, metric in enumerate(metrics)}

    def _over_units(
        self, metrics: Sequence[Metric], rows: IntArray, units: IntArray, level: float
    ) -> list[Interval]:
        """Intervals of one cell whose units, not its prompts, are the observations."""
        values = self.prompts.iloc[rows][[metric.name for metric in metrics]].to_numpy(dtype=np.float64)
        mean, error, count = clustered_error(values, units)
        least = [metric.lower for metric in metrics]
        most = [metric.most for metric in metrics]
        low, high = t_limits(mean, error, count, level, least, most)
        n = (~np.isnan(values)).sum(axis=0)
        return [
            Interval(float(v), float(down), float(up), int(size))
            for v, down, up, size in zip(mean, low, high, n, strict=True)
        ]

    def _closed_form(self, metric: Metric, level: float) -> list[Interval]:
        n = self.n[metric.name].to_numpy(dtype=np.int64)
        mean = self.mean[metric.name].to_numpy(dtype=np.float64)
        error = self.spread[metric.name].to_numpy(dtype=np.float64) / np.sqrt(np.maximum(n, 1))
        if metric.kind == "rate":
            # An error is an observation of the error rate only.
            samples = self.total["samples" if metric.name == "error_rate" else "graded"]
            limits = wilson(mean, effective_n(mean, error, n, samples.to_numpy()), level)
        else:
            limits = t_limits(mean, error, n, level, metric.lower, metric.upper)
        return [
            Interval(float(v), float(low), float(high), int(size))
            for v, low, high, size in zip(mean, limits.low, limits.high, n, strict=True)
        ]
