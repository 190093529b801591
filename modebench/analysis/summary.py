"""Cells: means over prompts with intervals, as a tidy table or as a JSON-ready document."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from modebench.analysis.caveats import cell_warnings, chance_warnings, seed_warnings
from modebench.analysis.cells import Cells, IntervalSettings, interval_settings
from modebench.analysis.chance import (
    COLUMNS,
    NO_CHANCE,
    NONE_RIGHT,
    ROWS,
    aligned,
    chance_metrics,
    constant_statistics,
    shuffled_statistics,
    uniform_statistics,
)
from modebench.analysis.diversity import effective_modes
from modebench.analysis.intervals import Interval, mean_of_cells
from modebench.analysis.long_table import LongTable, columns_of, read_long_table
from modebench.analysis.metrics import ELIGIBLE_ONLY, Metric, cell_metrics
from modebench.analysis.prompts import checked_ks, prompt_statistics, prompt_table
from modebench.analysis.streams import Streams, find_streams, repeated_seeds, without_copies

__all__ = ["SCHEMA", "prompt_table", "summarize", "summary_document"]

SCHEMA = "modebench-summary-v1"
CLOSED_FORM = "wilson-effective-n, t over prompts"
COUNTS = ("correct", "incorrect", "malformed", "error", "truncated")
# Columns over which cells may be averaged; any other tells measured things apart.
TASK_COLUMNS = ("domain", "level", "split")
Cell = dict[str, Any]


def summary_document(
    samples: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "level"),
    ks: Sequence[int] | None = None,
    *,
    min_eligible: int = 30,
    interval: float = 0.95,
    group_size: int = 8,
    bootstrap: int = 0,
    seed: int = 0,
    upper_level: str | None = None,
    reading: str | None = None,
    profile: str | None = None,
    chance: pd.DataFrame | str = NO_CHANCE,
    distinct_streams: bool = False,
) -> dict[str, Any]:
    """The numbers of a run as one JSON-ready mapping (no NaN, no numpy types).

    A cell holds its keys, with an upper level ``units`` (how many values of it), ``split``, ``prompts`` (with
    a graded sample, in every unit for itself; the others are counted in
    ``prompts_without_samples``), ``samples_per_prompt`` (the most that a prompt has, errors included),
    ``graded_per_prompt`` (``min`` and ``max`` of K), ``counts`` by status (``truncated`` overlaps the
    others), and the metrics.

    A metric is ``{value, low, high, n}``: the mean over prompts, each with the same weight, its limits, and
    the number of prompts that enter it. Undefined numbers are None, and an undefined value has a ``reason``.
    ``pcmd`` also has ``eligible`` (= n), ``reportable`` (n >= min_eligible) and ``sampling_variance`` (mean
    over the prompts with four correct samples); ``certified_coverage`` also has ``uncertified_modes``
    (distinct correct modes outside the enumeration, summed over prompts).

    ``chance`` of a cell holds ``shuffled``, ``uniform`` and ``best_constant``, each with accuracy, pass@k,
    modes@k and PCMD of the same form (`modebench.analysis.chance`); ``best_constant`` also has the
    ``answer`` (None where the cell joins task sets with different ones) and its ``bound``: ``exact``, or
    ``lower`` where a better answer may exist.

    ``streams`` says whether the samples are independent draws: how many ``positions`` were compared, how many
    ``distinct`` streams they are, the ``lags`` between copies with their agreement and that expected by
    chance, and how many samples have ``repeated_seeds`` (`modebench.analysis.streams`).

    ``overall`` holds the same metrics as equal means of the cells, n being the number of cells. A metric
    that is None in any cell is None there, and PCMD is reportable where it is so in every cell. It is empty
    when cells differ in more than domain, level and split: a mean across models or arms says nothing.
    ``warnings`` are texts that begin with a stable code.

    Args:
        samples: long table, one row a sample; see `modebench.analysis.long_table.read_long_table`.
        by: columns whose distinct values make the cells.
        ks: the k of pass@k and modes@k; None for powers of two up to the largest K, and at least 8.
        min_eligible: eligible prompts from which PCMD is reportable.
        interval: level of the intervals.
        group_size: group size of the published per-group forms.
        bootstrap: number of bootstrap draws over prompts that replace the closed-form intervals; 0 for none.
        seed: seed of the bootstrap.
        upper_level: column whose values are the observations, ``seed`` for runs of several seeds in one cell:
            closed-form intervals are t over them (`modebench.analysis.intervals.clustered_limits`), and the
            bootstrap resamples them first and prompts second
            (`modebench.analysis.bootstrap.bootstrap_intervals`).
        reading: verifier reading that the verdicts come from, to be shown with the numbers.
        profile: prompt profile of the run, likewise.
        chance: what chance does on each prompt, see `modebench.analysis.chance.aligned` for the columns; or
            the reason why that is not known, which then stands in the chance rows.
        distinct_streams: give every cell its metrics on distinct streams alone beside the others, under
            ``distinct_streams``; there the per-group forms are mostly undefined, as groups lose samples.

    Returns:
        ``{schema, reading, profile, interval, interval_method, min_eligible, ks, streams, cells, overall,
        warnings}``.

    Raises:
        ValueError: as `read_long_table`; a bad k; a level outside (0, 1); an upper level that is a column of
            `by`.
    """
    keys = columns_of(by)
    if upper_level is not None and upper_level in keys:
        raise ValueError(f"upper level {upper_level!r} is a column of `by`")
    table = read_long_table(samples, keys if upper_level is None else [*keys, upper_level])
    prompts = prompt_statistics(table, ks, group_size)
    asked = checked_ks(ks, int(prompts["graded"].max()) if len(prompts) else 0)
    metrics = cell_metrics(asked, group_size)
    grouped = Cells(prompts, keys, metrics)
    how = interval_settings(table.prompts, interval, bootstrap, seed, upper_level)
    found = grouped.intervals(metrics, how)
    means = [(m, found[m.name]) for m in metrics]
    cells = _entries(grouped, keys, means, min_eligible)
    if how.units is not None:
        for cell, within in zip(cells, grouped.rows, strict=True):
            cell["units"] = len(np.unique(how.units[within]))
    beside = _ChanceRows(grouped, table.prompts, keys, chance_metrics(metrics), chance)
    for cell, rows in zip(cells, beside.entries(how), strict=True):
        cell["chance"] = rows
    streams = find_streams(table, grouped.rows)
    if distinct_streams:
        kept = without_copies(table, streams)
        again = summary_document(
            kept,
            keys,
            asked,
            min_eligible=min_eligible,
            interval=interval,
            group_size=group_size,
            bootstrap=bootstrap,
            seed=seed,
            upper_level=upper_level,
        )
        for cell, corrected in zip(cells, again["cells"], strict=True):
            measured = {name: entry for name, entry in corrected.items() if _is_metric(entry)}
            cell["distinct_streams"] = {"samples": corrected["samples_per_prompt"], **measured}
    return {
        "schema": SCHEMA,
        "reading": reading,
        "profile": profile,
        "interval": interval,
        "interval_method": _method(bootstrap, upper_level),
        "min_eligible": min_eligible,
        "ks": list(asked),
        "streams": _streams(table, streams),
        "cells": cells,
        "overall": _overall(cells, keys, metrics),
        "warnings": [
            *cell_warnings(table, prompts, grouped.rows, keys, asked, streams),
            *seed_warnings(table),
            *chance_warnings(prompts, beside.shuffled_accuracy, grouped.rows, keys, interval),
        ],
    }


def _is_metric(entry: Any) -> bool:
    return isinstance(entry, dict) and "value" in entry


def _streams(table: LongTable, streams: Streams) -> dict[str, Any]:
    within, across = repeated_seeds(table)
    return {
        "positions": len(streams.first),
        "distinct": streams.distinct,
        "lags": streams.lags[["lag", "agreement", "chance"]].to_dict("records"),
        "repeated_seeds": {"within_prompts": within, "across_runs": across},
    }


def _method(draws: int, upper_level: str | None) -> str:
    if not draws:
        return CLOSED_FORM if upper_level is None else f"t over {upper_level}s"
    return "bootstrap over prompts" if upper_level is None else f"bootstrap over {upper_level}, then prompts"


def summarize(
    samples: pd.DataFrame,
    by: str | Sequence[str] = ("domain", "level"),
    ks: Sequence[int] | None = None,
    *,
    min_eligible: int = 30,
    interval: float = 0.95,
    group_size: int = 8,
    bootstrap: int = 0,
    seed: int = 0,
    upper_level: str | None = None,
) -> pd.DataFrame:
    """The cells of `summary_document` as a tidy table.

    Args and errors are those of `summary_document`.

    Returns:
        one row a cell and metric: the `by` columns, split, prompts, samples_per_prompt, metric, value, low,
        high (NaN where undefined), n, and reportable (False where a metric that rests on prompts with two
        correct samples has fewer than `min_eligible` of them).
    """
    document = summary_document(
        samples,
        by,
        ks,
        min_eligible=min_eligible,
        interval=interval,
        group_size=group_size,
        bootstrap=bootstrap,
        seed=seed,
        upper_level=upper_level,
    )
    return tidy(document["cells"], min_eligible)


def tidy(cells: Sequence[Cell], min_eligible: int) -> pd.DataFrame:
    """Cells of a summary document as the table that `summarize` returns."""
    rows = []
    for cell in cells:
        keys = {name: value for name, value in cell.items() if not isinstance(value, dict)}
        keys.pop("prompts_without_samples", None)
        chance = {
            f"chance.{row}.{name}": metric
            for row, metrics in cell.get("chance", {}).items()
            for name, metric in metrics.items()
            if _is_metric(metric) and metric["value"] is not None
        }
        for name, metric in {**cell, **chance}.items():
            if _is_metric(metric):
                numbers = {key: metric[key] for key in ("value", "low", "high", "n")}
                reportable = name.split(".")[-1] not in ELIGIBLE_ONLY or metric["n"] >= min_eligible
                rows.append({**keys, "metric": name, **numbers, "reportable": reportable})
    table = pd.DataFrame(rows)
    if rows:
        table[["value", "low", "high"]] = table[["value", "low", "high"]].astype(np.float64)
    return table


class _ChanceRows:
    """The chance rows of every cell.

    Attributes:
        metrics: what each row states.
        rows: by name of the row: its cells, the reason where a value is missing, and the row's own prompts.
        shuffled_accuracy: accuracy of the shuffled answers on every prompt, [P].
    """

    def __init__(
        self,
        cells: Cells,
        identity: pd.DataFrame,
        by: list[str],
        metrics: Sequence[Metric],
        chance: pd.DataFrame | str,
    ) -> None:
        self.metrics = metrics
        nothing = {name: [None] * len(identity) for name in COLUMNS}
        self._table = nothing if isinstance(chance, str) else aligned(chance, identity)
        self._unknown = dict.fromkeys(ROWS, chance) if isinstance(chance, str) else ROWS
        ks = [int(m.name.removeprefix("pass@")) for m in metrics if m.name.startswith("pass@")]
        column = self._table
        statistics = (
            shuffled_statistics(column["shuffled_counts"], column["shuffled_graded"], ks),
            uniform_statistics(column["space"], column["right"], ks),
            constant_statistics(column["constant_right"], ks),
        )
        self.shuffled_accuracy = statistics[0]["accuracy"]
        # Only shuffled answers are samples, whose number bounds what their mean is worth.
        graded = cells.prompts["graded"].to_numpy(dtype=np.float64)
        worth = (graded, np.full_like(graded, np.inf), np.full_like(graded, np.inf))
        frames = (
            cells.prompts[[*by, "samples", "pcmd_variance"]].assign(graded=most, **columns)
            for most, columns in zip(worth, statistics, strict=True)
        )
        self._cells = {name: Cells(frame, by, metrics) for name, frame in zip(ROWS, frames, strict=True)}

    def entries(self, how: IntervalSettings) -> list[dict[str, Any]]:
        """The value of ``chance`` in every cell."""
        found: list[dict[str, Any]] = [{name: {} for name in ROWS} for _ in self._cells["shuffled"].rows]
        for name, cells in self._cells.items():
            intervals = cells.intervals(self.metrics, how)
            for metric in self.metrics:
                for entry, interval in zip(found, intervals[metric.name], strict=True):
                    entry[name][metric.name] = _entry(interval, self._reason(name, metric, entry[name]))
        for entry, rows in zip(found, self._cells["best_constant"].rows, strict=True):
            entry["best_constant"] |= self._answer(rows)
        return found

    def _reason(self, name: str, metric: Metric, row: Mapping[str, Any]) -> str:
        """Why a metric of a row is undefined; accuracy comes first, and is known wherever anything is."""
        if "accuracy" not in row or row["accuracy"]["value"] is None:
            return self._unknown[name]
        return metric.undefined if name == "shuffled" else NONE_RIGHT

    def _answer(self, rows: Iterable[int]) -> dict[str, str | None]:
        """The answer of the best constant in a cell, and whether a better one may exist."""
        answers, exact = (
            {value for row in rows if (value := self._table[name][row]) is not None}
            for name in ("constant_answer", "constant_exact")
        )
        bound = None if not exact else "exact" if all(exact) else "lower"
        return {"answer": answers.pop() if len(answers) == 1 else None, "bound": bound}


def _entries(
    cells: Cells, by: list[str], means: Sequence[tuple[Metric, list[Interval]]], min_eligible: int
) -> list[Cell]:
    entries = []
    for number, rows in enumerate(cells.rows):
        prompts = cells.prompts.iloc[rows]
        entry = _head(prompts, by)
        for metric, intervals in means:
            entry[metric.name] = _entry(intervals[number], metric.undefined)
            if metric.name == "pcmd":
                n = intervals[number].n
                entry["pcmd"] |= {"eligible": n, "reportable": n >= min_eligible}
                entry["pcmd"]["sampling_variance"] = _number(cells.sampling_variance[number])
                entry["effective_modes"] = _effective(intervals[number], metric.undefined)
        entry["certified_coverage"]["uncertified_modes"] = int(prompts["uncertified_modes"].sum())
        entries.append(entry)
    return entries


def _head(rows: pd.DataFrame, by: list[str]) -> Cell:
    """What a cell is, and what it counts."""
    head: Cell = {name: _plain(rows[name].iloc[0]) for name in by}
    if "split" not in head:
        splits = set(rows["split"].dropna().astype(str)) if "split" in rows else set()
        head["split"] = "+".join(sorted(splits)) or None
    graded = rows.loc[rows["graded"] > 0, "graded"]
    return head | {
        "prompts": len(graded),
        "prompts_without_samples": len(rows) - len(graded),
        "samples_per_prompt": int(rows["samples"].max()),
        "graded_per_prompt": {
            "min": int(graded.min()) if len(graded) else 0,
            "max": int(graded.max()) if len(graded) else 0,
        },
        "counts": {name: int(rows[name].sum()) for name in COUNTS},
    }


def _plain(value: Any) -> Any:
    """A key as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is pd.NA or value is pd.NaT or value != value else value


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _entry(interval: Interval, undefined: str) -> dict[str, Any]:
    value, low, high = (_number(x) for x in interval[:3])
    entry: dict[str, Any] = {"value": value, "low": low, "high": high, "n": int(interval.n)}
    if value is None:
        entry["reason"] = undefined
    return entry


def _effective(mean_pcmd: Interval, undefined: str) -> dict[str, Any]:
    """Effective modes of the mean PCMD; its limits are the transformed limits."""
    value, low, high = (float(effective_modes(x)) for x in mean_pcmd[:3])
    reason = undefined if mean_pcmd.n == 0 else "every two correct samples differ: no finite number of modes"
    return _entry(Interval(value, low, high, mean_pcmd.n), reason)


def _overall(cells: Sequence[Cell], by: Sequence[str], metrics: Sequence[Metric]) -> dict[str, Any]:
    """Equal means of the cells of one model: none across models, arms or seeds."""
    others = [name for name in by if name not in TASK_COLUMNS]
    if len({tuple(cell[name] for name in others) for cell in cells}) != 1:
        return {}
    overall: dict[str, Any] = {"cells": len(cells)}
    for name in [*(m.name for m in metrics), "effective_modes"]:
        overall[name] = _mean_entry([cell[name] for cell in cells])
    beside = [cell["chance"] for cell in cells]
    overall["chance"] = {
        row: {m.name: _mean_entry([c[row][m.name] for c in beside]) for m in chance_metrics(metrics)}
        for row in ROWS
    }
    overall["pcmd"]["reportable"] = all(cell["pcmd"]["reportable"] for cell in cells)
    return overall


def _mean_entry(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The equal mean of one metric over the cells."""
    value, low, high = (
        np.array([np.nan if e[key] is None else e[key] for e in entries]) for key in ("value", "low", "high")
    )
    undefined = f"undefined in {int(np.isnan(value).sum())} of {len(entries)} cells"
    return _entry(mean_of_cells(value, low, high), undefined)
