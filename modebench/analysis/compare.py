"""B - A, prompt by prompt: differences with intervals, sign-flip tests, what was learned and lost.

Each pair is one prompt that both sides answered (in one seed, where there are several). The difference of a
metric is the mean over pairs where both sides define it; prompts are the unit of observation, so an interval
over per-prompt differences has the prompts' difficulty taken out and the sampling noise left in (Miller 2024,
arXiv:2411.00640, section 4). It speaks of other prompts of the same law, for these two models; an interval
over seeds speaks of other training seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.special import stdtr

from modebench.analysis.beside_chance import add_chance
from modebench.analysis.bootstrap import bootstrap_intervals
from modebench.analysis.intervals import Limits, clustered_error, clustered_limits, sums_by_label
from modebench.analysis.long_table import columns_of
from modebench.analysis.metrics import Metric, cell_metrics
from modebench.analysis.pairing import Pairs, outcomes, pair_prompts
from modebench.analysis.pass_at_k import FloatArray, IntArray
from modebench.analysis.prompts import checked_ks
from modebench.analysis.sign_flip import holm, sign_flip_p
from modebench.errors import UsageError

SCHEMA = "modebench-comparison-v1"
ALPHA = 0.05
# Settings that the tables themselves show; the others are those of the runs.
TABLE_SETTINGS = ("samples", "tasks", "seeds")
# Where one of these differs the prompts do too, which needs no word of its own.
_IMPLY_PROMPTS = {"profile", "system", "tasks"}
_NUMBERS = {
    "value_a",
    "value_b",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "seed_low",
    "seed_high",
    "seed_p",
}
_MAX_GAP = 0.10
_MIN_SEEDS = 3


class Measured(Protocol):
    """A run, or several: what `modebench.load_run` and `modebench.load_runs` return."""

    def samples(self, reading: str | None = None, *, texts: bool = True) -> pd.DataFrame: ...

    def settings(self) -> Mapping[str, Any]: ...

    def chance(self, reading: str | None = None) -> pd.DataFrame | str: ...


def compare(
    a: pd.DataFrame | Measured,
    b: pd.DataFrame | Measured,
    by: str | Sequence[str] = ("domain", "level"),
    **options: Any,
) -> pd.DataFrame:
    """The differences of `comparison_document` as a tidy table.

    Args:
        a: the side that is subtracted: a long table of samples, a run or several runs.
        b: the other side.
        by: columns that make the cells.
        options: those of `comparison_document`.

    Returns:
        one row a cell and metric: the `by` columns, metric, value_a, value_b, difference, low, high (NaN
        where undefined), n, p, p_holm (of the starred metrics), and seed_low, seed_high, seed_p, seeds where
        there are several.

    Raises:
        UsageError: the sides must not be compared, see `comparison_document`.
        ValueError: as `modebench.analysis.long_table.read_long_table`.
    """
    return tidy_comparison(comparison_document(a, b, by, **options))


def comparison_document(
    a: pd.DataFrame | Measured,
    b: pd.DataFrame | Measured,
    by: str | Sequence[str] = ("domain", "level"),
    *,
    reading: str | None = None,
    allow: Sequence[str] = (),
    starred: Sequence[str] | None = None,
    ks: Sequence[int] | None = None,
    interval: float = 0.95,
    min_eligible: int = 30,
    group_size: int = 8,
    bootstrap: int = 0,
    permutations: int = 10_000,
    seed: int = 0,
    upper_level: str = "seed",
) -> dict[str, Any]:
    """What changes from A to B, as one JSON-ready mapping.

    A cell holds its keys, ``prompts`` (pairs), and for every metric
    ``{a, b, difference, low, high, n, p, p_holm}``: the means of A and B over the n pairs where both are
    defined, B - A, its limits, the two-sided sign-flip p-value, and for the starred metrics the p-value
    adjusted by Holm's method over all of them in all cells. ``chance`` holds for ``a`` and ``b`` the chance
    rows of a summary, over all prompts of that side. ``pcmd`` also has ``eligible_a`` and
    ``eligible_b`` (shares of the pairs) and ``reportable``. ``outcomes`` is that of
    `modebench.analysis.pairing.outcomes`.

    Where a side has several seeds, they are paired by seed: prompts stay the unit of ``low``, ``high`` and
    ``p`` (standard errors clustered by prompt; the p-value flips a prompt's sign in all seeds at once), and
    from three seeds on ``seeds`` holds ``{low, high, p, n}`` over seeds: a t interval and a t test of n - 1
    degrees of freedom, None where all seeds agree. A bootstrap resamples both.

    Args:
        a: long table of samples, a run or several runs: the side that is subtracted.
        b: the other side.
        by: columns that make the cells.
        reading: whose verdicts of runs; None for each run's own.
        allow: names of settings that may differ; see the errors.
        starred: metrics that are tested together; by default accuracy, pass@8, modes@8 (the largest k that
            both sides reach, at most 8), distinct_pair_rate and PCMD.
        ks: the k of pass@k and modes@k.
        interval: level of the intervals.
        min_eligible: pairs from which a difference of PCMD is reportable.
        group_size: of the published per-group forms.
        bootstrap: draws that replace the t intervals; 0 for none.
        permutations: draws of the sign-flip test where its signs are too many to enumerate.
        seed: seed of bootstrap and permutations.
        upper_level: column by which several runs of a side are paired.

    Raises:
        UsageError: the sides differ in a setting (sampling, samples a prompt, reading, prompts, template,
            task sets, seeds) that `allow` does not name; or share no prompt; or a name is unknown.
        ValueError: as `modebench.analysis.long_table.read_long_table`.
    """
    differing = _check_settings(a, b, reading, allow)
    table_a, table_b = (_table(side, reading) for side in (a, b))
    level, table_a, table_b = _paired_units(table_a, table_b, upper_level, allow, differing)
    keys = columns_of(by)
    pairs = pair_prompts(table_a, table_b, keys, level, ks, group_size)
    _check_pairs(pairs, allow, differing)
    most = [int(side["graded"].max()) for side in (pairs.a, pairs.b)]
    asked = checked_ks(ks, max(most))
    metrics = cell_metrics(asked, group_size)
    chosen = list(starred) if starred is not None else _headline(asked, min(most))
    unknown = [name for name in chosen if name not in {metric.name for metric in metrics}]
    if unknown:
        raise UsageError(f"no metric is called {unknown[0]!r}; metrics: {', '.join(m.name for m in metrics)}")
    tests = _Tests(interval, bootstrap, permutations, seed, level)
    cells = [
        _cell(pairs, rows, keys, metrics, tests, min_eligible) for rows in _rows_of(pairs.identity, keys)
    ]
    _adjust(cells, chosen)
    for cell in cells:
        cell["chance"] = {}
    for name, side, table in (("a", a, table_a), ("b", b, table_b)):
        add_chance(cells, name, table, side, keys, level, reading, asked)
    return {
        "schema": SCHEMA,
        "interval": interval,
        "interval_method": tests.method,
        "test": f"sign flips over prompts, {permutations} draws where not all can be listed",
        "min_eligible": min_eligible,
        "upper_level": level,
        "starred": chosen,
        "differing": differing,
        "cells": cells,
        "warnings": _warnings(cells, keys, differing, level),
    }


def tidy_comparison(document: Mapping[str, Any]) -> pd.DataFrame:
    """The cells of a comparison as the table that `compare` returns."""
    rows = []
    for cell in document["cells"]:
        keys = {name: value for name, value in cell.items() if not isinstance(value, Mapping)}
        for name, entry in cell.items():
            if isinstance(entry, Mapping) and "difference" in entry:
                row = {**keys, "metric": name, "value_a": entry["a"], "value_b": entry["b"]}
                row |= {k: entry[k] for k in ("difference", "low", "high", "n", "p", "p_holm")}
                if "seeds" in entry:
                    row |= {f"seed_{name}": entry["seeds"][name] for name in ("low", "high", "p")}
                    row["seeds"] = entry["seeds"]["n"]
                rows.append(row)
    table = pd.DataFrame(rows)
    return table.astype({name: np.float64 for name in table if name in _NUMBERS})


def _table(side: pd.DataFrame | Measured, reading: str | None) -> pd.DataFrame:
    return side if isinstance(side, pd.DataFrame) else side.samples(reading, texts=False)


def _check_settings(
    a: pd.DataFrame | Measured, b: pd.DataFrame | Measured, reading: str | None, allow: Sequence[str]
) -> dict[str, list[Any]]:
    """Settings of the runs that differ and are allowed to; the others are refused."""
    ours, theirs = ({} if isinstance(s, pd.DataFrame) else dict(s.settings()) for s in (a, b))
    known = {*TABLE_SETTINGS, *ours, *theirs}
    if reading is not None:
        ours["reading"] = theirs["reading"] = reading
    if ours or theirs:
        strange = [name for name in allow if name not in known]
        if strange:
            raise UsageError(f"no setting is called {strange[0]!r}; settings: {', '.join(sorted(known))}")
    differing = {
        name: [ours[name], theirs[name]] for name in ours if theirs.get(name, ours[name]) != ours[name]
    }
    if _IMPLY_PROMPTS & differing.keys():
        differing.pop("prompts", None)
    _refuse(differing, allow)
    return differing


def _refuse(differing: Mapping[str, Sequence[Any]], allow: Sequence[str]) -> None:
    """Refuse settings that differ and are not allowed to, all in one line."""
    refused = {name: values for name, values in differing.items() if name not in allow}
    if refused:
        what = "; ".join(f"{name}: {a!r} and {b!r}" for name, (a, b) in refused.items())
        options = " ".join(f"--allow-mismatch {name}" for name in refused)
        raise UsageError(f"A and B differ in {what}; to compare them all the same: {options}")


def _differ(name: str, a: Any, b: Any, allow: Sequence[str], differing: dict[str, list[Any]]) -> None:
    _refuse({name: [a, b]}, allow)
    differing[name] = [a, b]


def _paired_units(
    a: pd.DataFrame, b: pd.DataFrame, column: str, allow: Sequence[str], differing: dict[str, list[Any]]
) -> tuple[str | None, pd.DataFrame, pd.DataFrame]:
    """The column by which runs are paired, None where each side has one; the sides without lone units."""
    if column not in a or column not in b:
        return None, a, b
    of_a, of_b = (sorted(side[column].dropna().unique().tolist()) for side in (a, b))
    if max(len(of_a), len(of_b)) < 2:
        return None, a, b
    if of_a != of_b:
        _differ(f"{column}s", of_a, of_b, allow, differing)
        common = sorted(set(of_a) & set(of_b))
        if not common:
            raise UsageError(f"A and B share no {column}: {of_a} and {of_b}")
        a, b = a[a[column].isin(common)], b[b[column].isin(common)]
    return column, a, b


def _check_pairs(pairs: Pairs, allow: Sequence[str], differing: dict[str, list[Any]]) -> None:
    if not len(pairs.identity):
        raise UsageError("A and B share no prompt that both have answered")
    if (pairs.only_a or pairs.only_b) and "tasks" not in differing:
        _differ("tasks", f"{pairs.only_a} prompts of its own", f"{pairs.only_b} of its own", allow, differing)
    of_a, of_b = (int(side["samples"].max()) for side in (pairs.a, pairs.b))
    if of_a != of_b and "samples" not in differing:
        _differ("samples", of_a, of_b, allow, differing)


def _headline(ks: Sequence[int], most: int) -> list[str]:
    k = max(k for k in (1, *ks) if k <= min(most, 8))
    return ["accuracy", f"pass@{k}", f"modes@{k}", "distinct_pair_rate", "pcmd"]


class _Tests:
    """How the differences of a cell are judged.

    Attributes:
        method: how the intervals are made, in words.
        level: column of the upper level, None without one.
    """

    def __init__(
        self, interval: float, bootstrap: int, permutations: int, seed: int, level: str | None
    ) -> None:
        self._interval = interval
        self._bootstrap = bootstrap
        self._permutations = permutations
        self._seed = seed
        self.level = level
        over = "prompts" if level is None else f"{level}, then prompts"
        self.method = f"bootstrap over {over}" if bootstrap else "t over per-prompt differences"

    def limits(self, differences: FloatArray, prompt: IntArray, unit: IntArray, width: FloatArray) -> Limits:
        """Limits of the mean of each column of [Q, M] differences that lie within +-width."""
        if not self._bootstrap:
            return clustered_limits(differences, prompt, self._interval, width)
        found = bootstrap_intervals(
            differences,
            draws=self._bootstrap,
            seed=self._seed,
            level=self._interval,
            units=None if self.level is None else unit,
            prompts=prompt,
        )
        return Limits(np.array([i.low for i in found]), np.array([i.high for i in found]))

    def over_units(self, differences: FloatArray, unit: IntArray, width: FloatArray) -> Limits:
        return clustered_limits(differences, unit, self._interval, width)

    @staticmethod
    def test_over_units(differences: FloatArray, unit: IntArray) -> tuple[FloatArray, IntArray]:
        """Two-sided p of a t test of each column's mean over units, NaN where all of them agree; and how many
        units define the column."""
        mean, error, units = clustered_error(differences, unit)
        spread = error > 1e-12
        t = np.divide(mean, error, out=np.full(len(mean), np.nan), where=spread)
        return np.asarray(2 * stdtr(np.maximum(units - 1, 1), -np.abs(t))), units

    def p_values(self, differences: FloatArray, prompt: IntArray) -> FloatArray:
        sums, _ = sums_by_label(differences, prompt)
        return sign_flip_p(sums, self._permutations, self._seed)


def _labels(identity: pd.DataFrame, columns: Sequence[str]) -> IntArray:
    groups = identity.groupby(list(columns), sort=True, dropna=False, observed=True)
    return groups.ngroup().to_numpy().astype(np.int64)


def _rows_of(identity: pd.DataFrame, keys: Sequence[str]) -> list[IntArray]:
    """Row numbers of each cell, cells sorted by their keys."""
    cell = _labels(identity, keys)
    return [np.flatnonzero(cell == number) for number in range(int(cell.max()) + 1)]


def _cell(
    pairs: Pairs,
    rows: IntArray,
    keys: Sequence[str],
    metrics: Sequence[Metric],
    tests: _Tests,
    min_eligible: int,
) -> dict[str, Any]:
    identity = pairs.identity.iloc[rows]
    names = [m.name for m in metrics]
    a, b = (side[names].to_numpy(dtype=np.float64)[rows] for side in (pairs.a, pairs.b))
    differences = b - a
    unit = np.zeros(len(rows), dtype=np.int64) if tests.level is None else _labels(identity, [tests.level])
    prompt = _labels(identity, [str(name) for name in identity if name != tests.level])
    width = np.array([m.most - m.lower for m in metrics])
    limits, p_values = tests.limits(differences, prompt, unit, width), tests.p_values(differences, prompt)
    units = len(np.unique(unit))
    seeds = tests.over_units(differences, unit, width) if units >= _MIN_SEEDS else None
    seed_p, seed_n = tests.test_over_units(differences, unit)
    head = {name: _plain(identity[name].iloc[0]) for name in keys}
    cell: dict[str, Any] = {**head, "prompts": len(np.unique(prompt)), "pairs": len(rows)}
    for i, metric in enumerate(metrics):
        entry = _means(a[:, i], b[:, i])
        entry |= {"low": _number(limits.low[i]), "high": _number(limits.high[i])}
        entry |= {"p": _number(p_values[i]) if entry["n"] else None, "p_holm": None}
        if seeds is not None:
            limits_of = {"low": _number(seeds.low[i]), "high": _number(seeds.high[i])}
            entry["seeds"] = {**limits_of, "p": _number(seed_p[i]), "n": int(seed_n[i])}
        if metric.name == "pcmd":
            shares = {f"eligible_{k}": float(1 - np.isnan(v[:, i]).mean()) for k, v in (("a", a), ("b", b))}
            entry |= {**shares, "reportable": entry["n"] >= min_eligible}
        cell[metric.name] = entry
    cell["outcomes"] = outcomes(pairs, rows)
    return cell


def _means(a: FloatArray, b: FloatArray) -> dict[str, Any]:
    """Means of both sides over the pairs where both are defined, and their difference."""
    both = ~np.isnan(a) & ~np.isnan(b)
    n = int(both.sum())
    means = [float(values[both].mean()) if n else None for values in (a, b, b - a)]
    return {**dict(zip(("a", "b", "difference"), means, strict=True)), "n": n}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if value != value else value


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _adjust(cells: Sequence[dict[str, Any]], starred: Sequence[str]) -> None:
    """Holm's adjustment over the starred metrics of all cells, in place."""
    entries = [cell[name] for cell in cells for name in starred if cell[name]["p"] is not None]
    for entry, p in zip(entries, holm([entry["p"] for entry in entries]), strict=True):
        entry["p_holm"] = float(p)


def _warnings(
    cells: Sequence[Mapping[str, Any]],
    keys: Sequence[str],
    differing: Mapping[str, Sequence[Any]],
    level: str | None,
) -> list[str]:
    warnings = [f"mismatch: A and B differ in {name}: {a!r} and {b!r}" for name, (a, b) in differing.items()]
    for cell in cells:
        label = ", ".join(f"{name} {cell[name]}" for name in keys)
        a, b = cell["pcmd"]["eligible_a"], cell["pcmd"]["eligible_b"]
        if abs(a - b) > _MAX_GAP:
            warnings.append(
                f"eligibility: {label}: PCMD is defined on {a:.0%} of A's prompts and {b:.0%} of B's; the "
                "difference is over prompts that define both, which may be the easy ones"
            )
    if level is not None and all("seeds" not in cell["accuracy"] for cell in cells):
        warnings.append(f"few-units: two values of {level} are too few for an interval over {level}")
    return warnings
